"""A fitted scikit-learn pipeline that ends in a twin, as one twin of the pipeline's own columns.

The first layer of a twin is linear in its inputs. So what the steps before it make of a column of
numbers becomes part of its scaling, and what they make of the levels of a column of names becomes
part of its first kernels. The result predicts what the pipeline does, and is exported like any
twin. If the twin has a map, the curves of numbers stay as they are; a level has one place on a
curve, so that curves of names become part of the first kernels as well.

A TransformedTargetRegressor becomes a twin with a target curve, if its function is one of these.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from twinedge.encoding.calendars import Calendar
from twinedge.encoding.categories import Category
from twinedge.encoding.cells import looks_missing, numbered
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array
from twinedge.scoring.target_curve import TargetCurve
from twinedge.training.input_map import InputMap
from twinedge.training.network import FARTHEST, Architecture, Scaling
from twinedge.wording import quoted
from twinedge_export.pipeline_steps import (
    ColumnError,
    Line,
    Lookup,
    Part,
    follow,
    follow_encoder,
    is_missing,
)

_MISSING = "(missing)"  # level of missing cells that differ from all others
_SAME = 1e-6  # relative to the scale of an input
# What a TransformedTargetRegressor may do to the target and undo, by the name of the curve.
_FUNCTIONS = {
    "log": (np.log, np.exp),
    "log1p": (np.log1p, np.expm1),
    "sqrt": (np.sqrt, np.square),
}


def fold_estimator(model: Any) -> Any:
    """Turn a fitted pipeline, or a regressor of a transformed target, into a twin.

    Parameters
    ----------
    model : Pipeline, TransformedTargetRegressor or any other object
        Fitted; not modified. What is neither is returned as it is.

    Raises
    ------
    InputError
        If a device cannot do what the pipeline or the transformer does.
    """
    if isinstance(model, Pipeline):
        return fold_pipeline(model)
    if isinstance(model, TransformedTargetRegressor):
        return _with_curve(model, "the model")
    return model


def _with_curve(model: Any, where: str) -> TwinRegressor:
    """Turn a TransformedTargetRegressor into a twin with a target curve; ``where`` is its name."""
    if not hasattr(model, "regressor_"):
        raise InputError(f"{where} is not fitted")
    twin, kind = fold_estimator(model.regressor_), _curve_of(model.transformer_)
    if not isinstance(twin, TwinRegressor):
        raise InputError(
            f"{where} (TransformedTargetRegressor) has a {type(twin).__name__}, which cannot be "
            "exported, a TwinRegressor can"
        )
    if kind == "none":
        return twin
    if kind is None:
        able = ", ".join(
            f"{one.__name__} and {other.__name__}" for one, other in _FUNCTIONS.values()
        )
        raise InputError(
            f"{where} (TransformedTargetRegressor) transforms the target in a way that a device "
            f"cannot undo: as func and inverse_func take numpy's {able}"
        )
    if twin.scaling_.curve is not None:
        raise InputError(
            f"{where} (TransformedTargetRegressor) transforms the target, and so does its twin; "
            "leave out one of the two"
        )
    curve, curved = TargetCurve(kind), copy(twin)
    curved.scaling_ = replace(twin.scaling_, curve=curve)
    curved.anchor_y_ = curve.inverse(twin.anchor_y_)
    curved.validation_ = twin.validation_[0], curve.inverse(twin.validation_[1])
    curved.validation_rmse_ = curved.rmse(*curved.validation_, curved.validation_weights_)
    return curved


def _curve_of(transformer: Any) -> str | None:
    """Name the curve that a transformer of targets amounts to; None if a device has no such."""
    if type(transformer) is not FunctionTransformer:
        return None
    functions = transformer.func, transformer.inverse_func
    if functions == (None, None):
        return "none"
    if transformer.kw_args or transformer.inv_kw_args:
        return None
    return next((kind for kind, known in _FUNCTIONS.items() if known == functions), None)


def fold_pipeline(pipeline: Any) -> TwinRegressor:
    """Turn a fitted pipeline that ends in a twin into a twin that predicts the same.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted; not modified. It may end in a TransformedTargetRegressor of a twin.

    Returns
    -------
    TwinRegressor
        Fitted, on those columns of the pipeline that its steps use. It also predicts what the
        pipeline refuses: for an unknown level, its encoder's inputs are taken to be average.

    Raises
    ------
    InputError
        If a step does more than to scale, fill in or encode single columns; it is named.
    """
    *steps, (last, twin) = pipeline.steps
    if isinstance(twin, TransformedTargetRegressor):
        twin = _with_curve(twin, f"the pipeline's last step {quoted(last)}")
    if not isinstance(twin, TwinRegressor):
        raise InputError(
            f"the pipeline ends in {quoted(last)} ({type(twin).__name__}), which cannot be "
            "exported, a TwinRegressor can"
        )
    if not hasattr(twin, "weights_"):
        raise InputError("the pipeline is not fitted")
    first = next(one for _, one in pipeline.steps if hasattr(one, "n_features_in_"))
    names = tuple(getattr(first, "feature_names_in_", numbered(first.n_features_in_)))
    parts: list[Part] = [Line(column) for column in range(len(names))]
    try:
        for name, step in steps:
            parts = follow(step, parts, name)
        if len(parts) != twin.n_features_in_:
            raise InputError(
                f"the pipeline's steps give {len(parts)} columns and its twin was fitted on "
                f"{twin.n_features_in_}; fit the pipeline again"
            )
        return _folded(twin, _inputs(twin, parts), names)
    except ColumnError as error:
        raise InputError(f"column {quoted(names[error.column])} {error}") from error


def _inputs(twin: TwinRegressor, parts: list[Part]) -> list[Part]:
    """Follow columns through the twin's own encoding and imputation."""
    encoding, found = twin.encoding_, []
    if any(isinstance(one, Calendar) for one in encoding.kinds):
        raise InputError(
            "the pipeline's twin has a calendar, which cannot be exported: fit a "
            "TwinRegressor without a pipeline"
        )
    for part, category, own in zip(parts, encoding.categories, encoding.parts, strict=True):
        mine = [part]
        if category is not None:
            known = [*category.levels, *category.others]
            mine = follow_encoder(part, known, partial(_one_hot, category))
        if twin.fill_values_ is not None:
            fill = twin.fill_values_[own]
            mine = [one.filled(value) for one, value in zip(mine, fill, strict=True)]
        found += mine
    return found


def _one_hot(category: Category, cells: list[Any]) -> Array:
    values = category.one_hot([str(cell) for cell in cells])
    values[[looks_missing(str(cell)) for cell in cells]] = np.nan
    return values


class _Block(NamedTuple):
    """One column, and how the twin's inputs ``(j,)`` follow from its new inputs ``(w,)``.

    Scaled old inputs are ``mix @ new + offset``, where ``new = (inputs - mean) / scale``.
    """

    category: Category | None
    mean: Array
    scale: Array
    mix: Array
    offset: Array
    fill: Array
    restore: Callable[[Array], Array]  # old inputs (n, j) of points to new ones (n, w)


def _folded(twin: TwinRegressor, parts: list[Part], names: Sequence[str]) -> TwinRegressor:
    """Make the twin whose inputs are the columns that ``parts`` come from."""
    owned: dict[int, list[int]] = {}  # inputs that come from each column
    for k, part in enumerate(parts):
        owned.setdefault(part.column, []).append(k)
    columns = sorted(owned)
    blocks = [_block(twin, owned[column], [parts[k] for k in owned[column]]) for column in columns]
    encoding = Encoding([(names[k], one.category) for k, one in zip(columns, blocks, strict=True)])
    mix, offset = np.zeros((len(parts), len(encoding.inputs))), np.zeros(len(parts))
    for column, new, block in zip(columns, encoding.parts, blocks, strict=True):
        mix[owned[column], new], offset[owned[column]] = block.mix, block.offset

    def restored(x: Array) -> Array:
        every = zip(columns, blocks, strict=True)
        return np.concatenate([one.restore(x[:, owned[k]]) for k, one in every], axis=1)

    folded = copy(twin)
    folded.remember_columns(encoding)
    folded.scaling_ = replace(
        twin.scaling_,
        x_mean=np.concatenate([one.mean for one in blocks]),
        x_scale=np.concatenate([one.scale for one in blocks]),
    )
    if twin.map_ is not None:
        named = np.array([isinstance(one, Lookup) for one in parts])
        folded.map_, mix, offset = _folded_map(twin.map_, named, mix, offset, folded.scaling_)
    folded.architecture_ = replace(twin.architecture_, inputs=2 * mix.shape[1])
    shapes = twin.architecture_, folded.architecture_
    folded.weights_ = np.stack([_mixed(*shapes, one, mix, offset) for one in twin.weights_])
    folded.anchor_X_ = restored(twin.anchor_X_)
    folded.validation_ = restored(twin.validation_[0]), twin.validation_[1]
    fill = np.concatenate([one.fill for one in blocks])
    folded.fill_values_ = None if np.isnan(fill).all() else fill
    return folded.forget()  # points given to ``adapt`` are not exported


def _block(twin: TwinRegressor, own: list[int], parts: list[Part]) -> _Block:
    lines = [one for one in parts if isinstance(one, Line)]
    lookups = [one for one in parts if isinstance(one, Lookup)]
    if lines and lookups:
        column = lines[0].column
        raise ColumnError(column, "is used both as numbers and as names; use a copy of it")
    return _numbers(twin, own, lines) if lines else _names(twin, own, lookups)


def _folded_map(
    old: InputMap, named: Array, mix: Array, offset: Array, scaling: Scaling
) -> tuple[InputMap | None, Array, Array]:
    """Make the map of a twin whose inputs are columns.

    Parameters
    ----------
    old : InputMap
        From ``f`` old inputs to ``g`` outputs.
    named : array of shape (f,), bool
        Which old inputs come from a column of names. Each of the others is one new input.
    mix, offset : array of shape (f, w), (f,)
        Scaled old inputs are ``mix @ new + offset``, where ``new`` are the scaled new ones.
    scaling : Scaling
        Of the new inputs.

    Returns
    -------
    InputMap or None
        From the ``w`` new inputs to ``v`` outputs; None if only names have curves.
    mix, offset : array of shape (g, v), (g,)
        The old outputs are ``mix @ outputs + offset``.
    """
    (features, width), outputs = mix.shape, old.outputs
    straight, constant = np.zeros((outputs, width)), np.zeros(outputs)
    straight[:features], constant[:features] = mix, offset
    knots: list[Array] = [np.zeros(0, np.float32)] * width
    tables: dict[int, Array] = {}
    for feature, mine, rows in old.parts():
        own = np.flatnonzero(mix[feature])
        if not named[feature]:
            knots[own[0]], tables[own[0]] = mine, rows
            continue
        mean, scale = scaling.x_mean[own], scaling.x_scale[own]
        steps = mix[feature, own] / scale
        none = offset[feature] - steps @ mean  # of a level that is none of these
        first, *others = _at(mine, rows, np.append(none, none + steps))
        moves = (np.array(others).reshape(len(own), outputs) - first).T
        straight[:, own] += moves * scale
        constant += first + moves @ mean
    if not tables:
        return None, straight, constant
    table = np.concatenate([tables[own] for own in sorted(tables)])
    # What was one input and still is keeps its output; others that curves add to are new ones.
    places = {output: int(mix[output].argmax()) for output in np.flatnonzero(~named).tolist()}
    for output in np.flatnonzero(table.any(axis=0)).tolist():
        places.setdefault(output, width + sum(one >= width for one in places.values()))
    made = np.zeros((outputs, max(width, 1 + max(places.values()))))
    moved = np.zeros((len(table), made.shape[1]), np.float32)
    made[:, :width] = straight
    for output, place in places.items():
        made[output, place] = 1.0
        moved[:, place] = table[:, output]
    return InputMap(tuple(knots), moved), made, constant


def _at(knots: Array, rows: Array, values: Array) -> Array:
    """Return the rows ``(n, g)`` of a curve's table ``(k, g)`` at values ``(n,)``."""
    return np.stack([np.interp(values, knots, column) for column in rows.T], axis=1)


def _mixed(
    old: Architecture, new: Architecture, network: Array, mix: Array, offset: Array
) -> Array:
    """Give a network first kernels for the new inputs; the rest stays the same."""
    (kernel, bias), *_ = old.parts(network.astype(np.float64))
    halves = np.split(kernel, 2)  # of the query and of the anchor
    made = np.empty(new.size, np.float32)
    own_kernel, own_bias = new.parts(made)[0]
    own_kernel[...] = np.concatenate([mix.T @ half for half in halves])
    own_bias[...] = bias + sum(offset @ half for half in halves)
    made[sum(new.sizes[:2]) :] = network[sum(old.sizes[:2]) :]
    return made


def _numbers(twin: TwinRegressor, own: list[int], lines: list[Line]) -> _Block:
    """Make one input of all that became of a column of numbers."""
    scaling, column = twin.scaling_, lines[0].column
    centre, unit = np.array([(one.centre, one.scale) for one in lines]).T
    means, scales = centre + unit * scaling.x_mean[own], unit * scaling.x_scale[own]
    gain, offset = scales[0] / scales, (means[0] - means) / scales
    alike = np.abs(gain - 1).max() < _SAME and np.abs(offset).max() < _SAME
    fills = np.array([np.nan if is_missing(one.fill) else float(one.fill) for one in lines])
    if not np.isnan(fills).any() and not np.allclose(fills, fills[0], 1e-9, _SAME * scales[0]):
        raise ColumnError(
            column, f"has missing cells filled in by {fills[0]:g} and by {fills[-1]:g}; take one"
        )
    curved = twin.pairs == "neighbors" or twin.map_ is not None
    if len(own) > 1 and (curved or (scaling.limit < FARTHEST and not alike)):
        raise ColumnError(
            column, f"reaches the twin {len(own)} times, and a device has it once; use it once"
        )
    return _Block(
        None,
        means[:1],
        scales[:1],
        gain[:, None],
        offset,
        np.array([np.nan if np.isnan(fills).any() else fills[0]]),
        lambda x: lines[0].restored(x[:, 0])[:, None],
    )


def _names(twin: TwinRegressor, own: list[int], lookups: list[Lookup]) -> _Block:
    """Make the inputs of a category of all that became of a column of names."""
    scaling, column = twin.scaling_, lookups[0].column
    x_mean, x_scale = scaling.x_mean[own], scaling.x_scale[own]
    unknown, missing = np.array([one.values[-2:] for one in lookups]).T
    # The pipeline refuses what has no value; a device takes it for average, and flags it.
    unknown = np.where(np.isnan(unknown), x_mean, unknown)
    rows = {
        text: np.array([one.value(text) for one in lookups])
        for text in dict.fromkeys(text for one in lookups for text in one.levels)
    }
    rows = {text: np.where(np.isnan(row), unknown, row) for text, row in rows.items()}
    others = _sharing(rows)
    levels = [text for text in rows if text not in others]
    values = [rows[text] for text in (*levels, *others[:1])]
    fillable = not np.isnan(missing).any()
    known = any(np.array_equal(missing, one) for one in (*values, unknown))
    if len(values) < 2 or (fillable and not known):
        values.insert(len(levels), missing if fillable else unknown)
        levels.append(_MISSING)
    table, inputs = np.stack([*values, unknown]), np.eye(len(values) + 1, len(values))
    fill = np.full(len(values), np.nan)
    if fillable:
        fill = inputs[(table == missing).all(axis=1).argmax()]

    def restore(x: Array) -> Array:
        distinct, where = np.unique(x, axis=0, return_inverse=True)
        off = np.array([np.abs((table - one) / x_scale).max(axis=1) for one in distinct])
        if off.min(axis=1).max(initial=0) > _SAME:
            raise ColumnError(column, "has other levels than its twin; fit the pipeline again")
        found: Array = inputs[off.argmin(axis=1)][where]
        return found

    mean, scale = x_mean, x_scale
    if twin.pairs != "neighbors":
        indicators = np.ones(len(values), bool)
        as_usual = Scaling.of(restore(twin.anchor_X_[:, own]), twin.anchor_y_, indicators)
        mean, scale = as_usual.x_mean, as_usual.x_scale
    elif not np.array_equal(table, np.eye(*table.shape)):
        raise ColumnError(
            column,
            "is not encoded one-hot with an input for each level, so that a device would find "
            "other neighbors; use OneHotEncoder without drop and min_frequency, or pairs='all'",
        )
    *seen, none = np.clip((table - x_mean) / x_scale, -scaling.limit, scaling.limit)
    steps = (np.array(seen) - none).T
    return _Block(
        Category(tuple(levels), others),
        mean,
        scale,
        steps * scale,
        none + steps @ mean,
        fill,
        restore,
    )


def _sharing(rows: dict[str, Array]) -> tuple[str, ...]:
    """Find the largest group of levels that the pipeline does not tell apart."""
    groups: dict[tuple[float, ...], list[str]] = {}
    for text, row in rows.items():
        groups.setdefault(tuple(row.tolist()), []).append(text)
    most = max(groups.values(), key=len, default=[])
    return tuple(most) if len(most) > 1 else ()
