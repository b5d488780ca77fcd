"""How estimators read tables: by the names of columns, whatever their order and kind."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted, validate_data

from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import frame_columns, is_frame
from twinedge.errors import InputError
from twinedge.scoring.weights import check_weights
from twinedge.training.network import FloatArray
from twinedge.wording import quoted


class TableReader(BaseEstimator):
    """Base of the estimators that remember the columns they were fitted on."""

    encoding_: Encoding  # how columns become inputs of the model
    n_features_in_: int  # number of columns
    feature_names_in_: FloatArray  # of the columns, if they have any
    fill_values_: FloatArray | None = None  # for missing inputs; None refuses them
    target_name_: str = "y"

    def __sklearn_tags__(self) -> Any:
        """Allow missing values if they are filled in."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._imputes
        return tags

    def settled(self) -> Any:
        """Return ``resolved()``; deprecated, goes with 0.3."""
        warnings.warn("settled() is now resolved()", DeprecationWarning, stacklevel=2)
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

        Returns inputs ``(n, f)``, NaN where a cell is missing, and targets ``(n,)``.
        """
        if encoding is None and is_frame(X):
            encoding = Encoding.learn(frame_columns(X))
        if encoding is not None:
            X = encoding.encode(X)
        X, targets = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            y_numeric=True,
            ensure_min_samples=2,
            ensure_all_finite="allow-nan" if self._imputes else True,
        )
        self.remember_columns(Encoding.numbered(X.shape[1]) if encoding is None else encoding)
        name = getattr(y, "name", None)
        self.target_name_ = name if isinstance(name, str) and name else "y"
        self.fill_values_ = None
        return X, targets.astype(np.float64)

    def _read(self, X: Any) -> FloatArray:
        """Check rows of the columns that the model was fitted on; returns inputs ``(n, f)``."""
        if is_frame(X) or not self.encoding_.is_plain:
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


def check_precision(X: FloatArray, y: FloatArray, encoding: Encoding, target: str) -> list[str]:
    """Check that a device, which calculates in 32-bit floats, can distinguish training rows.

    Parameters
    ----------
    X, y : array of shape (n, f), (n,)
        Training rows.
    encoding : Encoding
        Their columns; only those of numbers are looked at.
    target : str
        Name of the target.

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
        (f"column {quoted(name)}", X[:, part.start])
        for name, part, kind in zip(encoding.names, encoding.parts, encoding.kinds, strict=True)
        if kind is None
    ]
    for where, values in [*columns, (f"target {quoted(target)}", y)]:
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
            if values is y:
                raise InputError(remark)
            remarks.append(remark)
    return remarks


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
