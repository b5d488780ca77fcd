"""What retraining would bring, on fleets where that is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.fleet.retraining import estimate_gain, predict_left_out
from twinedge.fleet.stores import FleetPoints
from twinedge.pack.contents import Intervals, TargetCurve
from twinedge.runtime.reference import curved

UNIT = 100_000  # of an estimate, in a scale
DEVICES, EACH = 60, 15
PACK = SimpleNamespace(
    intervals=Intervals(1, 0, 0, 1, 100, 1, 0, {900: 122_500}, 26214),
    y_gain=np.float32(1 / UNIT),
    y_offset=np.float32(0),
    target_curve=None,
)


def fleet(common, of_device, noise=0.5, devices=DEVICES, seed=0):
    """Errors are a function of the features, an offset of the device, and noise."""
    rng = np.random.default_rng(seed)
    device = np.repeat(np.arange(devices), EACH)
    x = rng.uniform(-1, 1, (len(device), 3))
    z = common(x) + (of_device * rng.normal(size=devices))[device] + noise * rng.normal(size=len(x))
    targets = np.rint(z * UNIT).astype(np.int64)
    scale = np.full(len(x), 16 * UNIT)
    features = np.rint(x * 16000).astype(np.int16)
    weights = np.ones(len(x))
    return FleetPoints(device, features, targets, 0 * targets, scale, weights, z), z


def nothing(x):
    return np.zeros(len(x))


def bent(x):
    return x[:, 0] + x[:, 1] * x[:, 2]


def test_what_all_devices_share_is_found_and_the_rest_is_not():
    points, z = fleet(bent, of_device=0.0)
    gain = estimate_gain(PACK, points)
    assert gain.worthwhile
    assert gain.shared == pytest.approx(1 - 0.25 / np.square(z).mean(), abs=0.04)
    assert gain.rmse_shipped == pytest.approx(np.sqrt(np.mean(z**2)), rel=1e-3)
    assert gain.rmse_retrained == pytest.approx(0.5, rel=0.08)
    assert gain.of_devices < 0.05
    assert gain.rmse_retrained_adapted < gain.rmse_shipped


def test_what_each_device_has_for_itself_is_not_for_retraining():
    points, z = fleet(nothing, of_device=1.0)
    gain = estimate_gain(PACK, points)
    assert not gain.worthwhile
    assert gain.shared < 0.03
    assert gain.of_devices == pytest.approx(1 - 0.25 / np.square(z).mean(), abs=0.05)
    assert gain.rmse_retrained == pytest.approx(gain.rmse_shipped, rel=0.03)
    # As adapted, of points that the device predicts from one another.
    assert gain.rmse_retrained_adapted < 0.8 * gain.rmse_retrained


def test_both_are_distinguished():
    gain = estimate_gain(PACK, fleet(bent, of_device=0.6, devices=200)[0])
    total = 4 / 9 + 0.36 + 0.25
    assert gain.worthwhile
    assert gain.shared == pytest.approx(4 / 9 / total, abs=0.06)
    assert gain.of_devices == pytest.approx(0.36 / total, abs=0.08)
    assert gain.rest == pytest.approx(0.25 / total, abs=0.06)
    assert gain.shared + gain.of_devices + gain.rest == pytest.approx(1)


def test_noise_gains_nothing():
    worthwhile = 0
    for seed in range(10):
        gain = estimate_gain(PACK, fleet(nothing, of_device=0.5, devices=12, seed=seed)[0])
        worthwhile += gain.worthwhile
        assert gain.rmse_retrained < 1.15 * gain.rmse_shipped
    assert worthwhile <= 1


def test_no_device_is_predicted_from_itself():
    points, z = fleet(bent, of_device=0.5)
    before = predict_left_out(points.features, z, points.device)
    mine = points.device == 7
    changed = np.where(mine, -z, z)
    after = predict_left_out(points.features, changed, points.device)
    np.testing.assert_allclose(after[mine], before[mine], rtol=0, atol=1e-9)
    assert np.abs(after[~mine] - before[~mine]).max() > 1e-3  # the others do see it


def test_a_few_devices_are_too_few():
    assert estimate_gain(PACK, fleet(bent, of_device=0.0, devices=4)[0]) is None
    assert estimate_gain(PACK, fleet(bent, of_device=0.0, devices=5)[0]) is not None


def test_features_that_never_change_do_no_harm():
    points, z = fleet(bent, of_device=0.0)
    still = np.concatenate([points.features, np.full((len(z), 2), 123, np.int16)], axis=1)
    found = predict_left_out(still, z, points.device)
    assert np.isfinite(found).all()
    assert np.mean((z - found) ** 2) < 0.3


def test_errors_on_a_target_curve_are_in_units_of_the_target():
    points, _ = fleet(bent, of_device=0.4)
    steps = np.linspace(-3, 3, 2**12 + 1)
    values = np.rint(1e5 * np.exp(steps)).astype(np.int32)
    assert (np.diff(values) > 0).all()
    shift = 9  # 4096 bins of 512 estimates: 21 scales in all
    curve = TargetCurve(-(2**20), shift, values)
    bowed = SimpleNamespace(**{**vars(PACK), "target_curve": curve})
    plain, found = estimate_gain(PACK, points), estimate_gain(bowed, points)
    # What could be learnt is a matter of scales.
    for name in ("gain", "standard_error", "shared", "of_devices", "rest"):
        assert getattr(found, name) == getattr(plain, name)
    off = (curved(bowed, points.targets) - curved(bowed, points.mean)) * float(PACK.y_gain)
    assert found.rmse_shipped == pytest.approx(np.sqrt(np.mean(np.square(off))))
    assert found.rmse_shipped != pytest.approx(plain.rmse_shipped, rel=0.1)
    assert found.rmse_retrained < found.rmse_shipped
