"""From the words of a command line to values; a wrong word is refused before any work is done."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeVar

import typer

Parser = Callable[[str], Any]
_Number = TypeVar("_Number", int, float)


def one_of(*allowed: str) -> Parser:
    """Take one of a few words."""

    def parse(word: str) -> str:
        if word in allowed:
            return word
        raise typer.BadParameter(f"{word!r}; expected {_listed(allowed)}")

    return parse


def whole(least: int, *words: str) -> Parser:
    """Take a whole number of at least ``least``, or one of these words."""

    def parse(word: str) -> int | str:
        if word in words:
            return word
        value = _converted(int, word)
        if value is not None and value >= least:
            return value
        expected = _listed([f"a whole number of at least {least}", *map(repr, words)])
        raise typer.BadParameter(f"{word!r}; expected {expected}")

    return parse


def number(*words: str) -> Parser:
    """Take a finite number of at least 0, or one of these words."""

    def parse(word: str) -> float | str:
        if word in words:
            return word
        value = _converted(float, word)
        if value is not None and isfinite(value) and value >= 0:
            return value
        expected = _listed(["a number of at least 0", *map(repr, words)])
        raise typer.BadParameter(f"{word!r}; expected {expected}")

    return parse


def share(word: str) -> float:
    """Take a number between 0 and 1, neither of them."""
    value = _converted(float, word)
    if value is not None and 0 < value < 1:
        return value
    raise typer.BadParameter(f"{word!r}; expected a number between 0 and 1")


def widths(word: str) -> tuple[int, ...]:
    """Take the widths of the hidden layers, as in ``64,32``."""
    values = [_converted(int, part) for part in word.split(",")]
    if all(value is not None and value >= 1 for value in values):
        return tuple(value for value in values if value is not None)
    raise typer.BadParameter(f"{word!r}; expected widths of at least 1 like 128,128")


def widths_or_auto(word: str) -> tuple[int, ...] | str:
    """Take the widths of the hidden layers, or leave them to choose."""
    return word if word == "auto" else widths(word)


def some_of(*allowed: str, alone: tuple[str, ...] = ()) -> Parser:
    """Take some of a few words, with commas between them; or a single one of others."""

    def parse(word: str) -> tuple[str, ...] | str:
        if word in alone:
            return word
        words = tuple(dict.fromkeys(word.split(",")))
        wrong = [one for one in words if one not in allowed]
        if wrong:
            expected = " or ".join([*alone, f"some of {', '.join(allowed)}"])
            raise typer.BadParameter(f"{wrong[0]!r}; expected {expected}")
        return words

    return parse


def _converted(kind: type[_Number], word: str) -> _Number | None:
    try:
        return kind(word)
    except ValueError:
        return None


def _listed(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
