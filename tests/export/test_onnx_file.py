"""ONNX files: what is inside. Their answers are tested with the runtime, in tests/runtime."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from twinedge.runtime.interpreters import OnnxFile
from twinedge.runtime.loading import load
from twinedge_export.graph import SHAPES
from twinedge_export.onnx_file import LEVELS, onnx_model

ROWS = [np.arange(5), np.array([50, 3])]
OPS = {
    "Add",
    "Cast",
    "Clip",
    "Concat",
    "DequantizeLinear",
    "MatMul",
    "Mul",
    "QuantizeLinear",
    "ReduceMean",
    "Relu",
    "Reshape",
    "Sigmoid",
    "Sqrt",
    "Sub",
}
IDS = [level.replace(" ", "-") for level in LEVELS]


@pytest.fixture(scope="module", params=["relu", "silu"])
def model(request, untrained, curve):
    X, y = curve
    return untrained(X[:80], y[:80], (12, 8, 6), request.param, twins=2)


@pytest.fixture(scope="module")
def made(model, with_intervals):
    """Every level in both shapes, without intervals and with them."""
    pack = with_intervals(model, ROWS, fill=np.array([0.5, np.nan, 2.0]))
    metadata = {"target": "Füllstand", "features": []}
    return {
        one: {
            (level, shape): onnx_model(
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
    return {key: onnx.load_from_string(file) for key, file in made[intervals].items()}


def kernels(file):
    """Initialisers that are matrices of layers after the first, by type."""
    found = {}
    for one in file.graph.initializer:
        value = numpy_helper.to_array(one)
        if value.shape in ((12, 8), (8, 6)):
            found.setdefault(value.dtype.name, []).append(value)
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_a_file_is_valid_and_of_a_fixed_opset(files, level, shape):
    file = files[level, shape]
    onnx.checker.check_model(file, full_check=True)
    assert [(one.domain, one.version) for one in file.opset_import] == [("", 17)]
    assert file.ir_version == 8
    assert {node.op_type for node in file.graph.node} <= OPS


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_edges_have_names_types_and_a_free_batch(files, intervals, level, shape):
    def edges(values):
        return {
            one.name: [size.dim_param or size.dim_value for size in one.type.tensor_type.shape.dim]
            for one in values
            if one.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        }

    graph = files[level, shape].graph
    if shape == "ensemble":
        assert edges(graph.input) == {"x": ["n", 3]}
        expected = {"mean": ["n"], "spread": ["n"]}
        further = {"scale": ["n"], "low": ["n", 3], "high": ["n", 3]}
    else:
        assert edges(graph.input) == {"first": ["n", 3], "second": ["n", 3]}
        expected, further = {"difference": ["n", 2]}, {"difficulty": ["n", 2]}
    expected |= further if intervals else {}
    assert edges(graph.output) == expected
    assert list(edges(graph.output)) == list(expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_another_reader_says_the_same(model, made, intervals, by_openvino, tmp_path, level, shape):
    rng, path = np.random.default_rng(2), tmp_path / "model.onnx"
    path.write_bytes(made[intervals][level, shape])
    low, high = model.anchor_X_.min(axis=0), model.anchor_X_.max(axis=0)
    queries = {
        name: rng.uniform(low, high, (100, 3)).astype(np.float32) for name in SHAPES[shape].queries
    }
    found = by_openvino(path, queries)
    for name, values in OnnxFile(path).run(queries).items():
        apart = np.sqrt(np.mean(np.square(found[name] - values))) / np.ptp(values)
        # A different summation order can turn an integer at a tie into its neighbor.
        assert apart < (1e-3 if level == "int8" else 2e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_behind_the_first_layer_are_int8_with_a_scale_for_each_output(files, shape):
    file = files["int8", shape]
    assert {kind: len(found) for kind, found in kernels(file).items()} == {"int8": 4}
    constants = {one.name: numpy_helper.to_array(one) for one in file.graph.initializer}
    scales = [
        constants[node.input[1]]
        for node in file.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in constants
    ]
    assert sorted(len(scale) for scale in scales) == [6, 6, 8, 8]
    # The inputs of those layers, and nothing else.
    rounded = [node for node in file.graph.node if node.op_type == "QuantizeLinear"]
    assert len(rounded) == 4


@pytest.mark.parametrize("shape", SHAPES)
def test_both_int8_levels_have_the_same_kernels(files, shape):
    one, other = (kernels(files[level, shape])["int8"] for level in ("int8", "int8 weights"))
    for kernel in one:
        assert np.abs(kernel).max(axis=0).tolist() == [127] * kernel.shape[1]
        assert any(np.array_equal(kernel, same) for same in other)
    assert "float32" not in kernels(files["int8 weights", shape])
    assert "int8" not in kernels(files["float32", shape])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_metadata_say_how_to_use_the_file(files, intervals, level, shape):
    file = files[level, shape]
    entries = {one.key: one.value for one in file.metadata_props}
    assert list(entries) == ["twinedge", "crc32"]
    about = json.loads(entries["twinedge"])
    assert about["target"] == "Füllstand"
    assert (about["shape"], about["level"], about["twins"]) == (shape, level, 2)
    assert ("anchors" in about) == (shape == "ensemble")
    inside = bool(intervals) and shape == "ensemble"
    assert about.get("coverages") == ([0.5, 0.9, 0.99] if inside else None)
    assert ("fill" in about) == inside
    assert shape in file.doc_string
    assert level in file.doc_string


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_intervals_do_not_change_what_was_there_before(model, made, tmp_path, level, shape):
    rng = np.random.default_rng(1)
    points = rng.uniform(model.anchor_X_.min(axis=0), model.anchor_X_.max(axis=0), (2, 200, 3))
    queries = zip(SHAPES[shape].queries, points.astype(np.float32), strict=False)
    queries, answers = dict(queries), []
    for files in made.values():
        path = tmp_path / "model.onnx"
        path.write_bytes(files[level, shape])
        answers.append(OnnxFile(path).run(queries))
    without, found = answers
    for name, expected in without.items():
        np.testing.assert_array_equal(found[name], expected)


def test_a_pack_without_intervals_changes_nothing(model, made, with_intervals):
    pack = replace(with_intervals(model, ROWS), intervals=None)
    metadata = {"target": "Füllstand", "features": []}
    for key, file in made[None].items():
        settings = dict(zip(("level", "shape"), key, strict=True), metadata=metadata, pack=pack)
        assert onnx_model(model, ROWS, **settings) == file


@pytest.mark.parametrize("difficulty", [0, -1], ids=["silent", "negative"])
def test_a_second_output_may_have_nothing_to_say(
    untrained, with_intervals, curve, tmp_path, difficulty
):
    model = untrained(*curve, (5,), "relu")
    pack = with_intervals(model, [[0, 1]])
    model.difficulty_[:], model.difficulty_[:, -1] = 0, difficulty
    path, scales = tmp_path / "model.onnx", []
    for level in LEVELS:
        path.write_bytes(onnx_model(model, [[0, 1]], level=level, pack=pack))
        scales.append(load(path).predict(curve[0], return_std=True)[1])
    for scale in scales[:-1]:
        np.testing.assert_allclose(scale, scales[-1], atol=0.03 * curve[1].std())


def test_the_same_model_gives_the_same_bytes_and_no_chatter(untrained, curve, capfd):
    model = untrained(*curve, (4, 3), "silu")
    capfd.readouterr()
    for level in LEVELS:
        one, other = (onnx_model(model, [[1, 2]], level=level) for _ in range(2))
        assert one == other
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_made_is_refused(untrained, curve, complaint):
    model = untrained(*curve)
    assert "int4" in complaint(onnx_model, model, [[0]], level="int4")
    assert "pair" in complaint(onnx_model, model, [[0]], shape="pair")
    near = untrained(*curve, pairs="neighbors", neighbors=2)
    assert "nearest anchors" in complaint(onnx_model, near, [[0, 1, 2]])
    assert onnx_model(near, [[0, 1, 2]], shape="twin", level="float32")
    assert "rows 0 to 119" in complaint(onnx_model, model, [[120]])
