"""ONNX and TensorFlow Lite files alike: what they say of themselves, and files of unusual models.

Their answers are tested with the runtimes, in tests/runtime.
"""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from ai_edge_litert.interpreter import Interpreter
from tensorflow.lite.python import schema_py_generated as schema

from twinedge.runtime.interpreters import OnnxFile, TfliteFile
from twinedge.runtime.loading import load
from twinedge_export import onnx_file, tflite_file
from twinedge_export.graph import SHAPES

MAKE = {"tflite": tflite_file.tflite_model, "onnx": onnx_file.onnx_model}
LEVELS = {"tflite": tflite_file.LEVELS, "onnx": onnx_file.LEVELS}
QUICK = {"tflite": ("int8",), "onnx": ("int8", "int8 weights")}
CASES = [
    pytest.param(
        *(form, level, shape, intervals),
        marks=[]
        if intervals and ((level in QUICK[form] and shape == "ensemble") or level == "int8")
        else pytest.mark.slow,
        id=f"{form}-{level}-{shape}".replace(", ", "-").replace(" ", "-")
        + "-plain" * (not intervals),
    )
    for form, levels in LEVELS.items()
    for level in levels
    for shape in SHAPES
    for intervals in (True, False)
]
every_file = pytest.mark.parametrize(("form", "level", "shape", "intervals"), CASES)
# How far runtimes differ (rms, of the range of an answer), as each rounds sums its own way.
APART = {
    ("tflite", "int8"): 6e-3,
    ("tflite", "int8, float edges"): 3e-3,
    ("tflite", "int16, float edges"): 1e-4,
    ("tflite", "float32"): 1e-6,
    ("onnx", "int8"): 1e-3,  # a different summation order can turn a tie into its neighbor
    ("onnx", "int8 weights"): 2e-6,
    ("onnx", "float32"): 2e-6,
}
TYPES = {number: name for name, number in vars(schema.TensorType).items() if name.isupper()}


def ends(form, file):
    """Inputs and outputs, in order: their types and the shapes of any batch."""
    if form == "onnx":
        graph = onnx.load_from_string(file).graph
        return [
            {
                one.name: (
                    {onnx.TensorProto.FLOAT: "FLOAT32"}[one.type.tensor_type.elem_type],
                    [size.dim_value or -1 for size in one.type.tensor_type.shape.dim],
                )
                for one in some
            }
            for some in (graph.input, graph.output)
        ]
    model = schema.ModelT.InitFromPackedBuf(bytearray(file), 0)
    graph, (signature,) = model.subgraphs[0], model.signatureDefs
    found = []
    for numbers, named in ((graph.inputs, signature.inputs), (graph.outputs, signature.outputs)):
        tensors = [graph.tensors[number] for number in numbers]
        assert [one.name for one in named] == [one.name for one in tensors]
        found.append(
            {one.name.decode(): (TYPES[one.type], one.shapeSignature.tolist()) for one in tensors}
        )
    return found


def metadata(form, file):
    if form == "onnx":
        entries = {one.key: one.value for one in onnx.load_from_string(file).metadata_props}
        assert list(entries) == ["twinedge", "crc32"]
        return json.loads(entries["twinedge"])
    model = schema.ModelT.InitFromPackedBuf(bytearray(file), 0)
    entries = {one.name: bytes(model.buffers[one.buffer].data) for one in model.metadata}
    assert set(entries) == {b"twinedge", b"min_runtime_version"}
    return json.loads(entries[b"twinedge"])


@every_file
def test_a_file_says_what_it_takes_and_returns(converted, form, level, shape, intervals):
    file = converted(form, level, shape, intervals=intervals)
    whole = (form, level) == ("tflite", "int8")
    kind = "INT8" if whole else "FLOAT32"
    inputs, outputs = ends(form, file)
    assert inputs == {name: (kind, [-1, 3]) for name in SHAPES[shape].queries}
    expected = {"difference": (kind, [-1, 2])}
    if shape == "ensemble":
        expected = {"mean": (kind, [-1]), "spread": (kind, [-1])}
    if intervals:
        bounds = {"scale": [-1], "low": [-1, 3], "high": [-1, 3]}
        floats = {name: ("FLOAT32", size) for name, size in bounds.items()}
        expected |= floats if shape == "ensemble" else {"difficulty": (kind, [-1, 2])}
    assert list(outputs.items()) == list(expected.items())
    about = metadata(form, file)
    assert about["target"] == "Füllstand"
    assert (about["shape"], about["level"], about["twins"]) == (shape, level, 2)
    assert len(about["scaling"]["centre"]) == len(about["scaling"]["unit"]) == 3
    assert ("anchors" in about) == (shape == "ensemble")
    assert ("integers" in about) == whole
    inside = intervals and shape == "ensemble"
    assert about.get("coverages") == ([0.5, 0.9, 0.99] if inside else None)
    assert ("fill" in about) == inside
    if inside:
        first, second, third = about["fill"]
        assert second is None
        assert (first, third) == pytest.approx((0.5, 2), rel=0.01)


@every_file
def test_another_reader_gives_the_same(
    converted, convertible, by_openvino, tmp_path, form, level, shape, intervals
):
    rng, path = np.random.default_rng(2), tmp_path / f"model.{form}"
    path.write_bytes(converted(form, level, shape, intervals=intervals))
    X = convertible[form].anchor_X_
    queries = {
        name: rng.integers(-128, 128, (100, 3), np.int8)
        if (form, level) == ("tflite", "int8")
        else rng.uniform(X.min(axis=0), X.max(axis=0), (100, 3)).astype(np.float32)
        for name in SHAPES[shape].queries
    }
    if form == "onnx":
        expected = OnnxFile(path).run(queries)
    else:
        expected = Interpreter(str(path)).get_signature_runner()(**queries)
    found = by_openvino(path, queries, in_floats=form == "tflite")
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        one, other = (some.astype(np.float64) for some in (found[name], values))
        assert np.sqrt(np.mean(np.square(one - other))) < APART[form, level] * np.ptp(other)


@pytest.mark.parametrize(
    ("form", "level", "shape"),
    [
        pytest.param(
            *(form, level, shape),
            marks=[] if (form, level) == ("onnx", "int8") else pytest.mark.slow,
        )
        for form, levels in LEVELS.items()
        for level in levels
        for shape in SHAPES
    ],
)
def test_intervals_do_not_change_the_rest(converted, convertible, tmp_path, form, level, shape):
    rng, reader = np.random.default_rng(1), {"onnx": OnnxFile, "tflite": TfliteFile}[form]
    X = convertible[form].anchor_X_
    points = rng.uniform(X.min(axis=0), X.max(axis=0), (2, 200, 3)).astype(np.float32)
    queries = dict(zip(SHAPES[shape].queries, points, strict=False))
    answers = []
    for intervals in (False, True):
        path = tmp_path / f"model.{form}"
        path.write_bytes(converted(form, level, shape, intervals=intervals))
        answers.append(reader(path).run(queries))
    without, found = answers
    for name, expected in without.items():
        np.testing.assert_array_equal(found[name], expected)


def test_a_pack_without_intervals_changes_nothing(untrained, with_intervals, curve):
    model = untrained(*curve, (5,), "relu")
    pack = replace(with_intervals(model, [[0, 1]]), intervals=None, domain=None)
    for shape in SHAPES:
        files = [MAKE["onnx"](model, [[0, 1]], shape=shape, pack=one) for one in (pack, None)]
        assert files[0] == files[1]


@pytest.mark.parametrize("difficulty", [0, pytest.param(-1, marks=pytest.mark.slow)])
def test_a_second_output_may_be_constant(untrained, with_intervals, curve, tmp_path, difficulty):
    model = untrained(*curve, (5,), "relu")
    pack = with_intervals(model, [[0, 1]])
    model.difficulty_[:], model.difficulty_[:, -1] = 0, difficulty
    scales = []
    for form, level in (("tflite", "int8"), *(("onnx", level) for level in LEVELS["onnx"])):
        path = tmp_path / f"model.{form}"
        path.write_bytes(MAKE[form](model, [[0, 1]], level=level, pack=pack))
        scales.append(load(path).predict(curve[0], return_std=True)[1])
    for scale in scales[:-1]:
        np.testing.assert_allclose(scale, scales[-1], atol=0.03 * curve[1].std())


@pytest.mark.parametrize("form", [pytest.param("tflite", marks=pytest.mark.slow), "onnx"])
def test_the_same_model_gives_the_same_bytes_and_no_chatter(untrained, curve, capfd, form):
    model = untrained(*curve, (4, 3), "relu")
    capfd.readouterr()
    one, other = (MAKE[form](model, [[1, 2]], level="int8") for _ in range(2))
    assert one == other
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("form", MAKE)
def test_what_cannot_be_made_is_refused(untrained, curve, complaint, form):
    make, model = MAKE[form], untrained(*curve)
    assert "int4" in complaint(make, model, [[0]], level="int4")
    assert "pair" in complaint(make, model, [[0]], shape="pair")
    near = untrained(*curve, pairs="neighbors", neighbors=2)
    assert "nearest anchors" in complaint(make, near, [[0, 1, 2]])
    assert make(near, [[0, 1, 2]], shape="twin", level="float32")
    assert "rows 0 to 119" in complaint(make, model, [[120]])


def dead_and_tiny_neurons(make, X, y):
    model = make(X, y)
    for kernel, bias in model.architecture_.parts(model.weights_[0])[:2]:
        kernel[:, 2], bias[2] = 0, 0.7
        kernel[:, 5], bias[5] = 1e-30, -3
        kernel[:, 7], bias[7] = 1e-7, 0
    return model


def many_features(make, X, y):
    X = np.random.default_rng(0).normal(size=(400, 40))
    return make(X, X[:, 0] + np.sin(X[:, 1]))


def wild_values(make, X, y):
    """A long table, where the network sees values no further than a limit."""
    X = np.random.default_rng(0).normal(size=(5000, 3))
    X[:2] = [[1e5, 0, 0], [0, -1e4, 1e3]]
    model = make(X, X[:, 0].clip(-3, 3) + np.sin(X[:, 1]))
    assert model.scaling_.limit < 10
    return model


UNUSUAL = {
    "target of 1e-20": lambda make, X, y: make(X, 1e-20 * y),
    "target of 1e20": lambda make, X, y: make(X, 1e20 * y),
    "features of 1e-9": lambda make, X, y: make(1e-9 * X, y),
    "features of 1e9": lambda make, X, y: make(1e9 * X, y),
    "target far from zero": lambda make, X, y: make(X, 1e4 * y.std() + y),
    "dead and tiny neurons": dead_and_tiny_neurons,
    "one neuron": lambda make, X, y: make(X, y, (1,), "relu"),
    "a neuron in each layer": lambda make, X, y: make(X, y, (1, 1, 1), "relu"),
    "narrow and wide layers": lambda make, X, y: make(X, y, (3, 130), "relu"),
    "one feature": lambda make, X, y: make(X[:, :1], y),
    "a constant feature": lambda make, X, y: make(np.column_stack([X, np.full(len(X), 5.0)]), y),
    "many features": many_features,
    "wild values": wild_values,
}
# Allowed rms deviation in standard deviations of the target.
ALLOWED = {
    ("tflite", "int8"): 0.04,
    ("tflite", "int16, float edges"): 0.004,
    ("onnx", "int8"): 0.02,
    ("onnx", "int8 weights"): 0.004,
}


@pytest.mark.parametrize(
    ("form", "level"),
    [
        pytest.param(*one, marks=[] if one == ("onnx", "int8") else pytest.mark.slow)
        for one in ALLOWED
    ],
)
@pytest.mark.parametrize("kind", UNUSUAL)
def test_files_of_unusual_models(untrained, curve, tmp_path, kind, form, level):
    def make(X, y, hidden=(20, 20), activation="silu"):
        return untrained(X, y, hidden, activation)

    model = UNUSUAL[kind](make, *curve)
    rows = {"one feature": np.array([3]), "many features": np.arange(300)}.get(kind, np.arange(8))
    path, x = tmp_path / f"model.{form}", model.anchor_X_[:50]
    path.write_bytes(MAKE[form](model, [rows], level=level))
    found = np.array(load(path).predict(x, return_std=True), np.float64)
    off = (found - model.predict(x, return_std=True, anchors=rows)) / model.anchor_y_.std()
    assert np.sqrt(np.mean(np.square(off))) < ALLOWED[form, level]
