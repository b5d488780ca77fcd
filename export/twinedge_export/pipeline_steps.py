"""Columns of a table on their way through the fitted steps of a scikit-learn pipeline.

The steps must treat each column by itself: scale it, fill in its missing cells, or encode its
names. Then each column that comes out is a straight line of one column of numbers (``Line``), or
has a value for each level of one column of names (``Lookup``). Any other step is refused.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from twinedge.encoding.categories import level_of
from twinedge.encoding.cells import looks_missing
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.wording import quoted

_UNKNOWN = "\0"  # a cell that no training row had


@dataclass(frozen=True)
class Line:
    """A column as it is, or scaled: ``(cell - centre) / scale``.

    ``fill`` replaces a missing cell of the column; NaN leaves it missing.
    """

    column: int
    centre: float = 0.0
    scale: float = 1.0
    fill: Any = np.nan

    @property
    def is_untouched(self) -> bool:
        """Whether the column has not been scaled."""
        return self.centre == 0 and self.scale == 1

    def scaled(self, centre: float, scale: float) -> "Line":
        """Subtract ``centre``, then divide by ``scale``."""
        return replace(self, centre=self.centre + self.scale * centre, scale=self.scale * scale)

    def filled(self, value: Any) -> "Line":
        """Replace missing cells."""
        if not is_missing(self.fill) or is_missing(value):
            return self
        return replace(
            self, fill=value if self.is_untouched else self.centre + self.scale * float(value)
        )

    def restored(self, values: Array) -> Array:
        """Find the cells ``(n,)`` of these values."""
        cells: Array = self.centre + self.scale * values
        if self.is_untouched:
            return cells
        # Measurements have few decimals. Rounding undoes the rounding errors of the scaling, so
        # that the ends of the training range are not a last bit inside it.
        error = 8 * np.finfo(np.float64).eps * (abs(self.centre) + np.abs(cells))
        for decimals in range(16):
            short = np.round(cells, decimals)
            if not (np.abs(short - cells) > error).any():
                return short
        return cells


@dataclass(frozen=True)
class Lookup:
    """A number for each level of a column of names.

    ``values`` are those of ``levels``, then that of an unknown level and that of a missing cell;
    NaN where the pipeline has none.
    """

    column: int
    levels: tuple[str, ...]
    values: Array

    def value(self, level: str) -> float:
        """Return the value of a level; that of an unknown one if it is not among ``levels``."""
        known = level in self.levels
        return float(self.values[self.levels.index(level) if known else -2])

    def scaled(self, centre: float, scale: float) -> "Lookup":
        """Subtract ``centre``, then divide by ``scale``."""
        return replace(self, values=(self.values - centre) / scale)

    def filled(self, value: Any) -> "Lookup":
        """Replace missing values."""
        return replace(self, values=np.where(np.isnan(self.values), float(value), self.values))


Part = Line | Lookup
Encode = Callable[[list[Any]], Array]  # cells to their values (n, w), NaN where there are none


class ColumnError(Exception):
    """What is wrong with a column of the pipeline."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column


def follow(step: Any, parts: list[Part], where: str) -> list[Part]:
    """Follow columns through a fitted step; ``where`` names it as ``set_params`` does."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return parts
    if type(step) not in _STEPS:  # a subclass may do anything
        able = [one.__name__ for one in _STEPS if one not in (Pipeline, ColumnTransformer)]
        raise InputError(
            f"{_named(step, where)} cannot be exported: a device scales columns, fills in missing "
            f"cells and encodes names, each column by itself ({', '.join(able)}); leave the step "
            "out, or do its work before the pipeline"
        )
    try:
        check_is_fitted(step)
    except NotFittedError as error:
        raise InputError(f"{_named(step, where)} is not fitted; fit the pipeline") from error
    return _STEPS[type(step)](step, parts, where)


def _named(step: Any, where: str) -> str:
    return f"the pipeline's step {quoted(where)} ({type(step).__name__})"


def _refuse(step: Any, where: str, setting: str, right: str) -> NoReturn:
    raise InputError(f"{_named(step, where)} cannot be exported with {setting}; {right}")


def _through_pipeline(step: Any, parts: list[Part], where: str) -> list[Part]:
    for name, one in step.steps:
        parts = follow(one, parts, f"{where}__{name}")
    return parts


def _through_columns(step: Any, parts: list[Part], where: str) -> list[Part]:
    if step.transformer_weights:
        why = "a twin scales its inputs itself; leave them out"
        _refuse(step, where, "transformer_weights", why)
    names = list(getattr(step, "feature_names_in_", ()))
    found = []
    for name, one, key in step.transformers_:
        chosen = [parts[k] for k in _positions(key, names, len(parts))]
        if chosen and not (isinstance(one, str) and one == "drop"):
            found += follow(one, chosen, f"{where}__{name}")
    return found


def _positions(key: Any, names: list[str], count: int) -> list[int]:
    """Find the columns that a ColumnTransformer selects: by names, numbers, a slice or a mask."""
    if isinstance(key, slice):
        start, stop = key.start, key.stop
        if isinstance(start, str):
            start = names.index(start)
        if isinstance(stop, str):
            stop = names.index(stop) + 1
        return list(range(count))[start : stop : key.step]
    keys: list[Any] = [key] if np.isscalar(key) else list(key)
    if all(isinstance(one, str) for one in keys):
        return [names.index(one) for one in keys]
    positions: list[int] = np.arange(count)[np.array(keys)].tolist()
    return positions


def _through_scaler(step: Any, parts: list[Part], where: str) -> list[Part]:
    if getattr(step, "clip", False):
        why = "a device says which features are outside; take clip=False"
        _refuse(step, where, "clip=True", why)
    scale = np.ones(len(parts)) if step.scale_ is None else step.scale_
    centre = np.zeros(len(parts))
    if isinstance(step, MinMaxScaler):
        centre, scale = -step.min_ / scale, 1 / scale
    elif isinstance(step, StandardScaler) and step.with_mean:
        centre = step.mean_
    elif isinstance(step, RobustScaler) and step.with_centering:
        centre = step.center_
    every = zip(parts, centre.tolist(), scale.tolist(), strict=True)
    return [part.scaled(middle, unit) for part, middle, unit in every]


def _through_imputer(step: Any, parts: list[Part], where: str) -> list[Part]:
    if step.add_indicator:
        why = "a device has no inputs that say what was missing; take add_indicator=False"
        _refuse(step, where, "add_indicator=True", why)
    if not is_missing(step.missing_values):
        why = "make them missing cells before the pipeline, and leave missing_values as it is"
        _refuse(step, where, f"missing_values={step.missing_values!r}", why)
    names = getattr(step, "feature_names_in_", [f"x{k}" for k in range(len(parts))])
    kept = set(step.get_feature_names_out())  # without columns that had no value at all
    return [
        part.filled(value)
        for part, value, name in zip(parts, step.statistics_, names, strict=True)
        if name in kept
    ]


def _through_function(step: Any, parts: list[Part], where: str) -> list[Part]:
    if step.func is not None:
        _refuse(step, where, "a function", "apply it before the pipeline")
    return parts


def _through_encoder(step: Any, parts: list[Part], where: str) -> list[Part]:
    del where
    widths = _widths(step)
    ends = np.cumsum(widths).tolist()
    found: list[Part] = []
    for k, (part, known, width, end) in enumerate(
        zip(parts, step.categories_, widths, ends, strict=True)
    ):
        encode = partial(_encode, step, k, slice(end - width, end))
        found += follow_encoder(part, list(known), encode)
    return found


def _widths(step: Any) -> list[int]:
    """How many columns an encoder makes of each of its columns."""
    if isinstance(step, OrdinalEncoder):
        return [1] * len(step.categories_)
    rare = getattr(step, "infrequent_categories_", [None] * len(step.categories_))
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    return [
        len(known) - (0 if shared is None else len(shared) - 1) - (gone is not None)
        for known, shared, gone in zip(step.categories_, rare, dropped, strict=True)
    ]


def _encode(encoder: Any, column: int, own: slice, cells: list[Any]) -> Array:
    """Encode cells of one column: their values ``(n, w)``, NaN for those that are refused."""
    table = np.empty((len(cells), len(encoder.categories_)), object)
    for k, known in enumerate(encoder.categories_):
        table[:, k] = known[0]
    table[:, column] = cells
    try:
        with warnings.catch_warnings():  # about names of columns, and unknown levels
            warnings.simplefilter("ignore")
            found = encoder.transform(table)
    except ValueError:
        if len(cells) == 1:
            return np.full((1, own.stop - own.start), np.nan)
        half = len(cells) // 2
        halves = cells[:half], cells[half:]
        return np.concatenate([_encode(encoder, column, own, some) for some in halves])
    found = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    return np.asarray(found[:, own], np.float64)


def follow_encoder(part: Part, known: list[Any], encode: Encode) -> list[Part]:
    """Follow a column through an encoder that knows these cells."""
    if isinstance(part, Lookup):
        return [replace(part, values=one) for one in encode(part.values.tolist()).T]
    if not part.is_untouched:
        raise ColumnError(part.column, "is encoded after it was scaled; encode it as it is")
    present = [cell for cell in known if not is_missing(cell) and not looks_missing(str(cell))]
    values = encode([*present, _UNKNOWN])
    levels: dict[str, Array] = {}
    for cell, value in zip(present, values, strict=False):
        text = level_of(str(cell))
        if not np.array_equal(levels.setdefault(text, value), value):
            raise ColumnError(
                part.column, f"has levels that a device cannot tell apart: both are {quoted(text)}"
            )
    missing = _missing_values(part, known, encode)
    table = np.stack([*levels.values(), values[-1], missing])
    return [Lookup(part.column, tuple(levels), one) for one in table.T]


def _missing_values(part: Line, known: list[Any], encode: Encode) -> Array:
    """Return the values ``(w,)`` of a missing cell, NaN if it is refused."""
    texts = [cell for cell in known if isinstance(cell, str) and looks_missing(cell)]
    empty = [cell for cell in known if is_missing(cell)]
    if not is_missing(part.fill):
        empty = [part.fill]
    values = encode([*(empty or [np.nan]), *texts])
    if texts and not empty and np.isnan(values[0]).all():
        values = values[1:]
    if any(not np.array_equal(values[0], one, equal_nan=True) for one in values):
        named = quoted(texts[0]) if texts else "None"
        raise ColumnError(
            part.column,
            f"has the level {named}, which a device reads as a missing cell; call it something "
            "else",
        )
    first: Array = values[0]
    return first


def is_missing(cell: Any) -> bool:
    """Whether a cell is missing for scikit-learn; for a device, a text may spell it, too."""
    try:
        return cell is None or bool(cell != cell)
    except TypeError:  # pandas.NA does not say
        return True


_STEPS: dict[type, Callable[[Any, list[Part], str], list[Part]]] = {
    Pipeline: _through_pipeline,
    ColumnTransformer: _through_columns,
    StandardScaler: _through_scaler,
    MinMaxScaler: _through_scaler,
    MaxAbsScaler: _through_scaler,
    RobustScaler: _through_scaler,
    SimpleImputer: _through_imputer,
    OneHotEncoder: _through_encoder,
    OrdinalEncoder: _through_encoder,
    FunctionTransformer: _through_function,
}
