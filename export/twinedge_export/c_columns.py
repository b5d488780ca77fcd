"""The columns of a table in C: enums of levels, a struct for a row, and its encoder.

The inputs of a time are computed in integers, as ``encoding.calendars`` does: no setting of a
compiler, such as fused multiplications, can change their bits.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from twinedge.encoding.calendars import CYCLES, SINE, Calendar
from twinedge.encoding.categories import Category
from twinedge.encoding.derived import Derived
from twinedge.encoding.encoder import Encoding, Kind
from twinedge.pack.contents import Array
from twinedge.wording import listed

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
    "wchar_t", "i386", "linux", "unix", "cycle", "encode", "level", "row", "sine", "twin",
})
# fmt: on
_PROTOTYPE = """
/* Encodes a row as features for twin_predict. Returns how many of its categories have a level that
 * training did not see: a prediction for such a row belongs to no level in particular. */
int model_encode(const struct model_row *row, float x[MODEL_FEATURES]);
"""
_LEVEL = """
/* One feature for each level; after the last level come "unknown" and "missing". */
static int model_level(float *x, int width, int level) {
    int k;
    for (k = 0; k < width; k++)
        x[k] = level > width ? NAN : (float)(level == k);
    return level == width;
}
"""
_CYCLE = """
/* Sine of t / 2^24 right angles in units of 2^-24, as the toolkit computes it. */
static uint32_t model_sine(uint32_t t) {
    uint64_t square = ((uint64_t)t * t + 131072u) >> 18, sum = @4u;
    sum = @3u - (sum * square >> 30);
    sum = @2u - (sum * square >> 30);
    sum = @1u - (sum * square >> 30);
    sum = @0u - (sum * square >> 30);
    return (uint32_t)((t * sum + 536870912u) >> 30);
}

/* Sine and cosine of where a time lies in a cycle of so many seconds that once began at `start`. */
static void model_cycle(float *x, int64_t when, int32_t length, int32_t start) {
    int64_t since = (when % length - start) % length;
    uint32_t steps, t;
    int k;
    if (since < 0)
        since += length;
    steps = (uint32_t)((((uint64_t)since << 26) + (uint32_t)(length / 2)) / (uint32_t)length);
    t = steps & 16777215u;
    for (k = 0; k < 2; k++) {
        uint32_t turn = (steps >> 24) + (uint32_t)k;
        float size = (float)model_sine(turn & 1u ? 16777216u - t : t) / 16777216.0f;
        x[k] = turn & 2u ? -size : size;
    }
}
"""
_ENCODER = """
int model_encode(const struct model_row *row, float x[MODEL_FEATURES]) {
    int unknown = 0;
%s
    return unknown;
}
"""


class _Column(NamedTuple):
    """A column, the part of the features it becomes, and its names in C."""

    name: str
    kind: Kind
    part: slice
    member: str
    levels: list[str]


class CColumns:
    """Names and code for the columns of a model, if some are categories, calendars or derived.

    Parameters
    ----------
    encoding : Encoding
        The columns that are measured.
    filled : array of shape (f,), bool
        Features that may be missing.
    """

    def __init__(self, encoding: Encoding, filled: Array) -> None:
        members = c_names(encoding.names)
        labels = [
            [] if one is None else [*one.labels, "unknown", *["missing"] * bool(filled[part].all())]
            for one, part in zip(encoding.categories, encoding.parts, strict=True)
        ]
        # All enumerators of a program share one namespace.
        names = iter(
            _different(
                f"MODEL_{member}_{_word(label)}".upper()
                for member, some in zip(members, labels, strict=True)
                for label in some
            )
        )
        levels = [[next(names) for _ in some] for some in labels]
        described = encoding.names, encoding.kinds, encoding.parts, members, levels
        self._columns = [_Column(*one) for one in zip(*described, strict=True)]

    @property
    def declarations(self) -> str:
        """Enums, and the struct of a row."""
        enums, members = [], []
        for name, kind, _, member, levels in self._columns:
            declared, about = "float", plain(name)
            if isinstance(kind, Category):
                declared = f"enum model_{member}"
                labels = [*kind.labels, "none of these", "not known: as most rows have it"]
                if kind.others:
                    labels[len(kind.levels)] = "rare: " + listed(kind.others)
                lines = [
                    f"    {level}, /* {plain(label)} */\n"
                    for level, label in zip(levels, labels, strict=False)
                ]
                enums += [f"\n/* Levels of {about}. */\n{declared} {{\n", *lines, "};\n"]
            elif isinstance(kind, Calendar):
                declared, about = "int64_t", f"{about}: seconds since 1970, UTC"
            members.append(f"    {declared} {member}; /* {about} */\n")
        row = "\n/* A point in the columns of the table. */\nstruct model_row {\n"
        return "".join([*enums, row, *members, "};\n"])

    @property
    def prototype(self) -> str:
        """How the encoder is called."""
        return _PROTOTYPE

    @property
    def encoder(self) -> str:
        """The encoder itself."""
        lines = []
        for _, kind, part, member, _ in self._columns:
            if isinstance(kind, Derived | None):
                lines.append(f"    x[{part.start}] = row->{member};")
            elif isinstance(kind, Category):
                width = f"{kind.width}, (int)row->{member}"
                lines.append(f"    unknown += model_level(x + {part.start}, {width});")
            else:
                lines += [
                    f"    model_cycle(x + {part.start + 2 * k}, row->{member}, {length}, {start});"
                    for k, (length, start) in enumerate(CYCLES.values())
                ]
        cycle = re.sub(r"@(\d)", lambda one: str(SINE[int(one[1])]), _CYCLE)
        kinds = {type(one.kind) for one in self._columns}
        functions = _LEVEL * (Category in kinds) + cycle * (Calendar in kinds)
        return "\n/* clang-format on */\n" + functions + _ENCODER % "\n".join(lines)

    def row(self, x: Array) -> str:
        """Write features ``(f,)`` as the initialiser of a row."""
        words = []
        for _, kind, part, _, levels in self._columns:
            values = x[part].tolist()
            if isinstance(kind, Calendar):
                words.append(f"{kind.seconds(x[part])}LL")
            elif levels:
                words.append(levels[values.index(1) if 1 in values else len(values)])
            else:
                words.append(literal(values[0]))
        return ", ".join(words)


def _word(name: str) -> str:
    """Turn a name into letters, digits and underscores."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^0-9A-Za-z]+", "_", ascii_name).strip("_") or "x"


def c_names(names: Iterable[str]) -> list[str]:
    """Make different names of C out of any names."""
    return _different(map(_member, names))


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
