"""How a device uses a converted file: what it contains, what it leaves to a pack, its checksum."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack import write_pack
from twinedge.runtime.file_device import device_of, read_sealed, seal
from twinedge.runtime.loading import load

X = np.array([[0.0, 5.0, 1.0], [0.5, 1.0, -30.0]])


class FixedAnswer:
    """An interpreter with a fixed answer to all queries."""

    runtime = "none"

    def __init__(self, outputs, **metadata):
        scaling = {"centre": [0.0, 0.0, 0.0], "unit": [1.0, 1.0, 1.0], "limit": 2.0}
        self.metadata = {"shape": "ensemble", "scaling": scaling, "anchors": [4, 4], **metadata}
        self.fixed, self.outputs, self.queries = outputs, list(outputs), []

    def run(self, inputs):
        self.queries.append(inputs["x"])
        rows = len(inputs["x"])
        return {name: np.repeat(np.float32([one]), rows, 0) for name, one in self.fixed.items()}


def outputs(mean=1.0, spread=0.25, scale=0.5, low=(0.75, 0.0), high=(1.25, 2.0)):
    return {"mean": mean, "spread": spread, "scale": scale, "low": low, "high": high}


def opened(*args, **metadata):
    return device_of(Path("model.tflite"), "tflite", FixedAnswer(*args, **metadata))


def test_columns_are_coverages_in_their_order():
    device = opened(outputs(), coverages=[0.5, 0.935])
    assert device.coverages == (0.5, 0.935)
    assert device.predict_interval(X, 0.935).tolist() == [[0.0, 2.0]] * 2
    assert device.predict_interval(X, [0.935, 0.5])[0].tolist() == [[0.0, 0.75], [2.0, 1.25]]
    mean, std = device.predict(X, return_std=True)
    assert (mean.tolist(), std.tolist()) == ([1.0, 1.0], [0.5, 0.5])
    assert device.spread(X).tolist() == [0.25, 0.25]


@pytest.mark.parametrize(("mean", "ends"), [(0.5, [0.5, 1.25]), (1.5, [0.75, 1.5])])
def test_an_interval_holds_its_prediction_though_8_bits_moved_that(mean, ends):
    device = opened(outputs(mean), coverages=[0.5, 0.9])
    assert device.predict_interval(X[:1], 0.5).tolist() == [ends]


def test_what_is_missing_is_filled_in_before_the_file_is_run():
    interpreter = FixedAnswer(outputs(), coverages=[0.5, 0.9], fill=[None, 7.5, None])
    device = device_of(Path("model.tflite"), "tflite", interpreter)
    device.predict([[1.0, np.nan, 2.0], [1.0, 3.0, 2.0]])
    assert interpreter.queries[-1].tolist() == [[1.0, 7.5, 2.0], [1.0, 3.0, 2.0]]
    assert device.fillable.tolist() == [False, True, False]


@pytest.mark.parametrize(
    "metadata",
    [{}, {"coverages": None}, {"coverages": ["half"]}]
    + [{"coverages": [0.5, 0.9], "fill": fill} for fill in ([1.0], ["a", "b", "c"], 3, [[], 1, 2])],
    ids=str,
)
def test_damaged_metadata_are_refused(metadata, complaint):
    assert "damaged" in complaint(opened, outputs(), **metadata)


def test_a_file_without_intervals_has_none_whatever_its_metadata_claim():
    plain = {name: outputs()[name] for name in ("mean", "spread")}
    device = opened(plain, coverages=[0.5])
    assert device.coverages == ()
    np.testing.assert_array_equal(*device.predict(X, return_std=True) * np.array([[1], [4]]))


@pytest.mark.parametrize("kind", ["tflite", "onnx"])
@pytest.mark.parametrize(("bare", "pack"), [("tiny", "calibrated"), ("calibrated", "tiny")])
def test_a_bare_twin_has_intervals_where_both_it_and_the_pack_can(
    exported, tmp_path, bare, pack, kind
):
    shutil.copy(exported[bare] / f"{kind}-int8" / f"model_twin.{kind}", tmp_path)
    shutil.copy(exported[pack] / "model.twin", tmp_path)
    device = load(tmp_path / f"model_twin.{kind}")
    assert device.coverages == ()
    # Fill values come from the pack.
    assert device.fillable.any() == (pack == "calibrated")
    mean, std = device.predict(X, return_std=True)
    np.testing.assert_array_equal(std, device.spread(X))
    for other in ("tiny", "calibrated"):
        same = load(exported[other] / f"{kind}-int8" / f"model_twin.{kind}").predict(X)
        np.testing.assert_allclose(mean, same, rtol=1e-3)


def test_an_ensemble_of_several_targets_has_an_axis_for_them():
    low, high = ([[0.75, 0.0], [9.0, 8.0]], [[1.25, 2.0], [10.0, 12.0]])
    both = outputs([1.0, 9.5], [0.25, 0.5], [0.5, 0.75], low, high)
    targets = [{"target": "NOX"}, {"target": "CO"}]
    device = opened(both, coverages=[0.5, 0.9], targets=targets)
    assert (device.targets, device.target_names) == (2, ("NOX", "CO"))
    mean, std = device.predict(X, return_std=True)
    assert (mean.tolist(), std.tolist()) == ([[1.0, 9.5]] * 2, [[0.5, 0.75]] * 2)
    assert device.spread(X).tolist() == [[0.25, 0.5]] * 2
    assert device.predict_interval(X, 0.9).tolist() == [[[0.0, 2.0], [8.0, 12.0]]] * 2
    assert device.predict_interval(X, [0.5, 0.9]).shape == (2, 2, 2, 2)
    assert device.predict_all(X, 0.5).low.tolist() == [[0.75, 9.0]] * 2


class Linear:
    """An interpreter of a bare twin whose differences and difficulties are linear."""

    runtime = "none"
    outputs = ("difference", "difficulty")

    def __init__(self, pack, target=None, **metadata):
        centre, unit = pack.x_offset.tolist(), (1 / pack.x_gain).tolist()
        scaling = {"centre": centre, "unit": unit, "limit": 3.0}
        twins = len(pack.twins)
        self.metadata = {"shape": "twin", "scaling": scaling, "twins": twins, **metadata}
        weights = np.random.default_rng(0).normal(size=(2, twins, 3, len(centre)))
        self.weights = weights if target is None else weights[:, :, target]

    def run(self, inputs):
        first, second = (inputs[name].astype(np.float64) for name in ("first", "second"))
        difference, hard = np.tensordot(first - 0.9 * second, self.weights, (1, -1)).swapaxes(0, 1)
        return {"difference": np.float32(difference), "difficulty": np.float32(abs(hard))}


@pytest.mark.parametrize("neighbors", [None, 2])
def test_a_bare_twin_predicts_each_target_as_alone(random_pack, tmp_path, neighbors):
    given = {"features": 2, "hidden": (3,), "counts": [4, 3], "weights": "normal"}
    pack = random_pack(np.random.default_rng(5), scaled=True, outputs=3, **given)

    def device(pack, name, **given):
        (tmp_path / f"{name}.twin").write_bytes(write_pack(pack))
        return device_of(tmp_path / f"{name}_twin.onnx", "onnx", Linear(pack, **given))

    several = device(pack, "all", targets=[{}] * 3)
    alone = [device(one, f"one{n}", target=n) for n, one in enumerate(pack.singles)]
    x = np.random.default_rng(6).normal(0, 1, (5, 2)) / pack.x_gain + pack.x_offset
    x = x.astype(np.float32)
    for ask in (
        lambda one: one.predict(x, neighbors=neighbors),
        lambda one: one.spread(x, neighbors=neighbors),
        lambda one: one.predict(x, return_std=True, neighbors=neighbors)[1],
        lambda one: one.predict_interval(x, one.coverages[-1], neighbors=neighbors),
    ):
        expected = np.stack([ask(one) for one in alone], axis=1)
        np.testing.assert_array_equal(ask(several), expected)
    found = several.estimates(x, neighbors=neighbors)
    expected = [one.estimates(x, neighbors=neighbors) for one in alone]
    np.testing.assert_array_equal(found, np.stack(expected, axis=-1))
    with pytest.raises(InputError, match="another model"):
        device(pack.single(0), "other", targets=[{}, {}])


# Damage is reported before an interpreter sees a file.


@pytest.mark.parametrize("content", [b"", b"x", bytes(1000)], ids=["nothing", "one", "many"])
def test_what_was_sealed_is_read(tmp_path, complaint, content):
    path = tmp_path / "file"
    path.write_bytes(seal(content))
    assert read_sealed(path) == seal(content)
    path.write_bytes(content)
    assert "checksum" in complaint(read_sealed, path)


def test_every_flipped_bit_is_noticed(tmp_path, complaint):
    path, whole = tmp_path / "file", seal(bytes(range(20)))
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        assert "checksum" in complaint(read_sealed, path)


@pytest.mark.parametrize("name", ["tflite-int8/model.tflite", "onnx-int8/model.onnx"])
def test_a_damaged_file_is_refused_by_name(exported, tmp_path, complaint, name):
    whole = (exported["tiny"] / name).read_bytes()
    path = tmp_path / name.rpartition("/")[2]
    rng = np.random.default_rng(0)
    for _ in range(30):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        assert f"{path} is damaged" in complaint(load, path)
        path.write_bytes(whole[: rng.integers(len(whole))])
        assert f"{path} is damaged" in complaint(load, path)


@pytest.mark.parametrize("suffix", [".tflite", ".onnx"])
def test_a_sealed_file_of_someone_else_is_refused(tmp_path, complaint, suffix):
    path = tmp_path / f"model{suffix}"
    for content in (b"", bytes(100), bytes(4) + b"TFL3" + bytes(90), b"\x08\x08"):
        path.write_bytes(seal(content))
        assert "of twinedge" in complaint(load, path)
