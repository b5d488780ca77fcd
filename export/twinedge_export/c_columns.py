"""The columns of a table in C: enums of levels, a struct for a row, and its encoder."""

import re
import unicodedata
from collections.abc import Iterable

from twinedge.encoding import Encoding
from twinedge.errors import listed
from twinedge.pack.contents import Array

# fmt: off
_TAKEN = frozenset({  # by C, C++, compilers' own macros, and the header itself
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while", "asm", "bool", "catch", "class",
    "delete", "explicit", "export", "false", "friend", "mutable", "namespace", "new",
    "operator", "private", "protected", "public", "template", "this", "throw", "true", "try",
    "typename", "using", "virtual", "and", "or", "not", "xor", "and_eq", "bitand", "bitor",
    "compl", "not_eq", "or_eq", "xor_eq", "alignas", "alignof", "char16_t", "char32_t", "char8_t",
    "concept", "const_cast", "consteval", "constexpr", "constinit", "co_await", "co_return",
    "co_yield", "decltype", "dynamic_cast", "noexcept", "nullptr", "reinterpret_cast", "requires",
    "static_assert", "static_cast", "thread_local", "typeid", "typeof", "typeof_unqual",
    "wchar_t", "i386", "linux", "unix", "encode", "level", "row", "twin",
})
# fmt: on
_PROTOTYPE = """
/* Encodes a row as features for twin_predict. Returns how many of its categories have a level that
 * training did not see: a prediction for such a row belongs to no level in particular. */
int model_encode(const struct model_row *row, float x[MODEL_FEATURES]);
"""
_ENCODER = """
/* clang-format on */

/* One feature for each level; after the last level come "unknown" and "missing". */
static int model_level(float *x, int width, int level) {
    int k;
    for (k = 0; k < width; k++)
        x[k] = level > width ? NAN : (float)(level == k);
    return level == width;
}

int model_encode(const struct model_row *row, float x[MODEL_FEATURES]) {
    int unknown = 0;
%s
    return unknown;
}
"""


class CColumns:
    """Names and code for the columns of a model with categories.

    Parameters
    ----------
    encoding : Encoding
        Has at least one category.
    filled : array of shape (f,), bool
        Features that may be missing.
    """

    def __init__(self, encoding: Encoding, filled: Array) -> None:
        self._encoding = encoding
        self._members = _different(map(_member, encoding.names))
        labels = [
            [] if one is None else [*one.labels, "unknown", *["missing"] * bool(filled[part].all())]
            for one, part in zip(encoding.categories, encoding.parts, strict=True)
        ]
        # All enumerators of a program share one namespace.
        names = iter(
            _different(
                f"MODEL_{member}_{_word(label)}".upper()
                for member, some in zip(self._members, labels, strict=True)
                for label in some
            )
        )
        self._levels = [[next(names) for _ in some] for some in labels]

    @property
    def declarations(self) -> str:
        """Enums, and the struct of a row."""
        parts = []
        for name, member, category, levels in zip(
            self._encoding.names,
            self._members,
            self._encoding.categories,
            self._levels,
            strict=True,
        ):
            if category is None:
                continue
            labels = [*category.labels, "none of these", "not known: as most rows have it"]
            if category.others:
                labels[len(category.levels)] = "rare: " + listed(category.others)
            lines = [
                f"    {level}, /* {plain(label)} */"
                for level, label in zip(levels, labels, strict=False)
            ]
            parts.append(
                "\n".join(["", f"/* Levels of {plain(name)}. */", f"enum model_{member} {{"])
                + "\n"
                + "\n".join(lines)
                + "\n};\n"
            )
        members = [
            f"    {f'enum model_{member}' if levels else 'float'} {member}; /* {plain(name)} */"
            for name, member, levels in zip(
                self._encoding.names, self._members, self._levels, strict=True
            )
        ]
        row = "\n/* A point in the columns of the table. */\nstruct model_row {\n"
        return "".join(parts) + row + "\n".join(members) + "\n};\n"

    @property
    def prototype(self) -> str:
        """How the encoder is called."""
        return _PROTOTYPE

    @property
    def encoder(self) -> str:
        """The encoder itself."""
        lines = [
            f"    x[{part.start}] = row->{member};"
            if category is None
            else f"    unknown += model_level(x + {part.start}, {category.width}, "
            f"(int)row->{member});"
            for part, category, member in zip(
                self._encoding.parts, self._encoding.categories, self._members, strict=True
            )
        ]
        return _ENCODER % "\n".join(lines)

    def row(self, x: Array) -> str:
        """Write features ``(f,)`` as the initialiser of a row."""
        words = []
        for part, levels in zip(self._encoding.parts, self._levels, strict=True):
            values = x[part].tolist()
            if levels:
                words.append(levels[values.index(1) if 1 in values else len(values)])
            else:
                words.append(literal(values[0]))
        return ", ".join(words)


def _word(name: str) -> str:
    """Turn a name into letters, digits and underscores."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^0-9A-Za-z]+", "_", ascii_name).strip("_") or "x"


def _member(name: str) -> str:
    word = _word(name).lower()
    return f"x_{word}" if word[0].isdigit() or word in _TAKEN else word


def _different(names: Iterable[str]) -> list[str]:
    """Append a number to repeated names."""
    found: dict[str, None] = {}
    for name in names:
        different, number = name, 2
        while different in found:
            different, number = f"{name}_{number}", number + 1
        found[different] = None
    return list(found)


def literal(value: float) -> str:
    """Write a float32 in C; nine digits restore every bit."""
    word = f"{value:.9g}"
    return f"{word}f" if "." in word or "e" in word else f"{word}.0f"


def plain(name: str) -> str:
    """Make a name safe for a one-line C comment."""
    # Bidirectional marks could hide code, and compilers warn of them.
    name = "".join(one if one.isprintable() else " " for one in name)
    return " ".join(name.split()).replace("*/", "* /").replace("/*", "/ *")
