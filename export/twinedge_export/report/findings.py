"""Everything a report tells, measured once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from twinedge.anchors import METHODS, Recommendation, recommend
from twinedge.anchors.measure import Measurement, measure
from twinedge.budget import Board, Model, Runtime, ann_bytes, summarise, twin_bytes
from twinedge.budget.source import from_pack
from twinedge.learn.run import Run
from twinedge.pack.contents import Array, Pack
from twinedge.pack.describe import Description, describe
from twinedge.runtime.reference import bounds, evaluate
from twinedge.scoring import Coverage, Scores, score
from twinedge_export.deploy import Export, export
from twinedge_export.job import RoundingError
from twinedge_export.report.fewer import Size, growing, sizes
from twinedge_export.report.reliability import Judged, Reliability, reliability
from twinedge_export.report.rivals import STEPS, Rival, Trees, rivals, trees

ENSEMBLES = tuple(2**power for power in range(11))
_MOST_ANCHORS = 256  # more is no saving, and choosing them takes longer than all the rest
_MOST_POINTS = 2000  # judged, evenly spaced among the test rows
_WITHOUT_CHOICE = "xy"  # how fewer anchors are chosen where a person named the exported ones


class Memory(NamedTuple):
    """An ensemble of so many ordinary networks, and a twin with so many anchors."""

    members: int
    ann_params: int
    twin_params: int
    ann_bytes: int
    twin_bytes: int


@dataclass(frozen=True)
class Findings:
    """What was found out about a run.

    Parameters
    ----------
    name : str
        Folder of the run.
    run : Run
        The model and its data.
    export : Export
        What ``twinedge export`` with the same options would write, and its scores.
    refused : str
        Why it would write nothing, where rounding costs too much.
    pack : Description
        The ``.twin`` of that, byte by byte.
    model : Model
        Its shape.
    memory : tuple of Memory
        By ensemble size.
    budget : dict
        What ``twinedge budget`` says, with every board.
    anchors : Measurement
        Validation error of the float model by number of anchors.
    recommended : Recommendation
        How many anchors to take, as ``twinedge anchors`` and ``export --anchors auto`` say.
    sizes : tuple of Size
        Error of packs by number of anchors, on the judged points.
    rivals : tuple of Rival
        Ordinary ensembles of the same bytes, on the judged points; none with ``quick``.
    trees : Trees or None
        Trees of the same bytes, on the judged points; None with ``quick``, or without test rows.
    ann_steps : int
        How long ordinary networks were trained.
    judged, validation : Judged
        Predictions of the pack.
    rows : int
        Of how many the judged points are.
    intervals : Scores or None
        What the intervals of the pack are worth on the judged points; None where it has none.
    reliability : Reliability or None
        What the spread is worth where there are no intervals; None where there is no spread.
    quick : bool
        Whether trainings were left out.
    seed : int
        Of everything drawn at random.
    """

    name: str
    run: Run
    export: Export
    refused: str
    pack: Description
    model: Model
    memory: tuple[Memory, ...]
    budget: dict[str, Any]
    anchors: Measurement
    recommended: Recommendation
    sizes: tuple[Size, ...]
    rivals: tuple[Rival, ...]
    trees: Trees | None
    ann_steps: int
    judged: Judged
    validation: Judged
    rows: int
    intervals: Scores | None
    reliability: Reliability | None
    quick: bool
    seed: int

    @property
    def usual(self) -> Coverage | None:
        """The intervals that a device gives unasked; None where the pack has none."""
        pack = self.pack.pack
        if self.intervals is None or pack is None or pack.intervals is None:
            return None
        level = pack.intervals.usual_level / 1000
        return next(one for one in self.intervals.intervals if one.claimed == level)


def find(
    run: Run,
    name: str,
    boards: list[Board],
    firmware: dict[str, Runtime],
    *,
    anchors: int | str = 32,
    select: str = "auto",
    weights: str = "int8",
    intervals: bool = True,
    quick: bool = False,
    ann_steps: int = STEPS,
    seed: int = 0,
    say: Callable[[str], None] = lambda message: None,
) -> Findings:
    """Export a run to a place that is thrown away, and measure what a report tells.

    Parameters
    ----------
    run : Run
        What to report on.
    name : str
        What to call it.
    boards : list of Board
        Boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    anchors, select, weights, intervals, seed
        As in ``twinedge_export.export``.
    quick : bool
        Train nothing: no ordinary networks, no fine-tuning.
    ann_steps : int
        How long ordinary networks are trained.
    say : function
        Called with a line on what is being done.
    """
    say("Exporting")
    done, data, model, refused = _export(
        run,
        anchors=anchors,
        select=select,
        weights=weights,
        intervals=intervals,
        seed=seed,
        quick=quick,
        say=say,
    )
    found = describe(data)
    assert found.pack is not None
    method = done.method if done.method in METHODS else _WITHOUT_CHOICE
    points_name, points, rows = _points(run)
    most = min(_MOST_ANCHORS, len(run.model.anchor_y_))
    doubling, few = (growing(model.twins, model.anchors, most, by) for by in (2, 8))
    say("Measuring anchors")
    curve = measure(
        run.model,
        run.validation,
        counts=doubling,
        methods=[*dict.fromkeys((method, "random"))],
        seed=seed,
    )
    judged = _judge(points_name, found.pack, points)
    validation = _judge("validation", found.pack, run.validation)
    scores = None
    if judged.ends:
        scores = score(judged.y, judged.mean, judged.spread, judged.scale, judged.ends)
    options: dict[str, Any] = {"seed": seed, "say": say}
    return Findings(
        name=name,
        run=run,
        export=done,
        refused=refused,
        pack=found,
        model=model,
        memory=tuple(_memory(model, n) for n in ENSEMBLES if n >= model.twins),
        budget=summarise(model, boards, firmware),
        anchors=curve,
        recommended=recommend(run.model, run.validation, seed=seed),
        sizes=tuple(
            sizes(
                *(run, found.pack, model, done.rows, few, method, points),
                unseen=points_name == "test",
                **options,
            )
        ),
        rivals=()
        if quick
        else tuple(rivals(run, model, twin_bytes(model), points, steps=ann_steps, **options)),
        trees=None
        if quick or points_name != "test"
        else trees(run, twin_bytes(model), points, judged.error, seed),
        ann_steps=ann_steps,
        judged=judged,
        validation=validation,
        rows=rows,
        intervals=scores,
        reliability=reliability(judged, validation) if scores is None else None,
        quick=quick,
        seed=seed,
    )


def _export(run: Run, *, quick: bool, **options: Any) -> tuple[Export, bytes, Model, str]:
    """Return the export, its pack, the shape of that, and why a real one would be refused."""
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
        path = folder / done.files[0].path.name
        return done, path.read_bytes(), from_pack(path)[0], refused


def _points(run: Run) -> tuple[str, tuple[Array, Array], int]:
    """Points to judge on: test rows, or validation rows where there are none."""
    name, (X, y) = ("test", run.test) if len(run.test[1]) else ("validation", run.validation)
    every = max(1, -(-len(y) // _MOST_POINTS))
    return name, (X[::every], y[::every]), len(y)


def _judge(name: str, pack: Pack, points: tuple[Array, Array]) -> Judged:
    found = evaluate(pack, points[0])
    mean, spread = (part.astype(np.float64) for part in (found.mean, found.spread))
    judged = Judged(name, points[1], mean, spread)
    if pack.intervals is None:
        return judged
    at = {level: bounds(pack, found, level) for level in pack.intervals.quantiles}
    scale = at[pack.intervals.usual_level].scale.astype(np.float64)  # the same at every level
    ends = {
        level / 1000: np.stack([one.low, one.high], axis=1).astype(np.float64)
        for level, one in at.items()
    }
    return replace(judged, scale=scale, ends=ends)


def _memory(model: Model, members: int) -> Memory:
    one = replace(model, neighbors=0).with_anchors(members)
    return Memory(members, one.ann_params, one.twin_params, ann_bytes(one), twin_bytes(one))
