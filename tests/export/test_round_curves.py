"""Tables of input maps and target curves: close to the curves, in range, and small."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.pack.checks import check_map, check_target_curve
from twinedge.pack.contents import LARGEST
from twinedge.pack.layout import MAX_CURVE_BINS
from twinedge.runtime.reference import curved, estimates_of, map_points, targets_of
from twinedge.scoring.calibration import Calibration
from twinedge.training.input_map import InputMap, choose_knots
from twinedge_export.fold_anchors import largest_input
from twinedge_export.quantise import quantise
from twinedge_export.round_curves import curve_error, round_map, round_target_curve


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class Front:
    """A pack with nothing but a map, as ``map_points`` takes it."""

    def __init__(self, curves):
        self.map, self.features = curves, len(curves.bins)


def random_map(rng, x, bins, outputs, size):
    knots = choose_knots(x, bins)
    table = rng.normal(0, size, (sum(map(len, knots)), outputs))
    return InputMap(knots, table.astype(np.float32))


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(2, 40),
    st.sampled_from([1e-6, 0.01, 0.3, 2.0]),
)
def test_the_integers_follow_a_map(seed, features, extra, bins, size):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (200, features)).astype(np.float32)
    learnt = random_map(rng, x, bins, features + extra, size)
    unit = 1.25 * max(np.abs(x).max(), np.abs(learnt.apply(x)).max()) / LARGEST
    made = round_map(learnt, unit, x)
    check_map(made)
    assert ((made.shifts >= 1) & (made.shifts <= 24)).all()
    assert (made.table != -128).all()
    q = np.rint(x / unit).astype(np.int16)
    error = np.abs(map_points(Front(made), q) * unit - learnt.apply(x))
    # Half a step for each feature; errors that are to cancel may make it somewhat more. A query is
    # half a unit off, and so is a knot: on a steep piece that counts.
    steps = unit * 2.0 ** (14 - made.shifts.astype(float))
    slopes = [np.diff(rows, axis=0) / np.diff(knots)[:, None] for _, knots, rows in learnt.parts()]
    steepest = max(np.abs(one).max() for one in slopes)
    assert (error <= features * (2.5 * steps + 2 * unit * steepest) + 2 * unit).all()


def test_errors_cancel_where_the_training_points_are():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (1000, 8)).astype(np.float32)
    learnt = random_map(rng, x, 8, 12, 0.5)
    unit = 20 / LARGEST
    made = round_map(learnt, unit, x)
    steps = 2.0 ** (14 - made.shifts.astype(float)) * unit
    alone = InputMap(learnt.knots, (np.rint(learnt.table / steps) * steps).astype(np.float32))
    exact = learnt.apply(x)
    together = map_points(Front(made), np.rint(x / unit).astype(np.int16)) * unit
    rms = [np.sqrt(np.mean(np.square(one - exact))) for one in (together, alone.apply(x))]
    assert rms[0] < 0.85 * rms[1]


def test_knots_that_become_equal_are_one():
    knots = np.array([-1.0, 0.0, 1e-5, 2e-5, 1.0], np.float32)
    close = np.array([5.0, 5 + 1e-6, 5 + 2e-6], np.float32)
    table = np.arange(16, dtype=np.float32).reshape(8, 2) / 16
    unit = 1e-3
    made = round_map(InputMap((knots, close), table), unit, np.zeros((3, 2)))
    check_map(made)
    assert made.knots.tolist() == [-1000, 0, 1000, 5000, 5001]
    assert made.bins.tolist() == [2, 1]
    z = map_points(Front(made), np.array([[0, 5000], [0, -3000]], np.int16)) * unit
    # The mean of the rows at each place; the constant curve of the second feature stays.
    expected = table[1:4].mean(axis=0) + table[5:].mean(axis=0) + [[0, 5], [0, -3]]
    np.testing.assert_allclose(z, expected, atol=0.02)


def test_a_constant_at_the_end_of_the_range_has_room():
    learnt = InputMap((np.array([40.0, 41, 42], np.float32),), np.ones((3, 1), np.float32))
    made = round_map(learnt, 1e-3, np.zeros((3, 1)))
    check_map(made)
    assert made.knots.tolist() == [LARGEST - 1, LARGEST]


def targets(kind, seed, size, spread):
    """Positive targets, or counts, of a size; ``spread`` is the deviation of their logarithm."""
    rng = np.random.default_rng(seed)
    y = size * np.exp(rng.normal(0, spread, 300))
    return np.floor(y) if kind == "log1p" else y


@settings(max_examples=40)
@given(
    st.sampled_from(["log", "log1p", "sqrt"]),
    st.integers(0, 2**32),
    st.sampled_from([1e-6, 1.0, 30.0, 1e9]),
    st.sampled_from([0.01, 0.3, 1.0, 3.0]),
)
def test_a_table_follows_its_curve(untrained, kind, seed, size, spread):
    y = targets(kind, seed, size, spread)
    model = untrained(np.arange(300.0)[:, None], y, curve=kind)
    unit = model.scaling_.y_scale / 65536
    made, gain = round_target_curve(model, unit)
    check_target_curve(made)
    assert made.bins <= 1000
    pack = Curved(made, gain)
    c = np.linspace(model.scaling_.curved(y).min(), model.scaling_.curved(y).max(), 1000)
    found = targets_of(pack, np.rint((c - model.scaling_.y_mean) / unit))
    # A thousandth of what it varies by, or of its deviation where that is more.
    varies = model.scaling_.deviation(c, min(model.scaling_.y_scale, 1.0))
    if kind == "sqrt":
        varies = model.scaling_.deviation(c, model.scaling_.y_scale)
    allowed = 1.1e-3 * np.maximum(varies, 0.1 * (np.std(y) or 1.0)) + 1e-6 * np.abs(found)
    assert (np.abs(found - model.scaling_.uncurved(c)) <= allowed).all()
    # What is learnt on site finds its way back, to an estimate and the digits of a float32.
    places = np.maximum(y / float(gain), made.values[0])
    back = curved(pack, estimates_of(pack, y))
    steepest = np.diff(made.values.astype(np.int64)).max() / 2**made.shift
    np.testing.assert_allclose(back, places, atol=steepest + 65)


class Curved:
    """A pack with nothing but a target curve."""

    def __init__(self, curve, gain):
        self.target_curve, self.y_gain, self.y_offset = curve, gain, np.float32(0)


@pytest.mark.parametrize("kind", ["log", "log1p", "sqrt"])
def test_no_table_with_half_the_bins_would_do(untrained, kind):
    y = targets(kind, 0, 20.0, 1.0)
    model = untrained(np.arange(300.0)[:, None], y, curve=kind)
    scaling, unit = model.scaling_, model.scaling_.y_scale / 65536
    made, gain = round_target_curve(model, unit)
    assert curve_error(made.values * float(gain), made.first, made.shift, scaling, unit) < 2e-3
    knots = made.first + np.arange(made.bins // 2 + 1) * 2.0 ** (made.shift + 1)
    exact = scaling.uncurved(knots * unit + scaling.y_mean)
    fitted = exact - np.gradient(np.gradient(exact)) / 12
    assert curve_error(fitted, made.first, made.shift + 1, scaling, unit) > 1e-3


@pytest.mark.parametrize("kind", ["log", "log1p", "sqrt"])
def test_a_table_is_right_on_average(untrained, kind):
    y = targets(kind, 0, 20.0, 1.0)
    model = untrained(np.arange(300.0)[:, None], y, curve=kind)
    unit = model.scaling_.y_scale / 65536
    made, gain = round_target_curve(model, unit)
    whole = 1 << made.shift
    inner = made.first + np.arange(whole * (made.bins // 3), whole * (2 * made.bins // 3), 7)
    found = targets_of(Curved(made, gain), inner).astype(np.float64)
    errors = found / model.scaling_.uncurved(inner * unit + model.scaling_.y_mean) - 1
    assert abs(errors.mean()) < 0.1 * np.abs(errors).max()


def test_the_range_goes_beyond_the_targets_and_their_intervals(untrained):
    y = targets("log", 0, 20.0, 1.0)
    model = untrained(np.arange(300.0)[:, None], y, curve="log")
    model.validation_ = model.anchor_X_[:20], y[:20]
    model.difficulty_ = np.zeros((1, 9), np.float32)
    c = model.scaling_.curved(y)

    def reach(calibration):
        model.calibration_ = calibration
        made, _ = round_target_curve(model, model.scaling_.y_scale / 65536)
        ends = made.first, made.first + (made.bins << made.shift)
        return np.array(ends) * model.scaling_.y_scale / 65536 + model.scaling_.y_mean

    low, high = reach(None)
    assert low <= c.min() - 0.5 * np.ptp(c)
    assert high >= c.max() + 0.5 * np.ptp(c)
    wide = Calibration(np.zeros(3), 2.0, {0.5: 0.7, 0.99: 4.0}, 100, 2.0, 0.0)
    assert reach(wide)[1] > high + 1


@pytest.mark.parametrize(
    "y",
    [np.linspace(1e6, 1e6 + 1e-4, 300), np.logspace(39, 41, 300)],
    ids=["hardly varies", "beyond float32"],
)
def test_a_target_that_no_table_can_hold_is_refused(untrained, y, complaint):
    model = untrained(np.arange(300.0)[:, None], y, curve="log")
    assert "for a table of its curve" in complaint(quantise, model, [np.arange(5)])


def test_wide_targets_stay_positive(untrained):
    y = np.logspace(-6, 6, 300)
    model = untrained(np.arange(300.0)[:, None], y, curve="log")
    made, _ = round_target_curve(model, model.scaling_.y_scale / 65536)
    assert made.values[0] > 0
    assert made.bins < MAX_CURVE_BINS


def test_a_map_needs_features_that_float32_can_scale(untrained):
    X = 1e-44 * np.random.default_rng(0).normal(size=(60, 2))
    model = untrained(X, X[:, 0] * 1e44, bins=4)
    with pytest.raises(InputError, match="not finite"):
        quantise(model, [np.arange(5)])
    assert largest_input(model) >= 2
