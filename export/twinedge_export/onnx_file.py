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
from twinedge.silence import silence
from twinedge_export.fold_anchors import Inputs, behind_map, fold
from twinedge_export.graph import SHAPES, Graph, Tensors, check, describe
from twinedge_export.round_weights import _LARGEST_WEIGHT, with_core_on_grid

# Old enough for runtimes of 2022, new enough for one scale per output.
OPSET, IR_VERSION = 17, 8
BATCH = "n"


class _Value:
    """A value of a graph under construction, with the arithmetic of a tensor."""

    def __init__(self, name: str, nodes: "_Nodes") -> None:
        self.name = name
        self._nodes = nodes

    def __add__(self, other: "_Value | Array") -> "_Value":
        return self._nodes.add("Add", self, other)

    def __sub__(self, other: "_Value | Array") -> "_Value":
        return self._nodes.add("Sub", self, other)

    def __mul__(self, other: "_Value | Array") -> "_Value":
        return self._nodes.add("Mul", self, other)


class _Nodes:
    """Nodes and constants of a graph under construction, by functions like TensorFlow's.

    ``products`` names the nodes that multiply by a kernel, in order.
    """

    def __init__(self) -> None:
        self.nn = self
        self.products: list[str] = []
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[bytes, onnx.TensorProto] = {}

    def conv2d(self, x: _Value, kernel: Array, stride: int, padding: str) -> _Value:
        """Multiply by a kernel ``(1, 1, i, outputs)``."""
        del stride, padding  # one, and none
        name = f"layer{len(self.products)}"
        self.products.append(name)
        label = _kernel_of(name)
        self._constants[label.encode()] = numpy_helper.from_array(kernel[0, 0], label)
        return self.add("MatMul", x, _Value(label, self), name=name)

    def relu(self, x: _Value) -> _Value:
        return self.add("Relu", x)

    def silu(self, x: _Value) -> _Value:
        return x * self.add("Sigmoid", x)

    def reshape(self, x: _Value, shape: tuple[int, ...]) -> _Value:
        return self.add("Reshape", x, np.array(shape, np.int64))

    def concat(self, some: list[_Value], axis: int) -> _Value:
        return self.add("Concat", *some, axis=axis) if len(some) > 1 else some[0]

    def reduce_mean(self, x: _Value, axis: int, *, keepdims: bool = False) -> _Value:
        return self.add("ReduceMean", x, axes=[axis], keepdims=int(keepdims))

    def sqrt(self, x: _Value) -> _Value:
        return self.add("Sqrt", x)

    def exp(self, x: _Value) -> _Value:
        return self.add("Exp", x)

    def clip_by_value(self, x: _Value, low: float, high: float) -> _Value:
        return self.add("Clip", x, np.array(low, np.float32), np.array(high, np.float32))

    def add(self, op: str, *inputs: _Value | Array, name: str = "", **attributes: Any) -> _Value:
        """Add a node; arrays among its inputs become constants of the file."""
        name = name or f"{op.lower()}{len(self._nodes)}"
        names = [one.name if isinstance(one, _Value) else self._constant(one) for one in inputs]
        output = f"{name}_out"
        self._nodes.append(helper.make_node(op, names, [output], name, **attributes))
        return _Value(output, self)

    def _constant(self, value: Array) -> str:
        key = b"%s %s " % (str(value.dtype).encode(), str(value.shape).encode()) + value.tobytes()
        if key not in self._constants:
            name = f"constant{len(self._constants)}"
            self._constants[key] = numpy_helper.from_array(value, name)
        return self._constants[key].name

    def model(self, graph: Graph, outputs: dict[str, _Value]) -> onnx.ModelProto:
        """Complete the file, with these outputs."""
        shapes = {name: [BATCH, *graph.shape_of(name)] for name in outputs}
        renamed = {value.name: name for name, value in outputs.items()}
        for node in self._nodes:
            for ends in (node.input, node.output):
                ends[:] = [renamed.get(name, name) for name in ends]

        def value(name: str, shape: list[Any]) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        made = helper.make_graph(
            self._nodes,
            "twinedge",
            [value(name, [BATCH, graph.folding.features]) for name in graph.queries],
            [value(name, shape) for name, shape in shapes.items()],
            list(self._constants.values()),
        )
        return helper.make_model(
            made,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="twinedge",
        )


def _kernel_of(product: str) -> str:
    """Name of the constant that a product multiplies by."""
    return f"{product}_kernel"


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
    if shape == "twin":
        model = behind_map(model)
    graph = SHAPES[shape](fold(model, rows, Inputs.scaled(model), pack), integers=False)
    queries = graph.calibration(model)
    if level != "float32":
        graph = with_core_on_grid(graph, queries)
    nodes = _Nodes()
    graph = type(graph)(graph.folding, integers=False, ops=nodes)
    hidden = graph.head({name: _Value(name, nodes) for name in graph.queries})
    before = len(nodes.products)
    outputs = graph.core(hidden)
    core = nodes.products[before:]
    made = nodes.model(graph, graph.tail(outputs))
    if level == "int8":
        made = _quantised(made, core, queries)
    elif level == "int8 weights":
        _store_as_int8(made, core)
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
        label = _kernel_of(name)
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
