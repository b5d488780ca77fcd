"""How a device uses a converted file: what it contains, what it leaves to a pack, its checksum."""

import shutil
from pathlib import Path

import numpy as np
import pytest

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
