"""A folded model as graphs of floats: TensorFlow's, for its converter, and those of ONNX files.

TensorFlow's layers are 1 x 1 convolutions. Every version of TensorFlow Lite has kernels for them
with one scale per output (for fully connected layers 2.14 has none, and silently computes wrong
results), and in TensorFlow Lite Micro they reach CMSIS-NN's fast path at any batch size.

A graph comes in parts, so that a converter can round some and leave the others: ``head`` from
queries to the first hidden layer, ``core`` with nearly all weights, ``tail`` to the outputs.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from twinedge.errors import InputError, wrong_value
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.file_device import fill_values
from twinedge.training.network import tf
from twinedge.training.pairs import nearest_others
from twinedge_export.fold_anchors import Bounds, Dense, Folding

Tensors = dict[str, Any]

_PAIRS = 16384  # to observe the range of activations
_FEWEST = 64  # queries for that, however many anchors each meets


class Stage(NamedTuple):
    """From named tensors to named tensors; whether it is to be rounded."""

    call: Callable[[Tensors], Tensors]
    rounded: bool


class Graph:
    """What the two shapes of file share.

    Parameters
    ----------
    folding : Folding
        The model.
    integers : bool
        Whether queries come in as integers (``folding.inputs``) and all layers are rounded. If not,
        they come in the user's units, and the first layer and the output stay floats.
    ops : object, optional
        Functions that are called like TensorFlow's, for tensors of another kind.
    """

    queries: tuple[str, ...]
    # In file order; some exist only with a calibration.
    outputs: tuple[str, ...]
    # Those that stay floats where others become integers.
    floats: tuple[str, ...] = ()
    # Whether what follows the layers can be rounded, too: if it only reshapes.
    rounded_to_the_end: bool

    def __init__(self, folding: Folding, *, integers: bool, ops: Any = None) -> None:
        self.folding = folding
        self.ops = ops or tf
        self.integers = integers
        layers = len(folding.twins[0].layers)
        self.core_layers = layers if integers else max(1, layers - 1)
        self.between = [f"twin{number}" for number in range(len(folding.twins))]
        self.beside = [_second(name) for name in self.between if folding.bounds]

    @property
    def parts(self) -> list[Stage]:
        """Parts to convert, in order."""
        if not self.integers:
            return [Stage(self.head, False), Stage(self.core, True), Stage(self.tail, False)]
        if self.rounded_to_the_end:
            return [Stage(lambda tensors: self.tail(self.core(tensors)), True)]
        return [Stage(self.core, True), Stage(self.tail, False)]

    @property
    def in_units(self) -> bool:
        """Whether outputs are in units of the targets.

        Integers of several targets have one step, so they are scaled. That of a mean lacks the
        centre of the folding, in any case.
        """
        return not self.integers or self.folding.targets == 1

    @property
    def unit_of_outputs(self) -> Any:
        """What the last layers are multiplied by."""
        return self.folding.y_scale if self.rounded_to_the_end and self.in_units else 1.0

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of an output, for one query."""
        of_each = () if self.folding.targets == 1 else (self.folding.targets,)
        if name in ("difference", "difficulty"):
            return (len(self.folding.twins), *of_each)
        bounds = self.folding.bounds
        if name in ("low", "high") and bounds is not None:
            return (*of_each, len(bounds.coverages))
        return of_each

    def head(self, tensors: Tensors) -> Tensors:
        """From queries in the user's units to the first hidden layer of each twin."""
        inputs = self.folding.inputs
        centre, gain = _constant(inputs.centre), _constant(1 / inputs.unit)
        return self.first(
            {
                name: self.ops.clip_by_value((x - centre) * gain, -inputs.limit, inputs.limit)
                for name, x in tensors.items()
            }
        )

    def core(self, tensors: Tensors) -> Tensors:
        """Layers to be rounded."""
        if self.integers:
            tensors = self.first(tensors)
        return self._layers(tensors, slice(0, self.core_layers))

    def tail(self, tensors: Tensors) -> Tensors:
        """Compute the rest, to the outputs of the file."""
        done = self._layers(tensors, slice(self.core_layers, None))
        return self.combine(
            [done[name] for name in self.between], [done[name] for name in self.beside]
        )

    def whole(self, tensors: Tensors) -> Tensors:
        """All in one."""
        for part in self.parts:
            tensors = part.call(tensors)
        return tensors

    def first(self, tensors: Tensors) -> Tensors:
        """From inputs of the folding to the first hidden layer of each twin."""
        raise NotImplementedError

    def combine(self, outputs: list[Any], difficulties: list[Any]) -> Tensors:
        """From the differences of each twin, and its second outputs, to the outputs of the file."""
        raise NotImplementedError

    def calibration(self, model: TwinRegressor) -> Tensors:
        """Training points as inputs of the graph, to observe its activations."""
        picked = self.pick(model)
        if self.integers:
            picked = {name: self.folding.inputs.of(x) for name, x in picked.items()}
        return {name: x.astype(np.float32) for name, x in picked.items()}

    def pick(self, model: TwinRegressor) -> Tensors:
        """Pick enough training points for a few thousand pairs."""
        raise NotImplementedError

    def _layers(self, tensors: Tensors, part: slice) -> Tensors:
        done = dict(tensors)
        for name, twin in zip(self.between, self.folding.twins, strict=True):
            h = tensors[name]
            for layer in twin.layers[part]:
                if twin.difficulty is not None and layer is twin.layers[-1]:
                    done[_second(name)] = self._dense(h, twin.difficulty)
                h = self._dense(h, layer)
            done[name] = h
        return done

    def _mapped(self, x: Any) -> Any:
        """Turn points ``(n, 1, 1, f)`` into what the first layers take, ``(n, 1, 1, g)``."""
        layers = self.folding.map
        if layers is None:
            return x
        filled = self._product(x, layers.fill.kernel) + _constant(layers.fill.bias)
        filled = self.ops.clip_by_value(filled, 0.0, 1.0)
        straight = self._product(x, layers.straight.kernel) + _constant(layers.straight.bias)
        return straight + self._product(filled, layers.steps)

    def _product(self, x: Any, kernel: Array) -> Any:
        return self.ops.nn.conv2d(x, _constant(kernel[None, None]), 1, "VALID")

    def _dense(self, h: Any, layer: Dense) -> Any:
        unit = 1.0 if layer.activated else self.unit_of_outputs
        z = self._product(h, unit * layer.kernel) + _constant(unit * layer.bias)
        return self._activate(z) if layer.activated else z

    def _activate(self, z: Any) -> Any:
        return getattr(self.ops.nn, self.folding.activation)(z)


class Ensemble(Graph):
    """``x`` ``(n, f)`` to ``mean`` and ``spread`` ``(n,)``, in units of the target.

    With bounds also to ``scale`` ``(n,)``, and ``low`` and ``high`` ``(n, levels)``. Of several
    targets there are ``(n, m)`` and ``(n, m, levels)``. With integers the mean lacks the centre of
    the folding.
    """

    queries = ("x",)
    outputs = ("mean", "spread", "scale", "low", "high")
    # 8 bits saturate, and an interval clipped there would claim too much.
    floats = ("scale", "low", "high")
    rounded_to_the_end = False  # TensorFlow Lite 2.14 has a square root for floats only

    def pick(self, model: TwinRegressor) -> Tensors:
        """Take queries."""
        points = model.anchor_X_
        anchors = max(len(twin.targets) for twin in self.folding.twins)
        return {"x": points[_order(points)[: max(_FEWEST, _PAIRS // anchors)]]}

    def first(self, tensors: Tensors) -> Tensors:
        """Each query against all anchors, in both orders, ``(n, 2, k, h)``."""
        x = self._mapped(self.ops.reshape(tensors["x"], (-1, 1, 1, self.folding.features)))
        done = {}
        for name, twin in zip(self.between, self.folding.twins, strict=True):
            mine = self._product(x, twin.halves)
            mine = self.ops.reshape(mine, (-1, 2, 1, twin.halves.shape[1] // 2))
            done[name] = self._activate(mine + _constant(twin.offsets[None]))
        return done

    def combine(self, outputs: list[Any], difficulties: list[Any]) -> Tensors:
        """Mean and spread of the estimates, from differences ``(n, 2, k, m)``, and intervals."""
        # The mean of F(x, a) and -F(a, x).
        estimates = [
            one + _constant(twin.targets.reshape(1, -1))
            for twin, one in zip(self.folding.twins, self._orders(outputs, 1, -1), strict=True)
        ]
        ops, joined = self.ops, self._joined(estimates)
        mean = ops.reduce_mean(joined, 1, keepdims=True)
        off = joined - mean
        square = ops.reduce_mean(off * off, 1)
        # Last, so that nothing earlier depends on the units of the target.
        unit = _constant(self.folding.y_scale)
        scaled = ops.reshape(mean, (-1, *self.shape_of("mean")))
        mean = scaled * unit
        centre = mean + _constant(self.folding.y_mean)
        target, off = self._uncurved(centre), ops.sqrt(square)
        spread = self._deviation(centre, off * unit)
        if not self.in_units:
            target, spread = scaled, off
        elif self.integers:  # the few bits would have to span from zero to the target
            curved = self.folding.curve is not None
            target = target - _constant(self.folding.centre) if curved else mean
        found = {"mean": target, "spread": spread}
        if self.folding.bounds is None:
            return found
        asymmetry = self._joined(self._orders(outputs, 1, 1))
        # Only the order (anchor, query).
        difficulty = ops.reduce_mean(self._joined(self._orders(difficulties, 0, 2)), 1)
        signals = square, ops.reduce_mean(asymmetry * asymmetry, 1), difficulty
        return found | self._bounds(self.folding.bounds, centre, *signals)

    def _joined(self, some: list[Any]) -> Any:
        """All anchors of all twins, ``(n, k)``; of several targets ``(n, k, m)``."""
        joined, targets = self.ops.concat(some, 1), self.folding.targets
        if targets == 1:
            return joined
        anchors = sum(len(twin.targets) for twin in self.folding.twins)
        return self.ops.reshape(joined, (-1, anchors, targets))

    def _bounds(
        self, bounds: Bounds, centre: Any, spread: Any, asymmetry: Any, difficulty: Any
    ) -> Tensors:
        """Scale and intervals from the scaled signals ``(n,)``, all but the last as squares."""
        alone = self.folding.targets == 1
        weights, constant = (
            one[..., 0] if alone else one for one in (bounds.weights, bounds.constant)
        )
        by_spread, by_asymmetry, by_difficulty = weights
        # The clamp fuses into the product before it, at no cost.
        difficulty = self.ops.nn.relu(difficulty * _constant(by_difficulty))
        total = spread * _constant(by_spread**2) + asymmetry * _constant(by_asymmetry**2)
        total = total + difficulty * difficulty
        total = total + _constant((constant / self.folding.y_scale) ** 2)
        scale = self.ops.sqrt(total) * _constant(self.folding.y_scale)
        quantiles = _constant(bounds.quantiles if alone else bounds.quantiles[None])
        columns = (-1, *self.shape_of("mean"), 1)
        reach = self.ops.reshape(scale, columns) * quantiles
        scale = self._deviation(centre, scale)
        centre = self.ops.reshape(centre, columns)
        low, high = self._uncurved(centre - reach), self._uncurved(centre + reach)
        return {"scale": scale, "low": low, "high": high}

    def _uncurved(self, c: Any) -> Any:
        """From the target's curve to its own units."""
        known = self.folding.curve
        if known is None:
            return c
        c = self.ops.clip_by_value(c, known.low, known.high)
        if known.curve.kind == "sqrt":
            return c * c
        power = self.ops.exp(c)
        return power - _constant(1.0) if known.curve.kind == "log1p" else power

    def _deviation(self, c: Any, deviation: Any) -> Any:
        """From a deviation on the target's curve, around ``c``, to the target's own units."""
        if self.folding.curve is None:
            return deviation
        apart = self._uncurved(c + deviation) - self._uncurved(c - deviation)
        return apart * _constant(0.5)

    def _orders(self, outputs: list[Any], first: float, second: float) -> list[Any]:
        """Mean of both orders of each pair, weighted, twin by twin: ``(n, k)``.

        Of several targets ``(n, k m)``, anchor by anchor.
        """
        weights = _constant(np.array([first, second]).reshape(1, 2, 1))
        return [
            self.ops.reduce_mean(self.ops.reshape(one, (-1, 2, twin.targets.size)) * weights, 1)
            for twin, one in zip(self.folding.twins, outputs, strict=True)
        ]


class BareTwin(Graph):
    """``first`` and ``second`` ``(n, f)`` to ``difference`` ``(n, twins)``, in one order only.

    It has no map: its model is one of points behind the map. Differences are on the target's curve.
    With bounds also to ``difficulty`` ``(n, twins)``, that of the second point. Of several targets
    both are ``(n, twins, m)``.
    """

    queries = ("first", "second")
    outputs = ("difference", "difficulty")
    rounded_to_the_end = True

    def pick(self, model: TwinRegressor) -> Tensors:
        """Take random pairs like those of the training, in both orders."""
        points = model.anchor_X_
        one = np.resize(_order(points), _PAIRS // 2)
        other = np.random.default_rng(0).integers(len(points), size=len(one))
        if model.pairs == "neighbors":
            partners = nearest_others(model.scaling_.features(points), int(model.neighbors))
            other = partners[one, other % partners.shape[1]]
        first, second = np.concatenate([one, other]), np.concatenate([other, one])
        return {"first": points[first], "second": points[second]}

    def first(self, tensors: Tensors) -> Tensors:
        """Each pair, ``(n, 1, 1, h)``."""
        pair = self.ops.concat([tensors[name] for name in self.queries], 1)
        pair = self.ops.reshape(pair, (-1, 1, 1, 2 * self.folding.features))
        return {
            name: self._dense(pair, twin.first)
            for name, twin in zip(self.between, self.folding.twins, strict=True)
        }

    def combine(self, outputs: list[Any], difficulties: list[Any]) -> Tensors:
        """Differences of all twins side by side, and likewise their second outputs."""
        found = zip(self.outputs, (outputs, difficulties), strict=True)
        return {
            name: self.ops.reshape(self.ops.concat(some, 3), (-1, *self.shape_of(name)))
            for name, some in found
            if some
        }


SHAPES: dict[str, type[Graph]] = {"ensemble": Ensemble, "twin": BareTwin}


def _order(points: Array) -> Array:
    """Rows in random order, extremes first: they show the range of a feature."""
    edges = [points.argmin(axis=0), points.argmax(axis=0)]
    rows = np.concatenate([*edges, np.random.default_rng(0).permutation(len(points))])
    return np.array(list(dict.fromkeys(rows.tolist())))


def _second(name: str) -> str:
    """Name of the second output of a twin."""
    return f"{name}_difficulty"


def _constant(value: Array | float) -> Array:
    return np.asarray(value, np.float32)


def check(model: TwinRegressor, shape: str, level: str, levels: Sequence[str]) -> None:
    """Refuse arguments that no file can be made from."""
    if shape not in SHAPES:
        raise wrong_value("shape", shape, f"is not one of {', '.join(SHAPES)}")
    if level not in levels:
        raise wrong_value("level", level, f"is not one of {'; '.join(levels)}")
    if shape == "ensemble" and model.pairs == "neighbors":
        raise InputError(
            "a model trained on neighbors predicts from the nearest anchors, and an ensemble file "
            "has all of them inside: write its .twin, or the shape 'twin'"
        )


def describe(
    folding: Folding,
    shape: str,
    level: str,
    metadata: dict[str, Any] | None,
    pack: Pack | None = None,
) -> dict[str, Any]:
    """Metadata of a file: what the user gave, and what is needed to use the file.

    A bare twin gets from the pack beside it what an ensemble has inside.
    """
    inputs = folding.inputs
    inside: dict[str, Any] = {"anchors": [len(twin.targets) for twin in folding.twins]}
    if folding.bounds is not None:
        inside["coverages"] = [*folding.bounds.coverages]
    if pack is not None and np.isfinite(fill := fill_values(pack)).any():
        inside["fill"] = [value if np.isfinite(value) else None for value in fill.tolist()]
    several: dict[str, Any] = {"targets": [{}] * folding.targets} if folding.targets > 1 else {}
    return {
        **several,
        **(metadata or {}),
        "shape": shape,
        "level": level,
        "twins": len(folding.twins),
        **(inside if shape == "ensemble" else {}),
        "scaling": {
            "centre": inputs.centre.tolist(),
            "unit": inputs.unit.tolist(),
            "limit": inputs.limit,
        },
    }
