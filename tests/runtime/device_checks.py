"""What holds for every device, with any file and backend.

The tests run these checks in their own process. As a script, ``device_checks.py FOLDER`` runs them
for the .tflite files of a folder with numpy, twinedge.runtime and an interpreter alone, so that
other environments can run the same checks.
"""

import json
import sys
from pathlib import Path

import numpy as np

from twinedge.errors import InputError
from twinedge.runtime.loading import load


class Given:
    """A folder of files, the queries they were made for, and the float model's answers."""

    def __init__(self, folder, backend="auto"):
        self.folder, self.backend, self._devices = Path(folder), backend, {}
        expected = np.load(self.folder / "expected.npz")
        self.x, self.mean, self.spread = expected["x"], expected["mean"], expected["spread"]
        self.nearest = expected["nearest"]  # means with the two nearest anchors of each twin
        # Of files with intervals only: scales, and ends of the intervals at all levels.
        self.scale, self.ends = expected.get("scale"), expected.get("ends")
        about = json.loads((self.folder / "about.json").read_text())
        self.unit, self.anchors = about["unit"], about["anchors"]
        self.names, self.target = about["names"], about["target"]
        # By path: how far, in units of the target's deviation, a file may be off.
        self.allowed = about["allowed"]
        self.fill = about["fill"]  # of the second feature, if it may be missing

    def device(self, name):
        if name not in self._devices:
            self._devices[name] = load(self.folder / name, self.backend)
        return self._devices[name]

    def is_off(self, name, found, expected, times=1):
        off = np.sqrt(np.mean(np.square(np.asarray(found, np.float64) - expected))) / self.unit
        return off > times * self.allowed[name]


def predictions_are_those_of_the_float_model(given, name):
    device = given.device(name)
    mean, spread = device.predict(given.x), device.spread(given.x)
    assert mean.dtype == spread.dtype == np.float32
    assert mean.shape == spread.shape == (len(given.x),)
    assert not given.is_off(name, mean, given.mean)
    assert not given.is_off(name, spread, given.spread)
    again, std = device.predict(given.x, return_std=True)
    np.testing.assert_array_equal(again, mean)
    if not device.coverages:
        np.testing.assert_array_equal(std, spread)
    found = device.predict_all(given.x)
    np.testing.assert_array_equal(found.mean, mean)
    np.testing.assert_array_equal(found.spread, spread)


def the_batch_changes_nothing(given, name):
    device = given.device(name)
    whole = device.predict(given.x)
    alone = np.concatenate([device.predict(given.x[row : row + 1]) for row in range(5)])
    # An int8 file may round a half to either side.
    tolerance = max(1e-5, given.allowed[name]) * given.unit
    np.testing.assert_allclose(alone, whole[:5], atol=tolerance)
    np.testing.assert_allclose(device.predict(given.x[:7]), whole[:7], atol=tolerance)
    many = np.tile(given.x, (60, 1))
    np.testing.assert_allclose(device.predict(many), np.tile(whole, 60), atol=tolerance)
    assert device.predict(given.x[:0]).shape == (0,)


def numbers_of_any_kind_are_taken(given, name):
    device = given.device(name)
    rounded = np.rint(given.x)
    expected = device.predict(rounded)
    for kind in (np.float32, np.int64, np.float16):
        np.testing.assert_array_equal(device.predict(rounded.astype(kind)), expected)
    np.testing.assert_array_equal(device.predict(rounded.tolist()), expected)


def bad_queries_are_refused_in_the_same_words(given, name):
    device, features = given.device(name), len(given.names)
    for x, words in (
        (given.x[:, 1:], f"the table has {features - 1} columns, but the model needs {features}"),
        (given.x[0, 1:], f"the table has {features - 1} columns, but the model needs {features}"),
        (given.x[None], f"queries must have {features} features, not shape"),
        (np.array(1.0), f"queries must be rows of {features} columns, not ()"),
        (1.0, f"queries must be rows of {features} columns, not ()"),
        ([[1.0] * features, [1.0]], "the rows of a query must all have the same length"),
        ([["a"] * features], "'a' is not a number"),
        ([[1j] * features], "'1j' is not a number"),
    ):
        for call in calls_of(device):
            assert words in complaint(call, x)
    for neighbors in (0, -1, 1.5, "2", True):
        words = complaint(device.predict, given.x, neighbors=neighbors)
        assert "is not a whole number of at least 1" in words


def what_is_missing_is_filled_in_or_refused_by_name(given, name):
    device, features = given.device(name), len(given.names)
    for number, feature in enumerate(given.names):
        x = np.ones((2, features))
        x[1, number] = np.nan
        if device.fillable[number]:
            assert device.missing(x).tolist() == np.isnan(x).tolist()
            assert not device.outside(x)[1, number]
            assert np.isfinite(device.predict(x)).all()
            continue
        for call in (*calls_of(device), device.missing):
            words = complaint(call, x)
            assert words == f"a query has a feature that is not a number: {feature}"
    assert not device.missing(given.x).any()
    assert (device.predict_all(given.x).missing is None) == (not device.fillable.any())


def intervals_are_there_or_refused(given, name):
    device = given.device(name)
    for coverage in (0, 1, 90, np.nan, "0.9", None, True):
        words = complaint(device.predict_interval, given.x, coverage)
        assert "is not a number between 0 and 1" in words
    found = device.predict_all(given.x)
    if not device.coverages:
        for call in (device.predict_interval, device.predict_all):
            assert "has no intervals: " in complaint(call, given.x, 0.9)
        assert (device.usual_coverage, found.scale, found.low, found.high) == (
            None,
            None,
            None,
            None,
        )
        return
    assert list(device.coverages) == sorted(set(device.coverages))
    assert f"it has {device.coverages[0]:g}" in complaint(device.predict_interval, given.x, 0.1234)
    ends = device.predict_interval(given.x, device.coverages)
    assert (ends.shape, ends.dtype) == ((len(given.x), 2, len(device.coverages)), np.float32)
    mean, scale = device.predict(given.x, return_std=True)
    assert (scale > 0).all()
    assert (np.diff(ends[:, 0], axis=1) <= 0).all()
    assert (np.diff(ends[:, 1], axis=1) >= 0).all()
    assert (ends[:, 0] <= mean[:, None]).all()
    assert (ends[:, 1] >= mean[:, None]).all()
    usual = device.predict_interval(given.x, device.usual_coverage)
    assert usual.shape == (len(given.x), 2)
    for name, right in (("scale", scale), ("low", usual[:, 0]), ("high", usual[:, 1])):
        np.testing.assert_array_equal(getattr(found, name), right)


def intervals_are_as_close_to_those_of_the_float_model_as_predictions(given, name):
    device = given.device(name)
    assert bool(device.coverages) == (given.scale is not None)
    if device.coverages:
        scale = device.predict(given.x, return_std=True)[1]
        ends = device.predict_interval(given.x, device.coverages)
        assert ends.shape == given.ends.shape
        assert not given.is_off(name, scale, given.scale)
        for level in range(len(device.coverages)):
            assert not given.is_off(name, ends[:, :, level], given.ends[:, :, level])
        alone = device.predict_interval(given.x[:1], device.coverages)
        tolerance = max(1e-5, given.allowed[name]) * given.unit
        np.testing.assert_allclose(alone, ends[:1], atol=tolerance)
        assert device.predict_interval(given.x[:0]).shape == (0, 2)


def what_is_missing_is_answered_as_what_stands_for_it(given, name):
    device = given.device(name)
    assert device.fillable.tolist() == [False, given.fill is not None, False]
    if given.fill is not None:
        missing, filled = given.x.copy(), given.x.copy()
        missing[3:, 1], filled[3:, 1] = np.nan, given.fill
        # As in a pack, in 16 bits.
        tolerance = max(1e-4, given.allowed[name]) * given.unit
        for call in (device.predict, device.spread, device.predict_interval):
            np.testing.assert_allclose(call(missing), call(filled), atol=tolerance)
        assert device.missing(missing).sum() == len(given.x) - 3


def beyond_the_range_an_answer_is_computed_and_flagged(given, name):
    device = given.device(name)
    far = np.array([[np.inf], [-np.inf], [1e300], [-1e30]]) * np.ones(len(given.names))
    mean, std = device.predict(far, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(device.spread(far)).all()
    assert device.outside(far).all()
    np.testing.assert_array_equal(device.predict_all(far).outside, device.outside(far))
    some = given.x[:2].copy()
    some[1, 0] = 1e6
    expected = np.zeros(some.shape, bool)
    expected[1, 0] = True
    np.testing.assert_array_equal(device.outside(some), expected)


def a_device_knows_its_names_and_anchors(given, name):
    device = given.device(name)
    assert device.feature_names == tuple(given.names)
    assert device.features == len(given.names)
    assert device.target_name == given.target
    assert device.anchors == given.anchors
    assert device.info["file"].endswith(Path(name).name)
    assert device.info["anchors"] == given.anchors


def members_and_neighbors_are_there_or_refused(given, name):
    device = given.device(name)
    if device.info["shape"] == "ensemble":
        assert "only mean and spread of its estimates" in complaint(device.estimates, given.x)
        assert "cannot choose the nearest" in complaint(device.predict, given.x, neighbors=2)
        return
    estimates = device.estimates(given.x)
    assert estimates.shape == (len(given.x), given.anchors)
    mean, spread = device.predict(given.x), device.spread(given.x)
    np.testing.assert_allclose(estimates.mean(axis=1), mean, atol=1e-4 * given.unit)
    np.testing.assert_allclose(estimates.std(axis=1), spread, atol=1e-4 * given.unit)
    near = device.predict(given.x, neighbors=2)
    # Fewer members, less averaging.
    assert not given.is_off(name, near, given.nearest, times=4)
    assert device.estimates(given.x, neighbors=2).shape == (len(given.x), 2 * device.info["twins"])
    everyone = device.predict(given.x, neighbors=10**6)
    np.testing.assert_allclose(everyone, mean, atol=1e-4 * given.unit)


CHECKS = (
    predictions_are_those_of_the_float_model,
    the_batch_changes_nothing,
    numbers_of_any_kind_are_taken,
    bad_queries_are_refused_in_the_same_words,
    what_is_missing_is_filled_in_or_refused_by_name,
    intervals_are_there_or_refused,
    intervals_are_as_close_to_those_of_the_float_model_as_predictions,
    what_is_missing_is_answered_as_what_stands_for_it,
    beyond_the_range_an_answer_is_computed_and_flagged,
    a_device_knows_its_names_and_anchors,
    members_and_neighbors_are_there_or_refused,
)


def calls_of(device):
    """Methods that take queries, of any device."""
    return device.predict, device.outside, device.estimates, device.spread, device.predict_all


def complaint(function, *args, **kwargs):
    """Return the one-line message of a refused call."""
    words = None
    try:
        function(*args, **kwargs)
    except InputError as error:
        words = str(error)
    assert words is not None, f"{function} accepted {args} {kwargs}"
    assert len(words.splitlines()) == 1
    return words


def run_all(given, name):
    """Make every check on one file; returns how many there are."""
    for check in CHECKS:
        check(given, name)
    return len(CHECKS)


def main(folder):
    given = Given(folder)
    runtimes, passed = set(), 0
    for name in given.allowed:
        if name.endswith(".tflite"):
            runtimes.add(given.device(name).info["runtime"])
            passed += run_all(given, name)
    print(json.dumps({"runtimes": sorted(runtimes), "passed": passed, "numpy": np.__version__}))


if __name__ == "__main__":
    main(*sys.argv[1:])
