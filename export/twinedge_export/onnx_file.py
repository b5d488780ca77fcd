"""ONNX files. Inputs and outputs are floats in the user's units; kernels in between are int8.

``int8`` is made by ``onnxruntime.quantization``: in each layer between the first and the output,
the input is int8, as is the kernel, with a scale per output; sums are not rounded. Where the 8 bits
of an input are too few, ``int8 weights`` has the same kernels and computes with floats.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.file_device import seal
from twinedge.scoring.calibration import Calibration
from twinedge.silence import silence
from twinedge_export.fold_anchors import Dense, Folded, Folding, Inputs, fold
from twinedge_export.graph import SHAPES, Tensors, check, describe
from twinedge_export.round_weights import _LARGEST_WEIGHT, with_core_on_grid

# Old enough for runtimes of 2022, new enough for one scale per output.
OPSET, IR_VERSION = 17, 8
BATCH = "n"


class OnnxGraph:
    """Nodes and constants of a graph under construction.

    Parameters
    ----------
    folding : Folding
        The model; its inputs are those the networks were trained on.
    core_layers : int
        How many layers after the first to round; ``core`` names their products.
    """

    def __init__(self, folding: Folding, core_layers: int) -> None:
        self.folding = folding
        self.core: list[str] = []
        self._core_layers = core_layers
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def ensemble(self) -> onnx.ModelProto:
        """``x`` ``(n, f)`` to ``mean`` and ``spread`` ``(n,)``, in units of the target.

        With a calibration also to ``scale`` ``(n,)``, and ``low`` and ``high`` ``(n, levels)``.
        """
        x = self._brought("x")
        sign = self._constant("sign", np.array([1.0, -1.0]).reshape(1, 2, 1))
        estimates, asymmetries, difficulties = [], [], []
        for number, twin in enumerate(self.folding.twins):
            name = f"twin{number}"
            width = len(twin.first.bias)
            mine = self._node("MatMul", x, self._constant(f"{name}_halves", twin.halves))
            mine = self._shaped(mine, (-1, 2, 1, width))
            # Every query against all anchors, in both orders.
            sums = self._node("Add", mine, self._constant(f"{name}_anchors", twin.offsets[None]))
            output, difficulty = self._layers(self._activated(sums), name, twin)
            both = self._shaped(output, (-1, 2, len(twin.targets)))
            # The mean of F(x, a) and -F(a, x).
            half = self._mean(self._node("Mul", both, sign), keepdims=0)
            targets = self._constant(f"{name}_targets", twin.targets[None])
            estimates.append(self._node("Add", half, targets))
            if difficulty is not None:
                asymmetries.append(self._mean(both, keepdims=0))
                both = self._shaped(difficulty, (-1, 2, len(twin.targets)))
                # Only the order (anchor, query).
                back = self._constant("back", np.array([0.0, 2.0]).reshape(1, 2, 1))
                difficulties.append(self._mean(self._node("Mul", both, back), keepdims=0))
        joined = self._joined(estimates)
        mean = self._mean(joined, keepdims=1)
        off = self._node("Sub", joined, mean)
        square = self._mean(self._square(off), keepdims=0)
        # Last, so that nothing earlier depends on the units of the target.
        unit = self._constant("y_scale", np.array(self.folding.y_scale))
        offset = self._constant("y_mean", np.array(self.folding.y_mean))
        scaled = self._node("Mul", self._shaped(mean, (-1,)), unit)
        self._node("Add", scaled, offset, output="mean")
        self._node("Mul", self._node("Sqrt", square), unit, output="spread")
        outputs: dict[str, list[Any]] = {"mean": [BATCH], "spread": [BATCH]}
        calibration = self.folding.calibration
        if calibration is not None:
            asymmetry = self._mean(self._square(self._joined(asymmetries)), keepdims=0)
            hard = self._node("Relu", self._mean(self._joined(difficulties), keepdims=0))
            squares = {"spread": square, "asymmetry": asymmetry, "difficulty": self._square(hard)}
            self._bounds(calibration, squares)
            levels = len(calibration.quantiles)
            outputs |= {"scale": [BATCH], "low": [BATCH, levels], "high": [BATCH, levels]}
        return self._model(["x"], outputs)

    def _bounds(self, calibration: Calibration, squares: dict[str, str]) -> None:
        """Scale and intervals about the mean, from the squares of the scaled signals ``(n,)``."""
        constant = (calibration.constant / self.folding.y_scale) ** 2
        total = self._constant("constant_square", np.array(constant))
        for weight, (name, square) in zip(calibration.weights, squares.items(), strict=True):
            by = self._constant(f"by_{name}_square", np.array(weight**2))
            total = self._node("Add", self._node("Mul", square, by), total)
        scale = self._node("Mul", self._node("Sqrt", total), "y_scale", output="scale")
        quantiles = self._constant("quantiles", np.array([[*calibration.quantiles.values()]]))
        reach = self._node("Mul", self._shaped(scale, (-1, 1)), quantiles)
        centre = self._shaped("mean", (-1, 1))
        self._node("Sub", centre, reach, output="low")
        self._node("Add", centre, reach, output="high")

    def twin(self) -> onnx.ModelProto:
        """``first`` and ``second`` ``(n, f)`` to ``difference`` ``(n, twins)``, in one order.

        With a calibration also to ``difficulty`` ``(n, twins)``, that of the second point.
        """
        names = ["first", "second"]
        pair = self._node("Concat", *(self._brought(name) for name in names), axis=1)
        found: dict[str, list[str]] = {"difference": [], "difficulty": []}
        for number, twin in enumerate(self.folding.twins):
            name = f"twin{number}"
            hidden = self._dense(pair, f"{name}_first", twin.first)
            output, difficulty = self._layers(hidden, name, twin)
            found["difference"].append(output)
            found["difficulty"] += [] if difficulty is None else [difficulty]
        unit = self._constant("y_scale", np.array(self.folding.y_scale))
        found = {name: some for name, some in found.items() if some}
        for name, some in found.items():
            self._node("Mul", self._node("Concat", *some, axis=1), unit, output=name)
        return self._model(names, {name: [BATCH, len(some)] for name, some in found.items()})

    def _brought(self, name: str) -> str:
        """Bring queries to the inputs of the folding."""
        inputs = self.folding.inputs
        centred = self._node("Sub", name, self._constant("centre", inputs.centre))
        scaled = self._node("Mul", centred, self._constant("gain", 1 / inputs.unit))
        ends = [
            self._constant(f"{side}_limit", np.array(limit))
            for side, limit in (("lower", -inputs.limit), ("upper", inputs.limit))
        ]
        return self._node("Clip", scaled, *ends)

    def _layers(self, h: str, name: str, twin: Folded) -> tuple[str, str | None]:
        """Both outputs of a twin; the second may be None."""
        second = None
        for number, layer in enumerate(twin.layers):
            label, rounded = f"{name}_layer{number + 1}", number < self._core_layers
            if twin.difficulty is not None and layer is twin.layers[-1]:
                second = self._layer(h, f"{name}_difficulty", twin.difficulty, rounded)
            h = self._layer(h, label, layer, rounded)
        return h, second

    def _layer(self, h: str, label: str, layer: Dense, rounded: bool) -> str:
        if rounded:
            self.core.append(label)
        return self._dense(h, label, layer)

    def _dense(self, h: str, name: str, layer: Dense) -> str:
        product = self._node("MatMul", h, self._constant(f"{name}_kernel", layer.kernel), name=name)
        z = self._node("Add", product, self._constant(f"{name}_bias", layer.bias))
        return self._activated(z) if layer.activated else z

    def _activated(self, z: str) -> str:
        if self.folding.activation == "relu":
            return self._node("Relu", z)
        return self._node("Mul", z, self._node("Sigmoid", z))

    def _joined(self, some: list[str]) -> str:
        return self._node("Concat", *some, axis=1) if len(some) > 1 else some[0]

    def _square(self, x: str) -> str:
        return self._node("Mul", x, x)

    def _mean(self, x: str, *, keepdims: int) -> str:
        return self._node("ReduceMean", x, axes=[1], keepdims=keepdims)

    def _shaped(self, x: str, shape: tuple[int, ...]) -> str:
        name = "shape_" + "_".join(map(str, shape))
        return self._node("Reshape", x, self._constant(name, np.array(shape, np.int64)))

    def _constant(self, name: str, value: Array) -> str:
        if value.dtype != np.int64:
            value = value.astype(np.float32)
        if all(one.name != name for one in self._constants):
            self._constants.append(numpy_helper.from_array(value, name))
        return name

    def _node(
        self, op: str, *inputs: str, output: str | None = None, name: str = "", **attributes: Any
    ) -> str:
        name = name or f"{op.lower()}{len(self._nodes)}"
        output = output or f"{name}_out"
        self._nodes.append(helper.make_node(op, inputs, [output], name, **attributes))
        return output

    def _model(self, inputs: list[str], outputs: dict[str, list[Any]]) -> onnx.ModelProto:
        def value(name: str, shape: list[Any]) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        graph = helper.make_graph(
            self._nodes,
            "twinedge",
            [value(name, [BATCH, self.folding.features]) for name in inputs],
            [value(name, shape) for name, shape in outputs.items()],
            self._constants,
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="twinedge",
        )


# From the smallest and fastest file to the most exact.
LEVELS = ("int8", "int8 weights", "float32")
# The metadata's entry with names, ranges and scaling, as JSON.
METADATA = "twinedge"


def onnx_model(
    model: TwinRegressor,
    rows: Sequence[Array],
    *,
    shape: str = "ensemble",
    level: str = "int8",
    metadata: dict[str, Any] | None = None,
    pack: Pack | None = None,
) -> bytes:
    """Make an ONNX file; any batch size fits.

    Parameters, names of inputs and outputs, and errors are those of ``tflite_model``, except that
    all levels have float inputs and outputs; ``level`` is one of ``LEVELS`` of this module.
    """
    check(model, shape, level, LEVELS)
    graph = SHAPES[shape](fold(model, rows, Inputs.scaled(model), pack), integers=False)
    queries = graph.calibration(model)
    if level != "float32":
        graph = with_core_on_grid(graph, queries)
    nodes = OnnxGraph(graph.folding, graph.core_layers)
    made = nodes.ensemble() if shape == "ensemble" else nodes.twin()
    if level == "int8":
        made = _quantised(made, nodes.core, queries)
    elif level == "int8 weights":
        _store_as_int8(made, nodes.core)
    about = describe(graph.folding, shape, level, metadata, pack)
    helper.set_model_props(made, {METADATA: json.dumps(about, ensure_ascii=False)})
    made.doc_string = f"Twin regression, {shape}, {level}; made by twinedge"
    onnx.checker.check_model(made, full_check=True)
    return seal(bytes(made.SerializeToString(deterministic=True)) + _seal())


def _seal() -> bytes:
    """Return a metadata entry whose value, the checksum, ends the file."""
    digits = "00000000"
    model = onnx.ModelProto()
    entry = model.metadata_props.add()
    entry.key, entry.value = "crc32", digits
    return bytes(model.SerializeToString()[: -len(digits)])


def _quantised(model: onnx.ModelProto, core: list[str], queries: Tensors) -> onnx.ModelProto:
    with silence():
        from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

        class Queries(CalibrationDataReader):  # type: ignore[misc]
            """All of them at once."""

            def __init__(self) -> None:
                self.left = [queries]

            def get_next(self) -> Tensors | None:
                return self.left.pop() if self.left else None

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            quantize_static(
                model,
                path,
                Queries(),
                op_types_to_quantize=["MatMul"],
                nodes_to_quantize=core,
                per_channel=True,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                extra_options={
                    "MatMulConstBOnly": True,
                    "WeightSymmetric": True,
                    "OpTypesToExcludeOutputQuantization": ["MatMul"],
                },
            )
            return onnx.load(path)


def _store_as_int8(model: onnx.ModelProto, core: list[str]) -> None:
    """Put int8 kernels in place of float ones that lie on the grid.

    Not by DequantizeLinear: ONNX Runtime takes that before a product as permission to round the
    other factor, too.
    """
    constants = {one.name: one for one in model.graph.initializer}
    before = []
    for name in core:
        label = f"{name}_kernel"
        kernel = numpy_helper.to_array(constants[label])
        largest = np.abs(kernel).max(axis=0)
        scale = np.where(largest > 0, largest / _LARGEST_WEIGHT, 1).astype(np.float32)
        whole = np.rint(kernel / scale).astype(np.int8)
        model.graph.initializer.remove(constants[label])
        for suffix, value in (("_int8", whole), ("_scale", scale)):
            model.graph.initializer.append(numpy_helper.from_array(value, label + suffix))
        cast, steps = f"{label}_cast", f"{label}_steps"
        before += [
            helper.make_node("Cast", [f"{label}_int8"], [steps], cast, to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [steps, f"{label}_scale"], [label], label),
        ]
    for node in reversed(before):
        model.graph.node.insert(0, node)
