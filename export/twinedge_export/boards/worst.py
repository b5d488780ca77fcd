"""The longest prediction that a board can be made to compute: packs and queries that are hostile.

``docs/ports.md`` lists what in the runtime depends on the numbers. Here every such choice has
candidates. For each build, the candidates that take longest are found one choice after the other,
on a small model; packs of many shapes that combine them then give the rates of ``Worst``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linprog

from twinedge.budget import Model
from twinedge.budget.model import KERNELS
from twinedge.budget.worst import NAMES, Worst, rounds
from twinedge.pack import Difficulty, Domain, Intervals, Layer, Pack, Twin, write_pack
from twinedge.pack.contents import Array
from twinedge.pack.layout import CURVE_LENGTH
from twinedge.runtime.reference import silu_curve
from twinedge_export.boards.build import Builder, TooLargeError, join_packs
from twinedge_export.boards.run import instructions_of, multiply_adds, run_program, time_limit

PROGRAM = "worst"
_WORDS = {"empty": 1, "counted": 1, "done": 0}  # what worst.c prints, and how many numbers
_LARGEST, _MOST_TARGET = 32767, 2**30 - 1
_ROOM = 2**31 - 1  # sum of magnitudes in a layer


@dataclass(frozen=True)
class Extremes:
    """One candidate for each choice.

    Parameters
    ----------
    sums : tuple of int
        What the neurons of a layer come to before the activation, in turn.
    shift, fraction : int
        Of all hidden layers.
    curve : str
        ``"silu"``, or ``"steep"``, which is not made of lines that kernels can use.
    weight : int
        All of them.
    anchors : str
        How far anchors are from the query, one after the other.
    scaling : (float, float, float)
        A feature, its offset and its gain.
    targets : tuple of int
        Of the anchors after the first, in turn; that of the first is 0.
    output : (int, int, int)
        Weights, biases and shift of the outputs.
    units : (float, float)
        Offset and gain of the target.
    signals : int
        Weights of the signals of the scale, and of its constant.
    """

    sums: tuple[int, ...] = (5000,)
    shift: int = 1
    fraction: int = 12
    curve: str = "silu"
    weight: int = 0
    anchors: str = "nearer"
    scaling: tuple[float, float, float] = (1.0, 0.0, 100.0)
    targets: tuple[int, ...] = (_MOST_TARGET, -_MOST_TARGET)
    output: tuple[int, int, int] = (0, 0, 0)
    units: tuple[float, float] = (0.0, 1e-3)
    signals: int = 1 << 15


# With 12 fraction bits silu's curve has narrow steps below 16384 and ends at 49152, with 9 at 2048
# and 6144; 40000 has to be clamped. The last ones are not the same in all neurons of a group.
_SUMS = (
    *((sign * size,) for size in (1, 200, 5000, 20000, 40000) for sign in (1, -1)),
    *((0,), (40000, -40000), (5000, -20000), (200, 200, 200, 20000), (200, 200, 200, -40000)),
)
# Subtracting cancels or aligns; results are whole, halves, too large, tiny, or not normal.
_SCALINGS = (
    *(
        (1.0, 0.0, 32766.5),
        (-1.0, 0.0, 32766.5),
        (0.3, 0.0, 7.7),
        (-0.3, 0.0, 0.7),
        (0.0, 0.0, 1.0),
    ),
    *((1.0000001, 1.0, 3.3), (1.0, 1.0000001, 3e38), (-0.7, 1.1, 1e-45), (16777216.0, -0.3, 1e-3)),
    *((1e-45, 0.0, 1.0), (-1.1e-38, 1.1755e-38, 1e38), (1e-40, -1.3e-39, 3e38), (3e38, -3e38, 1.0)),
    *((-3e38, 3e38, 1.0), (0.3, -1234.567, 13.21), (-1234.567, 0.3, 13.21), (np.nan, 0.3, 13.21)),
    *((33.3, 1e-45, 1e-45), (-5e-7, 12.1, 1234.5), (1.9999999, -1.9999999, 8191.0)),
)
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "sums": _SUMS,
    "shift": (0, 1, 8, 17, 23, 30),
    "fraction": (5, 9, 12, 13, 14, 15),
    "curve": ("silu", "steep"),
    "weight": (0, 1, -1),
    "anchors": ("nearer", "farther", "below", "same", "mixed"),
    "scaling": _SCALINGS,
    "targets": (
        *((_MOST_TARGET, -_MOST_TARGET), (-_MOST_TARGET,), (_MOST_TARGET,), (0,), (-9, 7)),
        *((-1048575, 0), (1048575, 0), (-123456789, 987654)),
    ),
    "output": (
        *((0, 0, 0), (0, 0, 30), (1, -(2**29), 0), (-1, 2**29, 0), (0, 2**29, 30)),
        *((0, -(2**29), 30), (1, 0, 0), (-1, 0, 12)),
    ),
    "units": (
        *((0.0, 1e-3), (0.0, 1e-45), (1e38, 1e38), (-1e38, 1e38), (1.0, 3e-39), (-123.4, 1e-9)),
        *((1e-45, 1.0), (-77.7, 0.777)),
    ),
    "signals": (1 << 15, 0, 1, 2**32 - 1, 123456789),
}


def extreme_pack(model: Model, extremes: Extremes) -> tuple[Pack, Array]:
    """Build a pack of a shape, and the query ``(f,)``, float32, for it."""
    x, offset, gain = (np.full(model.features, one, np.float32) for one in extremes.scaling)
    if not model.intervals:
        x = np.nan_to_num(x)  # a missing feature would be refused
    later = np.resize(np.array(extremes.targets), model.anchors - 1)
    curve = silu_curve() if extremes.curve == "silu" else _steep_curve()
    pack = Pack(
        activation=model.activation,
        x_offset=offset,
        x_gain=gain,
        y_offset=np.float32(extremes.units[0]),
        y_gain=np.float32(extremes.units[1]),
        twins=(_twin(model, extremes),) * model.twins,
        anchors=_anchors(model, extremes),
        targets=np.concatenate([[0], later]).astype(np.int32),
        counts=np.array(model.counts, np.uint16),
        curve=curve if model.activation == "silu" else None,
        neighbors=model.neighbors,
        trained_on_neighbors=model.neighbors > 0,
    )
    if not model.intervals:
        return pack, x
    edge = np.full(model.features, -_LARGEST, np.int16)  # nearly all features are above it
    size = extremes.signals
    quantiles = {900: min(size, 2**31 - 1)}
    intervals = Intervals(size, size, size, size, 100, 16 * 1024, 655, quantiles)
    return replace(pack, intervals=intervals, domain=Domain(edge, edge, edge + 1), schema=0), x


def _steep_curve() -> Array:
    """Up and down between both ends of the allowed range."""
    return np.resize([0, 16383], CURVE_LENGTH).astype(np.int16)


def _anchors(model: Model, extremes: Extremes) -> Array:
    x, offset, gain = (np.float32(one) for one in extremes.scaling)
    with np.errstate(all="ignore"):
        near = np.clip(np.nan_to_num((x - offset) * gain), -_LARGEST, _LARGEST)
    away = -np.sign(near) if near else 1.0  # there is room on the other side of zero
    order = np.concatenate([np.arange(count) for count in model.counts])
    step = max(1, _LARGEST // max(model.counts))
    distance = {
        "nearer": (max(model.counts) - order) * step,
        "farther": order * step,
        "below": np.full(model.anchors, 2 * _LARGEST),
        "same": np.zeros(model.anchors),
        "mixed": np.random.default_rng(0).permutation(order) * step,
    }[extremes.anchors]
    features = np.clip(near + away * distance, -_LARGEST, _LARGEST).astype(np.int16)
    return np.repeat(features[:, None], model.inputs, axis=1)


def _twin(model: Model, extremes: Extremes) -> Twin:
    layers, inputs = [], 2 * model.inputs
    for width in model.hidden:
        kernel = np.full((width, inputs), extremes.weight, KERNELS[model.weights])
        room = _ROOM - abs(extremes.weight) * inputs * _LARGEST
        sums = np.resize(np.array(extremes.sums, np.int64), width) << (extremes.shift + 1)
        bias = np.clip(sums, -room, room).astype(np.int32)
        multiplier = np.full(width, _LARGEST, np.int16)
        layers.append(Layer(kernel, bias, multiplier, extremes.shift, extremes.fraction))
        inputs = width
    weight, bias, shift = extremes.output
    output = np.full(inputs, weight, np.int16)
    found = Twin(tuple(layers), output, _LARGEST, shift)
    if not model.intervals:
        return found
    return replace(found, bias=bias, difficulty=Difficulty(output, bias, _LARGEST, shift))


def count_packs(builder: Builder, packs: Sequence[tuple[Pack, Array]]) -> list[float]:
    """Count the instructions of one query with each pack; NaN for one that does not fit.

    Parameters
    ----------
    builder : Builder
        For the program ``PROGRAM``, with a board that counts instructions.
    packs : sequence of (Pack, array of shape (f,))
        Packs with their queries; as many as fit share an image.

    Raises
    ------
    InputError
        If a pack is refused, or a tool is missing.
    """
    content = join_packs(write_pack(pack, metadata=False) for pack, _ in packs)
    queries = np.concatenate([x for _, x in packs])
    board = builder.board
    try:
        image = builder.image(content, queries)
    except TooLargeError:
        if len(packs) == 1:
            return [np.nan]
        half = len(packs) // 2
        return count_packs(builder, packs[:half]) + count_packs(builder, packs[half:])
    seconds = time_limit(sum(multiply_adds(pack) for pack, _ in packs))
    output = run_program(board, image, _WORDS, seconds)
    ((empty,),) = output["empty"]
    counts = np.array(output["counted"])[:, 0]
    found: list[float] = instructions_of(counts, empty, board.counts_per_instruction).tolist()
    return found


# Small, as only loops count: features, hidden layers, anchors, twins. More are drawn.
_SHAPES = (
    *((1, (1,), 1, 1), (8, (128, 128), 2, 1), (40, (4,), 2, 1), (2, (4,), 40, 1), (1, (2,), 8, 8)),
    *((4, (15, 65), 2, 1), (4, (65, 18), 2, 1), (8, (32, 32), 4, 1), (4, (1, 1), 9, 1)),
)
_DRAWN = {1: 40, 2: 150}  # by anchors in a block: a kernel without blocks has no groups, either
_TRIED = Model.of(3, (6, 5), 6, neighbors=3)
_NEAR = (1, 2, 3, 4, 7, 12)
_TURNS = 3  # of the search
_AROUND = ("anchors", "scaling")  # choices that neighbors and intervals have a part in
_SPARE = 1.03  # what rates are raised by


def probes(like: Model, pairs: int) -> list[Model]:
    """List models for the rates of a build: shapes with what ``like`` has besides its shape."""
    rng = np.random.default_rng(0)
    shapes = [*_SHAPES, *(_drawn(rng) for _ in range(_DRAWN[min(pairs, 2)]))]
    found = []
    for number, (features, hidden, anchors, twins) in enumerate(shapes):
        near = _NEAR[number % len(_NEAR)] if like.neighbors else 0
        found.append(_as(like, Model.of(features, hidden, anchors, twins=twins), near))
    return found


def _drawn(rng: np.random.Generator) -> tuple[int, tuple[int, ...], int, int]:
    widths = np.exp(rng.uniform(0, np.log(41), rng.integers(1, 4)))
    features, twins = int(np.exp(rng.uniform(0, np.log(18)))), int(rng.choice([1, 1, 2, 3]))
    return features, tuple(map(int, widths)), int(rng.integers(twins, 13)), twins


def _as(like: Model, one: Model, near: int) -> Model:
    kept = {name: getattr(like, name) for name in ("activation", "weights", "intervals")}
    return replace(one, neighbors=near, **kept)


Count = Callable[[Sequence[tuple[Pack, Array]]], list[float]]


def longest(like: Model, count: Count, names: Iterable[str], start: Extremes) -> Extremes:
    """Find the candidates that take longest.

    Parameters
    ----------
    like : Model
        Any model of the build.
    count : function
        Counts the instructions of packs with their queries.
    names : iterable of str
        Choices to make; the others stay as they are.
    start : Extremes
        Where to start. In each turn, every choice is made as if the others were fixed; the next
        turn starts from all of them together. The longest prediction of all turns is returned.
    """
    model = _as(like, _TRIED, _TRIED.neighbors if like.neighbors else 0)
    best, most, names = start, 0.0, tuple(names)
    for _ in range(_TURNS):
        tried = [
            (name, replace(start, **{name: one})) for name in names for one in CANDIDATES[name]
        ]
        counted = count([extreme_pack(model, one) for _, one in tried])
        found = [(cost, name, one) for cost, (name, one) in zip(counted, tried, strict=True)]
        cost, _, one = max(found, key=lambda each: each[0])
        if cost > most:
            best, most = one, cost
        before = start
        for name in names:
            _, _, one = max((each for each in found if each[1] == name), key=lambda each: each[0])
            start = replace(start, **{name: getattr(one, name)})
        if start == before:
            break
    return best


def choices(like: Model) -> tuple[str, ...]:
    """Name the choices that a build has."""
    absent = {
        "fraction": like.activation == "relu",
        "curve": like.activation == "relu",
        "anchors": not like.neighbors,
        "signals": not like.intervals,
    }
    return tuple(name for name in CANDIDATES if not absent.get(name))


def find_worst(
    builder: Builder,
    like: Model,
    pairs: int,
    known: Iterable[tuple[Model, float]],
    before: Extremes | None = None,
) -> tuple[Worst, Extremes]:
    """Find the rates of a build, and the extremes that gave them.

    Parameters
    ----------
    builder : Builder
        For the program ``PROGRAM``, with the flags of the build.
    like : Model
        Any model of the build.
    pairs : int
        Anchors in a block of its kernel.
    known : iterable of (Model, float)
        Models that were measured, with their instructions: no more than the worst case.
    before : Extremes, optional
        What was found for the same layers: only choices outside of these are then made again.
    """

    def count(packs: Sequence[tuple[Pack, Array]]) -> list[float]:
        return count_packs(builder, packs)

    names = [name for name in choices(like) if before is None or name in _AROUND]
    hostile = longest(like, count, names, before or Extremes())
    models = probes(like, pairs)
    counted = zip(models, count([extreme_pack(one, hostile) for one in models]), strict=True)
    cases = [(model, cost) for model, cost in counted if not np.isnan(cost)]
    return Worst(pairs, fitted([*cases, *known], pairs)), hostile


def fitted(cases: Sequence[tuple[Model, float]], pairs: int) -> dict[str, float]:
    """Find rates that no case exceeds, and that are close to all cases, more so to long ones."""
    costs = np.array([cost for _, cost in cases])
    counts = np.array([[*rounds(model, pairs).values()] for model, _ in cases], float)
    return covering(NAMES, counts, costs)


def covering(names: Sequence[str], counts: Array, costs: Array) -> dict[str, float]:
    """Find rates of rounds with these names, of which each case has so many, for its cost."""
    share = counts / costs[:, None]
    found = linprog(np.sqrt(costs) @ share, A_ub=-share, b_ub=-np.ones(len(costs)))
    rates = np.round(found.x * _SPARE, 4)
    return {name: float(rate) for name, rate in zip(names, rates, strict=True) if rate > 0}
