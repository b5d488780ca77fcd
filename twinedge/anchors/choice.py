"""Which training points travel to the device: chosen by a method, or named by a person."""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.anchors.methods import FEWEST_TO_SCORE, METHODS, method_named, within_memory
from twinedge.anchors.pool import Evidence, FittedModel, FloatArray, Pool, Rows, Validation
from twinedge.dealing import check_count, whole
from twinedge.errors import InputError, place, quoted

_DIGITS = 15  # no table has more rows; a longer number would not fit an integer of the array


def rows_from_file(path: str | PathLike[str]) -> Rows:
    """Read row numbers, one on a line or several with commas between them.

    Parameters
    ----------
    path : path
        A text file; what follows a ``#`` is a comment, and empty lines are passed over.

    Returns
    -------
    array of shape (k,)
        In the order of the file; ``check_rows`` says whether there are such rows.
    """
    line_of: dict[int, int] = {}
    for number, field in _fields(Path(path)):
        where = f"{place(path)}: line {number}"
        if not (field.isascii() and field.isdigit() and len(field) <= _DIGITS):
            raise InputError(f"{where}: {quoted(field)} is not a row number (0, 1, 2, ...)")
        row = int(field)
        if row in line_of:
            raise InputError(f"{where}: row {row} is already on line {line_of[row]}")
        line_of[row] = number
    if not line_of:
        raise InputError(f"{place(path)}: no row numbers in it; give one on each line")
    return np.array(list(line_of), np.intp)


def _fields(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each field of a file."""
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                text = line.partition("#")[0].strip()
                for field in text.removesuffix(",").split(",") if text else ():
                    yield number, field.strip()
    except UnicodeDecodeError:
        raise InputError(
            f"{place(path)}: not text after line {number}; give a file of row numbers"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise InputError(f"{place(path)}: cannot be read: {reason}") from None


# The first is taken unless another is clearly better on validation data. Their order is that of the
# validation errors that benchmarks/anchors.py prints. Random points are left out, as their score
# says how lucky one draw was; greedy ones, as they leave a device too sure: they have half the
# spread of all anchors.
PREFERENCE = ("match", "xy", "stratified", "medoids", "farthest")

_SAME = 1.01
_CLEAR = 2.0


class AnchorChoice(NamedTuple):
    """Anchors, and how they were found.

    Attributes
    ----------
    method : str
        Name of the method that won.
    rows : array of shape (k,)
        What it chose; twin ``t`` owns ``rows[t::twins]``.
    rmse_val : dict of str to float
        Validation error of every method that was compared, in units of the target.
    """

    method: str
    rows: Rows
    rmse_val: dict[str, float]


def scorable(evidence: Evidence) -> tuple[str, ...]:
    """Names of the methods, random points aside, that these validation data can compare."""
    if evidence.neighbors:
        return PREFERENCE[1:]
    return PREFERENCE if len(evidence) < FEWEST_TO_SCORE else (*PREFERENCE, "greedy")


def compared(evidence: Evidence) -> tuple[str, ...]:
    """Names of the methods that "auto" chooses among, the one to prefer first."""
    return tuple(name for name in scorable(evidence) if name in PREFERENCE)


def compare(pool: Pool, k: int, seed: int, evidence: Evidence) -> AnchorChoice:
    """Try every method but greedy, and keep the one to prefer."""
    evidence = within_memory(evidence, len(pool), 1, seed)  # the points that curves are measured on
    names = compared(evidence)
    rows = {name: METHODS[name].choose(pool, k, seed, evidence) for name in names}
    errors = dict(zip(rows, evidence.squared_errors(list(rows.values())), strict=True))
    winner = preferred(errors)
    scores = {name: float(np.sqrt(squares.mean())) for name, squares in errors.items()}
    return AnchorChoice(winner, rows[winner], scores)


def preferred(errors: dict[str, FloatArray], clear: float = _CLEAR) -> str:
    """Return the first method, or the best of those that clearly beat it.

    Settled on validation points alone, of 27 models (three splits of the paper's nine sets), by
    benchmarks/anchors.py: a rule decides on one half of the points and is scored on the other. With
    8 and 32 anchors, over the error of all anchors, "match" has 0.998 and 1.001, at worst 1.011;
    overruled where another is better by two standard errors, 0.995 and 1.000, and no more at worst;
    by one, the same, but up to 1.020; whenever another is better, up to 1.079.

    Parameters
    ----------
    errors : dict of str to array of shape (v,)
        Squared error of each method at each validation point, the method to prefer first.
    clear : float
        Standard errors by which another has to be better.
    """
    first, *others = errors
    better = [name for name in others if _beats(errors[name], errors[first], clear)]
    return min(better, key=lambda name: float(errors[name].mean()), default=first)


def held_out(errors: dict[str, FloatArray], folds: Sequence[Rows]) -> FloatArray:
    """Squared errors ``(v,)`` of what is preferred, on points that had no say in it.

    Parameters
    ----------
    errors : dict of str to array of shape (v,)
        As ``preferred`` takes them.
    folds : sequence of array
        Which points are scored together, as ``Evidence.folds`` deals them out.
    """
    squares = np.empty(len(next(iter(errors.values()))))
    for held in folds:
        seen = np.setdiff1d(np.arange(len(squares)), held)
        winner = preferred({name: theirs[seen] for name, theirs in errors.items()})
        squares[held] = errors[winner][held]
    return squares


def _beats(one: FloatArray, other: FloatArray, standard_errors: float) -> bool:
    """Whether squared errors ``(v,)`` are clearly lower than others at the same points.

    By 1 % of the error at least, as nobody would notice less on a device, and by more than other
    validation points might turn round. The difference is taken point by point: all methods fail at
    the same hard points, and beside what those contribute a real gain would never stand out.
    """
    gain = other - one
    if len(gain) < 2:
        return False
    chance = standard_errors * gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > chance and other.mean() > _SAME**2 * one.mean())


def select(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    k: int,
    method: str = "auto",
    *,
    model: FittedModel | None = None,
    validation: Validation | None = None,
    twins: int = 1,
    seed: int = 0,
) -> Rows:
    """Choose anchors among training points.

    Parameters
    ----------
    X : array of shape (n, f)
        Training points in their own units; with a model, its ``anchor_X_``.
    y : array of shape (n,)
        Their targets.
    k : int
        How many anchors in all, a multiple of ``twins``.
    method : {"auto", "random", "medoids", "farthest", "stratified", "xy", "match", "greedy"}
        How: see ``METHODS``; "auto" compares them on validation data.
    model : fitted TwinRegressor, optional
        For "match", "greedy" and "auto".
    validation : (X, y), optional
        Points that the model was not trained on, for "greedy" and "auto".
    twins : int
        Networks that share the anchors; each gets a share that covers the data by itself.
    seed : int
        The same seed gives the same rows.

    Returns
    -------
    array of shape (k,)
        Distinct rows of ``X``; twin ``t`` owns ``rows[t::twins]``, which is how
        ``TwinRegressor.predict(..., anchors=rows)`` deals them out.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> sorted(select(X, X[:, 0], 2, "medoids").tolist())
    [1, 4]
    """
    return choose(X, y, k, method, model=model, validation=validation, twins=twins, seed=seed).rows


def choose(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    k: int,
    method: str = "auto",
    *,
    model: FittedModel | None = None,
    validation: Validation | None = None,
    twins: int = 1,
    seed: int = 0,
) -> AnchorChoice:
    """Do as ``select``, and say which method it was and how "auto" scored each of them."""
    pool = pool_of(X, y, model, twins, seed)
    check_count(k, len(pool), twins)
    chosen = None if method == "auto" else method_named(method, "auto")
    evidence = None
    if chosen is None or chosen.asks:
        looks = chosen is None or chosen.looks
        if model is None or (looks and validation is None):
            needs = "a fitted model and validation data" if looks else "a fitted model"
            alone = ", ".join(name for name, other in METHODS.items() if not other.asks)
            raise InputError(f"{method!r} anchors need {needs}; {alone} do not")
        evidence = Evidence.of(model, validation)
        if chosen is None:
            return compare(pool, int(k), seed, evidence)
    return AnchorChoice(method, chosen.choose(pool, int(k), seed, evidence), {})


def pool_of(
    X: npt.ArrayLike, y: npt.ArrayLike, model: FittedModel | None, twins: Any, seed: Any
) -> Pool:
    """Check what every choice starts from."""
    if not whole(twins) or twins < 1:
        raise InputError(f"twins={twins!r} is not a positive whole number")
    if not whole(seed) or seed < 0:
        raise InputError(f"seed={seed!r} is not a whole number of at least 0")
    pool = Pool.of(X, y, int(twins))
    if model is None:
        return pool
    if not hasattr(model, "anchor_X_"):
        raise InputError("the model is not fitted")
    if len(model.weights_) != twins:
        raise InputError(f"twins={twins}, but the model has {len(model.weights_)}")
    # A fit that holds points out keeps the rest in an order of its own: rows of another table
    # would be other points, and nobody would notice.
    if not np.array_equal(np.asarray(X, np.float64), model.anchor_X_):
        raise InputError("X is not what the model was trained on; give its anchor_X_ and anchor_y_")
    return pool


def at_most_all(k: Any, count: int, twins: int) -> Any:
    """Return ``k``, or where it is more than the training points, all that twins can share."""
    if not whole(k) or k <= count or count < twins:
        return k  # which ``check_count`` judges
    return count - count % twins


def too_many(k: Any, count: int, twins: int) -> str:
    """Say what is taken where more anchors were asked for than there are training points."""
    asked = f"{k} anchors were asked for, and there are {count} training points"
    taken = at_most_all(k, count, twins)
    if taken == count:
        return f"{asked}: all of them are taken"
    return f"{asked}: {taken} are taken, as many for each of {twins} twins"
