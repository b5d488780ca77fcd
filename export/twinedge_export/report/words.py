"""Numbers as a person reads them."""

from collections.abc import Sequence

from twinedge.budget.latency import in_words


def amount(value: float) -> str:
    """Shorten a large number: 20k, 1.5M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def number(count: int, noun: str) -> str:
    """Count something: "1 anchor", "32 anchors"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def percent(part: float) -> str:
    """Write a part as percent; a little is not nothing."""
    if 0 < part < 0.0005:
        return "< 0.1 %"
    return f"{100 * part:.1f}".removesuffix(".0") + " %"


def shape(hidden: tuple[int, ...]) -> str:
    """Write the widths of layers: "128-128"."""
    return "-".join(map(str, hidden))


def ensemble(members: int, hidden: tuple[int, ...]) -> str:
    """Name an ordinary ensemble."""
    return f"{number(members, 'network')} of {shape(hidden)}"


def forest(family: str, count: int, leaves: int) -> str:
    """Name trees."""
    kind = {"boosting": "boosted", "extra": "extra", "random": "averaged"}[family]
    return f"{number(count, f'{kind} tree')} of {leaves} leaves"


def listed(words: list[str]) -> str:
    """Put words in a row: "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def milliseconds(ends: Sequence[float]) -> str:
    """Write an estimated time with two digits: "0.83-1.6 ms", "1.2-2 s"."""
    unit, name = (1, "ms") if max(ends) < 1000 else (1000, "s")
    short = [float(f"{one / unit:.2g}") for one in ends]
    return f"{in_words(short)} {name}"
