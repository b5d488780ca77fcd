"""Check constructor parameters: each check returns the plain value or raises InputError."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from twinedge.defaults import shape
from twinedge.errors import wrong_value


def positive_integer(name: str, value: Any) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    raise wrong_value(name, value, "is not a positive whole number")


def row_number(name: str, value: Any, count: int) -> int:
    """Return a whole number of at least 0 and below ``count``."""
    if isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < count:
        return int(value)
    raise wrong_value(name, value, f"is not a whole number from 0 to {count - 1}")


def nonnegative_number(name: str, value: Any) -> float:
    """Return a finite number of at least 0."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf:
        return float(value)
    raise wrong_value(name, value, "is not a number of at least 0")


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return one of these words."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(map(repr, allowed))
    raise wrong_value(name, value, f"is not one of {words}")


def seed_of(random_state: Any) -> int:
    """Return a seed: the number given, or one drawn from the generator given."""
    if isinstance(random_state, Integral):
        return int(random_state) % (2**31 - 1)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise wrong_value("random_state", random_state, "is not a seed") from error


def jobs_of(n_jobs: Any) -> int:
    """Return how many may work at a time, as scikit-learn interprets ``n_jobs``."""
    integer = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not integer or n_jobs == 0):
        raise wrong_value("n_jobs", n_jobs, "is not None or an integer other than 0")
    return int(effective_n_jobs(n_jobs))


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to be chosen."""
    return isinstance(value, str) and value == "auto"


def widths(name: str, value: Any) -> tuple[int, ...]:
    """Return the widths of hidden layers, at least one."""
    layers = value if isinstance(value, tuple | list) else (value,)
    if not layers:
        raise wrong_value(name, value, "names no layer")
    return tuple(positive_integer(name, width) for width in layers)


def shape_of(twins: Any, hidden: Any) -> tuple[int, tuple[int, ...]]:
    """Return the number of twins and the widths of their layers, resolving "auto".

    Examples
    --------
    >>> shape_of("auto", "auto"), shape_of(1, "auto"), shape_of("auto", 32)
    ((4, (56, 56)), (1, (128, 128)), (1, (32,)))
    """
    return shape(
        None if is_auto(twins) else positive_integer("twins", twins),
        None if is_auto(hidden) else widths("hidden", hidden),
    )
