"""What all backends share: the object that predicts, and how it checks queries.

A query has as many numbers as the model has features. Any other count, and text, are refused;
infinity is treated like any number beyond the range. NaN is a missing feature: it is filled in if
the file has a value for it, and refused otherwise. Beyond the training data an answer is computed
but means little: ``outside`` says where, and ``missing`` says what was filled in.

A calibrated file knows how large its errors are: ``predict_interval``. The spread of the estimates,
which every file has, only says how far its anchors disagree.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twinedge.defaults import COVERAGE
from twinedge.encoding.cells import numbered
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import are_records, is_frame, is_record
from twinedge.errors import InputError, wrong_value
from twinedge.notebook import describe_intervals, describe_networks, facts_table
from twinedge.pack.contents import Array, target_names
from twinedge.runtime.reference import check_queries
from twinedge.wording import listed, plural

if TYPE_CHECKING:
    from twinedge.runtime.sample_streams import Stream
    from twinedge.runtime.store import Store

_USUAL = round(1000 * COVERAGE)  # in thousandths
_NOISE = 1e-3  # thousandths by which a coverage may be off, as 0.9 is in single precision
_HIGHEST = 999


class Prediction(NamedTuple):
    """All that a device says about ``n`` queries, in the order that commands print it.

    Numbers are float32 ``(n,)`` in the units of the target, for several targets ``(n, m)``; flags
    are bool ``(n, f)``. ``scale``,
    ``low`` and ``high`` are None for a file without intervals, ``missing`` for one that takes no
    missing features.
    """

    mean: Array
    spread: Array
    outside: Array
    scale: Array | None = None
    low: Array | None = None
    high: Array | None = None
    missing: Array | None = None


class Device:
    """A loaded model that predicts.

    A model for several targets, ``m`` of them, has another axis of that length in all that it says
    about a target: ``(n, m)`` where one for a single target has ``(n,)``.

    Parameters
    ----------
    metadata : dict
        What its file says about itself.
    span : array of shape (2, f)
        Least and largest value of each feature, if the metadata has none.
    anchors : int
        Number of anchors of all twins together.
    info : dict
        For people: file, backend, and the like.
    levels : sequence of int
        Coverages of its intervals in thousandths; a device with any must have ``_bounds``.
    fillable : array of shape (f,), bool, optional
        Which features may be missing; by default none.
    targets : int
        How many it predicts.

    Attributes
    ----------
    features, anchors, targets : int
        How many there are.
    feature_names, target_names : tuple of str
        As in the training data; a category has a feature for each level.
    target_name : str
        Name of the target, or of the first one.
    encoding : Encoding
        The columns that the features are made of.
    ranges : array of shape (2, f)
        Least and largest value of each feature in training, as the file says.
    coverages : tuple of float
        Coverages that ``predict_interval`` takes, ascending; empty without intervals.
    usual_coverage : float or None
        The default coverage: 0.9, else the highest below, else the lowest.
    fillable : array of shape (f,), bool
        Which features may be missing.
    fields : tuple of str
        Names of the fields that ``predict_all`` fills.
    info : dict
        Metadata of the file, plus the argument ``info``.
    store : Store or None
        What keeps the points that it learns.
    """

    def __init__(
        self,
        metadata: dict[str, Any],
        span: Array,
        *,
        anchors: int,
        info: dict[str, Any],
        levels: Sequence[int] = (),
        fillable: Array | None = None,
        targets: int = 1,
    ) -> None:
        self.features = len(span[0])
        self.feature_names, self.ranges = _described(metadata, span)
        self.encoding = Encoding.of(metadata.get("columns"), self.feature_names)
        self.targets = targets
        alone = (str(metadata.get("target", "y")),)
        self.target_names = alone if targets == 1 else target_names(metadata, targets, "y")
        self.target_name = self.target_names[0]
        self.anchors = anchors
        # The reader of packs does not check these numbers.
        self._levels = tuple(sorted({one for one in levels if 0 < one <= _HIGHEST}))
        self.coverages = tuple(one / 1000 for one in self._levels)
        below = [one for one in self._levels if one <= _USUAL]
        self._usual_level = max(below, default=min(self._levels, default=None))
        self.usual_coverage = None if self._usual_level is None else self._usual_level / 1000
        self.fillable = np.zeros(self.features, bool) if fillable is None else fillable
        bounds = ("scale", "low", "high") if self.coverages else ()
        missing = ("missing",) if self.fillable.any() else ()
        self.fields = ("mean", "spread", "outside", *bounds, *missing)
        self.info = {**metadata, **info, "anchors": anchors}
        self.store: Store | None = None
        self._opened: tuple[Any, ...] | None = None  # what ``load`` opened it with

    def __repr__(self) -> str:
        file, backend = self.info["file"], self.info["backend"]
        columns = plural(len(self.encoding.names), "column")
        names = ", ".join(self.target_names)
        return f"<{file}: {columns} to {names}, {self.anchors} anchors, {backend}>"

    def _repr_html_(self) -> str:
        """Show shape, errors and size in a notebook."""
        about, scores = self.info, self.info.get("scores")
        scores = scores if isinstance(scores, dict) else {}
        path = Path(str(about["file"]))
        shape = None
        if "twins" in about and "hidden" in about:
            shape = describe_networks(about["twins"], about["hidden"], about["activation"])
        facts = {
            "target": listed(self.target_names),
            "columns": listed(self.encoding.names),
            "networks": shape,
            "anchors": self.anchors,
            "validation error": scores.get("rmse_val"),
            "test error": scores.get("rmse_test"),
            "intervals": describe_intervals(self.coverages, scores.get("coverage_test")),
            "bytes": path.stat().st_size if path.is_file() else None,
            "backend": about["backend"],
        }
        return facts_table(path.name, facts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the file it was loaded from, which must not change, and what it has learnt."""
        if self._opened is None:
            raise InputError(f"{self.info['file']} was not opened by load and cannot be pickled")
        from twinedge.runtime.loading import reopen

        return reopen, self._opened, self._learnt_state()

    def _learnt_state(self) -> Any:
        """Return what a pickle has to keep beside the file; None for nothing."""
        return None

    def predict(self, x: Any, return_std: bool = False, neighbors: int | None = None) -> Any:
        """Predict queries.

        Parameters
        ----------
        x : array of shape (n, columns), data frame, list of mappings, or one row
            In the user's units. The columns of a frame, and the keys of a mapping or the labels of
            a row of a frame, are found by name; without names they go by position.
        return_std : bool
            Also return how large an error to expect: the calibrated scale if the file has
            intervals, otherwise the spread of the estimates.
        neighbors : int, optional
            Use only this many anchors of each twin, the nearest to a query; by default as many as
            the file says, which scale and intervals were calibrated for.

        Returns
        -------
        mean : array of shape (n,), or (n, m) for several targets; float32
            In units of the target.
        std : array of the same shape, float32
            Only if ``return_std``.

        Raises
        ------
        InputError
            If a query has the wrong number of features or is not a number, or the file cannot
            choose anchors.
        """
        x, neighbors = self._check(x), self._check_neighbors(neighbors)
        if return_std and self.coverages:
            mean, _, scale = self._bounds(x, neighbors, ())
            return mean, scale
        mean, spread = self._predict(x, neighbors)
        return (mean, spread) if return_std else mean

    def predict_interval(
        self, x: Any, coverage: Any = COVERAGE, neighbors: int | None = None
    ) -> Array:
        """Predict intervals that contain the true values.

        Parameters
        ----------
        x : array of shape (n, f)
            In the user's units.
        coverage : float, or sequence of k floats
            Share of the true values within the interval, one of ``coverages``.
        neighbors : int, optional
            As in ``predict``.

        Returns
        -------
        array of shape (n, 2), or (n, 2, k) for a sequence; float32
            Low and high, in units of the target. For several targets (n, m, 2) or (n, m, 2, k).

        Raises
        ------
        InputError
            As in ``predict``, and if the file has no such intervals.
        """
        if isinstance(coverage, np.ndarray):
            coverage = coverage.tolist()
        several = isinstance(coverage, Sequence) and not isinstance(coverage, str | bytes)
        levels = tuple(map(self.check_coverage, coverage if several else [coverage]))
        x = self._check(x)
        ends = self._bounds(x, self._check_neighbors(neighbors), levels)[3:]
        ends = ends.reshape(len(levels), 2, *ends.shape[1:])
        found = np.ascontiguousarray(np.moveaxis(ends, (0, 1), (-1, -2)))
        return found if several else found[..., 0]

    def predict_all(
        self, x: Any, coverage: float | None = None, neighbors: int | None = None
    ) -> Prediction:
        """Predict mean, spread, interval and flags at once.

        Parameters
        ----------
        x : array of shape (n, f)
            In the user's units.
        coverage : float, optional
            Coverage of the interval; by default ``usual_coverage``, if the file has intervals.
        neighbors : int, optional
            As in ``predict``.

        Raises
        ------
        InputError
            As in ``predict``, and if the file has no such intervals.
        """
        level = self._usual_level if coverage is None else self.check_coverage(coverage)
        x, neighbors = self._check(x), self._check_neighbors(neighbors)
        (mean, spread, *bounds), outside, missing = self._predict_all(x, neighbors, level)
        found = Prediction(mean, spread, self._with_unknown(x, outside), *bounds)
        return found._replace(missing=missing) if self.fillable.any() else found

    def stream(self) -> "Stream":
        """Begin a stream of samples: it derives the inputs that the model has from the last ones.

        For a model without derived inputs, every sample is a query.
        """
        from twinedge.runtime.sample_streams import Stream

        return Stream(self)

    def spread(self, x: Any, neighbors: int | None = None) -> Array:
        """Return the standard deviation of the estimates, float32 ``(n,)``, in units of the target.

        It says how far the anchors disagree, calibrated or not; ``predict`` says how large an error
        to expect.
        """
        return self._predict(self._check(x), self._check_neighbors(neighbors))[1]

    def estimates(self, x: Any, neighbors: int | None = None) -> Array:
        """Estimates of single anchors, float32 ``(n, k)``, in units of the target.

        For several targets, ``(n, k, m)``.

        Raises
        ------
        InputError
            As in ``predict``, and if the file has only their mean.
        """
        return self._estimates(self._check(x), self._check_neighbors(neighbors))

    def outside(self, x: Any) -> Array:
        """Which features of queries ``(n, f)`` are outside their training range: bool ``(n, f)``.

        A missing feature is not flagged; those of a name unknown in training are.
        """
        x = self._check(x)
        return self._with_unknown(x, self._outside(x))

    def missing(self, x: Any) -> Array:
        """Which features of queries ``(n, f)`` are missing, to be filled in: bool ``(n, f)``."""
        missing: Array = np.isnan(self._check(x))
        return missing

    def check_coverage(self, coverage: Any) -> int:
        """Return the level of a coverage, in thousandths.

        Raises
        ------
        InputError
            If the file has no intervals for it; the message lists those it has.
        """
        counts = isinstance(coverage, Real) and not isinstance(coverage, bool)
        if not counts or not 0 < coverage < 1:
            raise wrong_value("coverage", coverage, "is not a number between 0 and 1")
        file = self.info["file"]
        if not self._levels:
            raise InputError(f"{file} has no intervals: its model was not calibrated")
        wanted = float(coverage) * 1000
        level = round(wanted)
        if level in self._levels and abs(wanted - level) < _NOISE:
            return level
        known = ", ".join(f"{one:g}" for one in self.coverages)
        more = "; its calibration rows allow no more" if wanted > self._levels[-1] else ""
        raise InputError(
            f"{file} has no intervals of coverage {float(coverage):.9g}, it has {known}{more}"
        )

    def keep(self, path: str | Path) -> None:
        """Keep what is learnt in a file, and load what is already there."""
        raise self._cannot_learn()

    def learn(self, X: Any, y: Any, times: Any = None) -> int:
        """Learn points measured on site, as anchors of this device.

        Predictions and intervals change at once: the prediction from these points is blended with
        that of the file. It weighs more the more points there are, and the more such points have in
        common (``group`` of ``fit_csv``).

        Parameters
        ----------
        X : array of shape (n, f)
            Points, in the user's units.
        y : array of shape (n,), or (n, m) for several targets
            Their measured targets; NaN for one of several that was not measured.
        times : array of shape (n,), optional
            When they were measured, as whole numbers below 2^32: seconds since 1970, or any
            counter. By default 0, for unknown.

        Returns
        -------
        int
            How many were learnt: all.

        Raises
        ------
        InputError
            If a point or a target is not a number, there are too many, or the file cannot learn:
            only a ``.twin`` with intervals can. Nothing is learnt then.
        """
        raise self._cannot_learn()

    def forget(
        self,
        first: int | None = None,
        last: int | None = None,
        *,
        keep: int | None = None,
        before: int | None = None,
    ) -> int:
        """Forget points that were learnt; returns how many.

        Parameters
        ----------
        first, last : int, optional
            Numbers of the points; without ``last``, only ``first``; without either, all.
        keep : int, optional
            Instead, forget all but this many of the latest.
        before : int, optional
            Instead, forget those with an earlier time; points without a time stay.

        Raises
        ------
        InputError
            If the arguments do not say which points, or the file cannot learn.
        """
        raise self._cannot_learn()

    def _cannot_learn(self) -> InputError:
        return InputError(f"{self.info['file']} cannot learn: only a .twin with intervals does")

    # For backends to implement; queries and neighbors have been checked.

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        """Mean and spread, float32 ``(n,)`` each; for several targets ``(n, m)``."""
        raise NotImplementedError

    def _bounds(self, x: Array, neighbors: int | None, levels: tuple[int, ...]) -> Array:
        """Mean, spread and scale, then low and high at each level: float32 ``(3 + 2 k, n)``.

        For several targets, ``(3 + 2 k, n, m)``.
        """
        raise NotImplementedError

    def _predict_all(
        self, x: Array, neighbors: int | None, level: int | None
    ) -> tuple[Sequence[Array], Array, Array]:
        """Mean, spread and, at a level, scale, low and high; what is outside, what is missing."""
        if level is None:
            return self._predict(x, neighbors), self._outside(x), np.isnan(x)
        return [*self._bounds(x, neighbors, (level,))], self._outside(x), np.isnan(x)

    def _estimates(self, x: Array, neighbors: int | None) -> Array:
        raise NotImplementedError

    def _outside(self, x: Array) -> Array:
        low, high = self.ranges
        outside: Array = (x < low) | (x > high)
        return outside

    def _with_unknown(self, x: Array, outside: Array) -> Array:
        """Also flag features of a name that is unknown in training."""
        return outside if self.encoding.is_plain else outside | self.encoding.unknown(x)

    # Checks that all backends share.

    def _check(self, x: Any) -> Array:
        numbers = isinstance(x, np.ndarray) and x.dtype.kind in "biuf"
        if not numbers or x.shape[-1:] != (self.features,):
            x = self.encoding.encode(_rows(x))
        elif x.ndim == 1:
            x = x[None]
        return check_queries(x, self.features, self.fillable, self.feature_names)

    def _check_neighbors(self, neighbors: Any) -> int | None:
        if neighbors is None:
            return None
        if isinstance(neighbors, bool) or not isinstance(neighbors, Integral) or neighbors < 1:
            raise wrong_value("neighbors", neighbors, "is not a whole number of at least 1")
        return min(int(neighbors), self.anchors)


def _rows(x: Any) -> Any:
    """Make one row a table of one row; a table stays as it is."""
    if is_frame(x) or is_record(x) or are_records(x):
        return x
    if isinstance(x, np.ndarray):
        return x[None] if x.ndim == 1 else x
    alone = isinstance(x, list | tuple) and len(x) and np.ndim(x[0]) == 0
    return [x] if alone else x


def _described(metadata: dict[str, Any], span: Array) -> tuple[tuple[str, ...], Array]:
    """Names and ranges of the features; metadata may be anything, and is used if it fits."""
    described = metadata.get("features")
    try:
        names = tuple(str(one["name"]) for one in described)  # type: ignore[union-attr]
        ends = np.array([[one["min"], one["max"]] for one in described], np.float64).T  # type: ignore[union-attr]
        if ends.shape == span.shape:
            return names, ends
    except (TypeError, KeyError, ValueError):
        pass
    return numbered(span.shape[1]), span
