"""How estimators read tables: by the names of columns, whatever their order and kind.

Targets are one column ``(n,)``, or for estimators that take several a table ``(n, m)`` in which
cells may be missing: nobody measured that target there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted, validate_data

from twinedge.deprecation import warn_deprecated
from twinedge.encoding.derived import Derived
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import are_records, frame_columns, is_frame
from twinedge.errors import InputError
from twinedge.pack.layout import MAX_TARGETS
from twinedge.scoring.weights import check_weights
from twinedge.training.network import FloatArray
from twinedge.wording import quoted


class TableReader(BaseEstimator):
    """Base of the estimators that remember the columns they were fitted on."""

    encoding_: Encoding  # how columns become inputs of the model
    n_features_in_: int  # number of columns
    feature_names_in_: FloatArray  # of the columns, if they have any
    fill_values_: FloatArray | None = None  # for missing inputs; None refuses them
    target_names_: tuple[str, ...] = ("y",)
    takes_several_targets = False

    def __sklearn_tags__(self) -> Any:
        """Allow missing values if they are filled in."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._imputes
        tags.target_tags.multi_output = self.takes_several_targets
        return tags

    @property
    def targets_(self) -> int:
        """Number of targets."""
        return len(self.target_names_)

    @property
    def target_name_(self) -> str:
        """Name of the target; of several, all of them."""
        return ", ".join(self.target_names_)

    def settled(self) -> Any:
        """Return ``resolved()``; deprecated."""
        warn_deprecated("settled()", "resolved()")
        return self.resolved()

    def resolved(self) -> Any:
        """Return an unfitted copy with the settings that were chosen in place of a choice."""
        raise NotImplementedError

    @property
    def _imputes(self) -> bool:
        return getattr(self, "impute", None) is not None

    def remember_columns(self, encoding: Encoding) -> None:
        """Set the columns that the model takes, as ``fit`` does."""
        self.encoding_ = encoding
        self.n_features_in_ = len(encoding.names)
        if not encoding.is_numbered:
            self.feature_names_in_ = np.array(encoding.names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _read_training(
        self, X: Any, y: Any, encoding: Encoding | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Check training rows, and learn what their columns are (if not encoded).

        Returns inputs ``(n, f)``, NaN where a cell is missing, and targets ``(n,)`` or ``(n, m)``.
        """
        if encoding is None and is_frame(X):
            encoding = Encoding.learn(frame_columns(X))
        if encoding is not None:
            X = encoding.encode(X)
        several = self.takes_several_targets and _columns(y) > 1
        checks: dict[str, Any] = {
            "dtype": np.float64,
            "ensure_min_samples": 2,
            "ensure_all_finite": "allow-nan" if self._imputes else True,
        }
        if several:
            targets = _several_targets(y)
            X = validate_data(self, X, **checks)
            check_consistent_length(X, targets)
        else:
            X, targets = validate_data(self, X, y, y_numeric=True, **checks)
        self.remember_columns(Encoding.numbered(X.shape[1]) if encoding is None else encoding)
        if several:
            named = getattr(y, "columns", range(targets.shape[1]))
            self.target_names_ = tuple(one if isinstance(one, str) else f"y{one}" for one in named)
        else:
            name = getattr(y, "name", None)
            self.target_names_ = (name if isinstance(name, str) and name else "y",)
        self.fill_values_ = None
        return X, targets.astype(np.float64)

    def _read(self, X: Any) -> FloatArray:
        """Check rows of the columns that the model was fitted on; returns inputs ``(n, f)``."""
        if is_frame(X) or are_records(X) or not self.encoding_.is_plain:
            X = self.encoding_.encode(X)
        values = self.fill_values_
        read: FloatArray = check_array(
            X,
            dtype=np.float64,
            ensure_all_finite="allow-nan" if values is not None or self._imputes else True,
            estimator=self,
            input_name="X",
        )
        if read.shape[1] != len(self.encoding_.inputs):
            raise InputError(
                f"X has {read.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if values is not None and np.isnan(read).any():
            read = np.where(np.isnan(read), values, read)
            if not np.isfinite(read).all():
                raise InputError("X has a missing cell in a column that had none in training")
        return read

    def _check(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self._read(X)


def _columns(y: Any) -> int:
    """Return how many columns targets have; lists that are no table count as one."""
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:
        return 1
    return int(shape[1]) if len(shape) == 2 else 1


def _several_targets(y: Any) -> FloatArray:
    """Check several targets ``(n, m)``, NaN where one was not measured."""
    found: FloatArray = check_array(
        y, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y", ensure_min_samples=2
    )
    if found.shape[1] > MAX_TARGETS:
        raise InputError(f"y has {found.shape[1]} targets; a model has at most {MAX_TARGETS}")
    none = np.flatnonzero(np.isnan(found).all(axis=1))
    if len(none):
        raise InputError(f"y: row {none[0]} has none of the targets; leave such rows out")
    return found


def copy_columns(fitted: Any, wrapper: Any) -> None:
    """Give a model around a fitted one the number and the names of its columns."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(wrapper, name):
            delattr(wrapper, name)
        if hasattr(fitted, name):
            setattr(wrapper, name, getattr(fitted, name))


_LEAST, _MOST = 1e-30, 1e37  # magnitudes whose scales are float32, too
_COARSE = 0.1  # steps of float32, in standard deviations


class PrecisionWarning(UserWarning):
    """A column has digits that a device's 32-bit floats cannot hold."""


def check_precision(
    X: FloatArray, y: FloatArray, encoding: Encoding, targets: str | Sequence[str]
) -> list[str]:
    """Check that a device, which calculates in 32-bit floats, can distinguish training rows.

    Parameters
    ----------
    X, y : array of shape (n, f), (n,) or (n, m)
        Training rows.
    encoding : Encoding
        Their columns; only those of numbers are looked at.
    targets : str, or sequence of str
        Name of the target, or names of several.

    Returns
    -------
    list of str
        A remark on each column that loses digits worth keeping.

    Raises
    ------
    InputError
        If a number is out of range, or the target varies too little for its size.
    """
    remarks = []
    columns = [
        (f"column {quoted(name)}", X[:, part.start], False)
        for name, part, kind in zip(encoding.names, encoding.parts, encoding.kinds, strict=True)
        if isinstance(kind, Derived | None)
    ]
    named = [targets] if isinstance(targets, str) else targets
    check_measured(y, named)
    measured = [one[np.isfinite(one)] for one in y.reshape(len(y), -1).T]
    to_learn = [
        (f"target {quoted(name)}", values, True)
        for name, values in zip(named, measured, strict=True)
    ]
    for where, values, is_target in [*columns, *to_learn]:
        largest = float(np.abs(values).max())
        if largest and not _LEAST <= largest <= _MOST:
            raise InputError(
                f"{where} reaches {largest:.3g}; a device's 32-bit floats need a unit in which it "
                f"is between {_LEAST:g} and {_MOST:g}"
            )
        mean, spread = float(values.mean()), float(values.std())
        step = float(np.spacing(np.float32(abs(mean))))
        if np.ptp(values) and step > _COARSE * spread:
            remark = (
                f"{where} varies by {spread:.3g} around {mean:.3g}, where a device's 32-bit floats "
                f"are {step:.3g} apart: subtract a constant from it"
            )
            if is_target:
                raise InputError(remark)
            remarks.append(remark)
    return remarks


def check_measured(y: FloatArray, names: Sequence[str]) -> None:
    """Refuse training rows too few of which measured one of the targets ``(n,)`` or ``(n, m)``."""
    counts = np.isfinite(y).reshape(len(y), -1).sum(axis=0)
    for name, count in zip(names, counts.tolist(), strict=True):
        if count < 2:
            raise InputError(
                f"target {quoted(name)} was measured in {count} of {len(y)} training rows; at "
                "least two are needed"
            )


def counted_rows(
    X: Any, y: Any, groups: Any, sample_weight: Any, name: str = "sample_weight"
) -> tuple[Any, Any, Any, FloatArray | None]:
    """Check the weights of rows, and leave out rows of weight 0 before anything is learnt.

    Takes a table of any kind, its targets, and its groups and weights or None; returns the rows
    that count, and their weights. ``name`` is what messages call the weights.
    """
    if sample_weight is None:
        return X, y, groups, None
    weights = check_weights(sample_weight, _num_samples(X), name)
    kept = np.flatnonzero(weights)
    if len(kept) < len(weights):
        check_consistent_length(X, y, groups)
        X, y = _safe_indexing(X, kept), _safe_indexing(y, kept)
        groups = None if groups is None else _safe_indexing(groups, kept)
    return X, y, groups, weights[kept]
