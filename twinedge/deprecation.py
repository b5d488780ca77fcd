"""Names that go with a later version: each is mentioned once in a process, where it is used."""

import warnings

GOES_WITH = "0.3"
_mentioned: set[str] = set()


def deprecated_name(old: str, new: str) -> str:
    """Return the sentence about a name that is to be replaced.

    Examples
    --------
    >>> deprecated_name("settled()", "resolved()")
    'settled() is deprecated and goes with 0.3: use resolved()'
    """
    return f"{old} is deprecated and goes with {GOES_WITH}: use {new}"


def warn_deprecated(old: str, new: str) -> None:
    """Warn who called the caller, unless the name was mentioned before.

    The warning is one that Python shows everywhere, not only to those who run tests.
    """
    if old not in _mentioned:
        _mentioned.add(old)
        warnings.warn(deprecated_name(old, new), FutureWarning, stacklevel=3)
