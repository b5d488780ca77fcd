"""How a device uses a converted file: what it contains, and what it leaves to a pack."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from twinedge.runtime.file_device import device_of
from twinedge.runtime.loading import load

X = np.array([[0.0, 5.0, 1.0], [0.5, 1.0, -30.0]])


class Told:
    """An interpreter with a fixed answer to all queries."""

    runtime = "none"

    def __init__(self, said, **metadata):
        scaling = {"centre": [0.0, 0.0, 0.0], "unit": [1.0, 1.0, 1.0], "limit": 2.0}
        self.metadata = {"shape": "ensemble", "scaling": scaling, "anchors": [4, 4], **metadata}
        self.said, self.outputs, self.asked = said, list(said), []

    def run(self, inputs):
        self.asked.append(inputs["x"])
        rows = len(inputs["x"])
        return {name: np.repeat(np.float32([one]), rows, 0) for name, one in self.said.items()}


def said(mean=1.0, spread=0.25, scale=0.5, low=(0.75, 0.0), high=(1.25, 2.0)):
    return {"mean": mean, "spread": spread, "scale": scale, "low": low, "high": high}


def opened(*args, **metadata):
    return device_of(Path("model.tflite"), "tflite", Told(*args, **metadata))


def test_columns_are_coverages_in_their_order():
    device = opened(said(), coverages=[0.5, 0.935])
    assert device.coverages == (0.5, 0.935)
    assert device.predict_interval(X, 0.935).tolist() == [[0.0, 2.0]] * 2
    assert device.predict_interval(X, [0.935, 0.5])[0].tolist() == [[0.0, 0.75], [2.0, 1.25]]
    mean, std = device.predict(X, return_std=True)
    assert (mean.tolist(), std.tolist()) == ([1.0, 1.0], [0.5, 0.5])
    assert device.spread(X).tolist() == [0.25, 0.25]


@pytest.mark.parametrize(("mean", "ends"), [(0.5, [0.5, 1.25]), (1.5, [0.75, 1.5])])
def test_an_interval_holds_its_prediction_though_8_bits_moved_that(mean, ends):
    device = opened(said(mean), coverages=[0.5, 0.9])
    assert device.predict_interval(X[:1], 0.5).tolist() == [ends]


def test_what_is_missing_is_filled_in_before_the_file_is_asked():
    told = Told(said(), coverages=[0.5, 0.9], fill=[None, 7.5, None])
    device = device_of(Path("model.tflite"), "tflite", told)
    device.predict([[1.0, np.nan, 2.0], [1.0, 3.0, 2.0]])
    assert told.asked[-1].tolist() == [[1.0, 7.5, 2.0], [1.0, 3.0, 2.0]]
    assert device.fillable.tolist() == [False, True, False]


@pytest.mark.parametrize(
    "metadata",
    [{}, {"coverages": None}, {"coverages": ["half"]}]
    + [{"coverages": [0.5, 0.9], "fill": fill} for fill in ([1.0], ["a", "b", "c"], 3, [[], 1, 2])],
    ids=str,
)
def test_damaged_metadata_are_refused(metadata, complaint):
    assert "damaged" in complaint(opened, said(), **metadata)


def test_a_file_without_intervals_has_none_whatever_it_says():
    plain = {name: said()[name] for name in ("mean", "spread")}
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
