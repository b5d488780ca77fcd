"""What all backends have in common: one object that predicts, and how it treats what it is asked.

A query is as many numbers as the model has features. Another number of them, text, and NaN are
refused; infinity is as good as any number beyond the range. Beyond the training data an answer is
computed and means little: ``outside`` says where.
"""

from numbers import Integral
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Array


class MissingPackageError(InputError):
    """A backend that cannot work here; the message names what to install."""


class Device:
    """A model, ready to predict.

    Parameters
    ----------
    metadata : dict
        What its file says about itself.
    span : array of shape (2, f)
        Least and largest value of each feature, where the metadata have none.
    anchors : int
        Anchors of all twins together.
    info : dict
        For people: file, backend, and the like.

    Attributes
    ----------
    features, anchors : int
        How many there are.
    feature_names, target_name : tuple of str, str
        As in the training data.
    info : dict
        Metadata of the file, and what was given.
    """

    def __init__(
        self, metadata: dict[str, Any], span: Array, *, anchors: int, info: dict[str, Any]
    ) -> None:
        self.features = len(span[0])
        self.feature_names, self._low, self._high = _described(metadata, span)
        self.target_name = str(metadata.get("target", "y"))
        self.anchors = anchors
        self.info = {**metadata, **info, "anchors": anchors}

    def predict(self, x: Any, return_std: bool = False, neighbors: int | None = None) -> Any:
        """Predict queries.

        Parameters
        ----------
        x : array of shape (n, f)
            In the user's units.
        return_std : bool
            Give the standard deviation of the estimates, too.
        neighbors : int, optional
            Use only so many anchors of each twin that are nearest to a query; by default as many
            as the file says.

        Returns
        -------
        mean : array of shape (n,), float32
            In units of the target.
        std : array of shape (n,), float32
            Only if ``return_std``.

        Raises
        ------
        InputError
            Where a query has another number of features or is not a number, or the file cannot
            choose anchors.
        """
        mean, spread = self._predict(self._check(x), self._check_neighbors(neighbors))
        return (mean, spread) if return_std else mean

    def members(self, x: Any, neighbors: int | None = None) -> Array:
        """Estimates of single anchors, float32 ``(n, m)``, in units of the target.

        Raises
        ------
        InputError
            As in ``predict``, and where a file keeps them to itself.
        """
        return self._members(self._check(x), self._check_neighbors(neighbors))

    def outside(self, x: Any) -> Array:
        """Which features of queries ``(n, f)`` are not in their training range: bool ``(n, f)``."""
        x = self._check(x)
        outside: Array = (x < self._low) | (x > self._high)
        return outside

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        raise NotImplementedError

    def _members(self, x: Array, neighbors: int | None) -> Array:
        raise NotImplementedError

    def _check(self, x: Any) -> Array:
        return check_queries(x, self.features)

    def _check_neighbors(self, neighbors: Any) -> int | None:
        if neighbors is None:
            return None
        if isinstance(neighbors, bool) or not isinstance(neighbors, Integral) or neighbors < 1:
            raise InputError(f"neighbors={neighbors!r} is not a whole number of at least 1")
        return min(int(neighbors), self.anchors)


def check_queries(x: Any, features: int, fillable: Array | None = None) -> Array:
    """Check queries ``(n, features)``; returns them as an array of numbers.

    NaN stands for a missing feature where ``fillable`` ``(features,)`` says that it may.

    Raises
    ------
    InputError
        Where a query has another number of features, or is not a number.
    """
    try:
        x = np.asarray(x)
    except ValueError as error:  # lists of different lengths
        raise InputError(f"queries must have {features} features each") from error
    if x.ndim != 2 or x.shape[1] != features:
        raise InputError(f"queries must have {features} features, not shape {x.shape}")
    if x.dtype.kind not in "biuf":
        raise InputError(f"queries must be numbers, not {x.dtype}")
    missing = np.isnan(x)
    if missing.any() and (fillable is None or (missing & ~fillable).any()):
        raise InputError("a query has a feature that is not a number")
    checked: Array = x
    return checked


def _described(metadata: dict[str, Any], span: Array) -> tuple[tuple[str, ...], Array, Array]:
    """Names and ranges of the features; metadata may be anything, and are taken if they fit."""
    low, high = span
    names = tuple(f"x{number}" for number in range(1, len(low) + 1))
    described = metadata.get("features")
    try:
        named = tuple(str(one["name"]) for one in described)  # type: ignore[union-attr]
        edges = np.array([[one["min"], one["max"]] for one in described], np.float64)  # type: ignore[union-attr]
    except (TypeError, KeyError, ValueError):
        return names, low, high
    if len(named) != len(low):
        return names, low, high
    return named, edges[:, 0], edges[:, 1]
