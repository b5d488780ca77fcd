"""From a fitted model to the integers of a pack: rounded, and fine-tuned if that costs too much.

Rounding so that errors cancel is all that large networks need. A small one has fewer weights to
cancel with; there, a few seconds of training with rounded kernels gain more. The gradient ignores
the rounding, so the trainer runs unchanged.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from twinedge import defaults, scoring
from twinedge.errors import InputError, Parameter
from twinedge.estimators.difficulty import learn_difficulty
from twinedge.estimators.targets import anchors_of, model_of
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack import read_pack, write_pack
from twinedge.pack.checks import check_contents, check_scaling
from twinedge.pack.contents import (
    LARGEST,
    TARGET,
    Array,
    Domain,
    Intervals,
    Pack,
    Twin,
    metadata_of,
    schema_of,
)
from twinedge.pack.layout import MAX_SHIFT, NO_FILL
from twinedge.pack.targets import joined
from twinedge.pack.writer import shape_of
from twinedge.progress import Progress
from twinedge.runtime.file_device import units_of_estimates
from twinedge.runtime.pack_calibration import calibrate_pack, with_common_levels
from twinedge.runtime.reference import evaluate, map_points, silu_curve
from twinedge.runtime.reference import quantise as quantise_points
from twinedge.runtime.self_test import identified
from twinedge.scoring.weights import in_proportion, measured_rows, of_rows
from twinedge.training.batches import Examples, Stack, expected_seconds
from twinedge.training.network import Architecture, tf
from twinedge.training.pairs import nearest_others, partners_of
from twinedge_export.files import File, Job, Make, RoundingError
from twinedge_export.fold_anchors import anchor_lists, largest_input
from twinedge_export.round_curves import round_map, round_target_curve
from twinedge_export.round_weights import round_network
from twinedge_export.settings import check_weights

UNITS = 65536  # units of an estimate in one standard deviation of the target, or fewer
_CALIBRATION_PAIRS = 4096
_UNCALIBRATED = Intervals(0, 0, 0, 1, 1, 0, 0, {500: 1})


def quantise(
    model: TwinRegressor,
    rows: Sequence[Array] | Array,
    *,
    weights: str = defaults.WEIGHTS,
    neighbors: int | None = None,
    metadata: dict[str, Any] | None = None,
    compensate: bool = True,
    fill_values: Array | None = None,
    intervals: bool = False,
) -> Pack:
    """Make the pack of a fitted model.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    rows : array of shape (twins, k), or one array of int for each twin
        Training rows that become the anchors of each twin.
    weights : {"int8", "int16"}
        Type of the kernels of the hidden layers.
    neighbors : int, optional
        How many nearest anchors of each twin predict, 0 for all. By default as many as the model
        was trained on, or all if it was not trained on neighbors.
    metadata : dict, optional
        Stored in the pack.
    compensate : bool
        Round weights so that their errors cancel on training pairs; otherwise each by itself.
    fill_values : array of shape (f,), optional
        Values for missing features, in the user's units.
    intervals : bool
        Include the second outputs of the twins, if the model has them, and feature ranges. The
        intervals themselves are calibrated later.

    Raises
    ------
    InputError
        If a pack cannot hold the model.
    """
    check_weights(weights)
    if model.targets_ > 1:
        options: dict[str, Any] = {"weights": weights, "neighbors": neighbors}
        options["compensate"] = compensate
        options |= {"fill_values": fill_values, "intervals": intervals}
        return joined(
            [
                quantise(one, rows, metadata=metadata_of(metadata or {}, target), **options)
                for target, one in enumerate(_each_target(model, rows))
            ]
        )
    lists = anchor_lists(model, rows)
    chosen = np.concatenate(lists)
    architecture, x_unit = model.architecture_, largest_input(model) / LARGEST
    front = _front(model, x_unit)
    pick = _calibration_pairs(model)
    points = model.inputs_of(model.scaling_.features(model.anchor_X_)).astype(np.float64)
    whole = None
    if model.map_ is not None:
        whole = map_points(front, quantise_points(front, model.anchor_X_)).astype(np.float64)
        whole = whole[pick].reshape(len(pick), -1)
    readouts = [None] * len(lists)
    if intervals and model.difficulty_ is not None:
        readouts = list(model.difficulty_)
    twins, doublings = _in_one_unit(
        [
            round_network(
                architecture,
                network,
                points[pick].reshape(len(pick), -1),
                x_unit,
                y_unit=1 / UNITS,
                dtype=np.dtype(weights),
                compensate=compensate,
                readout=readout,
                whole=whole,
            )
            for network, readout in zip(model.weights_, readouts, strict=True)
        ]
    )
    pack = replace(
        _with_target(front, model, doublings, metadata or {}),
        twins=twins,
        anchors=np.zeros((len(chosen), front.inputs), np.int16),
        targets=np.zeros(len(chosen), np.int32),
        counts=np.array([len(mine) for mine in lists], np.uint16),
        neighbors=_neighbors(model, neighbors),
        trained_on_neighbors=model.pairs == "neighbors",
        intervals=replace(_UNCALIBRATED, trust=round(65536 * model.trust_))
        if intervals and model.difficulty_ is not None
        else None,
        ids=chosen.astype(np.uint32),
    )
    shape_of(pack)
    check_contents(pack)
    return replace(
        pack,
        anchors=map_points(pack, quantise_points(pack, model.anchor_X_[chosen])),
        targets=_targets(pack, model.scaling_.curved(model.anchor_y_[chosen])),
        domain=_domain(pack, model, fill_values) if intervals else None,
    )


def _each_target(model: TwinRegressor, rows: Sequence[Array] | Array) -> list[TwinRegressor]:
    """Take the model of each target, all with the same training points in the same rows."""
    for mine in anchor_lists(model, rows):
        lacking = mine[np.isnan(model.anchor_y_[mine]).any(axis=1)]
        if len(lacking):
            raise InputError(
                f"anchors: training point {lacking[0]} lacks a target, and in a pack each anchor "
                "has all of them"
            )
    return [model_of(model, target, every=True) for target in range(model.targets_)]


def _front(model: TwinRegressor, x_unit: float) -> Pack:
    """Make a pack without twins and target: what comes before them, scaling and map."""
    scaling, activation = model.scaling_, model.architecture_.activation
    with np.errstate(over="ignore", under="ignore"):  # what float32 cannot hold is refused later
        x_offset = scaling.x_mean.astype(np.float32)
        x_gain = (1 / (scaling.x_scale * x_unit)).astype(np.float32)
    curves = None
    if model.map_ is not None:
        check_scaling(x_offset, x_gain)  # before the map is used
        curves = round_map(model.map_, x_unit, scaling.features(model.anchor_X_))
    return Pack(
        activation,
        x_offset,
        x_gain,
        y_offset=np.float32(0),
        y_gain=np.float32(1),
        twins=(),
        anchors=np.zeros((0, 0), np.int16),
        targets=np.zeros(0, np.int32),
        counts=np.zeros(0, np.uint16),
        curve=silu_curve() if activation == "silu" else None,
        map=curves,
    )


def _with_target(
    pack: Pack, model: TwinRegressor, doublings: int, metadata: dict[str, Any]
) -> Pack:
    """Add how estimates become targets: gain and offset, or the table of a curve."""
    scaling = model.scaling_
    unit = scaling.y_scale / UNITS * 2.0**doublings
    if scaling.curve is None:
        with np.errstate(over="ignore", under="ignore"):
            gain, offset = np.float32(unit), np.float32(scaling.y_mean)
        return replace(pack, y_gain=gain, y_offset=offset, metadata=metadata)
    table, gain = round_target_curve(model, unit)
    about = {"kind": scaling.curve.kind, "offset": scaling.y_mean, "unit": unit}
    metadata = {**metadata, "target_curve": about}
    return replace(pack, y_gain=gain, target_curve=table, metadata=metadata)


def _in_one_unit(twins: list[Twin]) -> tuple[tuple[Twin, ...], int]:
    """Double the unit of an estimate until it suits the outputs of all twins.

    An output reaches at most 2^29 units, as its sum is below 2^30 and its multiplier below a half.
    That is thousands of deviations of the target, and where the terms of a sum are large and cancel
    a network may still need more. Returns the twins, and how often the unit was doubled.
    """
    outputs = (one for twin in twins for one in (twin, twin.difficulty) if one is not None)
    doublings = max(0, -min(one.shift for one in outputs))

    def doubled(shift: int) -> int:
        return min(shift + doublings, MAX_SHIFT)

    return tuple(
        replace(
            twin,
            shift=doubled(twin.shift),
            difficulty=twin.difficulty
            and replace(twin.difficulty, shift=doubled(twin.difficulty.shift)),
        )
        for twin in twins
    ), doublings


def _domain(pack: Pack, model: TwinRegressor, fill_values: Array | None) -> Domain:
    least, most = quantise_points(pack, model.encoding_.ranges(model.anchor_X_))
    fill = np.full(len(least), NO_FILL, np.int16)
    if fill_values is not None:
        known = np.isfinite(fill_values)
        fill = np.where(known, quantise_points(pack, np.nan_to_num(fill_values)[None])[0], fill)
    return Domain(least, most, fill)


def _neighbors(model: TwinRegressor, neighbors: int | None) -> int:
    near = model.pairs == "neighbors"
    if neighbors is None:
        return int(model.neighbors) if near else 0
    if near and not neighbors:
        raise InputError("a model trained on neighbors cannot predict with all anchors")
    return int(neighbors)


def _calibration_pairs(model: TwinRegressor) -> Array:
    """Rows ``(n, 2)`` of random pairs of training points, like those of the training."""
    rng = np.random.default_rng(0)
    pick = rng.integers(len(model.anchor_X_), size=(_CALIBRATION_PAIRS, 2))
    if model.pairs == "neighbors":
        inputs = model.inputs_of(model.scaling_.features(model.anchor_X_))
        partners = nearest_others(inputs, int(model.neighbors))
        pick[:, 1] = partners[pick[:, 0], pick[:, 1] % partners.shape[1]]
    return pick


def _targets(pack: Pack, c: Array) -> Array:
    """Targets on the curve in units of an estimate, int32, by the rounded numbers of the pack."""
    offset, unit = units_of_estimates(pack)
    units = np.rint((c - offset) / unit)
    if np.abs(units).max() >= TARGET:
        raise InputError(
            "the target varies too little for its size: take its mean off before training"
        )
    targets: Array = units.astype(np.int32)
    return targets


_STEPS, _BATCH = 4_000, 128
_TINY = 1e-9  # of the target's deviation: a smaller error is no yardstick
_SLOWER = 0.1  # learning rate, as a fraction of that of the training
_ANCHORS, _POINTS = 64, 1_000  # enough to tell models apart; integer numpy is slow


@dataclass(frozen=True)
class RoundedArchitecture(Architecture):
    """A network whose hidden kernels are rounded per output before they are used.

    Parameters
    ----------
    most : int
        Steps from zero to the largest weight of an output.
    """

    most: int = 127

    def arrays(self, stack: Array) -> list[tuple[Array, Array]]:
        """Kernels, rounded but for the last, and biases."""
        *hidden, last = super().arrays(stack)
        return [*((self._rounded(kernel), bias) for kernel, bias in hidden), last]

    def tensors(self, stack: Any) -> list[tuple[Any, Any]]:
        """Return the same as tensors; gradients ignore the rounding."""
        *hidden, last = super().tensors(stack)
        return [*((self._straight_through(kernel), bias) for kernel, bias in hidden), last]

    def _rounded(self, kernel: Array) -> Array:
        largest = np.abs(kernel).max(axis=1, keepdims=True)
        step = np.maximum(largest / self.most, np.finfo(np.float32).tiny)
        found: Array = np.rint(kernel / step) * step
        return found

    def _straight_through(self, kernel: Any) -> Any:
        largest = tf.reduce_max(tf.abs(kernel), axis=1, keepdims=True)
        step = tf.maximum(largest / self.most, np.finfo(np.float32).tiny)
        return kernel + tf.stop_gradient(tf.round(kernel / step) * step - kernel)

    def rounded(self, stack: Array) -> Array:
        """Networks ``(c, size)`` with their rounded kernels, as used in training."""
        layers = [part for layer in self.arrays(stack) for part in layer]
        flat: Array = np.concatenate([np.reshape(part, (len(stack), -1)) for part in layers], 1)
        return flat


def fine_tune(
    model: TwinRegressor,
    X_val: Array,
    y_val: Array,
    *,
    sample_weight: Array | None = None,
    weights: str = defaults.WEIGHTS,
    refused: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> TwinRegressor:
    """Train a fitted model a little more, with the rounding its pack will have.

    Parameters
    ----------
    model : TwinRegressor
        Fitted; not modified.
    X_val : array of shape (v, f)
        Points it was not trained on.
    y_val : array of shape (v,)
        Their targets.
    sample_weight : array of shape (v,), optional
        How much each of them counts.
    weights : {"int8", "int16"}
        Type of the kernels.
    refused : bool
        Whether the pack of ``model`` itself will not do, for its errors or for its spread.
    seed : int
        The same seed yields the same model on the same machine.
    progress : Progress, optional
        Receives the progress of the training.

    Returns
    -------
    TwinRegressor
        A copy with new weights, or ``model`` itself if its pack predicts the validation points as
        well and will do.
    """
    check_weights(weights)
    if not len(y_val):
        raise InputError("fine-tuning is scored on validation points, and there are none")
    X_val, y_val, each = X_val[:_POINTS], y_val[:_POINTS], of_rows(sample_weight, slice(_POINTS))
    progress = progress or Progress()
    twins = len(model.weights_)
    order = np.random.default_rng(seed).permutation(len(model.anchor_y_))
    if model.targets_ > 1:
        order = order[np.isin(order, model.with_all_targets()[1])]
    shares = [order[twin::twins] for twin in range(twins)]
    rows = [in_proportion(mine, model.sample_weights_, _ANCHORS) for mine in shares]

    exact = np.maximum(model.rmse(X_val, y_val, each), _TINY * model.scaling_.y_scale)

    def error(candidate: TwinRegressor) -> float:
        pack = quantise(candidate, rows, weights=weights)
        if not pack.others:
            return scoring.rmse(evaluate(pack, X_val).mean, y_val, each)
        pairs = zip(pack.singles, y_val.T, strict=True)
        errors = [
            scoring.rmse(*measured_rows(evaluate(one, X_val).mean, y, each)) for one, y in pairs
        ]
        return float(np.max(errors / exact))  # no target may lose what another gains

    before = error(model)
    best, least = model, np.inf if refused else before
    steps = _STEPS * twins
    seconds = expected_seconds(steps, _BATCH, model.architecture_)
    progress.stage("fine-tuning", steps, seconds=seconds)
    for networks in _trained(model, np.iinfo(np.dtype(weights)).max, seed, progress, before):
        candidate = copy(model)
        candidate.weights_ = networks
        if (now := error(candidate)) < least:
            best, least = candidate, now
    if best is not model:
        best.validation_rmse_ = best.rmse(X_val, y_val, each)
    return best


def _trained(
    model: TwinRegressor, most: int, seed: int, progress: Progress, score: float
) -> Iterator[Array]:
    """Last and averaged weights ``(twins, size)`` of a short training, rounded."""
    plain, twins = model.architecture_, len(model.weights_)
    architecture = RoundedArchitecture(
        plain.inputs, plain.hidden, plain.activation, most, targets=plain.targets
    )
    x = model.inputs_of(model.scaling_.features(model.anchor_X_))
    y = model.scaling_.target(model.anchor_y_)
    orders = [np.random.default_rng([seed, twin]).permutation(len(y)) for twin in range(twins)]
    stack = Stack(
        architecture,
        Examples.pairs(
            x,
            y,
            np.stack(orders).astype(np.int32),
            partners_of(x, model.pairs, model.neighbors, seed),
            model.sample_weights_,
        ),
        learning_rate=_SLOWER * model.learning_rate_,
        weight_decays=[model.weight_decay_] * twins,
        steps=_STEPS,
        batch=_BATCH,
        seeds=[seed] * twins,
        seed=seed,
    )
    stack.state = stack.state._replace(weights=model.weights_, average=model.weights_)
    while not stack.finished:
        before = stack.step
        loss = stack.advance()
        stack.limit_sums()
        progress.advance((stack.step - before) * twins, float(loss.mean()), score)
    for networks in (stack.state.weights, stack.average()):
        if np.isfinite(networks).all():
            yield architecture.rounded(networks)


NAME = "model.twin"


def twin_file(job: Job) -> tuple[File, Job]:
    """Write the pack; return it, and the job with the model that was accepted."""
    weights, qat, seed = job.settings.weights, job.settings.qat, job.settings.seed

    def packed(model: TwinRegressor) -> tuple[bytes, TwinRegressor]:
        if job.intervals:  # exported anchors are a subset, and layers may have changed
            model = with_difficulty(model, seed, job.rows)
        pack = quantise(
            model,
            job.rows,
            weights=weights,
            neighbors=job.neighbors,
            metadata=job.metadata,
            fill_values=job.fill_values,
            intervals=job.intervals,
        )
        pack = _calibrated(pack, job)
        if pack.intervals is not None:
            inputs = [one["name"] for one in job.metadata["features"]]
            names = model.target_names_ if model.targets_ > 1 else job.metadata["target"]
            pack = replace(pack, schema=schema_of(inputs, names))
        pack = identified(pack, parent=job.parent, counter=job.settings.counter)
        return write_pack(pack), model

    def fine_tuned() -> TwinRegressor:
        return fine_tune(
            job.model,
            *job.evaluator.points,
            sample_weight=job.evaluator.weights,
            weights=weights,
            refused=qat is None,  # as it comes after the pack of the model itself
            seed=seed,
            progress=job.progress,
        )

    levels: dict[str, Make] = {}
    if not qat:
        levels[weights] = lambda: packed(job.model)
    if qat is not False:
        levels[f"{weights}, fine-tuned"] = lambda: packed(fine_tuned())
    try:
        file, model = job.write("twin", NAME, levels, calibrated=True)
    except RoundingError as error:
        if weights == "int16":
            raise
        wider = Parameter("weights", "int16")
        raise RoundingError(*error.parts, "; ", wider, " costs less", cost=error.cost) from error
    return file, replace(job, model=model, pack=read_pack(file.path.read_bytes()))


def with_difficulty(model: TwinRegressor, seed: int, rows: Sequence[Array]) -> TwinRegressor:
    """Return a copy of a model whose second outputs were learnt for these anchors of each twin."""
    done = []
    for target, one in enumerate(model.of_each_target()):
        mine = rows
        if model.targets_ > 1:
            mine = [anchors_of(model, target, share) for share in rows]
        done.append(learn_difficulty(one, seed, mine))
    model = copy(model)
    model.difficulty_ = done[0] if model.targets_ == 1 else tuple(done)
    return model


def _calibrated(pack: Pack, job: Job) -> Pack:
    """Calibrate on points that were held out; without intervals if they do not suffice."""
    if pack.intervals is None:
        return pack
    each = zip(pack.singles, job.evaluator.singles, job.model.of_each_target(), strict=True)
    try:
        done = [
            calibrate_pack(
                single,
                *evaluator.points,
                sample_weight=evaluator.weights,
                groups=model.validation_groups_,
                beside=model.left_out_,
                unit=units_of_estimates(single)[1],
                chosen=model.left_out_ is None,
            )
            for single, evaluator, model in each
        ]
        return joined(with_common_levels(done) if pack.others else done)
    except InputError:
        return joined([_without_intervals(one) for one in pack.singles])


def _without_intervals(pack: Pack) -> Pack:
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in pack.twins)
    return replace(pack, twins=twins, intervals=None)
