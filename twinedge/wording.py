"""The wording that messages share: counts, lists, names, paths, durations and ranges."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from os import PathLike

MOST_NAMES = 12  # that a message lists
_LONGEST_QUOTE = 40


def plural(count: int, noun: str) -> str:
    """Count a noun: 1 row, 2 rows.

    Examples
    --------
    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2000 rows')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def joined(words: Iterable[str], most: int = MOST_NAMES) -> str:
    """Join words as a sentence does; of more than ``most``, the rest is counted.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"]), joined(["a", "b", "c"], 1)
    ('a', 'a, b and c', 'a and 2 more')
    """
    words = [*words]
    if len(words) > most:
        words[most:] = [f"{len(words) - most} more"]
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def first_of(words: Sequence[str], most: int = MOST_NAMES) -> str:
    """Join words with commas; a list too long to read is cut and counted.

    Examples
    --------
    >>> first_of(["a", "b", "c"], 3), first_of(["a", "b", "c"], 1)
    ('a, b, c', 'a and 2 more')
    """
    text, left = ", ".join(words[:most]), len(words) - most
    return f"{text} and {left} more" if left > 0 else text


def quoted(text: str) -> str:
    r"""Quote `text` from a file, escaped to one line and cut to a readable length.

    Examples
    --------
    >>> print(quoted("two\nlines"))
    'two\nlines'
    """
    if len(text) > _LONGEST_QUOTE:
        text = text[: _LONGEST_QUOTE - 3] + "..."
    return repr(text)


def listed(names: Sequence[str]) -> str:
    """Quote names and join them with commas; a list too long to read is cut and counted.

    Examples
    --------
    >>> print(listed(["a", "b"]))
    'a', 'b'
    """
    return first_of([quoted(name) for name in names])


def shown(path: str | PathLike[str]) -> str:
    """Write a path as it is, unless it would break the one-line message."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def closest(name: str, names: Iterable[str]) -> str:
    """Suggest the entry of `names` spelled most like `name`, in any case; empty when none is close.

    Examples
    --------
    >>> closest("Offset", ["angle", "OFFSET"]), closest("Offset", ["angle"])
    (" (did you mean 'OFFSET'?)", '')
    """
    in_any_case: dict[str, str] = {}
    for one in names:
        in_any_case.setdefault(one.casefold(), one)
    near = get_close_matches(name.casefold(), in_any_case, n=1)
    return f" (did you mean {quoted(in_any_case[near[0]])}?)" if near else ""


def missing_columns(names: Sequence[str], wanted: Sequence[str]) -> str:
    """Describe which of the wanted columns a header lacks, each with the closest of the others.

    Examples
    --------
    >>> print(missing_columns(["angle", "Offset"], ["angle", "offset"]))
    1 of the 2 feature columns the model was trained on: missing 'offset' (did you mean 'Offset'?)
    """
    present, needed = set(names), set(wanted)
    missing = [name for name in wanted if name not in present]
    others = [name for name in names if name not in needed]
    return (
        f"{len(wanted) - len(missing)} of the {len(wanted)} feature columns the model was trained "
        f"on: missing {first_of([quoted(name) + closest(name, others) for name in missing])}"
    )


def format_duration(seconds: float) -> str:
    """Write a duration for a person.

    Examples
    --------
    >>> format_duration(40), format_duration(700), format_duration(12600)
    ('40 s', '12 min', '3.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def format_range(ends: Sequence[float] | None) -> str:
    """Write a range with three digits, without exponents; empty for None.

    Examples
    --------
    >>> format_range((1432.7, 28653.9)), format_range(None)
    ('1430-28700', '')
    """
    return "-".join(f"{float(f'{one:.3g}'):g}" for one in ends or ())
