"""ONNX files. All take and give floats in the user's units; between them, kernels are int8.

``int8`` is made by ``onnxruntime.quantization``: of each layer between the first and the output,
the input and, with a scale for each output, the kernel are int8, and the sums stay as they are.
Where the 8 bits of an input are too few, ``int8 weights`` has the same kernels and computes with
floats.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.sealing import seal
from twinedge.runtime.silence import silence
from twinedge_export.describing import check, describe
from twinedge_export.folding import Inputs, fold
from twinedge_export.graph import SHAPES, Tensors
from twinedge_export.grid import LARGEST, with_core_on_grid
from twinedge_export.onnx_graph import OnnxGraph

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
    """Make an ONNX file; its batch is free.

    Parameters, names of inputs and outputs, and errors are those of ``tflite_model``, but all
    levels take and give floats; ``level`` is one of ``LEVELS`` of this module.
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
    """One more entry of the metadata, whose value, the checksum, comes last."""
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

    Not by DequantizeLinear: before a product ONNX Runtime takes that as leave to round the other
    factor, too.
    """
    constants = {one.name: one for one in model.graph.initializer}
    before = []
    for name in core:
        label = f"{name}_kernel"
        kernel = numpy_helper.to_array(constants[label])
        largest = np.abs(kernel).max(axis=0)
        scale = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
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
