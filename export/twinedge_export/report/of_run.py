"""Findings about a run: about the pack that an export would write, and about its rivals.

Networks are trained like ``AnnRegressor``, the members of an ensemble in parallel. Their weights
stay floats, which flatters them; their bytes are counted as if rounded.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from twinedge import defaults, scoring
from twinedge.anchors import METHODS, choose, recommend
from twinedge.anchors.curves import measure
from twinedge.anchors.pool import Evidence
from twinedge.anchors.rows import per_twin
from twinedge.budget import Board, Model, Runtime, ann_bytes, twin_bytes
from twinedge.budget.model import largest
from twinedge.data import read_features
from twinedge.errors import InputError
from twinedge.evaluation.comparison import compare
from twinedge.evaluation.small_trees import fit_small_trees
from twinedge.pack.contents import Array, Pack
from twinedge.pack.layout import MAX_WIDTH
from twinedge.progress import Progress, progress_bar
from twinedge.run_folder import Run
from twinedge.runtime.reference import evaluate, quantise
from twinedge.scoring.weights import joined_weights
from twinedge.training.selection import SETTINGS, Candidate, Plan
from twinedge.training.selection import choose as choose_plan
from twinedge.training.tasks import PointTask
from twinedge.training.trainer import Checkpoint
from twinedge.wording import plural
from twinedge_export.deploy import Export, export
from twinedge_export.files import RoundingError
from twinedge_export.report.findings import (
    Findings,
    NetworkRival,
    Size,
    Trees,
    find_alike,
    judge,
    spread_worth,
)
from twinedge_export.report.reliability import beside_run


def growing(twins: int, exported: int, most: int, by: int) -> list[int]:
    """Numbers of anchors to try: 1, ``by``, ``by``^2, ... for each twin, and the exported."""
    counts = {exported}
    k = twins
    while k <= most:
        counts.add(k)
        k *= by
    return sorted(counts)


def sizes(
    run: Run,
    pack: Pack,
    shape: Model,
    exported: Array,
    counts: Sequence[int],
    method: str,
    points: tuple[Array, Array],
    *,
    unseen: bool,
    seed: int,
    progress: Progress,
) -> list[Size]:
    """Swap the anchors of a pack, and score each pack as a device would compute it.

    Parameters
    ----------
    run : Run
        Origin of the pack.
    pack : Pack
        As exported.
    shape : Model
        Its shape, as the calculator counts it.
    exported : array of shape (k,)
        Its training rows; twin ``t`` owns every ``twins``-th from ``t`` on.
    counts : sequence of int
        Numbers of anchors; left out are those with which a model of neighbors would have to predict
        from distant ones.
    method : str
        How anchors are chosen.
    points : (X, y)
        Points to score on.
    unseen : bool
        Whether these took no part in the choice of anchors. If they are the validation rows, a
        method that looks at those chooses on some of them and is scored on the rest, in turn.
    """
    model, twins = run.model, shape.twins
    X, y = points
    everything = np.arange(len(y))
    folds = [everything]
    if not unseen and METHODS[method].looks:
        # Evidence across groups ends with training points.
        parts = (part[part < len(y)] for part in Evidence.of(model, points).folds(seed))
        folds = [part for part in parts if len(part)]

    def chosen(k: int, seen: Array) -> Array:
        if k == len(exported) and len(folds) == 1:
            return exported
        validation = run.validation if len(folds) == 1 else (X[seen], y[seen])
        given = model.anchor_X_, model.anchor_y_, k, method
        return choose(*given, model=model, validation=validation, twins=twins, seed=seed).rows

    found = []
    for place, k in enumerate(counts):
        if pack.trained_on_neighbors and k <= twins * pack.neighbors:
            continue
        progress.at(str(k), place, len(counts))
        error = np.empty(len(y))
        for held in folds:
            other = with_anchors(run, pack, chosen(k, np.setdiff1d(everything, held)))
            error[held] = evaluate(other, X[held]).mean - y[held]
        rmse = scoring.rmse(error)
        found.append(Size(k, twin_bytes(shape.with_anchors(k)), rmse))
    return found


def with_anchors(run: Run, pack: Pack, rows: Array) -> Pack:
    """Replace the anchors of a pack; twin ``t`` owns ``rows[t::twins]``."""
    twins = len(pack.twins)
    shares = list(per_twin(rows, twins))
    order = np.concatenate(shares)
    units = (run.model.anchor_y_[order] - float(pack.y_offset)) / float(pack.y_gain)
    return replace(
        pack,
        anchors=quantise(pack, run.model.anchor_X_[order]),
        targets=np.rint(units).astype(np.int32),
        counts=np.array([len(share) for share in shares], np.uint16),
        ids=order.astype(np.uint32),
    )


MEMBERS = (1, 2, 4, 8)
STEPS = 4000
_RACE = 0.2  # settings are compared after this fraction of the steps


def trees(
    run: Run, budget: int, points: tuple[Array, Array], error: Array, seed: int
) -> Trees | None:
    """Grow trees that fit, chosen on the validation rows; None without such rows.

    Parameters
    ----------
    run : Run
        Source of training rows.
    budget : int
        Most bytes.
    points : (X, y)
        Points to score on, other than the validation rows.
    error : array of shape (n,)
        Errors of the pack on them.
    """
    if not len(run.validation[1]):
        return None
    weights = run.model.sample_weights_, run.model.validation_weights_
    found = fit_small_trees(
        _training(run), run.validation, budget, few=True, seed=seed, weights=weights
    )
    if found is None:
        return None
    beside = compare(error, found.predict(points[0]) - points[1])
    family, leaves, *_ = found.setting
    return Trees(beside, family, found.trees, leaves, found.bytes)


def rivals(
    run: Run,
    model: Model,
    budget: int,
    points: tuple[Array, Array],
    *,
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
        with progress.part(_training_of(members), opaque=True) as inner:
            predicted = _train(run, shape.hidden, members, points[0], steps, seed, inner)
        rmse = scoring.rmse(predicted, points[1])
        found.append(NetworkRival(members, shape.hidden, ann_bytes(shape, members), rmse))
    return found


def _training_of(members: int) -> str:
    return f"Training {plural(members, 'ordinary network')} of the same bytes"


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
    rows = [np.concatenate(pair) for pair in zip(_training(run), run.validation, strict=True)]
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
    architecture = task.architecture(twin.activation_)
    x = np.broadcast_to(scaling.features(X), (members, *X.shape))
    scaled = architecture.forward(choice.weights, x).numpy().astype(np.float64).mean(axis=0)
    predicted: Array = scaled * scaling.y_scale + scaling.y_mean
    return predicted


def _training(run: Run) -> tuple[Array, Array]:
    return run.model.anchor_X_, run.model.anchor_y_


# What takes time besides the export, and about how many seconds.
_JUDGING, _SCORING = "Judging the pack", "Scoring other numbers of anchors"
_MEASURING, _RECOMMENDING = "Measuring anchors", "Recommending anchors"
_GROWING = "Growing trees of the same bytes"
_SLOW = {
    _MEASURING: 5.0,
    _RECOMMENDING: 15.0,
    _SCORING: 5.0,
    **{_training_of(members): 8.0 for members in MEMBERS},
    _GROWING: 5.0,
}
_MOST_ANCHORS = 256  # more saves nothing, and choosing them would take longest
_SIMPLE = "xy"  # if quick, and for other counts where the user named the anchors


def find(
    run: Run,
    place: str,
    boards: list[Board],
    firmware: dict[str, Runtime],
    *,
    anchors: int | str = defaults.ANCHORS,
    select: str = "auto",
    weights: str = defaults.WEIGHTS,
    intervals: bool = True,
    quick: bool = False,
    alone: bool = True,
    ann_steps: int = defaults.ANN_STEPS,
    seed: int = 0,
    data: tuple[str, tuple[Array, Array]] | None = None,
    verbose: bool = False,
) -> Findings:
    """Export a run to a temporary folder, and measure what a report needs.

    Parameters
    ----------
    run : Run
        Run to report on.
    place : str
        Its folder, as the user types it.
    boards : list of Board
        Boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    anchors, select, weights, intervals, seed
        As in ``twinedge_export.export``.
    quick : bool
        Leave out what is slow: ordinary networks, trees, other numbers of anchors, fine-tuning,
        and the search for a way to choose anchors, unless ``select`` names one.
    alone : bool
        Whether it is the only model; a comparison has no room for networks and trees.
    ann_steps : int
        Training steps of ordinary networks.
    data : (str, (X, y)), optional
        Points to judge on, and their name; by default the test rows of the run, or the validation
        rows if there are none.
    verbose : bool
        Show progress on standard error.
    """
    if not len(run.validation[1]):
        raise InputError(f"{place}: there are no validation points to measure on: train with some")
    slowly = alone and not quick
    select = _SIMPLE if quick and select == "auto" else select
    chosen = {"anchors": anchors, "select": select, "weights": weights, "seed": seed}
    slow: dict[str, Any] = {}
    with progress_bar(verbose) as progress:
        progress.plan({_JUDGING: 5.0, **(_SLOW if slowly else {})})
        with progress.part("Exporting"):
            done, packed, refused = _export(run, intervals=intervals, quick=quick, **chosen)
        progress.stage(_JUDGING)
        name, points = data or _points(run)
        found = find_alike(
            Path(place).resolve().name, packed, name, points, boards, firmware, seed=seed
        )
        points, judged = found["points"], found["judged"]
        validation = judge("validation", found["device"], run.validation)
        if slowly:
            more: dict[str, Any] = {"seed": seed, "progress": progress}
            slow = _slowly(run, found, done, points, ann_steps=ann_steps, **more)
    return Findings(
        **found,
        **slow,
        place=place,
        file="out/model.twin",
        table="measured.csv",
        made_by=_command(place, intervals=intervals, quick=quick, **chosen),
        reliability=spread_worth(found, validation),
        baselines=beside_run(run, points, judged.error),
        quick=quick or not alone,
        run=run,
        export=done,
        refused=refused,
        validation=validation,
        ann_steps=ann_steps,
    )


def read_rows(run: Run, table: Path) -> tuple[Array, Array]:
    """Read features and targets of a table for a run, with missing values filled in."""
    values = run.fill_values
    values = np.full(len(run.encoding.inputs), np.nan) if values is None else values
    fillable = np.isfinite(values)
    X, y = read_features(table, run.encoding, target=run.target_name, fillable=fillable)
    assert y is not None
    return np.where(np.isnan(X), values, X), y


def _slowly(
    run: Run,
    found: dict[str, Any],
    done: Export,
    points: tuple[Array, Array],
    *,
    ann_steps: int,
    seed: int,
    progress: Progress,
) -> dict[str, Any]:
    """Measure other numbers of anchors, ordinary networks and trees: fields of ``Findings``."""
    model, judged = found["model"], found["judged"]
    method = done.method if done.method in METHODS else _SIMPLE
    most = min(_MOST_ANCHORS, len(run.model.anchor_y_))
    doubling, few = (growing(model.twins, model.anchors, most, by) for by in (2, 8))
    budget, unseen = twin_bytes(model), judged.name != "validation"
    given: dict[str, Any] = {"seed": seed, "progress": progress}
    slow: dict[str, Any] = {}
    progress.stage(_MEASURING)
    slow["anchors"] = measure(
        run.model,
        run.validation,
        counts=doubling,
        methods=[*dict.fromkeys((method, "random"))],
        seed=seed,
        verbose=True,
    )
    progress.stage(_RECOMMENDING)
    slow["recommended"] = recommend(run.model, run.validation, seed=seed, verbose=True)
    progress.stage(_SCORING)
    packs = run, found["pack"].pack, model, done.rows, few, method, points
    slow["sizes"] = tuple(sizes(*packs, unseen=unseen, **given))
    slow["rivals"] = tuple(rivals(run, model, budget, points, steps=ann_steps, **given))
    progress.stage(_GROWING)
    slow["trees"] = trees(run, budget, points, judged.error, seed) if unseen else None
    return slow


def _export(run: Run, *, quick: bool, **options: Any) -> tuple[Export, bytes, str]:
    """Return the export, its pack, and why a real one would be refused, if so."""
    with TemporaryDirectory() as room:
        folder, refused = Path(room) / "out", ""
        options |= {"formats": ("twin",), "verbose": True}
        if quick:
            options |= {"qat": False}
        try:
            done = export(run, folder, **options)
        except RoundingError as error:
            refused = str(error)
            done = export(run, folder, **(options | {"qat": False, "tolerance": np.inf}))
        return done, (folder / done.files[0].path.name).read_bytes(), refused


def _points(run: Run) -> tuple[str, tuple[Array, Array]]:
    """Points to judge on: test rows, or validation rows if there are none."""
    return ("test", run.test) if len(run.test[1]) else ("validation", run.validation)


def _command(place: str, *, intervals: bool, quick: bool, **chosen: Any) -> str:
    """Return the export command that writes this pack."""
    usual = {"select": "auto", "weights": defaults.WEIGHTS, "seed": 0}
    words = ["twinedge", "export", place]
    for name, value in chosen.items():
        if usual.get(name) != value:
            renamed = (name, value) == ("anchors", "auto")
            words += [f"--{name}", "fewest" if renamed else str(value)]
    words += ["--no-intervals"] * (not intervals) + ["--no-qat"] * quick
    return shlex.join([*words, "-o", "out"])
