"""What twinedge raises when it is handed something it cannot use, and how its messages quote."""

import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from os import PathLike


class InputError(ValueError):
    """Bad input from outside: a file, a setting, a name.

    The message is one line for a person: what is wrong, where (file, row, column), and what would
    be right. The command line prints it and exits with code 2.
    """


_LONGEST_QUOTE = 40
_MOST_NAMES = 12


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
    """Join quoted names with commas; a list too long to read is cut and counted.

    Examples
    --------
    >>> print(listed(["a", "b"]))
    'a', 'b'
    """
    text = ", ".join(quoted(name) for name in names[:_MOST_NAMES])
    left = len(names) - _MOST_NAMES
    return f"{text} and {left} more" if left > 0 else text


def place(path: str | PathLike[str]) -> str:
    """Write a path as it is, unless it would break the line the message stands on."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def closest(name: str, names: Iterable[str]) -> str:
    """Say which of `names` is spelled most like `name`; empty when none comes near."""
    near = get_close_matches(name, list(names), n=1)
    return f" (did you mean {quoted(near[0])}?)" if near else ""


def drop_options(names: Sequence[str]) -> str:
    """Spell the command line options that leave `names` out, ready to paste into a shell.

    Examples
    --------
    >>> drop_options(["site", "air temp"])
    "--drop site --drop 'air temp'"
    """
    return " ".join(f"--drop {shell_word(name)}" for name in names[:_MOST_NAMES])


def shell_word(name: str) -> str:
    """Write a name as a shell takes it, unless it is too odd for one line."""
    plain = name.isprintable() and len(name) <= _LONGEST_QUOTE
    return shlex.quote(name) if plain else quoted(name)


def plural(count: int, noun: str) -> str:
    """Count a noun: 1 row, 2 rows.

    Examples
    --------
    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2000 rows')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
