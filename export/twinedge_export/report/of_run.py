"""What there is to tell of a run: of the pack that an export would write, and of its rivals."""

import shlex
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from twinedge.anchors import METHODS, recommend
from twinedge.anchors.measure import measure
from twinedge.budget import Board, Runtime, twin_bytes
from twinedge.data import read_features
from twinedge.errors import InputError
from twinedge.learn.run import Run
from twinedge.pack.contents import Array
from twinedge_export.deploy import Export, export
from twinedge_export.job import RoundingError
from twinedge_export.report.baselines import beside_run
from twinedge_export.report.fewer import growing, sizes
from twinedge_export.report.findings import Findings, find_alike, judge, spread_worth

_MOST_ANCHORS = 256  # more is no saving, and choosing them takes longer than all the rest
_SIMPLE = (
    "xy"  # how anchors are chosen in a hurry, and fewer where a person named the exported ones
)


def find(
    run: Run,
    place: str,
    boards: list[Board],
    firmware: dict[str, Runtime],
    *,
    anchors: int | str = 32,
    select: str = "auto",
    weights: str = "int8",
    intervals: bool = True,
    quick: bool = False,
    alone: bool = True,
    ann_steps: int = 4000,
    seed: int = 0,
    data: tuple[str, tuple[Array, Array]] | None = None,
    say: Callable[[str], None] = lambda message: None,
) -> Findings:
    """Export a run to a place that is thrown away, and measure what a report tells.

    Parameters
    ----------
    run : Run
        What to report on.
    place : str
        Its folder, as a person types it.
    boards : list of Board
        Boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    anchors, select, weights, intervals, seed
        As in ``twinedge_export.export``.
    quick : bool
        Leave out what takes long: ordinary networks, trees, other numbers of anchors, fine-tuning,
        and the search for a way to choose anchors, unless ``select`` names one.
    alone : bool
        Whether it is told by itself; beside others there is no room for networks and trees.
    ann_steps : int
        How long ordinary networks are trained.
    data : (str, (X, y)), optional
        Points to judge on, and what they are called; by default the test rows of the run, or the
        validation rows where there are none.
    say : function
        Called with a line on what is being done.
    """
    if not len(run.validation[1]):
        raise InputError(f"{place}: there are no validation points to measure on: train with some")
    say("Exporting")
    select = _SIMPLE if quick and select == "auto" else select
    chosen = {"anchors": anchors, "select": select, "weights": weights, "seed": seed}
    done, packed, refused = _export(run, intervals=intervals, quick=quick, say=say, **chosen)
    say("Judging it")
    name, points = data or _points(run)
    found = find_alike(
        Path(place).resolve().name, packed, name, points, boards, firmware, seed=seed
    )
    points, judged = found["points"], found["judged"]
    validation = judge("validation", found["device"], run.validation)
    slow: dict[str, Any] = {}
    if alone and not quick:
        slow = _slowly(run, found, done, points, ann_steps=ann_steps, seed=seed, say=say)
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
    """Read features and targets of a table as a run takes them, filled in where it has values."""
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
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure other numbers of anchors, ordinary networks and trees: fields of ``Findings``."""
    from twinedge_export.report.rivals import rivals, trees  # which take seconds to import

    model, judged = found["model"], found["judged"]
    method = done.method if done.method in METHODS else _SIMPLE
    most = min(_MOST_ANCHORS, len(run.model.anchor_y_))
    doubling, few = (growing(model.twins, model.anchors, most, by) for by in (2, 8))
    budget, unseen = twin_bytes(model), judged.name != "validation"
    say("Measuring anchors")
    return {
        "anchors": measure(
            run.model,
            run.validation,
            counts=doubling,
            methods=[*dict.fromkeys((method, "random"))],
            seed=seed,
        ),
        "recommended": recommend(run.model, run.validation, seed=seed),
        "sizes": tuple(
            sizes(
                *(run, found["pack"].pack, model, done.rows, few, method, points),
                unseen=unseen,
                seed=seed,
                say=say,
            )
        ),
        "rivals": tuple(rivals(run, model, budget, points, steps=ann_steps, seed=seed, say=say)),
        "trees": trees(run, budget, points, judged.error, seed) if unseen else None,
    }


def _export(run: Run, *, quick: bool, **options: Any) -> tuple[Export, bytes, str]:
    """Return the export, its pack, and why a real one would be refused."""
    with TemporaryDirectory() as room:
        folder, refused = Path(room) / "out", ""
        options |= {"formats": ("twin",)}
        if quick:
            options |= {"qat": False}
        try:
            done = export(run, folder, **options)
        except RoundingError as error:
            refused = str(error)
            done = export(run, folder, **(options | {"qat": False, "tolerance": np.inf}))
        return done, (folder / done.files[0].path.name).read_bytes(), refused


def _points(run: Run) -> tuple[str, tuple[Array, Array]]:
    """Points to judge on: test rows, or validation rows where there are none."""
    return ("test", run.test) if len(run.test[1]) else ("validation", run.validation)


def _command(place: str, *, intervals: bool, quick: bool, **chosen: Any) -> str:
    """Write the export that gives this pack."""
    usual = {"select": "auto", "weights": "int8", "seed": 0}
    words = ["twinedge", "export", place]
    for name, value in chosen.items():
        if usual.get(name) != value:
            words += [f"--{name}", str(value)]
    words += ["--no-intervals"] * (not intervals) + ["--no-qat"] * quick
    return shlex.join([*words, "-o", "out"])
