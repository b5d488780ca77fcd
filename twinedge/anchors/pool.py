"""The training points that anchors are chosen from, and the validation data that score a choice."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from twinedge import scoring
from twinedge.anchors.rows import FloatArray, Rows, per_twin
from twinedge.errors import InputError
from twinedge.scoring.calibration import CalibrationRows
from twinedge.scoring.target_curve import TargetCurve
from twinedge.scoring.weights import effective_rows, in_proportion, joined_weights, of_rows


@dataclass(frozen=True)
class Pool:
    """Training points as the methods see them.

    Parameters
    ----------
    x : array of shape (n, f)
        Features, z-scored: in raw units, the feature with the largest numbers would dominate.
    y : array of shape (n,), or of several targets (n, m)
        Target, z-scored; of several, divided by the root of their number.
    twins : int
        Number of networks that share the anchors.
    weights : array of shape (n,), optional
        How much each point counts.
    """

    x: FloatArray
    y: FloatArray
    twins: int
    weights: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def worth(self) -> int:
        """How many points of equal weight they are worth: no more should become anchors."""
        return max(int(effective_rows(self.weights, len(self))), min(self.twins, len(self)))

    def represented(
        self, most: int, least: int, rng: np.random.Generator
    ) -> tuple[Rows, FloatArray | None]:
        """Rows that stand for all, ``least`` to ``most`` of them, and how much each counts.

        If points have weights, rows are taken in proportion to them.
        """
        order = rng.permutation(len(self))
        if self.weights is None or len(self) <= most:
            return np.sort(order[:most]), self.weights
        times = np.bincount(in_proportion(order, self.weights, most), minlength=len(self))
        heaviest = order[np.lexsort((-self.weights[order], times[order] == 0))]
        rows = np.sort(heaviest[: max(least, np.count_nonzero(times))])
        return rows, times[rows].astype(np.float64)

    def eligible(self, k: int, seed: int) -> Rows:
        """Rows that ``k`` anchors, which all count alike, may be chosen from.

        If points have weights, these are as many as they are worth, the heavier the more likely:
        otherwise a device would predict from points that hardly count.
        """
        if self.weights is None:
            return np.arange(len(self))
        return self.represented(max(k, self.worth), k, np.random.default_rng([seed, 1]))[0]

    @classmethod
    def of(
        cls, X: npt.ArrayLike, y: npt.ArrayLike, twins: int, weights: FloatArray | None = None
    ) -> "Pool":
        """Check points ``(n, f)`` and targets ``(n,)`` in their own units, and scale them."""
        several = np.ndim(y) == 2 and np.shape(y)[1] > 1
        x, target = table("X", X, 2), table("y", y, 2 if several else 1)
        if len(x) != len(target):
            raise InputError(f"X has {len(x)} points and y has {len(target)} targets")
        if several:
            scaled = standardised(target) / np.sqrt(target.shape[1])
        else:
            scaled = standardised(target[:, None])[:, 0]
        return cls(standardised(x), scaled, twins, weights)


def table(name: str, values: npt.ArrayLike, dimensions: int) -> FloatArray:
    """Return ``values`` as an array of finite numbers, with at least one row."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a table of numbers") from None
    if array.ndim != dimensions or not array.size:
        shape = "(n, features)" if dimensions == 2 else "(n,)"
        raise InputError(f"{name} has shape {array.shape}; it must be {shape} and not empty")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InputError(f"{name}: row {row} holds a value that is not a finite number")
    return array


def standardised(columns: FloatArray) -> FloatArray:
    """Scale each column of ``(n, f)`` to mean 0 and deviation 1; a constant one becomes 0."""
    mean = columns.mean(axis=0)
    spread = columns.std(axis=0)
    # The spread of a constant column is rounding noise of its mean, not quite zero.
    constant = spread <= 1e-12 * np.abs(mean)
    scaled: FloatArray = (columns - mean) / np.where(constant, 1.0, spread)
    scaled[:, constant] = 0.0
    return scaled


def squared_distances(points: FloatArray, others: FloatArray) -> FloatArray:
    """Squared distances ``(n,)`` of scaled points ``(n, d)`` from one other point, or one each.

    Rounded, so that distances that are equal on paper compare as equal and the first row wins. The
    two points of a pair are equally far from its centre, and so are neighbours on a grid from each
    other: without rounding, the last bit of a sum would choose between them.
    """
    distances: FloatArray = np.square(points - others).sum(axis=1).round(9)
    return distances


Validation = tuple[npt.ArrayLike, npt.ArrayLike]

FOLDS = 5

_BLOCK = 1 << 22  # estimates held at a time: 32 MB
# Multiply-adds that a model may spend with all anchors, a second of a core, and the anchors it gets
# in any case. The error of so many random ones is about 0.1 % from that of all; leaving out points
# instead would change it by several times as much for the same work.
_MOST_WORK = 1 << 33
_FEWEST_ANCHORS = 1024
_MOST_CORES = 8  # each holds tens of megabytes while it predicts


class FittedModel(Protocol):
    """The parts of a fitted ``TwinRegressor`` used here."""

    anchor_X_: FloatArray
    anchor_y_: FloatArray
    weights_: FloatArray

    def estimates(self, X: npt.ArrayLike, *, anchors: Any, curved: bool = ...) -> FloatArray:
        """Each ensemble member's estimate, (n, members)."""

    def with_all_targets(self) -> tuple[Any, Rows]:
        """Return a model whose training points have all targets, and which these are."""

    def predict(self, X: npt.ArrayLike, *, anchors: Any = ..., neighbors: int | None = ...) -> Any:
        """Mean of the estimates, (n,)."""


def curve_of(model: FittedModel | None) -> TargetCurve | None:
    """Return the target curve that a model learnt; None if it learnt the target itself."""
    found: TargetCurve | None = getattr(getattr(model, "scaling_", None), "curve", None)
    return found


class AllAnchors(NamedTuple):
    """Error of a model with all anchors, in units of the target.

    Thousands of anchors take too long for thousands of points: then the error is that of ``sample``
    random ones out of all ``anchors``.
    """

    rmse: float
    sample: int
    anchors: int

    @property
    def is_exact(self) -> bool:
        """Whether all anchors have predicted."""
        return self.sample == self.anchors

    @property
    def words(self) -> str:
        """How the error was found, as text to follow the number."""
        if self.is_exact:
            return "with all anchors"
        return f"with all {self.anchors:,} anchors, by {self.sample:,} of them"


class Evidence:
    """Validation errors of a model with any anchors.

    Parameters
    ----------
    model : FittedModel
        Fitted.
    X : array of shape (v, f)
        Validation points, in their own units.
    y : array of shape (v,)
        Their targets.
    groups : array of shape (v,), optional
        Which of them belong together; by default each is on its own.
    weights : array of shape (v,), optional
        How much each of them counts: squared errors are multiplied by it, divided by the mean.
    across : bool
        Whether there are too few groups of validation points for them to choose a method.
    """

    def __init__(
        self,
        model: FittedModel,
        X: FloatArray,
        y: FloatArray,
        groups: FloatArray | None = None,
        weights: FloatArray | None = None,
        across: bool = False,
    ) -> None:
        self.model, self.X, self.y, self.groups, self.across = model, X, y, groups, across
        self.weights = None if weights is None else weights / weights.mean()
        self.twins = len(model.weights_)
        self._curve = curve_of(model)
        self.scale = float(self._curved(model.anchor_y_).std()) or 1.0
        # Such a model averages only the anchors nearest to each point.
        self.neighbors = getattr(model, "pairs", "all") == "neighbors"

    @classmethod
    def of(cls, model: FittedModel, validation: Validation | None) -> "Evidence":
        """Check validation data from a caller; None means no points."""
        if validation is None:
            return cls(model, model.anchor_X_[:0], model.anchor_y_[:0])
        try:
            X, y = validation
        except (TypeError, ValueError):
            raise InputError("validation must be a pair (X, y)") from None
        X, y = table("validation X", X, 2), table("validation y", y, 1)
        if len(X) != len(y):
            raise InputError(f"validation has {len(X)} points and {len(y)} targets")
        features = model.anchor_X_.shape[1]
        if X.shape[1] != features:
            raise InputError(f"validation has {X.shape[1]} features; the model has {features}")
        groups, weights = known_of(model, X, "groups"), known_of(model, X, "weights")
        held = cls(model, X, y, groups, weights)
        left_out = getattr(model, "left_out_", None)
        if left_out is None or groups is None:
            return held
        return held._with_left_out(left_out, groups)

    def _with_left_out(self, left_out: CalibrationRows, groups: FloatArray) -> "Evidence":
        """Add the training points, each as wrong as networks that did not see its group.

        The model has seen them, but not in this: their targets are what all its anchors predict,
        plus the error of the other networks. So many groups do not favour any anchors by luck, as a
        few validation groups would.
        """
        model, errors = self.model, left_out.errors
        seen = Evidence(model, model.anchor_X_, model.anchor_y_)
        predicted = seen.predicted("all" if seen._affordable() == len(seen) else seen._affordable())
        groups = np.concatenate([groups, 1 + groups.max(initial=-1) + left_out.groups])
        weights = joined_weights((self.weights, len(self)), (left_out.sample_weight, len(errors)))
        X = np.concatenate([self.X, model.anchor_X_])
        if self._curve is None:
            wrong = predicted + errors
        else:
            wrong = self._curve.inverse(self._curve.forward(predicted) + errors)
        y = np.concatenate([self.y, wrong])
        return Evidence(model, X, y, groups, weights, across=True)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def targets(self) -> int:
        """Number of targets."""
        return 1 if self.y.ndim == 1 else self.y.shape[1]

    def at_training_points(self, rows: Rows) -> "Evidence":
        """Return the same for training points instead."""
        return type(self)(self.model, self.model.anchor_X_[rows], self.model.anchor_y_[rows])

    def thinned(self, most: int, seed: int) -> "Evidence":
        """Keep at most ``most`` validation points, drawn at random."""
        if len(self) <= most:
            return self
        rows = np.sort(np.random.default_rng(seed).permutation(len(self))[:most])
        more = of_rows(self.groups, rows), of_rows(self.weights, rows)
        return type(self)(self.model, self.X[rows], self.y[rows], *more, across=self.across)

    def rmse(self, anchors: Any, neighbors: int | None = None) -> float:
        """Root mean square error of the model with these anchors, in units of the target."""
        return scoring.rmse(self.predicted(anchors, neighbors), self.y, self.weights)

    def predicted(self, anchors: Any, neighbors: int | None = None) -> FloatArray:
        """Return what the model predicts for the points with these anchors, ``(v,)``."""
        more = {} if neighbors is None else {"neighbors": neighbors}
        predict = partial(self.model.predict, anchors=anchors, **more)
        parts = _in_parts(predict, self.X, len(self))
        return np.concatenate([found for _, found in parts])

    def all_anchors(self, neighbors: int | None = None) -> AllAnchors:
        """Measure the model with all anchors, of which ``neighbors`` nearest predict."""
        count = len(self.model.anchor_y_)
        sample = count if self.neighbors or neighbors else self._affordable()
        error = self.rmse("all" if sample == count else sample, neighbors)
        return AllAnchors(error, sample, count)

    def _affordable(self) -> int:
        """How many anchors predict the points in seconds; all, if every twin can have all."""
        count = len(self.model.anchor_y_)
        each = 2 * self.model.weights_.shape[1]  # both orders of a pair
        most = max(_FEWEST_ANCHORS, _MOST_WORK // (each * max(1, len(self))))
        fewer = min(most, count - 1) // self.twins * self.twins
        return count if most >= self.twins * count or not fewer else fewer

    def folds(self, seed: int) -> list[Rows]:
        """Split the points at random into parts, none empty; groups stay together.

        A choice that looks at validation points is made on all parts but one and scored on that
        one, in turn: on points that it did not see.
        """
        owners = np.arange(len(self))
        if self.groups is not None and len(np.unique(self.groups)) > 1:
            owners = np.unique(self.groups, return_inverse=True)[1].reshape(-1)
        order = np.random.default_rng(seed).permutation(owners.max(initial=-1) + 1)
        parts = np.array_split(order, FOLDS)
        return [np.flatnonzero(np.isin(owners, part)) for part in parts if part.size]

    def squared_errors(self, subsets: Sequence[Rows]) -> FloatArray:
        """Squared errors ``(len(subsets), v)`` of the model with each of these sets of anchors.

        The network runs once for each distinct anchor, not once for each set; memory is bounded
        whatever the sizes.
        """
        if self.neighbors:
            means = [self.model.predict(self.X, anchors=rows) for rows in subsets]
            errors: FloatArray = np.stack(means) - self.y
            return self._weighted(np.square(errors))
        union = np.unique(np.concatenate(subsets))
        shares = [np.searchsorted(union, per_twin(rows, self.twins)) for rows in subsets]
        errors = np.empty((len(subsets), len(self)))
        for part, residuals in self._blocks(union):
            for subset, share in enumerate(shares):
                total = sum(
                    twin[own].sum(axis=0) for twin, own in zip(residuals, share, strict=True)
                )
                errors[subset, part] = self._uncurved(total / share.size, part)
        return self._weighted(np.square(errors))

    def squared(self, residuals: FloatArray, rows: Rows) -> FloatArray:
        """Weighted squared errors of some points, in units of the target, of mean residuals."""
        off = residuals * self.scale
        if self._curve is None:
            return np.square(off)
        root = 1.0 if self.weights is None else np.sqrt(self.weights[rows])
        return np.square(self._uncurved(off / root, rows) * root)

    def _curved(self, y: FloatArray) -> FloatArray:
        return y if self._curve is None else self._curve.forward(y)

    def _uncurved(self, off: FloatArray, rows: Any) -> FloatArray:
        """Return errors of some points on the target's curve in units of the target."""
        if self._curve is None:
            return off
        y = self.y[rows]
        return np.asarray(self._curve.inverse(self._curve.forward(y) + off) - y)

    def _weighted(self, squares: FloatArray) -> FloatArray:
        return squares if self.weights is None else squares * self.weights

    def residuals(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Each twin's estimate from each of these anchors, minus the target.

        Returns
        -------
        float32 array of shape (twins, len(rows), v)
            In units of ``scale``, the standard deviation of the training targets on their curve, so
            that no target is too large or too small for a float32; multiplied by the root of the
            weights.
        """
        residuals = np.empty((self.twins, len(rows), len(self)), np.float32)
        for part, block in self._blocks(rows):
            residuals[..., part] = block / self.scale
        if self.weights is not None:
            residuals *= np.sqrt(self.weights).astype(np.float32)
        return residuals

    def _blocks(self, rows: Rows) -> Iterator[tuple[slice, FloatArray]]:
        """Residuals ``(twins, len(rows), b)`` of the next ``b`` validation points, on the curve."""
        # Rows are assigned to the twins in turn: repeat each, so that every twin gets it.
        anchors = np.repeat(rows, self.twins)
        more = {} if self._curve is None else {"curved": True}
        y = self._curved(self.y)
        for part, estimates in _in_parts(
            lambda X: self.model.estimates(X, anchors=anchors, **more),
            self.X,
            _BLOCK // len(anchors),
        ):
            residuals = estimates - y[part, None]
            yield part, residuals.T.reshape(self.twins, len(rows), -1)


def _in_parts(
    evaluate: Callable[[FloatArray], FloatArray], X: FloatArray, most: int
) -> Iterator[tuple[slice, FloatArray]]:
    """Evaluate points ``(n, f)``, a part on each core at a time and at most ``most`` on all.

    The products of small networks are too small to share: cores that each compute some of the
    points are twice as fast as cores that wait for each other within every product.
    """
    most = max(1, min(most, len(X)))
    cores = min(cpu_count(), _MOST_CORES, most)
    step = most // cores
    parts = [slice(start, start + step) for start in range(0, len(X), step)]
    with on_one_core(), ThreadPoolExecutor(cores) as pool:
        for begin in range(0, len(parts), cores):  # no more results are held than are wanted
            those = parts[begin : begin + cores]
            yield from zip(those, pool.map(lambda part: evaluate(X[part]), those), strict=True)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep numerical libraries from starting threads of their own."""
    with _libraries().limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, so once


def known_of(model: FittedModel, X: FloatArray, what: str) -> FloatArray | None:
    """Look up groups or weights of these points, if they are the model's own validation points."""
    values = getattr(model, f"validation_{what}_", None)
    kept = getattr(model, "validation_", None)
    if values is None or kept is None or not np.array_equal(kept[0], X):
        return None
    found: FloatArray = np.asarray(values)
    return found
