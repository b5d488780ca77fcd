"""Errors for input that twinedge cannot use."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twinedge.wording import MOST_NAMES


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
    >>> advice.spelled(lambda one: f"the option {one.name}")
    'leave it out with the option drop'
    """

    parts: tuple[str | Parameter, ...]

    def __new__(cls, *parts: str | Parameter) -> "Advice":
        """Join the parts, parameters as Python spells them."""
        advice = super().__new__(cls, "".join(map(str, parts)))
        advice.parts = parts
        return advice

    def spelled(self, spell: Callable[[Parameter], str]) -> str:
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


def dropping(names: Sequence[str]) -> Parameter:
    """Recommend leaving columns out; at most a readable number of them are named."""
    return Parameter("drop", list(names[:MOST_NAMES]))
