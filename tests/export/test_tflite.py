"""TensorFlow Lite files: what is inside, and that small machines can run it.

Their answers are tested with the runtimes, in tests/runtime.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from tensorflow.lite.python import schema_py_generated as schema

from twinedge.errors import InputError
from twinedge.runtime.interpreters import TfliteFile
from twinedge.runtime.loading import load
from twinedge_export.fold_anchors import Inputs, fold
from twinedge_export.graph import SHAPES
from twinedge_export.round_weights import with_core_on_grid
from twinedge_export.tflite_file import FLOAT_IO, LEVELS, tflite_model

ROWS = [np.arange(5), np.array([50, 3])]
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
    "SQUARED_DIFFERENCE": 1,
    "SUB": 2,
}
NAMES = {number: name for name, number in vars(schema.BuiltinOperator).items() if name.isupper()}
TYPES = {number: name for name, number in vars(schema.TensorType).items() if name.isupper()}
# How far runtimes differ (rms, of the range of an answer), as each rounds sums its own way.
APART = {"int8": 6e-3, "int8, float edges": 3e-3, "int16, float edges": 1e-4, "float32": 1e-6}
IDS = [level.replace(", ", "-").replace(" ", "-") for level in LEVELS]


@pytest.fixture(scope="module")
def model(untrained, curve):
    X, y = curve
    return untrained(X[:80], y[:80], (12, 8), "silu", twins=2)


@pytest.fixture(scope="module")
def made(model, with_intervals):
    """Every level in both shapes, without intervals and with them."""
    pack = with_intervals(model, ROWS, fill=np.array([0.5, np.nan, 2.0]))
    metadata = {"target": "Füllstand", "features": []}
    return {
        one: {
            (level, shape): tflite_model(
                model, ROWS, shape=shape, level=level, metadata=metadata, pack=one and pack
            )
            for level in LEVELS
            for shape in SHAPES
        }
        for one in (None, "with intervals")
    }


@pytest.fixture(params=[None, "with intervals"], ids=["plain", "intervals"])
def intervals(request):
    """Whether files have intervals."""
    return request.param


@pytest.fixture
def files(made, intervals):
    """Every level in both shapes."""
    return made[intervals]


def unpacked(file):
    return schema.ModelT.InitFromPackedBuf(bytearray(file), 0)


def tensors(file, *, inputs):
    """Named inputs or outputs."""
    graph = unpacked(file).subgraphs[0]
    numbers = graph.inputs if inputs else graph.outputs
    return {graph.tensors[number].name.decode(): graph.tensors[number] for number in numbers}


def operators(file):
    """Pairs of an operator's name and the tensors it reads."""
    model = unpacked(file)
    graph = model.subgraphs[0]
    for one in graph.operators:
        name = NAMES[model.operatorCodes[one.opcodeIndex].builtinCode]
        yield name, [graph.tensors[number] for number in one.inputs if number >= 0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_operators_are_those_that_old_and_small_runtimes_have(files, level, shape):
    codes = unpacked(files[level, shape]).operatorCodes
    for code in codes:
        assert code.version <= OPS[NAMES[code.builtinCode]], NAMES[code.builtinCode]
    assert {NAMES[code.builtinCode] for code in codes} <= set(OPS)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_no_two_tensors_have_the_same_name(files, level, shape):
    # Readers may identify a tensor by its name alone, like OpenVINO.
    names = [one.name for one in unpacked(files[level, shape]).subgraphs[0].tensors]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_another_reader_says_the_same(model, files, by_openvino, tmp_path, level, shape):
    rng, path = np.random.default_rng(2), tmp_path / "model.tflite"
    path.write_bytes(files[level, shape])
    low, high = model.anchor_X_.min(axis=0), model.anchor_X_.max(axis=0)
    queries = {
        name: rng.integers(-128, 128, (100, 3), np.int8)
        if level == "int8"
        else rng.uniform(low, high, (100, 3)).astype(np.float32)
        for name in SHAPES[shape].queries
    }
    expected = Interpreter(str(path)).get_signature_runner()(**queries)
    found = by_openvino(path, queries, in_floats=True)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        one, other = (some.astype(np.float64) for some in (found[name], values))
        assert np.sqrt(np.mean(np.square(one - other))) < APART[level] * np.ptp(other)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_edges_have_names_types_and_a_free_batch(files, intervals, level, shape):
    file = files[level, shape]
    kind = "INT8" if level not in FLOAT_IO else "FLOAT32"
    names = {"ensemble": ["x"], "twin": ["first", "second"]}[shape]
    outputs = {"ensemble": {"mean": [-1], "spread": [-1]}, "twin": {"difference": [-1, 2]}}[shape]
    floats = {}
    if intervals and shape == "ensemble":
        floats = {"scale": [-1], "low": [-1, 3], "high": [-1, 3]}
    elif intervals:
        outputs["difficulty"] = [-1, 2]
    found = tensors(file, inputs=True)
    assert list(found) == names
    for tensor in found.values():
        assert tensor.shapeSignature.tolist() == [-1, 3]
        assert tensor.shape.tolist() == [1, 3]
        assert TYPES[tensor.type] == kind
    found = tensors(file, inputs=False)
    assert list(found) == [*outputs, *floats]
    assert {name: one.shapeSignature.tolist() for name, one in found.items()} == outputs | floats
    assert {TYPES[found[name].type] for name in outputs} == {kind}
    assert all(TYPES[found[name].type] == "FLOAT32" for name in floats)
    (signature,) = unpacked(file).signatureDefs
    assert [one.name.decode() for one in signature.inputs] == names
    assert [one.name.decode() for one in signature.outputs] == [*outputs, *floats]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_layers_are_what_small_runtimes_are_fast_at(files, intervals, level, shape):
    # CMSIS-NN takes its fast path for convolutions of 1 x 1 without padding or stride.
    layers = [read for name, read in operators(files[level, shape]) if name == "CONV_2D"]
    assert len(layers) == 2 * (4 if intervals else 3)
    for inputs, kernel, *_ in layers:
        assert len(inputs.shape) == 4
        assert kernel.shape[1:3].tolist() == [1, 1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_int8_kernels_are_rounded_here_and_not_by_the_converter(
    model, files, intervals, with_intervals, level, shape
):
    integers = level == "int8"
    inputs = Inputs.spanned(model) if integers else Inputs.scaled(model)
    pack = with_intervals(model, ROWS) if intervals else None
    graph = SHAPES[shape](fold(model, ROWS, inputs, pack), integers=integers)
    graph = with_core_on_grid(graph, graph.calibration(model))
    content = unpacked(files[level, shape])
    found = {}
    for name, read in operators(files[level, shape]):
        if name == "CONV_2D" and TYPES[read[1].type] == "INT8":
            whole = content.buffers[read[1].buffer].data.view(np.int8).reshape(read[1].shape)
            scale = read[1].quantization.scale
            assert len(scale) == read[1].shape[0]
            assert read[1].quantization.zeroPoint.tolist() == [0] * len(scale)
            found[whole.shape] = [*found.get(whole.shape, []), whole * scale[:, None, None, None]]
    wanted = {}
    if level != "float32":
        for twin in graph.folding.twins:
            core = twin.layers[: graph.core_layers]
            if intervals and len(core) == len(twin.layers):
                core = (*core[:-1], twin.difficulty, core[-1])  # in file order
            for layer in core:
                in_units = shape == "twin" and not layer.activated
                kernel = layer.kernel.T[:, None, None] * (model.scaling_.y_scale**in_units)
                wanted[kernel.shape] = [*wanted.get(kernel.shape, []), kernel]
        if integers:
            first = (24, 1, 1, 3) if shape == "ensemble" else (12, 1, 1, 6)
            assert len(found.pop(first)) == 2
    assert {key: len(value) for key, value in found.items()} == {
        key: len(value) for key, value in wanted.items()
    }
    for key, kernels in wanted.items():
        for one, other in zip(found[key], kernels, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(other).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_metadata_say_how_to_use_the_file(files, intervals, level, shape):
    content = unpacked(files[level, shape])
    entries = {one.name: bytes(content.buffers[one.buffer].data) for one in content.metadata}
    about = json.loads(entries[b"twinedge"])
    assert about["target"] == "Füllstand"
    assert (about["shape"], about["level"], about["twins"]) == (shape, level, 2)
    assert ("anchors" in about) == (shape == "ensemble")
    assert len(about["scaling"]["centre"]) == len(about["scaling"]["unit"]) == 3
    assert ("integers" in about) == (level == "int8")
    inside = bool(intervals) and shape == "ensemble"
    assert about.get("coverages") == ([0.5, 0.9, 0.99] if inside else None)
    assert ("fill" in about) == inside
    if inside:
        first, second, third = about["fill"]
        assert second is None
        assert (first, third) == pytest.approx((0.5, 2), rel=0.01)
    assert set(entries) == {b"twinedge", b"min_runtime_version"}


@pytest.mark.parametrize("shape", SHAPES)
def test_integers_at_the_edges_cover_the_training_data(model, files, intervals, shape):
    content = unpacked(files["int8", shape])
    entries = {one.name: bytes(content.buffers[one.buffer].data) for one in content.metadata}
    integers = json.loads(entries[b"twinedge"])["integers"]
    for name in SHAPES[shape].queries:
        how = integers.pop(name)
        for edge, expected in ((model.anchor_X_.min(0), -128), (model.anchor_X_.max(0), 127)):
            whole = (edge - how["offset"]) / how["step"]
            np.testing.assert_allclose(whole, expected, atol=0.51)
    second = {"difficulty"} if intervals else set()
    assert set(integers) == ({"mean", "spread"} if shape == "ensemble" else {"difference"} | second)
    if shape == "ensemble":
        low, high = (integers["mean"]["offset"] + integers["mean"]["step"] * q for q in (-128, 127))
        graph = SHAPES[shape](fold(model, ROWS, Inputs.scaled(model)), integers=False)
        found = graph.whole(graph.calibration(model))["mean"].numpy()
        assert low < found.min() < found.max() < high
        assert high - low < 1.3 * np.ptp(found)
        assert integers["spread"]["offset"] - 128 * integers["spread"]["step"] <= 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_weights_lie_where_every_processor_can_load_them(files, level, shape):
    file = files[level, shape]
    for buffer in unpacked(file).buffers:
        if buffer.data is not None and len(buffer.data) >= 16:
            data = bytes(buffer.data)
            places = []
            place = file.find(data)
            while place >= 0:
                places.append(place)
                place = file.find(data, place + 1)
            assert any(place % 16 == 0 for place in places)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_intervals_do_not_change_what_was_there_before(model, made, tmp_path, level, shape):
    rng = np.random.default_rng(1)
    points = rng.uniform(model.anchor_X_.min(axis=0), model.anchor_X_.max(axis=0), (2, 200, 3))
    queries = zip(SHAPES[shape].queries, points.astype(np.float32), strict=False)
    queries, answers = dict(queries), []
    for files in made.values():
        path = tmp_path / "model.tflite"
        path.write_bytes(files[level, shape])
        answers.append(TfliteFile(path).run(queries))
    without, found = answers
    for name, expected in without.items():
        np.testing.assert_array_equal(found[name], expected)


def test_a_pack_without_intervals_changes_nothing(model, made, with_intervals):
    pack = replace(with_intervals(model, ROWS), intervals=None)
    metadata = {"target": "Füllstand", "features": []}
    for shape in SHAPES:
        assert (
            tflite_model(model, ROWS, shape=shape, metadata=metadata, pack=pack)
            == (made[None]["int8", shape])
        )


@pytest.mark.parametrize("difficulty", [0, -1], ids=["silent", "negative"])
def test_a_second_output_may_have_nothing_to_say(
    untrained, with_intervals, curve, tmp_path, difficulty
):
    model = untrained(*curve, (5,), "relu")
    pack = with_intervals(model, [[0, 1]])
    model.difficulty_[:], model.difficulty_[:, -1] = 0, difficulty
    path, scales = tmp_path / "model.tflite", []
    for level in ("int8", "float32"):
        path.write_bytes(tflite_model(model, [[0, 1]], level=level, pack=pack))
        scales.append(load(path).predict(curve[0], return_std=True)[1])
    np.testing.assert_allclose(*scales, atol=0.03 * curve[1].std())


def test_the_same_model_gives_the_same_bytes_and_no_chatter(untrained, curve, capfd):
    model = untrained(*curve, (4, 3), "relu")
    capfd.readouterr()
    one, other = (tflite_model(model, [[1, 2]]) for _ in range(2))
    assert one == other
    assert capfd.readouterr() == ("", "")
    # A relu is fused into the operator before it.
    assert [name for name, _ in operators(one)][:5] == [
        "RESHAPE",
        "CONV_2D",
        "RESHAPE",
        "ADD",
        "CONV_2D",
    ]


def test_what_cannot_be_made_is_refused(untrained, curve, complaint):
    model = untrained(*curve)
    assert "int4" in complaint(tflite_model, model, [[0]], level="int4")
    assert "pair" in complaint(tflite_model, model, [[0]], shape="pair")
    near = untrained(*curve, pairs="neighbors", neighbors=2)
    assert "nearest anchors" in complaint(tflite_model, near, [[0, 1, 2]])
    assert tflite_model(near, [[0, 1, 2]], shape="twin", level="float32")
    with pytest.raises(InputError, match="rows 0 to 119"):
        tflite_model(model, [[120]])
