"""The most accurate model that fits a board, by validation data.

Networks of several widths are trained briefly, with as many twins as the board holds, and rounded
as in a pack. Fewer twins, other numbers of anchors and wider weights need no further training:
every such model that fits is scored. Input maps are tried on request, beside plain networks.
"""

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from math import inf, log2
from pathlib import Path
from typing import Any

import numpy as np

from twinedge import scoring
from twinedge.anchors import select
from twinedge.budget import Board, Model, Runtime, Verdict, board_verdict
from twinedge.budget.fits import PART_WORDS
from twinedge.budget.limits import with_map
from twinedge.defaults import ANCHORS, MAP_BINS
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array
from twinedge.pack.layout import MAX_ANCHORS
from twinedge.progress import progress_bar
from twinedge.runtime.file_device import units_of_estimates
from twinedge.runtime.reference import evaluate
from twinedge.wording import joined
from twinedge_export.deploy import Export, write_export
from twinedge_export.files import RoundingError
from twinedge_export.quantise import quantise
from twinedge_export.settings import WEIGHTS, ExportSettings

WIDTHS = (128, 96, 64, 48, 32, 24, 16, 8)  # of both hidden layers
TWINS = (8, 6, 4, 3, 2, 1)
FEWEST_ANCHORS = 8  # with fewer the spread says little
_FEWEST_VALUES = 3  # of a feature with a curve
_CURVE_ROOM = 512  # bins of a target curve; most have fewer
SAME = 1.01  # ratio of errors that a usual validation set cannot tell apart

Points = tuple[Array, Array]


@dataclass(frozen=True)
class Attempt:
    """A model that fits, and how good it is after a brief training.

    Parameters
    ----------
    model : Model
        Its shape.
    flash_bytes, ram_bytes : int
        What it takes on the board, with room for either activation.
    rmse_val : float
        Validation error of its pack, in units of the target.
    bins : int
        Straight pieces of the curves of its input map; 0 without a map.
    """

    model: Model
    flash_bytes: int
    ram_bytes: int
    rmse_val: float
    bins: int = 0

    @property
    def input_map(self) -> int | str:
        """The parameter of ``TwinRegressor`` that makes such a map."""
        return self.bins or "none"


@dataclass(frozen=True)
class Search:
    """Everything that was tried."""

    attempts: tuple[Attempt, ...]

    @property
    def best(self) -> Attempt:
        """The most accurate, discounting luck.

        Among those within 1 % of it, one with the most anchors, which are no worse on average and
        make a better spread; at a tie, one with 8-bit weights: half the work and bytes.
        """
        least = min(one.rmse_val for one in self.attempts)
        near = [one for one in self.attempts if one.rmse_val <= SAME * least]
        return min(
            near,
            key=lambda one: (
                -round(log2(one.model.anchors)),  # 30 of three twins are as good as 32 of two
                one.model.weights != "int8",
                one.rmse_val,
            ),
        )

    def frontier(self) -> list[Attempt]:
        """Models that no smaller one matches, ending with the best, by size."""
        chosen = self.best
        least, kept = inf, []
        for one in sorted(self.attempts, key=lambda one: (one.flash_bytes, one.rmse_val)):
            if one.rmse_val < least or one is chosen:
                kept.append(one)
            least = min(least, one.rmse_val)
        return kept


def search(
    train: Points,
    validation: Points,
    board: Board,
    firmware: dict[str, Runtime],
    *,
    anchors: int = ANCHORS,
    tries: int = 6,
    intervals: bool = True,
    input_map: int | str = "none",
    target_curve: str = "none",
    seed: int = 0,
    encoding: Encoding | None = None,
    groups: Array | None = None,
    times: Array | None = None,
    say: Callable[[str], None] = lambda message: None,
    **settings: Any,
) -> Search:
    """Train networks of several widths and score every model that fits a board.

    Parameters
    ----------
    train, validation : (X, y)
        Points to train on, and points to choose by.
    board : Board
        The target.
    firmware : dict of str to Runtime
        Measured cores, the board's among them.
    anchors : int
        Most anchors to try; more of them cost time and gain little.
    tries : int
        How many widths to train, from the widest that fits.
    intervals : bool
        Whether the pack has intervals, which must fit as well.
    input_map : "none", "auto" or int
        As for ``TwinRegressor``; with "auto", every width is trained with a map and without.
    target_curve : str
        As for ``TwinRegressor``.
    seed : int
        For training and anchors.
    encoding : Encoding, optional
        Columns that the features come from.
    groups, times : array of shape (n,), optional
        Which training points belong together, or when they were measured, as for
        ``TwinRegressor.fit``.
    say : function
        Called with a line on what is being done.
    **settings
        Parameters of ``TwinRegressor``; by default its quick effort.

    Raises
    ------
    InputError
        If the runtime has not been measured on the board's core, or nothing fits.
    """
    most = min(anchors, len(train[1]))
    attempts: list[Attempt] = []
    shapes: dict[tuple[int, int], list[tuple[Model, Verdict]]] = {}
    for bins in map_kinds(input_map, train[0], board, firmware, say):
        try:
            found = fitting(
                *(train[0].shape[1], most, board, firmware),
                intervals=intervals,
                bins=bins,
                curved=target_curve != "none",
            )
        except InputError:
            if not shapes:
                raise
            break  # it fits without a map only
        shapes |= {(width, bins): found[width] for width in [*found][:tries]}
    # Only predictions are scored, even if the pack will have intervals.
    given: dict[str, Any] = {
        "effort": "quick",
        "intervals": False,
        "target_curve": target_curve,
        "random_state": seed,
        "n_jobs": -1,
    }
    given |= settings
    with progress_bar(bool(given.get("verbose"))) as progress:
        twins_of = {key: max(one.twins for one, _ in found) for key, found in shapes.items()}
        names = {key: f"{key[0]}{' with a map' * (key[1] > 0)}" for key in shapes}
        # A training takes about as long as its networks are large, and some seconds to begin.
        progress.plan(
            {names[key]: 5 + twins * key[0] ** 2 / 2000 for key, twins in twins_of.items()}
        )
        for (width, bins), twins in twins_of.items():
            name = names[width, bins]
            say(f"Training width {name}, twins {twins}")
            model = TwinRegressor(
                twins=twins, hidden=(width, width), input_map=bins or "none", **given
            )
            with progress.part(name):
                model.fit(
                    *train, validation=validation, groups=groups, times=times, encoding=encoding
                )
            if model.interrupted_:
                raise KeyboardInterrupt
            say(f"Scoring width {name}")
            attempts += _score(model, shapes[width, bins], validation, seed, bins)
    if not attempts:
        raise InputError(
            f"no network that fits {board.name} could be rounded: train one in full and export it "
            "fine-tuned"
        )
    return Search(tuple(attempts))


def write_winner(
    run: Path, folder: Path, winner: Model, settings: ExportSettings
) -> tuple[Export, float]:
    """Export a trained run as the pack that the search found; also return the tolerance it took.

    Rounding may cost more here than after the brief training, but there is no better model to fall
    back on: the tolerance is widened as far as needed, and the caller should say so.
    """
    settings = replace(
        settings,
        anchors=winner.anchors,
        weights=winner.weights,
        intervals=winner.intervals,
        formats=("twin",),
    )
    try:
        return write_export(run, folder, settings), settings.tolerance
    except RoundingError as error:
        # Rounding again costs the same, up to the last digits.
        wider = 1.001 * error.cost
    return write_export(run, folder, replace(settings, tolerance=wider)), wider


def map_kinds(
    input_map: int | str,
    X: Array,
    board: Board,
    firmware: dict[str, Runtime],
    say: Callable[[str], None] = lambda message: None,
) -> list[int]:
    """List how many bins the maps to try for training features have, 0 for no map.

    "auto" leaves maps out if no feature could have a curve, and if it is not known what their code
    takes.
    """
    if not isinstance(input_map, str):
        return [input_map]
    if input_map == "none" or all(len(np.unique(column)) < _FEWEST_VALUES for column in X.T):
        return [0]
    runtime = firmware.get(board.core.same_as)
    if runtime is not None and "map" not in runtime.parts:
        say(f"Without input maps: the runtime was not run with one on {board.core.same_as}")
        return [0]
    return [0, MAP_BINS]


def fitting(
    features: int,
    anchors: int,
    board: Board,
    firmware: dict[str, Runtime],
    *,
    intervals: bool = True,
    bins: int = 0,
    curved: bool = False,
) -> dict[int, list[tuple[Model, Verdict]]]:
    """List the models with at most ``anchors`` anchors that fit a board, widest first.

    The silu table is always counted: training will tell which activation is better. With
    ``intervals``, so are all their levels; with ``bins``, a map with so many for each feature; and
    if the target is ``curved``, its curve, with more bins than one usually has.
    """

    def counted(model: Model) -> Model:
        model = replace(model, target_bins=_CURVE_ROOM if curved else 0)
        return with_map(model, bins, narrow=False) if bins else model

    check_measured(board, firmware, [*["map"] * (bins > 0), *["target_curve"] * curved])
    # The image that tries it out also holds a query.
    board = replace(board, reserved_flash=board.reserved_flash + 4 * (features + 1))
    shapes: dict[int, list[tuple[Model, Verdict]]] = {}
    for width in WIDTHS:
        models = map(counted, _models(features, anchors, width, intervals))
        found = [(one, board_verdict(one, board, firmware)) for one in models]
        fit = [(one, verdict) for one, verdict in found if verdict.fits]
        if fit:
            shapes[width] = fit
    if not shapes:
        narrowest = (WIDTHS[-1],) * 2
        least = Model.of(features, narrowest, 1, activation="silu", intervals=intervals)
        why = board_verdict(counted(least), board, firmware).words
        raise InputError(f"{board.name}: no model of {features} features fits ({why})")
    return shapes


def check_measured(board: Board, firmware: dict[str, Runtime], parts: Iterable[str] = ()) -> None:
    """Refuse a core without measurements of the runtime, or of these parts of it.

    The room left for a pack would be unknown.
    """
    core = board.core.same_as
    runtime = firmware.get(core)
    missing = [] if runtime is None else [one for one in parts if one not in runtime.parts]
    if runtime is None or missing:
        what = f" with {joined(PART_WORDS[one] for one in missing)}" if missing else ""
        raise InputError(
            f"{board.name}: the size of the runtime{what} on {core} has not been measured; "
            "'twinedge firmware measure' does"
        )


def _models(features: int, most: int, width: int, intervals: bool) -> Iterable[Model]:
    for twins in TWINS:
        anchors = most - most % twins
        while anchors >= max(twins, min(FEWEST_ANCHORS, most)):
            for weights in WEIGHTS:
                yield Model.of(
                    features,
                    (width, width),
                    anchors,
                    twins=twins,
                    activation="silu",
                    weights=weights,
                    intervals=intervals,
                )
            anchors = anchors // 2 - anchors // 2 % twins


def _score(
    model: TwinRegressor,
    shapes: list[tuple[Model, Verdict]],
    validation: Points,
    seed: int,
    bins: int = 0,
) -> list[Attempt]:
    """Score every shape that a trained model contains.

    A twin's estimate from an anchor is the same in every pack that holds both: each is computed
    once, and a pack predicts the mean of its own.
    """
    X, y = model.anchor_X_, model.anchor_y_
    # Anchors chosen by the validation points would look too good here.
    rows = {
        key: select(X, y, key[1], "xy", twins=key[0], seed=seed)
        for key in dict.fromkeys((shape.twins, shape.anchors) for shape, _ in shapes)
    }
    union = np.unique(np.concatenate(list(rows.values())))
    estimates = {
        (weights, twin): _estimates(model, twin, union, weights, validation[0])
        for weights in dict.fromkeys(shape.weights for shape, _ in shapes)
        for twin in range(max(twins for twins, _ in rows))
    }
    attempts = []
    for shape, verdict in shapes:
        chosen = np.searchsorted(union, rows[shape.twins, shape.anchors])
        parts = [
            found[:, chosen[twin :: shape.twins]]
            for twin in range(shape.twins)
            if (found := estimates[shape.weights, twin]) is not None
        ]
        if len(parts) < shape.twins or verdict.flash_bytes is None or verdict.ram_bytes is None:
            continue
        mean = model.scaling_.uncurved(np.concatenate(parts, axis=1).mean(axis=1))
        rmse = scoring.rmse(mean - validation[1])
        shape = replace(shape, activation=model.activation_)
        attempts.append(Attempt(shape, verdict.flash_bytes, verdict.ram_bytes, rmse, bins))
    return attempts


def _estimates(
    model: TwinRegressor, twin: int, rows: Array, weights: str, points: Array
) -> Array | None:
    """Estimates ``(n, len(rows))`` of one rounded twin; None where no pack can hold its weights.

    They are on the target's curve.
    """
    alone = copy(model)
    alone.weights_ = model.weights_[twin : twin + 1]
    blocks = np.split(rows, range(MAX_ANCHORS, len(rows), MAX_ANCHORS))
    try:
        packs = [quantise(alone, [block], weights=weights) for block in blocks]
    except InputError:
        return None
    raw = np.concatenate([evaluate(pack, points).estimates for pack in packs], axis=1)
    offset, unit = units_of_estimates(packs[0])
    found: Array = raw * unit + offset
    return found
