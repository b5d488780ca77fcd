"""The columns of a table in C: enums of levels, a struct of a row, and what encodes it."""

import re
import unicodedata
from collections.abc import Iterable

from twinedge.encoding import Encoding
from twinedge.pack.contents import Array

# fmt: off
_KEYWORDS = frozenset({  # of C and of C++
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while", "asm", "bool", "catch", "class",
    "delete", "explicit", "export", "false", "friend", "mutable", "namespace", "new",
    "operator", "private", "protected", "public", "template", "this", "throw", "true", "try",
    "typename", "using", "virtual", "and", "or", "not", "xor",
})
# fmt: on
_PROTOTYPE = """
/* The features of a row, for twin_predict. Returns how many of its categories are of a level that
 * training did not know: a prediction for such a row is of all levels and none. */
int model_encode(const struct model_row *row, float x[MODEL_FEATURES]);
"""
_ENCODER = """
/* clang-format on */

/* One feature for each level; behind the last level come the unknown one and the missing one. */
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
        With at least one category.
    filled : array of shape (f,), bool
        Features that may be missing.
    """

    def __init__(self, encoding: Encoding, filled: Array) -> None:
        self._encoding = encoding
        self._members = _identifiers(encoding.names)
        self._may_miss = [bool(filled[part].all()) for part in encoding.parts]
        self._levels = [
            None
            if one is None
            else _identifiers([*one.labels, "unknown", *["missing"] * may], upper=True)
            for one, may in zip(encoding.categories, self._may_miss, strict=True)
        ]

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
            if category is None or levels is None:
                continue
            labels = [*category.labels, "none of these", "not known: as most rows have it"]
            if category.others:
                labels[len(category.levels)] = "rare: " + ", ".join(category.others)
            lines = [
                f"    MODEL_{member.upper()}_{level}, /* {plain(label)} */"
                for level, label in zip(levels, labels, strict=False)
            ]
            parts.append(
                "\n".join(["", f"/* Levels of {plain(name)}. */", f"enum model_{member} {{"])
                + "\n"
                + "\n".join(lines)
                + "\n};\n"
            )
        members = [
            f"    {'float' if levels is None else f'enum model_{member}'} {member};"
            f" /* {plain(name)} */"
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
        for part, member, levels in zip(
            self._encoding.parts, self._members, self._levels, strict=True
        ):
            values = x[part].tolist()
            if levels is None:
                words.append(literal(values[0]))
            else:
                at = values.index(1) if 1 in values else len(values)
                words.append(f"MODEL_{member.upper()}_{levels[at]}")
        return ", ".join(words)


def _identifiers(names: Iterable[str], *, upper: bool = False) -> list[str]:
    """Make each name one that C takes, and all of them differ."""
    found: list[str] = []
    for name in names:
        ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        word = re.sub(r"[^0-9A-Za-z]+", "_", ascii_name).strip("_") or "x"
        word = word.upper() if upper else word.lower()
        if not upper and (word[0].isdigit() or word in _KEYWORDS):
            word = f"x_{word}"
        different, number = word, 2
        while different in found:
            different, number = f"{word}_{number}", number + 1
        found.append(different)
    return found


def literal(value: float) -> str:
    """Write a float32 in C; nine digits bring back every bit."""
    word = f"{value:.9g}"
    return f"{word}f" if "." in word or "e" in word else f"{word}.0f"


def plain(name: str) -> str:
    """Fit a name into one line of a C comment."""
    return " ".join(name.split()).replace("*/", "* /").replace("/*", "/ *")
