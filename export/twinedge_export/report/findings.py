"""Everything a report says about one model, and what is measured for runs and packs alike."""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twinedge.budget import Board, Model, Runtime, ann_bytes, summarise, twin_bytes
from twinedge.budget.model import from_pack
from twinedge.data import read_features
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.pack.describe import Description, describe
from twinedge.runtime.loading import load
from twinedge.runtime.pack_device import PackDevice
from twinedge.scoring.scores import Coverage, Scores, score
from twinedge_export.report.drivers import Driver, drivers
from twinedge_export.report.reliability import (
    Baseline,
    Compared,
    Judged,
    Reliability,
    beside_rows,
    reliability,
)

if TYPE_CHECKING:
    from twinedge.anchors import Recommendation
    from twinedge.anchors.curves import Measurement
    from twinedge.run_folder import Run
    from twinedge_export.deploy import Export

ENSEMBLES = tuple(2**power for power in range(11))
MOST_POINTS = 2000  # to judge on, evenly spaced among the rows


class Memory(NamedTuple):
    """An ensemble of ordinary networks, and a twin with as many anchors."""

    members: int
    ann_params: int
    twin_params: int
    ann_bytes: int
    twin_bytes: int


class Size(NamedTuple):
    """A pack by number of anchors: bytes on a device, and error in units of the target."""

    anchors: int
    bytes: int
    rmse: float


class NetworkRival(NamedTuple):
    """An ensemble of ordinary networks: bytes as ``ann_bytes`` counts, error like the twin's."""

    members: int
    hidden: tuple[int, ...]
    bytes: int
    rmse: float


@dataclass(frozen=True)
class Trees(Compared):
    """Trees as emlearn stores them.

    ``family`` is one of ``twinedge.evaluation.small_trees``; ``leaves`` is the most in a tree.
    """

    family: str
    trees: int
    leaves: int
    bytes: int


@dataclass(frozen=True)
class Findings:
    """What was measured about a model.

    Parameters
    ----------
    name : str
        What to call it.
    place : str
        The run or the pack, as the user types it.
    file : str
        Its pack in commands that check the numbers.
    made_by : str
        The command that writes that pack; "" for a pack that was given.
    table : str
        Measured rows in such commands, as the user types them.
    data : bytes
        The pack as a file.
    pack : Description
        The same, described byte by byte.
    device : PackDevice
        The same, loaded.
    model : Model
        Its shape.
    memory : tuple of Memory
        By ensemble size.
    budget : dict
        What ``twinedge budget`` says, with every board.
    points : (X, y)
        Points it is judged on.
    judged : Judged
        Predictions of the pack on them.
    rows : int
        Number of rows that the points were drawn from.
    intervals : Scores or None
        Scores of the pack's intervals on the judged points; None without intervals.
    reliability : Reliability or None
        What the spread is worth, if there are no intervals; None without a spread.
    baselines : tuple of Baseline
        The mean, and a linear model, on the same points.
    drivers : tuple of Driver
        Columns, the most important first.
    seed : int
        For everything random.
    quick : bool
        Whether slow parts were left out.
    run, export, refused
        Origin of the pack, what ``twinedge export`` would report on it, and why it would refuse, if
        rounding costs too much; None and "" for a pack that was given.
    validation : Judged or None
        Predictions on the validation rows of the run.
    anchors, recommended
        Validation error of the float model by number of anchors, and how many ``twinedge anchors``
        recommends; None for a pack that was given, and with ``quick``.
    sizes : tuple of Size
        Error of packs by number of anchors, on the judged points; empty in the same cases.
    rivals, trees
        Ordinary ensembles and trees of the same bytes, on the judged points; likewise.
    ann_steps : int
        Training steps of ordinary networks.
    """

    name: str
    place: str
    file: str
    made_by: str
    table: str
    data: bytes
    pack: Description
    device: PackDevice
    model: Model
    memory: tuple[Memory, ...]
    budget: dict[str, Any]
    points: tuple[Array, Array]
    judged: Judged
    rows: int
    intervals: Scores | None
    reliability: Reliability | None
    baselines: tuple[Baseline, ...]
    drivers: tuple[Driver, ...]
    seed: int
    quick: bool
    run: "Run | None" = None
    export: "Export | None" = None
    refused: str = ""
    validation: Judged | None = None
    anchors: "Measurement | None" = None
    recommended: "Recommendation | None" = None
    sizes: "tuple[Size, ...]" = ()
    rivals: "tuple[NetworkRival, ...]" = ()
    trees: "Trees | None" = None
    ann_steps: int = 0

    @property
    def target(self) -> str:
        """Name of what is predicted."""
        return self.device.target_name

    @property
    def usual(self) -> Coverage | None:
        """Intervals that a device returns by default; None if the pack has none."""
        if self.intervals is None:
            return None
        level = self.device.usual_coverage
        return next(one for one in self.intervals.intervals if one.claimed == level)


def find_alike(
    name: str,
    data: bytes,
    judged_on: str,
    points: tuple[Array, Array],
    boards: list[Board],
    firmware: dict[str, Runtime],
    *,
    seed: int,
) -> dict[str, Any]:
    """Measure what applies to any pack: fields of ``Findings``.

    Parameters
    ----------
    name : str
        What to call it.
    data : bytes
        The pack.
    judged_on : str
        What the points are: "test", "validation", or the name of a table.
    points : (X, y)
        Points with known targets; very many are thinned evenly.
    boards : list of Board
        Boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    """
    with TemporaryDirectory() as room:
        path = Path(room) / "model.twin"
        path.write_bytes(data)
        model, device = from_pack(path)[0], load(path)
    assert isinstance(device, PackDevice)
    X, y = points
    every = max(1, -(-len(y) // MOST_POINTS))
    points = X[::every], y[::every]
    judged = judge(judged_on, device, points)
    scores = None
    if judged.ends:
        scores = score(judged.y, judged.mean, judged.spread, judged.scale, judged.ends)
    return {
        "name": name,
        "data": data,
        "pack": describe(data),
        "device": device,
        "model": model,
        "memory": tuple(_memory(model, n) for n in ENSEMBLES if n >= model.twins),
        "budget": summarise(model, boards, firmware),
        "points": points,
        "judged": judged,
        "rows": len(y),
        "intervals": scores,
        "drivers": drivers(device, points, seed),
        "seed": seed,
    }


def judge(name: str, device: PackDevice, points: tuple[Array, Array]) -> Judged:
    """Predict points with known targets, with the intervals of every level."""
    X, y = points
    said = device.predict_all(X)
    judged = Judged(name, y, said.mean.astype(np.float64), said.spread.astype(np.float64))
    if said.scale is None:
        return judged
    ends = device.predict_interval(X, device.coverages).astype(np.float64)
    return replace(
        judged,
        scale=said.scale.astype(np.float64),
        ends={level: ends[..., k] for k, level in enumerate(device.coverages)},
    )


def spread_worth(found: dict[str, Any], validation: Judged | None) -> Reliability | None:
    """Score the spread, if there are no intervals."""
    if found["intervals"] is not None:
        return None
    return reliability(found["judged"], validation)


def _memory(model: Model, members: int) -> Memory:
    one = replace(model, neighbors=0).with_anchors(members)
    return Memory(members, one.ann_params, one.twin_params, ann_bytes(one), twin_bytes(one))


_FEWEST_ROWS = 2


def find_pack(
    path: Path,
    judged_on: str,
    points: tuple[Array, Array],
    boards: list[Board],
    firmware: dict[str, Runtime],
    *,
    table: str,
    seed: int = 0,
) -> Findings:
    """Judge a pack on measured rows.

    Parameters
    ----------
    path : path
        The ``.twin`` file, or the folder of an export.
    judged_on : str
        What the rows are: "test", or the name of a table.
    points : (X, y)
        The rows, which the model should never have seen.
    boards : list of Board
        Boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    table : str
        The rows, as the user types them.
    seed : int
        For shuffling.
    """
    file = pack_file(path)
    name = path.resolve().name if path.is_dir() else _named(path)
    found = find_alike(name, file.read_bytes(), judged_on, points, boards, firmware, seed=seed)
    return Findings(
        **found,
        place=str(path),
        file=str(file),
        made_by="",
        table=table,
        reliability=spread_worth(found, None),
        baselines=beside_rows(found["points"], found["judged"].error),
        quick=True,
    )


def pack_file(path: Path) -> Path:
    """Return the pack of an export, or a pack itself."""
    return path / "model.twin" if path.is_dir() else path


def read_rows(file: Path, table: Path) -> tuple[Array, Array]:
    """Read features and targets of a table for a pack; NaN for what may be missing."""
    device = load(file)
    X, y = read_features(
        table, device.encoding, target=device.target_name, fillable=device.fillable
    )
    assert y is not None
    if len(y) < _FEWEST_ROWS:
        raise InputError(f"{table}: {len(y)} rows are too few to judge a model on")
    return X, y


def _named(path: Path) -> str:
    """Name a pack by its folder if its own name says nothing."""
    parent = path.resolve().parent.name
    return parent if path.name == "model.twin" and parent else path.stem
