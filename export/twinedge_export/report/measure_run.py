"""What is measured about a run: the pack that an export would write, and other models beside it.

Networks are trained like ``AnnRegressor``, the members of an ensemble in parallel. Their weights
stay floats, which flatters them; their bytes are counted as if rounded.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from twinedge import scoring
from twinedge.anchors import METHODS, choose, recommend
from twinedge.anchors.curves import measure
from twinedge.anchors.pool import Evidence
from twinedge.anchors.rows import per_twin
from twinedge.budget import Model, Runtime, ann_bytes, twin_bytes
from twinedge.budget.model import largest
from twinedge.data import read_features
from twinedge.errors import InputError
from twinedge.estimators.targets import anchors_of
from twinedge.evaluation.comparison import compare
from twinedge.evaluation.small_trees import fit_small_trees
from twinedge.pack.contents import Array, Pack
from twinedge.pack.layout import MAX_WIDTH
from twinedge.progress import Progress, progress_bar
from twinedge.run_folder import Run
from twinedge.runtime.file_device import units_of_estimates
from twinedge.runtime.reference import evaluate, map_points, quantise
from twinedge.scoring.weights import joined_weights
from twinedge.training.selection import SETTINGS, Candidate, Plan
from twinedge.training.selection import choose as choose_plan
from twinedge.training.tasks import PointTask
from twinedge.training.trainer import Checkpoint
from twinedge.wording import plural
from twinedge_export.deploy import Export, write_export
from twinedge_export.deviations import Evaluator
from twinedge_export.files import RoundingError
from twinedge_export.report.findings import (
    Comparison,
    Findings,
    NetworkRival,
    Origin,
    ReportSettings,
    Size,
    Trees,
    measure_file,
    number_of_target,
    only_target,
    pack_of_target,
)
from twinedge_export.report.reliability import Points, fit_baselines
from twinedge_export.settings import ExportSettings

MEMBERS = (1, 2, 4, 8)
_RACE = 0.2  # settings are compared after this fraction of the steps
_MOST_ANCHORS = 256  # more saves nothing, and choosing them would take longest
_SIMPLE = "xy"  # if quick, and for other counts where the user named the anchors


def _training(members: int) -> str:
    return f"Training {plural(members, 'ordinary network')} of the same bytes"


# What takes time besides the export, and about how many seconds.
_PREDICTING, _SCORING = "Evaluating the pack", "Scoring other numbers of anchors"
_MEASURING, _RECOMMENDING = "Measuring anchors", "Recommending anchors"
_GROWING = "Growing trees of the same bytes"
_SLOW = {
    _MEASURING: 5.0,
    _RECOMMENDING: 15.0,
    _SCORING: 5.0,
    **{_training(members): 8.0 for members in MEMBERS},
    _GROWING: 5.0,
}


def measure_run(
    run: Run,
    place: str,
    settings: ReportSettings,
    firmware: dict[str, Runtime],
    *,
    alone: bool = True,
) -> Findings:
    """Export a run to a temporary folder, and measure what a report needs.

    Parameters
    ----------
    run : Run
        Run to report on.
    place : str
        Its folder, as the user types it.
    settings : ReportSettings
        What to measure. Without rows to score on, the test rows of the run are used, or the
        validation rows if there are none.
    firmware : dict of str to Runtime
        Measured cores.
    alone : bool
        Whether it is the only model; a comparison has no room for networks and trees.
    """
    number = number_of_target(run.model.target_names_, settings.target, place)
    (found,) = _measure_targets(run, [number], place, settings, firmware, alone=alone)
    return found


def measure_every_target(
    run: Run, place: str, settings: ReportSettings, firmware: dict[str, Runtime]
) -> list[Findings]:
    """Measure each target of a run as ``measure_run`` does, with one export of all."""
    numbers = range(len(run.model.target_names_))
    return _measure_targets(run, numbers, place, settings, firmware, alone=True)


def _measure_targets(
    whole: Run,
    numbers: Sequence[int],
    place: str,
    settings: ReportSettings,
    firmware: dict[str, Runtime],
    *,
    alone: bool,
) -> list[Findings]:
    names, runs = whole.model.target_names_, [whole.of_target(number) for number in numbers]
    if not all(len(run.validation[1]) for run in runs):
        raise InputError(f"{place}: there are no validation points to measure on: train with some")
    chosen = settings.export
    if settings.quick:
        chosen = replace(chosen, qat=False)
        chosen = replace(chosen, select=_SIMPLE) if chosen.select == "auto" else chosen
    slowly = alone and not settings.quick
    stages = {_PREDICTING: 5.0, **(_SLOW if slowly else {})}
    with progress_bar(chosen.verbose) as progress:
        progress.plan({names[number]: sum(stages.values()) for number in numbers})
        with progress.part("Exporting"):
            exported = _export(whole, chosen)
        found = []
        for number, run in zip(numbers, runs, strict=True):
            with progress.part(names[number]) as inner:
                inner.plan(stages)
                one = _measure_target(
                    whole,
                    run,
                    number,
                    place,
                    replace(settings, export=chosen),
                    firmware,
                    exported,
                    inner,
                )
                if slowly:
                    done = one.origin.export
                    assert done is not None
                    compared = _compare(one, run, done, settings.ann_steps, inner)
                    one = replace(one, comparison=compared)
            found.append(one)
    return found


def _measure_target(
    whole: Run,
    run: Run,
    number: int,
    place: str,
    settings: ReportSettings,
    firmware: dict[str, Runtime],
    exported: "tuple[Export, bytes, str]",
    progress: Progress,
) -> Findings:
    """Measure the pack on one target, of which ``run`` is."""
    rows = ("test", run.test) if len(run.test[1]) else ("validation", run.validation)
    if settings.data is not None:
        rows = settings.data.name, only_target(*read_rows(whole, settings.data), number)
    done, every, refused = exported
    names = whole.model.target_names_
    data, shared = pack_of_target(every, names[number] if len(names) > 1 else None, place)
    origin = Origin(
        Path(place).resolve().name,
        place,
        "out/model.twin",
        "measured.csv",
        settings.export.seed,
        _command(place, settings.export, settings.quick),
        run,
        _of_target(done, whole, number),
        refused,
        shared,
        every if shared else b"",
    )
    progress.stage(_PREDICTING)
    fit = partial(fit_baselines, run)
    return measure_file(origin, data, rows, firmware, fit, run.validation)


def read_rows(run: Run, table: Path) -> Points:
    """Read features and targets of a table for a run, with missing values filled in."""
    values = run.fill_values
    values = np.full(len(run.encoding.inputs), np.nan) if values is None else values
    fillable = np.isfinite(values)
    names = run.model.target_names_
    target = names if len(names) > 1 else run.target_name
    X, y = read_features(table, run.encoding, target=target, fillable=fillable)
    assert y is not None
    return np.where(np.isnan(X), values, X), y


def _export(run: Run, settings: ExportSettings) -> tuple[Export, bytes, str]:
    """Return the export, its pack, and why a real one would be refused, if so."""
    settings = replace(settings, formats=("twin",), verbose=True)
    with TemporaryDirectory() as room:
        folder, refused = Path(room) / "out", ""
        try:
            done = write_export(run, folder, settings)
        except RoundingError as error:
            refused = str(error)
            done = write_export(run, folder, replace(settings, qat=False, tolerance=np.inf))
        return done, (folder / done.files[0].path.name).read_bytes(), refused


def _of_target(done: Export, run: Run, number: int) -> Export:
    """Return what an export of several targets says of one of them."""
    if isinstance(done.evaluator, Evaluator):
        return done
    score: Any = done.files[0].score
    each = ("rmse", "rmse_test", "largest_deviation")
    score = score._replace(**{name: getattr(score, name)[number] for name in each})
    return replace(
        done,
        files=(done.files[0]._replace(score=score), *done.files[1:]),
        rows=anchors_of(run.model, number, done.rows),
        evaluator=done.evaluator.singles[number],
    )


def _command(place: str, settings: ExportSettings, quick: bool) -> str:
    """Return the export command that writes this pack."""
    usual = ExportSettings()
    anchors = "fewest" if settings.anchors == "auto" else settings.anchors
    words = ["twinedge", "export", place, "--anchors", str(anchors)]
    for name in ("select", "weights", "seed"):
        if getattr(settings, name) != getattr(usual, name):
            words += [f"--{name}", str(getattr(settings, name))]
    words += ["--no-intervals"] * (not settings.intervals) + ["--no-qat"] * quick
    return shlex.join([*words, "-o", "out"])


def _compare(
    found: Findings, run: Run, done: Export, ann_steps: int, progress: Progress
) -> Comparison:
    """Measure other numbers of anchors, ordinary networks and trees."""
    model, seed, points = found.pack.model, found.origin.seed, found.accuracy.points
    method = done.method if done.method in METHODS else _SIMPLE
    most = min(_MOST_ANCHORS, len(run.model.anchor_y_))
    doubling, few = (growing_counts(model.twins, model.anchors, most, by) for by in (2, 8))
    progress.stage(_MEASURING)
    curve = measure(
        run.model,
        run.validation,
        counts=doubling,
        methods=[*dict.fromkeys((method, "random"))],
        seed=seed,
        verbose=True,
    )
    progress.stage(_RECOMMENDING)
    recommended = recommend(run.model, run.validation, seed=seed, verbose=True)
    progress.stage(_SCORING)
    sizes = score_sizes(found, run, done.rows, few, method, progress)
    budget = twin_bytes(replace(model, identified=False))  # the others could have that as well
    networks = train_networks(run, model, budget, points, ann_steps, seed, progress)
    progress.stage(_GROWING)
    trees = None
    if found.accuracy.predictions.name != "validation":
        trees = grow_trees(run, budget, points, found.accuracy.predictions.error, seed)
    return Comparison(curve, recommended, tuple(sizes), tuple(networks), trees, ann_steps)


def growing_counts(twins: int, exported: int, most: int, by: int) -> list[int]:
    """Numbers of anchors to try: 1, ``by``, ``by``^2, ... for each twin, and the exported."""
    counts = {exported}
    k = twins
    while k <= most:
        counts.add(k)
        k *= by
    return sorted(counts)


def score_sizes(
    found: Findings,
    run: Run,
    exported: Array,
    counts: Sequence[int],
    method: str,
    progress: Progress,
) -> list[Size]:
    """Swap the anchors of a pack, and score each pack as a device would compute it.

    Parameters
    ----------
    found : Findings
        About the pack as exported, with the points to score on. If these are the validation rows,
        a method that looks at those chooses on some of them and is scored on the others, in turn.
    run : Run
        Origin of the pack.
    exported : array of shape (k,)
        Its training rows; twin ``t`` owns every ``twins``-th from ``t`` on.
    counts : sequence of int
        Numbers of anchors; left out are those with which a model of neighbors would have to predict
        from distant ones.
    method : str
        How anchors are chosen.
    """
    model, shape, pack = run.model, found.pack.model, found.pack.device.pack
    points, seed = found.accuracy.points, found.origin.seed
    X, y = points
    everything = np.arange(len(y))
    folds = [everything]
    if found.accuracy.predictions.name == "validation" and METHODS[method].needs_validation:
        # Evidence across groups ends with training points.
        parts = (part[part < len(y)] for part in Evidence.of(model, points).folds(seed))
        folds = [part for part in parts if len(part)]

    def chosen(k: int, seen: Array) -> Array:
        if k == len(exported) and len(folds) == 1:
            return exported
        validation = run.validation if len(folds) == 1 else (X[seen], y[seen])
        given = model.anchor_X_, model.anchor_y_, k, method
        found = choose(*given, model=model, validation=validation, twins=shape.twins, seed=seed)
        return found.rows

    sizes = []
    for done, k in enumerate(counts):
        if pack.trained_on_neighbors and k <= shape.twins * pack.neighbors:
            continue
        progress.at(str(k), done, len(counts))
        error = np.empty(len(y))
        for held in folds:
            other = with_anchors(run, pack, chosen(k, np.setdiff1d(everything, held)))
            error[held] = evaluate(other, X[held]).mean - y[held]
        sizes.append(Size(k, twin_bytes(shape.with_anchors(k)), scoring.rmse(error)))
    return sizes


def with_anchors(run: Run, pack: Pack, rows: Array) -> Pack:
    """Replace the anchors of a pack; twin ``t`` owns ``rows[t::twins]``."""
    shares = list(per_twin(rows, len(pack.twins)))
    order = np.concatenate(shares)
    offset, unit = units_of_estimates(pack)
    units = (run.model.scaling_.curved(run.model.anchor_y_[order]) - offset) / unit
    return replace(
        pack,
        anchors=map_points(pack, quantise(pack, run.model.anchor_X_[order])),
        targets=np.rint(units).astype(np.int32),
        counts=np.array([len(share) for share in shares], np.uint16),
        ids=order.astype(np.uint32),
    )


def grow_trees(run: Run, budget: int, points: Points, error: Array, seed: int) -> Trees | None:
    """Grow trees of at most ``budget`` bytes, chosen on the validation rows; None if none fit.

    They are scored on ``points``, which are not the validation rows; ``error`` ``(n,)`` is that of
    the pack there.
    """
    training = run.model.anchor_X_, run.model.anchor_y_
    weights = run.model.sample_weights_, run.model.validation_weights_
    found = fit_small_trees(training, run.validation, budget, few=True, seed=seed, weights=weights)
    if found is None:
        return None
    family, leaves, *_ = found.setting
    rival = compare(error, found.predict(points[0]) - points[1])
    return Trees(family, found.trees, leaves, found.bytes, rival)


def train_networks(
    run: Run,
    model: Model,
    budget: int,
    points: Points,
    steps: int,
    seed: int,
    progress: Progress,
) -> list[NetworkRival]:
    """Train an ensemble of each size with the widest networks that fit.

    Parameters
    ----------
    run : Run
        Training points, and validation points to choose learning rate and weight decay.
    model : Model
        The twin, whose activation, number of layers and proportions are reused.
    budget : int
        Bytes that an ensemble may take.
    points : (X, y)
        Points to score on.
    steps : int
        Length of the training.
    """
    found = []
    for members in MEMBERS:
        shape = widest(model, members, budget)
        if shape is None:
            continue
        with progress.part(_training(members), opaque=True) as inner:
            predicted = _train(run, shape.hidden, members, points[0], steps, seed, inner)
        rmse = scoring.rmse(predicted, points[1])
        found.append(NetworkRival(members, shape.hidden, ann_bytes(shape, members), rmse))
    return found


def widest(model: Model, members: int, budget: int) -> Model | None:
    """Stretch or shrink the layers until ``members`` networks just fit; None if none do."""

    def stretched(width: int) -> Model:
        first = model.hidden[0]
        hidden = tuple(max(1, width * each // first) for each in model.hidden)
        return replace(model, hidden=hidden)

    most = MAX_WIDTH * model.hidden[0] // max(model.hidden)
    width = largest(lambda w: ann_bytes(stretched(w), members) <= budget, most)
    return stretched(width) if width else None


def _train(
    run: Run,
    hidden: tuple[int, ...],
    members: int,
    X: Array,
    steps: int,
    seed: int,
    progress: Progress,
) -> Array:
    """Predictions ``(n,)`` of a trained ensemble."""
    twin, scaling = run.model, run.model.scaling_
    known = zip((twin.anchor_X_, twin.anchor_y_), run.validation, strict=True)
    rows = [np.concatenate(pair) for pair in known]
    task = PointTask(
        x=scaling.features(rows[0]),
        y=scaling.target(rows[1]),
        train=len(twin.anchor_y_),
        scale=scaling.y_scale,
        hidden=hidden,
        weights=joined_weights(
            (twin.sample_weights_, len(twin.anchor_y_)),
            (twin.validation_weights_, len(run.validation[1])),
        ),
    )
    choice = choose_plan(
        task,
        [Candidate(twin.activation_, setting) for setting in SETTINGS[twin.activation_]],
        Plan(folds=max(1, round(_RACE * steps)), final=steps),
        networks=members,
        seed=seed,
        progress=progress,
        checkpoint=Checkpoint(None),
    )
    if choice.interrupted:
        raise KeyboardInterrupt
    x = np.broadcast_to(scaling.features(X), (members, *X.shape))
    scaled = choice.architecture.forward(choice.weights, x).numpy().astype(np.float64)
    return scaling.restored(scaled.mean(axis=0))
