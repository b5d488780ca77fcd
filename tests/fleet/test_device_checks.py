"""What is wrong with a device: each fault gets its name, and healthy devices have none."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.fleet.device_checks import check_device
from twinedge.pack.contents import Intervals
from twinedge.runtime.store import Evaluated
from twinedge.runtime.store_summary import point_errors

UNIT = 100_000  # of an estimate, in a scale


def checked(z, trust=0.4, reach=1.87, order=None):
    """Check a device on which a pack with intervals of ``reach`` scales is off by ``z``."""
    z = np.asarray(z, float)
    quantiles = {900: round(65536 * reach)}
    intervals = Intervals(1, 0, 0, 1, 100, 1, 0, quantiles, round(65536 * trust))
    scaling = {"y_gain": np.float32(1), "y_offset": np.float32(0), "target_curve": None}
    pack = SimpleNamespace(intervals=intervals, **scaling)
    scale, targets = np.full(len(z), 16 * UNIT), np.rint(z * UNIT).astype(np.int64)
    at_points = Evaluated(np.ones(len(z), bool), targets, 0 * targets, scale)
    order = np.arange(len(z)) if order is None else order
    return check_device(point_errors(pack, at_points), scale / 16, order, intervals)


def noise(count, seed=0):
    return 0.6 * np.random.default_rng(seed).normal(size=count)


def test_a_healthy_device_has_no_findings():
    found = checked(noise(20))
    assert found["findings"] == []
    assert found["severity"] < 1
    assert found["mean_in_scales"] == pytest.approx(noise(20).mean(), abs=1e-4)
    assert found["inside_shipped"] == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_a_device_is_off(sign):
    found = checked(sign * (5 + noise(20)))
    assert "off" in found["findings"]
    assert "drifting" not in found["findings"]
    assert found["mean_in_scales"] == pytest.approx(sign * 5, abs=0.4)
    assert 4 < found["off_by_at_least"] < 5
    assert found["inside_shipped"] == 0
    assert found["chance_shipped"] < 1e-10


@pytest.mark.parametrize("sign", [1, -1])
def test_a_device_drifts(sign):
    found = checked(sign * np.linspace(-1.5, 1.5, 20) + noise(20) / 2)
    assert found["findings"] == ["drifting"]
    assert np.sign(found["drift"]) == sign
    assert found["drift"] == pytest.approx(1.6 * sign, abs=0.6)


def test_drift_goes_by_time_and_not_by_arrival():
    z = np.linspace(-1.5, 1.5, 20) + noise(20)
    shuffled = np.random.default_rng(1).permutation(20)
    assert checked(z[shuffled])["findings"] == []
    assert checked(z[shuffled], order=np.argsort(shuffled))["findings"] == ["drifting"]


def test_a_drift_that_is_certain_but_tiny_is_no_reason_to_look():
    found = checked(np.linspace(-0.2, 0.2, 100))
    assert found["chance_drift"] < 1e-10
    assert found["findings"] == []


def test_a_glitch_is_a_glitch_and_nothing_else():
    z = noise(20)
    z[7] = -999
    found = checked(z)
    assert (found["findings"], found["glitches"]) == (["glitch"], 1)
    assert abs(found["mean_in_scales"]) < 0.5


def test_the_interval_does_not_hold_where_noise_is_large():
    z = 4 * (-1.0) ** np.arange(20) * np.random.default_rng(0).uniform(0.8, 1.2, 20)
    found = checked(z)
    assert found["findings"] == ["interval"]
    assert found["inside_adapted"] < 0.5


def test_one_point_says_little():
    alone, many = checked([4.0]), checked(4 + noise(20))
    assert alone["findings"] == []
    assert alone["off_by_at_least"] < many["off_by_at_least"]
    assert checked([300.0])["findings"] == ["glitch"]
    assert checked([30.0, -30.0])["mean_in_scales"] is None


def test_equal_errors_have_no_order():
    assert checked(np.full(20, 0.5))["chance_drift"] == 1


def healthy(student, count, rng, trust=0.4):
    """Errors of a healthy device, by the model of FORMAT.md, or normal ones."""
    factor = 1 / np.sqrt(rng.chisquare(4) / 4) / 1.14 if student else 1.0
    shared, own = np.sqrt(trust) * rng.normal(), np.sqrt(1 - trust) * rng.normal(size=count)
    return factor * (shared + own)


@pytest.mark.parametrize("student", [False, True])
def test_false_alarms_are_as_rare_as_stated(student):
    rng, devices, named = np.random.default_rng(3), 500, Counter()
    for _ in range(devices):
        z = healthy(student, 20, rng)
        named.update(checked(z, reach=1.87 if student else 1.645)["findings"])
    # One in a hundred is stated; 12 or fewer of 500 then happen in 99.8 % of all fleets.
    assert max(named.values(), default=0) <= 12, named
    assert named.keys() <= {"off", "drifting", "interval", "glitch"}
