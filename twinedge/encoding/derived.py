"""Inputs derived from the last samples of a stream: what they are, and how a person writes them.

    temp@6                the value of six samples ago
    mean(temp, 12)        over the last twelve samples, with the current one; also min, max, std
    slope(pressure, 30)   least-squares slope, per sample
    delta(flow)           by how much it has changed since the sample before, or delta(flow, 5)

A number of samples may be a span of time in an evenly sampled table: ``mean(temp, 10 min)``. A name
with a comma, a bracket, an ``@`` or a quote is in double quotes. How each is computed is in
``encoding.windows``.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from twinedge.encoding.times import TICKS, Notation
from twinedge.errors import InputError
from twinedge.wording import closest, joined, listed, plural, quoted

# What a statistic needs at least and at most, in samples; sums of squares of 1024 fit 64 bits.
STATISTICS = {
    "lag": (1, 65_534),
    "delta": (1, 65_534),
    "min": (2, 65_534),
    "max": (2, 65_534),
    "mean": (2, 1_024),
    "std": (2, 1_024),
    "slope": (2, 1_024),
}
# fmt: off
UNITS = {"ms": 0.001, "s": 1, "sec": 1, "min": 60, "h": 3600, "hour": 3600, "hours": 3600,
         "d": 86_400, "day": 86_400, "days": 86_400, "w": 604_800, "week": 604_800,
         "weeks": 604_800}
# fmt: on
MOST_BITS = 80  # of the binary places of a quantised source, so that no result is subnormal

_TOKEN = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([(),@])|([^(),@"]+))')
_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)", re.ASCII)
_EXAMPLE = "write inputs like temp@6, mean(temp, 12), delta(flow)"


class Term(NamedTuple):
    """One derived input as a person wrote it.

    Parameters
    ----------
    statistic : str
        Key of ``STATISTICS``; a lag is written with ``@``.
    column : str
        What it is derived from.
    length : float
        How many samples, or how long in ``unit``.
    unit : str
        Key of ``UNITS``, or empty for samples.
    position : int
        Where it begins in the text, from 1.

    Examples
    --------
    >>> [str(one) for one in parse_terms('temp @6,mean( "a,b" ,10min), delta(flow)')]
    ['temp@6', 'mean("a,b", 10 min)', 'delta(flow)']
    """

    statistic: str
    column: str
    length: float
    unit: str = ""
    position: int = 1

    def __str__(self) -> str:
        """Write it so that ``parse_terms`` reads the same."""
        name, unit = _written(self.column), f" {self.unit}" if self.unit else ""
        if self.statistic == "lag":
            return f"{name}@{self.length:g}{unit}"
        if self.statistic == "delta" and self.length == 1 and not unit:
            return f"delta({name})"
        return f"{self.statistic}({name}, {self.length:g}{unit})"


class Clock(NamedTuple):
    """When samples follow each other, and when there is a gap.

    Parameters
    ----------
    time : str
        Column of their times.
    notation : Notation
        How it writes them.
    group : str or None
        Column that says which stream a sample is from.
    ticks : float
        Ticks of a second; of one, if times are plain numbers.
    gap : int
        The most ticks between two samples of a window, below 2^31.
    period : float
        Usual time between two samples, in seconds.
    """

    time: str
    notation: Notation
    group: str | None
    ticks: float
    gap: int
    period: float


class Derived(NamedTuple):
    """A derived input.

    Parameters
    ----------
    statistic : str
        Key of ``STATISTICS``.
    column : str
        What it is derived from.
    samples : int
        How many samples; of a lag or a difference, how many ago.
    centre : float
        A value amid those of the column, as float32.
    bits : int
        Values are counted in steps of ``2**-bits`` from there.
    clock : Clock
        When there is a gap.
    """

    statistic: str
    column: str
    samples: int
    centre: float
    bits: int
    clock: Clock

    @property
    def width(self) -> int:
        """Number of inputs it takes."""
        return 1

    @property
    def labels(self) -> tuple[str, ...]:
        """What each input stands for."""
        return ("",)

    @property
    def window(self) -> int:
        """How many consecutive samples it needs."""
        return self.samples + (self.statistic in ("lag", "delta"))

    @property
    def described(self) -> dict[str, Any]:
        """What it is, in a form that JSON can hold."""
        clock = {**self.clock._asdict(), "notation": self.clock.notation._asdict()}
        return {**self._asdict(), "clock": clock}

    @classmethod
    def of(cls, described: Any) -> "Derived":
        """Read what ``described`` wrote; a TypeError or KeyError if it is damaged."""
        clock, notation = described["clock"], described["clock"]["notation"]
        if not (notation["day_first"] in (None, True, False) and notation["unit"] in _NOTATIONS):
            raise KeyError
        found = cls(**{**described, "clock": Clock(**{**clock, "notation": Notation(**notation)})})
        least, most = STATISTICS[found.statistic]
        whole = found.samples, found.bits, found.clock.gap
        numbers = found.centre, found.clock.ticks, found.clock.period
        if not (
            all(type(one) is int for one in whole)
            and all(isinstance(one, int | float) for one in numbers)
            and isinstance(found.column, str)
            and isinstance(found.clock.time, str)
            and isinstance(found.clock.group, str | None)
        ):
            raise TypeError
        if not (
            least <= found.samples <= most
            and abs(found.bits) <= MOST_BITS
            and 0 < found.clock.gap < 2**31
            and found.clock.ticks > 0
        ):
            raise KeyError
        return found


_NOTATIONS = (None, "numbers", *TICKS)


def parse_terms(text: str) -> list[Term]:
    """Read what inputs to derive.

    Parameters
    ----------
    text : str
        Inputs, separated by commas.

    Raises
    ------
    InputError
        If one cannot be read; the message says at which character, and what would be right.

    Examples
    --------
    >>> parse_terms("max(current, 60)")
    [Term(statistic='max', column='current', length=60.0, unit='', position=1)]
    """
    parser, terms = _Parser(text), []
    while True:
        terms.append(parser.term())
        if not parser.more():
            break
    known: dict[str, Term] = {}
    for one in terms:
        if (before := known.setdefault(str(one), one)) is not one:
            raise _refusal(
                text, one.position, f"{one} is there already, at character {before.position}"
            )
    return terms


class Gap(NamedTuple):
    """The longest step between two samples of a window, as a person wrote it.

    Parameters
    ----------
    length : float
        How many usual steps, or how long in ``unit``.
    unit : str
        Key of ``UNITS``, or empty for usual steps.

    Examples
    --------
    >>> parse_gap("90 s"), str(parse_gap(3))
    (Gap(length=90.0, unit='s'), '3')
    """

    length: float
    unit: str = ""

    def __str__(self) -> str:
        """Write it so that ``parse_gap`` reads the same."""
        return f"{self.length:g} {self.unit}".strip()


def parse_gap(written: str | float) -> Gap:
    """Read how long a step is no gap yet; an InputError if it is neither steps nor a span."""
    found = _COUNT.fullmatch(str(written).strip())
    if found is None or (found[2] and found[2] not in UNITS) or not float(found[1]) > 0:
        raise InputError(
            f"gap {quoted(str(written))} is neither a span of time such as 90 s nor a number of "
            f"usual steps; units are {joined(_SHORT)}"
        )
    return Gap(float(found[1]), found[2])


def format_terms(terms: Sequence[Term]) -> str:
    """Write derived inputs as ``parse_terms`` reads them."""
    return ", ".join(map(str, terms))


class _Parser:
    """Takes a text apart, from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def term(self) -> Term:
        """Read one derived input."""
        position, word, is_name = self._next("an input")
        kind = self._sign()
        if kind == "@":
            return self._checked(Term("lag", word, *self._count("lag", position), position))
        if kind != "(":
            raise self._wrong(
                position,
                f"{quoted(word)} is no derived input",
                f"{_EXAMPLE}; plain columns are inputs anyway",
            )
        if is_name or word not in STATISTICS or word == "lag":
            known = [one for one in STATISTICS if one != "lag"]
            raise self._wrong(
                position,
                f"unknown statistic {quoted(word)}{closest(word, known)}",
                f"there are {joined(known)}",
            )
        _, column, _ = self._next("a column")
        count, unit = 1.0, ""
        sign = self._sign()
        if sign == ",":
            count, unit = self._count(word, position)
            sign = self._sign()
        elif word != "delta":
            raise self._wrong(
                self._at + (not sign),
                f"{word} lacks a number of samples",
                f"write {word}({column}, 12)",
            )
        if sign != ")":
            raise self._wrong(
                self._at + (not sign), f"the bracket of {word} is not closed", "write )"
            )
        return self._checked(Term(word, column, count, unit, position))

    def more(self) -> bool:
        """Whether another one follows, after a comma."""
        if not self._text[self._at :].strip():
            return False
        start = self._at
        if self._sign() != ",":
            raise self._wrong(start + 1, "a comma is needed here", "separate inputs by commas")
        return True

    def _next(self, wanted: str) -> tuple[int, str, bool]:
        """Read a word: where it begins, what it is, and whether it is in quotes."""
        found = _TOKEN.match(self._text, self._at)
        if found is None or found[2] or not (found[1] or (found[3] or "").strip()):
            at = len(self._text) if found is None else found.end() - 1
            if '"' in self._text[self._at :] and found is None:
                raise self._wrong(self._text.index('"', self._at) + 1, "a quote is not closed", "")
            raise self._wrong(at + 1, f"{wanted} is missing", _EXAMPLE)
        self._at = found.end()
        inside = found[1]
        word = found[3].strip() if inside is None else inside.replace('""', '"')
        begins = found.start() + len(found[0]) - len(found[0].lstrip())
        return begins + 1, word, inside is not None

    def _sign(self) -> str:
        """Take one of ``@ ( ) ,`` if it is next; otherwise nothing."""
        found = _TOKEN.match(self._text, self._at)
        if found is None or not found[2]:
            return ""
        self._at = found.end()
        return found[2]

    def _count(self, statistic: str, position: int) -> tuple[float, str]:
        """Read how many samples, or how long."""
        begins, word, is_name = self._next("a number of samples")
        found = None if is_name else _COUNT.fullmatch(word)
        right = "write a number of samples, or a span such as 10 min"
        if found is None:
            raise self._wrong(begins, f"{quoted(word)} is no number of samples", right)
        if found[2] and found[2] not in UNITS:
            raise self._wrong(begins, f"unknown unit {quoted(found[2])}", f"use {joined(_SHORT)}")
        count = float(found[1])
        if not found[2] and not count.is_integer():
            raise self._wrong(begins, f"{word} is no whole number of samples", right)
        return count, found[2]

    def _checked(self, term: Term) -> Term:
        if not term.unit:
            check_samples(self._text, term, int(term.length))
        return term

    def _wrong(self, position: int, wrong: str, right: str) -> InputError:
        return _refusal(self._text, position, wrong, right)


_SHORT = ("ms", "s", "min", "h", "d", "w")


def check_samples(text: str, term: Term, samples: int) -> None:
    """Refuse a number of samples that a statistic cannot take."""
    least, most = STATISTICS[term.statistic]
    if not least <= samples <= most:
        what = "a lag" if term.statistic == "lag" else term.statistic
        spans = f" is {plural(samples, 'sample')}, and" if term.unit else ":"
        raise _refusal(text, term.position, f"{term}{spans} {what} takes {least} to {most:,}")


def check_columns_of(terms: Sequence[Term], numbers: Iterable[str], others: dict[str, str]) -> None:
    """Refuse terms of columns that are no features of numbers.

    Parameters
    ----------
    terms : sequence of Term
        What to derive.
    numbers : iterable of str
        Features that hold numbers.
    others : dict
        What other columns are, such as "the target".
    """
    known, text = list(numbers), format_terms(terms)
    for one in parse_terms(text):
        if one.column in known:
            continue
        if one.column in others:
            raise _refusal(
                text,
                one.position,
                f"column {quoted(one.column)} is {others[one.column]}",
                "derive from features that hold numbers",
            )
        raise _refusal(
            text,
            one.position,
            f"no column {quoted(one.column)}{closest(one.column, known)}",
            f"those that hold numbers are {listed(known)}",
        )


def _refusal(text: str, position: int, wrong: str, right: str = "") -> InputError:
    words = f"derive {quoted(text)}: at character {position}, {wrong}"
    return InputError(f"{words}; {right}" if right else words)


def _written(name: str) -> str:
    """Write a column's name, in quotes if it has to be."""
    bare = name == name.strip() and name and not set(name) & set('(),@"')
    return name if bare else '"{}"'.format(name.replace('"', '""'))
