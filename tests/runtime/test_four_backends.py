"""The same 500 queries through every backend: equal bits from a pack, nearly equal from others."""

import numpy as np
import pytest

from twinedge.runtime.loading import load


@pytest.fixture(scope="module")
def queries():
    """Queries with three features, some outside the training range."""
    rng = np.random.default_rng(7)
    return rng.uniform(-1.1, 1.1, (500, 3)) * [1.0, 10.0, 100.0] + [0.0, 5.0, -20.0]


@pytest.mark.parametrize("model", ["tiny", "four", "calibrated"])
def test_c_and_numpy_give_the_same_bits(exported, queries, model):
    path = exported[model] / "model.twin"
    compiled, plain = load(path, "native"), load(path, "numpy")
    for ask in ("predict", "estimates", "outside", "spread", "missing"):
        assert getattr(compiled, ask)(queries).tobytes() == getattr(plain, ask)(queries).tobytes()
    for neighbors in (None, 1, 3):
        found = compiled.predict(queries, return_std=True, neighbors=neighbors)
        expected = plain.predict(queries, return_std=True, neighbors=neighbors)
        assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]


@pytest.mark.parametrize("name", ["model", "model_twin"])
@pytest.mark.parametrize("kind", ["tflite", "onnx"])
@pytest.mark.parametrize("model", ["tiny", "four", "calibrated"])
def test_converted_files_give_nearly_the_same(exported, device_checks, queries, model, kind, name):
    given = device_checks["Given"](exported[model])
    path = f"{kind}-int8/{name}.{kind}"
    pack, converted = given.device("model.twin"), given.device(path)
    inside = queries[~pack.outside(queries).any(axis=1)]
    assert len(inside) > 200
    # Each is as far from the float model as its numbers allow.
    within = given.unit * (given.allowed[path] + given.allowed["model.twin"])
    for found, expected in zip(
        converted.predict(inside, return_std=True),
        pack.predict(inside, return_std=True),
        strict=True,
    ):
        assert np.sqrt(np.mean(np.square(found - expected))) < within
    np.testing.assert_array_equal(converted.outside(queries), pack.outside(queries))


@pytest.mark.parametrize("kind", ["tflite", "onnx"])
@pytest.mark.parametrize("model", ["four", "calibrated"])
def test_intervals_of_converted_files_are_as_near_to_the_pack_as_predictions(
    exported, device_checks, queries, model, kind
):
    given = device_checks["Given"](exported[model])
    pack = given.device("model.twin")
    inside = queries[~pack.outside(queries).any(axis=1)]
    expected = pack.predict_interval(inside, pack.coverages)
    for path in [name for name in given.allowed if name.endswith(kind)]:
        converted = given.device(path)
        assert converted.coverages == pack.coverages
        assert converted.fields == pack.fields
        within = given.unit * (given.allowed[path] + given.allowed["model.twin"])
        found = converted.predict_interval(inside, pack.coverages)
        off = np.sqrt(np.mean(np.square(found - expected), axis=(0, 1)))
        assert (off < within).all(), path
        if converted.info["shape"] == "twin":
            near, exact = (one.predict_interval(inside, neighbors=2) for one in (converted, pack))
            # Fewer members, less averaging.
            assert np.sqrt(np.mean(np.square(near - exact))) < 4 * within
