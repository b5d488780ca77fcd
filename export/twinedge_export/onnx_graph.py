"""A folded model as an ONNX graph of floats, in the user's units."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from twinedge.pack.contents import Array
from twinedge_export.folding import Dense, Folding

# Old enough for runtimes of 2022, new enough for one scale per output.
OPSET, IR_VERSION = 17, 8
BATCH = "n"


class OnnxGraph:
    """Nodes and constants of a graph on its way.

    Parameters
    ----------
    folding : Folding
        The model; its inputs are those the networks were trained on.
    core_layers : int
        How many layers behind the first are to be rounded; ``core`` names their products.
    """

    def __init__(self, folding: Folding, core_layers: int) -> None:
        self.folding = folding
        self.core: list[str] = []
        self._core_layers = core_layers
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def ensemble(self) -> onnx.ModelProto:
        """``x`` ``(n, f)`` to ``mean`` and ``spread`` ``(n,)``, in units of the target."""
        x = self._brought("x")
        sign = self._constant("sign", np.array([1.0, -1.0]).reshape(1, 2, 1))
        estimates = []
        for number, twin in enumerate(self.folding.twins):
            name = f"twin{number}"
            width = len(twin.first.bias)
            mine = self._node("MatMul", x, self._constant(f"{name}_halves", twin.halves))
            mine = self._shaped(mine, (-1, 2, 1, width))
            # Every query against all anchors, in both orders.
            sums = self._node("Add", mine, self._constant(f"{name}_anchors", twin.offsets[None]))
            output = self._layers(self._activated(sums), name, twin.layers)
            both = self._shaped(output, (-1, 2, len(twin.targets)))
            # The mean of F(x, a) and -F(a, x).
            half = self._mean(self._node("Mul", both, sign), keepdims=0)
            targets = self._constant(f"{name}_targets", twin.targets[None])
            estimates.append(self._node("Add", half, targets))
        joined = self._node("Concat", *estimates, axis=1) if len(estimates) > 1 else estimates[0]
        mean = self._mean(joined, keepdims=1)
        off = self._node("Sub", joined, mean)
        square = self._mean(self._node("Mul", off, off), keepdims=0)
        # Last, so that nothing before depends on the units of the target.
        unit = self._constant("y_scale", np.array(self.folding.y_scale))
        offset = self._constant("y_mean", np.array(self.folding.y_mean))
        scaled = self._node("Mul", self._shaped(mean, (-1,)), unit)
        self._node("Add", scaled, offset, output="mean")
        self._node("Mul", self._node("Sqrt", square), unit, output="spread")
        return self._model(["x"], {"mean": [BATCH], "spread": [BATCH]})

    def twin(self) -> onnx.ModelProto:
        """``first`` and ``second`` ``(n, f)`` to ``difference`` ``(n, twins)``, in one order."""
        names = ["first", "second"]
        pair = self._node("Concat", *(self._brought(name) for name in names), axis=1)
        outputs = []
        for number, twin in enumerate(self.folding.twins):
            name = f"twin{number}"
            hidden = self._dense(pair, f"{name}_first", twin.first)
            outputs.append(self._layers(hidden, name, twin.layers))
        joined = self._node("Concat", *outputs, axis=1)
        unit = self._constant("y_scale", np.array(self.folding.y_scale))
        self._node("Mul", joined, unit, output="difference")
        return self._model(names, {"difference": [BATCH, len(outputs)]})

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

    def _layers(self, h: str, name: str, layers: tuple[Dense, ...]) -> str:
        for number, layer in enumerate(layers):
            label = f"{name}_layer{number + 1}"
            if number < self._core_layers:
                self.core.append(label)
            h = self._dense(h, label, layer)
        return h

    def _dense(self, h: str, name: str, layer: Dense) -> str:
        product = self._node("MatMul", h, self._constant(f"{name}_kernel", layer.kernel), name=name)
        z = self._node("Add", product, self._constant(f"{name}_bias", layer.bias))
        return self._activated(z) if layer.activated else z

    def _activated(self, z: str) -> str:
        if self.folding.activation == "relu":
            return self._node("Relu", z)
        return self._node("Mul", z, self._node("Sigmoid", z))

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
