"""What is inside a TensorFlow Lite file, and that small machines can run it."""

import json

import numpy as np
import pytest
from tensorflow.lite.python import schema_py_generated as schema

from twinedge_export.fold_anchors import Inputs, fold
from twinedge_export.graph import SHAPES
from twinedge_export.round_weights import with_core_on_grid
from twinedge_export.tflite_file import LEVELS, tflite_model

# With the newest version in tflite-runtime 2.14; TensorFlow Lite Micro has all of them.
OPS = {
    "ADD": 2,
    "CONCATENATION": 2,
    "CONV_2D": 5,
    "DEQUANTIZE": 3,
    "LOGISTIC": 3,
    "MAXIMUM": 1,
    "MEAN": 2,
    "MINIMUM": 1,
    "MUL": 4,
    "QUANTIZE": 2,
    "RESHAPE": 1,
    "SQRT": 1,
    "SUB": 2,
}
NAMES = {number: name for name, number in vars(schema.BuiltinOperator).items() if name.isupper()}
TYPES = {number: name for name, number in vars(schema.TensorType).items() if name.isupper()}
CASES = [
    pytest.param(
        *(level, shape, intervals),
        marks=[] if intervals and level == "int8" else pytest.mark.slow,
    )
    for level in LEVELS
    for shape in SHAPES
    for intervals in (True, False)
]
every_file = pytest.mark.parametrize(("level", "shape", "intervals"), CASES)


def unpacked(file):
    return schema.ModelT.InitFromPackedBuf(bytearray(file), 0)


def operators(file):
    """Pairs of an operator's name and the tensors it reads."""
    model = unpacked(file)
    graph = model.subgraphs[0]
    for one in graph.operators:
        name = NAMES[model.operatorCodes[one.opcodeIndex].builtinCode]
        yield name, [graph.tensors[number] for number in one.inputs if number >= 0]


@every_file
def test_old_and_small_runtimes_can_run_it_and_are_fast(converted, level, shape, intervals):
    file = converted("tflite", level, shape, intervals=intervals)
    model = unpacked(file)
    for code in model.operatorCodes:
        assert code.version <= OPS[NAMES[code.builtinCode]], NAMES[code.builtinCode]
    # Readers may identify a tensor by its name alone, like OpenVINO.
    names = [one.name for one in model.subgraphs[0].tensors]
    assert len(set(names)) == len(names)
    # CMSIS-NN takes its fast path for convolutions of 1 x 1 without padding or stride.
    layers = [read for name, read in operators(file) if name == "CONV_2D"]
    assert len(layers) == 2 * (4 if intervals else 3)
    for inputs, kernel, *_ in layers:
        assert len(inputs.shape) == 4
        assert kernel.shape[1:3].tolist() == [1, 1]
    # Every processor can load weights that are aligned.
    for buffer in model.buffers:
        if buffer.data is not None and len(buffer.data) >= 16:
            places, data = [file.find(bytes(buffer.data))], bytes(buffer.data)
            while places[-1] >= 0:
                places.append(file.find(data, places[-1] + 1))
            assert any(place % 16 == 0 for place in places[:-1])


@every_file
def test_int8_kernels_are_rounded_here_and_not_by_the_converter(
    convertible, converted, with_intervals, level, shape, intervals
):
    integers, rows = level == "int8", [np.arange(5), np.array([50, 3])]
    convertible = convertible["tflite"]
    inputs = Inputs.spanned(convertible) if integers else Inputs.scaled(convertible)
    pack = with_intervals(convertible, rows) if intervals else None
    graph = SHAPES[shape](fold(convertible, rows, inputs, pack), integers=integers)
    graph = with_core_on_grid(graph, graph.calibration(convertible))
    file = converted("tflite", level, shape, intervals=intervals)
    content, found = unpacked(file), {}
    for name, read in operators(file):
        if name == "CONV_2D" and TYPES[read[1].type] == "INT8":
            whole = content.buffers[read[1].buffer].data.view(np.int8).reshape(read[1].shape)
            scale = read[1].quantization.scale
            assert len(scale) == read[1].shape[0]
            assert read[1].quantization.zeroPoint.tolist() == [0] * len(scale)
            found.setdefault(whole.shape, []).append(whole * scale[:, None, None, None])
    wanted = {}
    if level != "float32":
        for twin in graph.folding.twins:
            core = twin.layers[: graph.core_layers]
            if intervals and len(core) == len(twin.layers):
                core = (*core[:-1], twin.difficulty, core[-1])  # in file order
            for layer in core:
                in_units = shape == "twin" and not layer.activated
                kernel = layer.kernel.T[:, None, None] * (convertible.scaling_.y_scale**in_units)
                wanted.setdefault(kernel.shape, []).append(kernel)
        if integers:
            first = (24, 1, 1, 3) if shape == "ensemble" else (12, 1, 1, 6)
            assert len(found.pop(first)) == 2
    assert {key: len(some) for key, some in found.items()} == {
        key: len(some) for key, some in wanted.items()
    }
    for key, kernels in wanted.items():
        for one, other in zip(found[key], kernels, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(other).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_integers_at_the_edges_cover_the_training_data(convertible, converted, shape):
    content = unpacked(converted("tflite", "int8", shape))
    entries = {one.name: bytes(content.buffers[one.buffer].data) for one in content.metadata}
    integers = json.loads(entries[b"twinedge"])["integers"]
    convertible = convertible["tflite"]
    X = convertible.anchor_X_
    for name in SHAPES[shape].queries:
        how = integers.pop(name)
        for edge, expected in ((X.min(0), -128), (X.max(0), 127)):
            whole = (edge - how["offset"]) / how["step"]
            np.testing.assert_allclose(whole, expected, atol=0.51)
    if shape == "twin":
        assert set(integers) == {"difference", "difficulty"}
        return
    assert set(integers) == {"mean", "spread"}
    low, high = (integers["mean"]["offset"] + integers["mean"]["step"] * q for q in (-128, 127))
    rows = [np.arange(5), np.array([50, 3])]
    graph = SHAPES[shape](fold(convertible, rows, Inputs.scaled(convertible)), integers=False)
    found = graph.whole(graph.calibration(convertible))["mean"].numpy()
    assert low < found.min() < found.max() < high
    assert high - low < 1.3 * np.ptp(found)
    assert integers["spread"]["offset"] - 128 * integers["spread"]["step"] <= 0


def test_a_relu_is_fused_into_the_operator_before_it(untrained, curve):
    model = untrained(*curve, (4, 3), "relu")
    names = [name for name, _ in operators(tflite_model(model, [[1, 2]]))]
    assert names[:5] == ["RESHAPE", "CONV_2D", "RESHAPE", "ADD", "CONV_2D"]
