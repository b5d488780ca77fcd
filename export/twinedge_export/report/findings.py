"""Everything that a report says about one model, and how a pack is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twinedge import defaults
from twinedge.budget import Model, Runtime, all_boards, ann_bytes, summarise, twin_bytes
from twinedge.budget.read_model import from_pack
from twinedge.data import read_features
from twinedge.errors import InputError, Parameter, ParameterError, wrong_value
from twinedge.evaluation.verdict import Rival
from twinedge.pack import read_pack, write_pack
from twinedge.pack.contents import Array, target_names
from twinedge.pack.describe import Description, describe
from twinedge.pack.sections import pack_id
from twinedge.runtime.loading import load
from twinedge.runtime.pack_device import PackDevice
from twinedge.runtime.self_test import identified
from twinedge.scoring.scores import Coverage, Scores, score
from twinedge.wording import listed
from twinedge_export.report.document import number, shape
from twinedge_export.report.importance import Importance, importance
from twinedge_export.report.interactive import ENSEMBLES
from twinedge_export.report.learnt_curves import LearntCurve, measure_curves
from twinedge_export.report.reliability import (
    Baseline,
    Points,
    Predictions,
    Reliability,
    cross_validate_baselines,
    reliability,
)
from twinedge_export.settings import ExportSettings

if TYPE_CHECKING:
    from twinedge.anchors import Recommendation
    from twinedge.anchors.curves import Measurement
    from twinedge.run_folder import Run
    from twinedge_export.deploy import Export

MOST_POINTS = 2000  # to score on, evenly spaced among the rows
_FEWEST_ROWS = 2


@dataclass(frozen=True)
class ReportSettings:
    """What to measure.

    Parameters
    ----------
    export : ExportSettings
        How the pack of a run is made.
    data : path, optional
        Measured rows to score on; packs need them, runs have test rows.
    firmware : path, optional
        Measured sizes of the runtime, to use instead of those shipped.
    quick : bool
        Leave out what is slow: ordinary networks, trees, other numbers of anchors, fine-tuning,
        and the search for a way to choose anchors, unless one is named.
    ann_steps : int
        Training steps of ordinary networks.
    target : str, optional
        Which of several targets to report on.
    """

    export: ExportSettings = field(default_factory=ExportSettings)
    data: Path | None = None
    firmware: Path | None = None
    quick: bool = False
    ann_steps: int = defaults.ANN_STEPS
    target: str | None = None


@dataclass(frozen=True)
class Origin:
    """Where a model comes from, and what it is called in commands.

    Parameters
    ----------
    name, place : str
        What to call it; the run or the pack, as the user types it.
    file, table : str
        Its pack, and measured rows, in commands that check the numbers.
    seed : int
        For everything random.
    made_by : str
        The command that writes the pack; "" for a pack that was given.
    run, export, refused
        Origin of the pack, what ``twinedge export`` would report on it, and why it would refuse, if
        rounding costs too much; None and "" for a pack that was given.
    shared : str
        What to say of the pack that it shares with other targets; "" for a pack of its own.
    whole : bytes
        The pack of all targets, if it shares one.
    """

    name: str
    place: str
    file: str
    table: str
    seed: int
    made_by: str = ""
    run: "Run | None" = None
    export: "Export | None" = None
    refused: str = ""
    shared: str = ""
    whole: bytes = b""


class PackFile(NamedTuple):
    """A pack: as a file, described byte by byte, loaded, and its shape."""

    data: bytes
    description: Description
    device: PackDevice
    model: Model


class Accuracy(NamedTuple):
    """How accurate a pack is.

    Parameters
    ----------
    points : (X, y)
        Points it is scored on.
    predictions : Predictions
        Of the pack on these points.
    rows : int
        Number of rows that the points were drawn from.
    validation : Predictions or None
        On the validation rows of the run.
    baselines : tuple of Baseline
        The mean, and a linear model, on the same points.
    """

    points: Points
    predictions: Predictions
    rows: int
    validation: Predictions | None
    baselines: tuple[Baseline, ...]


class Memory(NamedTuple):
    """An ensemble of ordinary networks, and a twin with as many anchors."""

    members: int
    ann_params: int
    twin_params: int
    ann_bytes: int
    twin_bytes: int


class Costs(NamedTuple):
    """Memory by ensemble size, what ``twinedge budget`` says, and the cores it is based on."""

    memory: tuple[Memory, ...]
    budget: dict[str, Any]
    firmware: dict[str, Runtime]


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

    @property
    def name(self) -> str:
        """What it is called: "2 networks of 8-8"."""
        return f"{number(self.members, 'network')} of {shape(self.hidden)}"


class Trees(NamedTuple):
    """Trees as emlearn stores them, beside the twin.

    ``family`` is one of ``twinedge.evaluation.small_trees``; ``leaves`` is the most in a tree.
    """

    family: str
    trees: int
    leaves: int
    bytes: int
    rival: Rival

    @property
    def name(self) -> str:
        """What they are called: "7 boosted trees of 8 leaves"."""
        kind = {"boosting": "boosted", "extra": "extra", "random": "averaged"}[self.family]
        return f"{number(self.trees, f'{kind} tree')} of {self.leaves} leaves"

    @property
    def rmse(self) -> float:
        """Their error, in units of the target."""
        return self.rival.rmse


class Comparison(NamedTuple):
    """What takes long to measure; empty for a pack that was given, and for a quick report.

    Parameters
    ----------
    curve, recommended
        Validation error of the float model by number of anchors, and how many ``twinedge anchors``
        recommends.
    sizes : tuple of Size
        Error of packs by number of anchors, on the points of the report.
    networks, trees
        Ordinary ensembles and trees of the same bytes, on the same points.
    ann_steps : int
        Training steps of ordinary networks.
    """

    curve: "Measurement | None" = None
    recommended: "Recommendation | None" = None
    sizes: tuple[Size, ...] = ()
    networks: tuple[NetworkRival, ...] = ()
    trees: Trees | None = None
    ann_steps: int = 0

    @property
    def best(self) -> "list[NetworkRival | Trees]":
        """The best of the ordinary ensembles, and the trees, as far as there are any."""
        networks = sorted(self.networks, key=lambda one: one.rmse)[:1]
        return [*networks, *([self.trees] if self.trees else [])]


@dataclass(frozen=True)
class Findings:
    """What was measured about a model.

    Parameters
    ----------
    origin : Origin
        Where it comes from.
    pack : PackFile
        What a device runs.
    accuracy : Accuracy
        Errors on the points of the report.
    intervals : Scores or None
        Scores of the pack's intervals on these points; None without intervals.
    reliability : Reliability or None
        What the spread is worth, if there are no intervals; None without a spread.
    importance : tuple of Importance
        Columns, the most important first.
    costs : Costs
        Memory and boards.
    curves : tuple of LearntCurve
        Of columns with a curve in front of the twins, the most important first.
    comparison : Comparison
        Other numbers of anchors, and other models of the same bytes.
    """

    origin: Origin
    pack: PackFile
    accuracy: Accuracy
    intervals: Scores | None
    reliability: Reliability | None
    importance: tuple[Importance, ...]
    costs: Costs
    curves: tuple[LearntCurve, ...] = ()
    comparison: Comparison = field(default_factory=Comparison)

    @property
    def target(self) -> str:
        """Name of what is predicted."""
        return self.pack.device.target_name

    @property
    def usual(self) -> Coverage | None:
        """Intervals that a device returns by default; None if the pack has none."""
        if self.intervals is None:
            return None
        level = self.pack.device.usual_coverage
        return next(one for one in self.intervals.intervals if one.claimed == level)


def measure_file(
    origin: Origin,
    data: bytes,
    rows: tuple[str, Points],
    firmware: dict[str, Runtime],
    baselines: Callable[[Points, Array], tuple[Baseline, ...]],
    validation: Points | None = None,
) -> Findings:
    """Measure what applies to any pack.

    Parameters
    ----------
    origin : Origin
        Where it comes from.
    data : bytes
        The pack.
    rows : (str, (X, y))
        What the points are ("test", "validation", or the name of a table), and points with known
        targets; very many are thinned evenly.
    firmware : dict of str to Runtime
        Measured cores.
    baselines : function
        Fits simple models, and compares them with the errors of the pack on points.
    validation : (X, y), optional
        Validation points of its run.
    """
    pack = read_file(data)
    device = pack.device
    name, (X, y) = rows
    every = max(1, -(-len(y) // MOST_POINTS))
    points = X[::every], y[::every]
    found = predict(name, device, points)
    known = None if validation is None else predict("validation", device, validation)
    scores = (
        score(found.y, found.mean, found.spread, found.scale, found.ends) if found.ends else None
    )
    return Findings(
        origin,
        pack,
        Accuracy(points, found, len(y), known, baselines(points, found.error)),
        scores,
        None if scores else reliability(found, known),
        importance(device, points, origin.seed),
        count_costs(pack.model, firmware),
        measure_curves(device, points),
    )


def read_file(data: bytes) -> PackFile:
    """Describe and load the bytes of a pack."""
    with TemporaryDirectory() as room:
        path = Path(room) / "model.twin"
        path.write_bytes(data)
        model, device = from_pack(path)[0], load(path)
    assert isinstance(device, PackDevice)
    return PackFile(data, describe(data), device, model)


def count_costs(model: Model, firmware: dict[str, Runtime]) -> Costs:
    """Count what a model takes, and which boards hold it."""
    return Costs(
        tuple(_memory(model, members) for members in ENSEMBLES if members >= model.twins),
        summarise(model, all_boards().values(), firmware),
        firmware,
    )


def predict(name: str, device: PackDevice, points: Points) -> Predictions:
    """Predict points with known targets, with the intervals of every level."""
    X, y = points
    found = device.predict_all(X)
    plain = Predictions(name, y, found.mean.astype(np.float64), found.spread.astype(np.float64))
    if found.scale is None:
        return plain
    ends = device.predict_interval(X, device.coverages).astype(np.float64)
    return replace(
        plain,
        scale=found.scale.astype(np.float64),
        ends={level: ends[..., k] for k, level in enumerate(device.coverages)},
    )


def _memory(model: Model, members: int) -> Memory:
    one = replace(model, neighbors=0).with_anchors(members)
    return Memory(members, one.ann_params, one.twin_params, ann_bytes(one), twin_bytes(one))


def measure_pack(
    path: Path, rows: tuple[str, Points], settings: ReportSettings, firmware: dict[str, Runtime]
) -> Findings:
    """Measure a pack on rows that the model should never have seen.

    Parameters
    ----------
    path : path
        The ``.twin`` file, or the folder of an export.
    rows : (str, (X, y))
        What the rows are: "test", or the name of a table; and the rows.
    settings : ReportSettings
        What to measure.
    firmware : dict of str to Runtime
        Measured cores.
    """
    file = pack_file(path)
    if path.is_dir():
        name = path.resolve().name
    else:  # model.twin says nothing, but its folder may
        name = (path.name == "model.twin" and path.resolve().parent.name) or path.stem
    table = "measured.csv" if settings.data is None else str(settings.data)
    whole = file.read_bytes()
    data, shared = pack_of_target(whole, settings.target, path)
    origin = Origin(name, str(path), str(file), table, settings.export.seed, shared=shared)
    origin = replace(origin, whole=whole if shared else b"")
    return measure_file(origin, data, rows, firmware, cross_validate_baselines)


def number_of_target(names: Sequence[str], target: str | None, place: Path | str) -> int:
    """Return which of the targets of a model to report on."""
    if target is None and len(names) > 1:
        raise ParameterError(
            f"{place} predicts {listed(names)}, and a comparison is of one target: name it with ",
            Parameter("target"),
        )
    if target is not None and target not in names:
        raise wrong_value("target", target, f"is not what {place} predicts: {listed(names)}")
    return 0 if target is None else names.index(target)


def pack_of_target(data: bytes, target: str | None, place: Path | str) -> tuple[bytes, str]:
    """Take one target from a pack: a pack of its own, and what to say of the one it shares."""
    pack = read_pack(data)
    names = target_names(pack.metadata, len(pack.every_target))
    number = number_of_target(names, target, place)
    if not pack.others:
        return data, ""
    bare = len(write_pack(pack, metadata=False))
    shared = (
        f"The same networks predict {listed(names)}: numbers here are those of a pack of "
        f"{names[number]} alone. The pack of all of them takes {bare:,} bytes of a device, and its "
        f"id is {pack_id(data).hex()}."
    )
    return write_pack(identified(pack.single(number))), shared


def pack_file(path: Path) -> Path:
    """Return the pack of an export, or a pack itself."""
    return path / "model.twin" if path.is_dir() else path


def read_rows(device: PackDevice, table: Path, target: str | None = None) -> Points:
    """Read features and targets of a table for a pack; NaN for what may be missing.

    Of several targets, one is read where it was measured.
    """
    names = device.target_names
    number = number_of_target(names, target, device.info["file"])
    X, y = read_features(
        table,
        device.encoding,
        target=names if len(names) > 1 else names[0],
        fillable=device.fillable,
    )
    assert y is not None
    X, y = only_target(X, y, number)
    if len(y) < _FEWEST_ROWS:
        raise InputError(f"{table}: {len(y)} rows are too few to score a model on")
    return X, y


def only_target(X: Array, y: Array, number: int) -> Points:
    """Take one target ``(n,)`` of several ``(n, m)``, at the rows that measured it."""
    if y.ndim == 1:
        return X, y
    known = np.isfinite(y[:, number])
    return X[known], y[known, number]
