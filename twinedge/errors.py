"""Errors for input that twinedge cannot use, and the wording its messages share."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from os import PathLike
from typing import Any, NamedTuple


class InputError(ValueError):
    """Bad input from outside: a file, a setting, a name.

    The message is one line for a person: what is wrong, where (file, row, column), and what would
    be right. The command line prints it and exits with code 2.
    """

    @property
    def parts(self) -> "tuple[str | Parameter, ...]":
        """The message: text, and the parameters it mentions."""
        return (str(self),)


class Parameter(NamedTuple):
    """A parameter that a message mentions, and the value it recommends, if any.

    Examples
    --------
    >>> str(Parameter("anchors")), str(Parameter("impute", "median"))
    ('anchors', "impute='median'")
    """

    name: str
    value: Any = ...

    def __str__(self) -> str:
        value = " ".join(repr(self.value).split())  # that of an array has several lines
        return self.name if self.value is ... else f"{self.name}={value}"


class Advice(str):
    """Text that mentions parameters; each front end spells them in its own way.

    Examples
    --------
    >>> advice = Advice("leave it out with ", Parameter("drop", ["id"]))
    >>> print(advice)
    leave it out with drop=['id']
    >>> advice.told(lambda one: f"the option {one.name}")
    'leave it out with the option drop'
    """

    parts: tuple[str | Parameter, ...]

    def __new__(cls, *parts: str | Parameter) -> "Advice":
        """Join the parts, parameters as Python spells them."""
        advice = super().__new__(cls, "".join(map(str, parts)))
        advice.parts = parts
        return advice

    def told(self, spell: Callable[[Parameter], str]) -> str:
        """Return the text with its parameters spelled by ``spell``."""
        return "".join(spell(one) if isinstance(one, Parameter) else one for one in self.parts)


class ParameterError(InputError):
    """Bad input that other parameters would put right.

    Parameters
    ----------
    *parts : str or Parameter
        The message, in order. The ``parts`` of another error may be included.

    Attributes
    ----------
    advice : Advice
        The message.
    parameters : tuple of Parameter
        Those it mentions.
    """

    def __init__(self, *parts: str | Parameter) -> None:
        self.advice = Advice(*parts)
        super().__init__(str(self.advice))

    @property
    def parts(self) -> tuple[str | Parameter, ...]:
        """The message: text, and the parameters it mentions."""
        return self.advice.parts

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters that the message mentions."""
        return tuple(one for one in self.parts if isinstance(one, Parameter))


class MissingPackageError(ParameterError):
    """Something that is not installed; the message names what to install."""


def wrong_value(name: str, value: Any, why: str) -> ParameterError:
    """Refuse the value of a parameter.

    Examples
    --------
    >>> print(wrong_value("steps", 0, "is not a positive whole number"))
    steps=0 is not a positive whole number
    """
    return ParameterError(Parameter(name, value), f" {why}")


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
    """Say which of the wanted columns a header lacks, each with the closest of the others.

    Examples
    --------
    >>> print(missing_columns(["angle", "Offset"], ["angle", "offset"]))
    1 of the 2 feature columns the model was trained on: missing 'offset' (did you mean 'Offset'?)
    """
    present, needed = set(names), set(wanted)
    missing = [name for name in wanted if name not in present]
    others = [name for name in names if name not in needed]
    words = [quoted(name) + closest(name, others) for name in missing[:_MOST_NAMES]]
    more = f" and {len(missing) - _MOST_NAMES} more" if len(missing) > _MOST_NAMES else ""
    return (
        f"{len(wanted) - len(missing)} of the {len(wanted)} feature columns the model was "
        f"trained on: missing {', '.join(words)}{more}"
    )


def dropping(names: Sequence[str]) -> Parameter:
    """Recommend leaving columns out; at most a readable number of them are named."""
    return Parameter("drop", list(names[:_MOST_NAMES]))


def plural(count: int, noun: str) -> str:
    """Count a noun: 1 row, 2 rows.

    Examples
    --------
    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2000 rows')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
