"""What all twinned regressors share: estimates from anchors, and their uncertainty."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from twinedge.anchors.rows import assign
from twinedge.defaults import COVERAGE
from twinedge.errors import InputError
from twinedge.estimators.inputs import TableReader
from twinedge.scoring.weights import mean_and_std
from twinedge.training.network import FloatArray, Scaling
from twinedge.training.pairs import nearest
from twinedge.training.parameters import positive_integer

Anchors = Literal["auto", "all"] | int | npt.ArrayLike
Chosen = npt.NDArray[np.intp]

_PAIRS = 1 << 16  # listed pairs evaluated at a time


class AnchoredRegressor(RegressorMixin, TableReader):
    """Base of the regressors that predict F(x, anchor) + y_anchor, whatever F is made of.

    A subclass has ``_twins`` functions F, and evaluates them in ``_across``.
    """

    pairs: Any
    neighbors: Any
    anchors: Any

    anchor_X_: FloatArray
    anchor_y_: FloatArray
    sample_weights_: FloatArray | None = None
    scaling_: Scaling
    calibration_: Any = None
    own_: tuple[Any, ...] = ()  # errors and scores of the points given to ``adapt``

    def predict(
        self,
        X: npt.ArrayLike,
        return_std: bool = False,
        *,
        anchors: Anchors | None = None,
        neighbors: int | None = None,
        symmetric: bool = True,
    ) -> Any:
        """Mean of the estimates of all anchors (equation 2 of the paper).

        Parameters
        ----------
        X : array of shape (n, columns), or data frame
            Points to predict; the columns of a frame are found by name.
        return_std : bool
            Also return how large an error to expect: the calibrated scale if the model has one
            (two errors in three are smaller), otherwise the standard deviation of the estimates.
        anchors : "auto", "all", int or array of int, optional
            Anchors to use instead of those set in the constructor: rows of ``anchor_X_``. If
            training points have weights, all of them count by these, a number of them
            is drawn in proportion, and rows that you name count alike.
        neighbors : int, optional
            Use only this many anchors, the nearest to each point. A model trained on neighbors
            always does, by default with the number it was trained on.
        symmetric : bool
            Average F(x, a) and -F(a, x).

        Returns
        -------
        mean : array of shape (n,), or (n, m) of several targets
            In units of the target. With a target curve, the mean of the estimates on the curve,
            brought back: the median of what to expect rather than its mean.
        std : array of the same shape
            Only if ``return_std``.
        """
        if self.targets_ > 1:
            more: dict[str, Any] = {"neighbors": neighbors, "symmetric": symmetric}
            parts = [
                one.predict(X, return_std, anchors=own, **more)
                for one, own in self._each_with(anchors)
            ]
            if not return_std:
                return np.stack(parts, axis=1)
            mean, std = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
            return mean, std
        if self.calibration_ is not None and symmetric and (return_std or self.own_):
            mean, std = self._scaled(X, anchors, neighbors)
        else:
            mean, std = self._mean_and_spread(X, anchors, neighbors, symmetric)
        target = self.scaling_.uncurved(mean)
        return (target, self.scaling_.deviation(mean, std)) if return_std else target

    def predict_interval(
        self,
        X: npt.ArrayLike,
        coverage: float | Sequence[float] = COVERAGE,
        *,
        anchors: Anchors | None = None,
        neighbors: int | None = None,
    ) -> FloatArray:
        """Intervals that contain the true value with a given probability.

        They are calibrated on the validation points, by conformal prediction.

        Parameters
        ----------
        X : array of shape (n, columns), or data frame
            Points to predict; the columns of a frame are found by name.
        coverage : float, or sequence of k floats
            Probability, one of ``calibration_.quantiles``.
        anchors, neighbors
            As in ``predict``; the calibration was made with the model's own anchors.

        Returns
        -------
        array of shape (n, 2), or (n, 2, k); of several targets (n, m, 2), or (n, m, 2, k)
            Low and high ends, in units of the target.

        Raises
        ------
        InputError
            If the model has no intervals, or none of this coverage.
        """
        self._check(X)
        if self.targets_ > 1:
            parts = [
                one.predict_interval(X, coverage, anchors=own, neighbors=neighbors)
                for one, own in self._each_with(anchors)
            ]
            return np.stack(parts, axis=1)
        if self.calibration_ is None:
            raise InputError(
                "the model has no intervals: it was fitted without, or on too few points"
            )
        reach = [self.calibration_.reach(one) for one in np.atleast_1d(coverage)]
        mean, scale = self._scaled(X, anchors, neighbors)
        width = scale[:, None] * reach
        ends = np.stack([mean[:, None] - width, mean[:, None] + width], axis=1)
        ends = self.scaling_.uncurved(ends)
        return ends[..., 0] if np.ndim(coverage) == 0 else ends

    def spread(
        self,
        X: npt.ArrayLike,
        *,
        anchors: Anchors | None = None,
        neighbors: int | None = None,
        symmetric: bool = True,
    ) -> FloatArray:
        """Return the standard deviation of the estimates; parameters as in ``predict``.

        Its shape is ``(n,)``, of several targets ``(n, m)``.
        """
        if self.targets_ > 1:
            parts = [
                one.spread(X, anchors=own, neighbors=neighbors, symmetric=symmetric)
                for one, own in self._each_with(anchors)
            ]
            return np.stack(parts, axis=1)
        return self.scaling_.deviation(*self._mean_and_spread(X, anchors, neighbors, symmetric))

    def outside(self, X: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which inputs of points ``(n, columns)`` are outside their training range, ``(n, f)``.

        Inputs of a level that no training row had are flagged, too.
        """
        x = self._check(X)
        low, high = self.encoding_.ranges(self.anchor_X_)
        beyond: npt.NDArray[np.bool_] = (x < low) | (x > high)
        return beyond | self.encoding_.unknown(x)

    def estimates(
        self,
        X: npt.ArrayLike,
        *,
        anchors: Anchors | None = None,
        neighbors: int | None = None,
        symmetric: bool = True,
        curved: bool = False,
    ) -> FloatArray:
        """Each ensemble member's estimate, ``(n, members)``; parameters as in ``predict``.

        The estimates of the first twin come first. With ``curved`` they are on the target's curve,
        where their mean is taken.
        """
        blocks = self._estimates(X, anchors, neighbors, symmetric)
        found = np.concatenate([block for block, _ in blocks])
        return found if curved else self.scaling_.uncurved(found)

    def differences(self, first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
        """F(first, second), row by row and in this order: the mean over the twins.

        Parameters
        ----------
        first, second : array of shape (n, features)
            Points of each pair.

        Returns
        -------
        array of shape (n,)
            In units of the target; with a target curve, of targets on it.
        """
        x, z = self._check(first), self._check(second)
        if len(x) != len(z):
            raise InputError(f"{len(x)} first and {len(z)} second points do not make pairs")
        mean: FloatArray = self._paired(x, z).mean(axis=0)
        return mean

    def crossed(self, first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
        """F of every first point with every second point, in this order, by each twin.

        Parameters
        ----------
        first, second : array of shape (n, features), (k, features)
            Points to pair.

        Returns
        -------
        array of shape (twins, n, k)
            In units of the target; with a target curve, of targets on it.
        """
        x, z = self._check(first), self._check(second)
        every = np.broadcast_to(z, (self._twins, *z.shape))
        return np.concatenate(list(self._across(x, every, symmetric=False)), axis=1)

    def asymmetry(self, X: npt.ArrayLike, *, anchors: Anchors | None = None) -> FloatArray:
        """How far F(x, a) + F(a, x) is from zero, a measure of uncertainty.

        For each point, the root mean square over the anchors, ``(n,)`` in units of the target.
        """
        mirrored = self._estimates(X, anchors, None, symmetric=True)
        plain = self._estimates(X, anchors, None, symmetric=False)
        # The mirrored estimate differs from the plain one by half of that sum.
        squares = [
            np.average(np.square(2 * (one - both)), axis=1, weights=each)
            for (one, each), (both, _) in zip(plain, mirrored, strict=True)
        ]
        rms: FloatArray = np.sqrt(np.concatenate(squares))
        return self._around_the_prediction(X, rms, anchors)

    def loop_violation(self, X: npt.ArrayLike, *, loops: int = 32) -> FloatArray:
        """How far predictions around closed loops are from zero, a measure of uncertainty.

        For each point, the root mean square of F(x, a) + F(a, b) + F(b, x) over ``loops`` random
        pairs of anchors (a, b), ``(n,)`` in units of the target.
        """
        x = self._check(X)
        loops = positive_integer("loops", loops)
        rng = np.random.default_rng(0)
        count = len(self.anchor_y_)
        pairs = np.stack([rng.choice(count, 2, replace=False) for _ in range(loops)])
        a, b = self.anchor_X_[pairs[:, 0]], self.anchor_X_[pairs[:, 1]]
        leave, back = self.crossed(x, a), self.crossed(b, x).transpose(0, 2, 1)
        residual = (leave + self._paired(a, b)[:, None] + back).astype(np.float64)
        rms: FloatArray = np.sqrt(np.mean(np.square(residual), axis=(0, 2)))
        return self._around_the_prediction(x, rms, None)

    def of_each_target(self) -> "Sequence[AnchoredRegressor]":
        """Return a model of each target."""
        return (self,)

    def _each_with(self, anchors: Anchors | None) -> "list[tuple[AnchoredRegressor, Any]]":
        """Return the model of each target, and the anchors that it finds under its own numbers."""
        each = enumerate(self.of_each_target())
        return [(one, self._anchors_of(target, anchors)) for target, one in each]

    def _anchors_of(self, target: int, anchors: Anchors | None) -> Any:
        """Return anchors of the model as those of a single target."""
        return anchors

    def _check_single(self) -> None:
        """Refuse what is computed for one target at a time."""
        if self.targets_ > 1:
            raise InputError(
                f"the model predicts {self.targets_} targets: take one of them, with of_target(0)"
            )

    @property
    def _twins(self) -> int:
        """Number of functions F."""
        raise NotImplementedError

    def _scaled(
        self, X: npt.ArrayLike, anchors: Anchors | None, neighbors: int | None
    ) -> tuple[FloatArray, FloatArray]:
        """Predictions ``(n,)`` and how large an error to expect of each, on the target's curve."""
        mean, signals = self._signals(X, anchors, neighbors)
        scale: FloatArray = self.calibration_.scale(signals)
        return mean, scale

    def _signals(
        self, X: npt.ArrayLike, anchors: Anchors | None, neighbors: int | None
    ) -> tuple[FloatArray, FloatArray]:
        """Predictions ``(n,)``, and the signals ``(3, n)``, all on the target's curve."""
        raise NotImplementedError

    def _across(
        self, x: FloatArray, anchors: FloatArray, chosen: Chosen | None = None, *, symmetric: bool
    ) -> Iterator[FloatArray]:
        """Blocks ``(twins, rows, k or m)`` of differences y(x) - y(anchor), on the target's curve.

        Points ``(n, f)`` are compared with all anchors ``(twins, k, f)`` of each twin, or with
        those ``chosen`` ``(twins, n, m)``. ``symmetric`` averages F(x, a) and -F(a, x).
        """
        raise NotImplementedError

    def _paired(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """F(first, second) row by row, ``(twins, n)``."""
        found = []
        for start in range(0, len(first), _PAIRS):
            x, z = first[start : start + _PAIRS], second[start : start + _PAIRS]
            every = np.broadcast_to(z, (self._twins, *z.shape))
            own = np.broadcast_to(np.arange(len(x))[:, None], (self._twins, len(x), 1))
            found += [block[..., 0] for block in self._across(x, every, own, symmetric=False)]
        return np.concatenate(found, axis=1)

    def _estimates(
        self, X: npt.ArrayLike, anchors: Anchors | None, neighbors: int | None, symmetric: bool
    ) -> Iterator[tuple[FloatArray, FloatArray | None]]:
        """Blocks ``(rows, members)`` of estimates, on the target's curve, and their weights."""
        x = self._check(X)
        points, targets, each, chosen = self._assigned(x, anchors, neighbors)
        start = 0
        for block in self._across(x, points, chosen, symmetric=symmetric):
            part = slice(start, start + block.shape[1])
            start = part.stop
            yield (
                _by_row(block + targets[:, part]),
                None if each is None else _by_row(each[:, part]),
            )

    def _mean_and_spread(
        self, X: npt.ArrayLike, anchors: Anchors | None, neighbors: int | None, symmetric: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation ``(n,)`` of the estimates, on the target's curve."""
        blocks = self._estimates(X, anchors, neighbors, symmetric)
        parts = [mean_and_std(block, 1, each) for block, each in blocks]
        mean, std = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, std

    def _around_the_prediction(
        self, X: npt.ArrayLike, deviation: FloatArray, anchors: Anchors | None
    ) -> FloatArray:
        """Return deviations ``(n,)`` on the target's curve, at points, in units of the target."""
        if self.scaling_.curve is None:
            return deviation
        mean, _ = self._mean_and_spread(X, anchors, None, symmetric=True)
        return self.scaling_.deviation(mean, deviation)

    def _assigned(
        self, x: FloatArray, anchors: Anchors | None, neighbors: int | None
    ) -> tuple[FloatArray, FloatArray, FloatArray | None, Chosen | None]:
        """Find the anchors that estimate the targets of points ``(n, f)``.

        Returns
        -------
        points : array of shape (twins, k, f)
            Anchors of each twin.
        targets : array of shape (twins, n, k or m)
            Their targets, for each point, on the target's curve.
        each : array of shape (twins, n, k or m) or None
            How much their estimates count; None if all do alike.
        chosen : array of shape (twins, n, m) or None
            Which of them each point is compared with; None for all.
        """
        self._check_single()
        rows, weights = assign(
            self.anchors if anchors is None else anchors,
            len(self.anchor_y_),
            self._twins,
            self.sample_weights_,
            nearest=self._chooses_nearest(neighbors),
        )
        points = self.anchor_X_[rows]
        chosen = self._nearest(x, points, neighbors)

        def for_each_point(values: FloatArray) -> FloatArray:
            mine = values[rows][:, None]
            if chosen is not None:
                return np.take_along_axis(mine, chosen, axis=2)
            return np.broadcast_to(mine, (len(rows), len(x), rows.shape[1]))

        each = None if weights is None else for_each_point(weights)
        return points, for_each_point(self.scaling_.curved(self.anchor_y_)), each, chosen

    def _chooses_nearest(self, neighbors: Any) -> bool:
        """Whether a point is compared only with the anchors nearest to it."""
        return neighbors is not None or bool(self.pairs == "neighbors")

    def _nearest(self, x: FloatArray, points: FloatArray, neighbors: Any) -> Chosen | None:
        """Which anchors of each twin a point is compared with; None for all of them."""
        if not self._chooses_nearest(neighbors):
            return None
        count = positive_integer("neighbors", self.neighbors if neighbors is None else neighbors)
        return np.stack(
            [nearest(mine, self._features(x), count) for mine in self._features(points)]
        )

    def _features(self, x: FloatArray) -> FloatArray:
        """Return points ``(..., f)`` as they are compared with each other: scaled."""
        return self.scaling_.features(x)


def _by_row(values: FloatArray) -> FloatArray:
    """Values ``(twins, rows, k)`` of each twin side by side, ``(rows, twins * k)``."""
    return values.transpose(1, 0, 2).reshape(values.shape[1], -1)
