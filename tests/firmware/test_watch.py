"""The watch: coverage that holds under drift, flags that are raised in time, for a reason."""

import ctypes
import itertools
import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.pack import Intervals, TargetCurve, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.loading import load
from twinedge.runtime.watch import FLAGS, Given, Watches

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "watch.md"
OUTSIDE, SCALE, ABOVE, BELOW, WORSE = (1 << number for number in range(5))
DRIFT = ABOVE | BELOW | WORSE
BYTES = 72
RATE = 40
ALL = 1000 * RATE  # alpha of an interval that covers nothing
WIDEST = 2**32 - 1  # quantile of one that covers everything
LIMIT = 2**31 - 1  # of numbers in the unit of a target
TYPICAL = 16 * 1000  # mean scale in calibration, in sixteenths of that
LEVELS = (500, 700, 800, 900, 950, 980, 990, 995)
POINTER, WORD, STATUS = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int
SIGNATURES = {
    "twin_watch_begin": (STATUS, POINTER, POINTER, ctypes.c_uint16),
    "twin_watch_add_prediction": (None, POINTER, POINTER, POINTER),
    "twin_watch_add_prediction_raw": (None, POINTER, POINTER, POINTER),
    "twin_watch_add_target": (None, POINTER, POINTER, POINTER, ctypes.c_float),
    "twin_watch_add_target_raw": (None, POINTER, POINTER, POINTER, ctypes.c_int32),
    **{f"twin_watch_{name}": (WORD, POINTER) for name in ("coverage", "outside", "scale", "flags")},
    "twin_watch_clear": (None, POINTER, WORD),
    "twin_watch_save": (None, POINTER, POINTER),
    "twin_watch_restore": (STATUS, POINTER, POINTER, POINTER),
}


class Watch(ctypes.Structure):
    """``twin_watch`` of twin_watch.h."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("pack", "level")),
        *((name, ctypes.c_int32) for name in ("alpha", "owed")),
        *((name, ctypes.c_uint32) for name in ("stretch", "flags")),
        ("sums", ctypes.c_uint32 * 5),
        *(
            (name, ctypes.c_uint32)
            for name in ("predictions", "outside", "scales", "targets", "covered")
        ),
    )


class Watched:
    """An open pack and a watch on it."""

    def __init__(self, native, library, data):
        native.declare(library, SIGNATURES)
        self.native, self.library = native, library
        self.opened = native.Native(library, data)
        self.model, self.watch = self.opened.model, Watch()
        ctypes.memset(ctypes.byref(self.watch), 0xA5, ctypes.sizeof(self.watch))

    def call(self, name, *arguments):
        function = getattr(self.library, f"twin_watch_{name}")
        return function(ctypes.byref(self.watch), *arguments)

    def with_model(self, name, *arguments):
        return self.call(name, ctypes.byref(self.model), *arguments)

    def begin(self, level=900):
        return self.native.name_of(self.with_model("begin", level))

    def add_prediction(self, given):
        """Count a prediction, in integers or floats."""
        raw = "_raw" * isinstance(given, self.native.Raw)
        self.with_model(f"add_prediction{raw}", ctypes.byref(given))

    def add_target(self, given, truth):
        """Count the true value of a prediction."""
        raw = "_raw" * isinstance(given, self.native.Raw)
        self.with_model(f"add_target{raw}", ctypes.byref(given), truth)

    def add(self, given, truth):
        self.add_prediction(given)
        self.add_target(given, truth)

    def save(self):
        saved = (ctypes.c_uint8 * BYTES)()
        self.call("save", saved)
        return bytes(saved)

    def restore(self, saved):
        return self.native.name_of(self.with_model("restore", (ctypes.c_uint8 * BYTES)(*saved)))

    def state(self):
        return bytes(self.watch), self.model.quantile

    def drive(self, *, scale, truth, mean=0, outside=0, late=0, clear=True):
        """Predict, and give the true values; returns which were missed, flags and quantiles."""
        count = len(truth)
        given = ((mean, np.int32), (scale, np.uint32), (outside, np.uint8), (truth, np.int32))
        columns = [
            np.ascontiguousarray(np.broadcast_to(column, count), dtype) for column, dtype in given
        ]
        missed = np.zeros(count, np.uint8)
        flags, quantile = np.zeros((2, count), np.uint32)
        memory = [ctypes.c_void_p(one.ctypes.data) for one in (*columns, missed, flags, quantile)]
        where = ctypes.byref(self.watch), ctypes.byref(self.model)
        self.library.drive(*where, count, late, clear, *memory)
        return missed[: count - late], flags, quantile


@pytest.fixture(scope="module")
def plain(packs, cases):
    """A small pack with intervals, whatever they are."""
    return cases.draw(packs, "one-anchor-one-feature", scaled=True)


@pytest.fixture(scope="module")
def open_watch(native, library, plain):
    """Open a pack of this calibration, and begin to watch it: ``open_watch(quantiles)``."""

    def make(quantiles, level=900, *, rows=500, typical=TYPICAL, outside=0.0, library=library):
        intervals = replace(
            plain.intervals,
            rows=rows,
            typical=round(typical),
            outside=round(65536 * outside),
            quantiles={one: round(65536 * quantile) for one, quantile in quantiles.items()},
        )
        made = Watched(native, library, write_pack(replace(plain, intervals=intervals)))
        if level:
            assert made.begin(level) == "ok"
        return made

    return make


NORMAL = {500: 0.674, 700: 1.036, 800: 1.282, 900: 1.645, 950: 1.96, 980: 2.326, 990: 2.576}

# Errors in units of the scale, with a standard deviation of 1 and no bias.
ERRORS = {
    "normal": lambda rng, count: rng.standard_normal(count),
    "heavy-tailed": lambda rng, count: rng.standard_t(3, count) / np.sqrt(3),
    "skewed": lambda rng, count: skewed(rng.standard_t(3, count)),
}


def skewed(t):
    """Double the positive errors, then standardise."""
    half = np.sqrt(3) / np.pi  # mean of what is above, of Student's t with 3 degrees of freedom
    return (np.where(t > 0, 2 * t, t) - half) / np.sqrt(7.5 - half**2)


def scales(rng, count):
    """Scales around the typical one, with a standard deviation of half of it."""
    return rng.lognormal(-0.11, 0.47, count)


def conformal(errors):
    """Quantiles of split conformal prediction, as far as the rows support them."""
    rows = np.sort(np.abs(errors))
    ranks = {level: -(-(len(rows) + 1) * level // 1000) for level in LEVELS}
    return {level: rows[rank - 1] for level, rank in ranks.items() if rank <= len(rows)}


@pytest.fixture(scope="module")
def calibrate(open_watch):
    """Watch a model calibrated on random rows."""

    def make(rng, kind, rows, outside=0.03, level=900):
        return open_watch(
            conformal(ERRORS[kind](rng, rows)),
            level,
            rows=rows,
            typical=TYPICAL * scales(rng, rows).mean(),
            outside=rng.binomial(rows, outside) / rows,
        )

    return make


def live(watched, rng, kind, count, *, offset=0, grown=1, larger=1, outside=0.03, **how):
    """Let a model predict; ``offset`` is in standard deviations of the error."""
    scale = np.maximum(np.rint(TYPICAL * larger * scales(rng, count)), 1)
    mean = rng.integers(-(10**6), 10**6, count)
    error = (grown * ERRORS[kind](rng, count) + offset) * scale / 16
    return watched.drive(
        scale=scale,
        mean=mean,
        truth=mean + np.rint(error),
        outside=rng.random(count) < outside,
        **how,
    )


def windows(missed, length=1000):
    """Smallest and largest share covered in any window."""
    total = np.concatenate([[0], np.cumsum(missed, dtype=int)])
    covered = 1 - (total[length:] - total[:-length]) / length
    return covered.min(), covered.max()


def raw(native, mean=0, scale=TYPICAL, half=1000, outside=0, intervals=1):
    ends = (mean - half, mean + half)
    return native.Raw(mean, 0, scale, *ends, outside, intervals=intervals, count=1)


# ---- intervals


def expected_quantile(quantiles, alpha):
    """Quantile of a level, by the rules of twin_watch.c, in unbounded integers."""
    wanted = ALL - alpha
    if alpha <= 0:
        return WIDEST
    if wanted <= 0:
        return 0
    points = [(0, 0), *((RATE * level, value) for level, value in quantiles.items())]
    while points[-1][0] < wanted:
        level, value = points[-1]
        points.append((level + (ALL - level + 1) // 2, min(value + value // 4 + 1, WIDEST)))
    for (below, low), (above, high) in itertools.pairwise(points):
        if wanted <= above:
            return low + (high - low) * (wanted - below) // (above - below)
    raise AssertionError


tables = st.dictionaries(st.integers(1, 999), st.integers(1, WIDEST), min_size=1, max_size=15)


@settings(deadline=None, max_examples=100)
@given(tables, st.lists(st.integers(-1000, ALL + 1000), min_size=2, max_size=20))
def test_a_level_becomes_a_quantile_by_the_table_of_the_pack(open_watch, table, alphas):
    values = sorted(table.values())
    table = dict(zip(sorted(table), values, strict=True))
    watched = open_watch(
        {level: value / 65536 for level, value in table.items()}, next(iter(table))
    )
    assert watched.model.quantile == values[0]
    found = []
    for alpha in sorted({*alphas, *(ALL - RATE * level for level in table)}):
        watched.watch.alpha = alpha
        assert watched.restore(watched.save()) == "ok"
        assert watched.model.quantile == expected_quantile(table, alpha)
        found.append(watched.model.quantile)
        level = (ALL - alpha) / RATE
        if level in table:
            assert watched.model.quantile == table[level]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("level", [500, 900, 990])
def test_alpha_moves_by_a_fortieth_of_what_it_should_be_less_what_it_was(native, open_watch, level):
    watched = open_watch(NORMAL, level)
    rng = np.random.default_rng(level)
    alpha = ALL - RATE * level
    for missed in rng.random(500) < 1 - level / 1000:
        assert watched.watch.alpha == alpha
        half = min((watched.model.quantile * TYPICAL) >> 20, LIMIT)
        if watched.model.quantile == WIDEST:
            missed = False  # as nothing is outside it
        truth = int(rng.choice([-1, 1])) * (half + 1 if missed else half)
        watched.add_target(raw(native, half=half), truth)
        alpha += 1000 - level - (1000 if missed else 0)
    assert watched.watch.owed == 0


@pytest.fixture
def network(cases, packs):
    """A pack with a network whose scales differ, and quantiles of normal errors."""
    pack = cases.draw(packs, "some-of-everything", scaled=True)
    quantiles = {level: round(65536 * quantile) for level, quantile in NORMAL.items()}
    intervals = Intervals(
        by_spread=30000,
        by_asymmetry=30000,
        by_difficulty=30000,
        constant=4096 * 500,
        rows=500,
        typical=16 * 3000,
        outside=32768,
        quantiles=quantiles,
    )
    limits = np.full(pack.features, 20000, np.int16)
    domain = replace(pack.domain, least=-limits, most=limits)
    return replace(
        pack,
        intervals=intervals,
        domain=domain,
        y_gain=np.float32(0.01),
        y_offset=np.float32(3),
        x_offset=np.zeros(pack.features, np.float32),
        x_gain=np.ones(pack.features, np.float32),
    )


def growing():
    """A target curve that is an exponential, over a wide range of estimates."""
    estimates = np.arange(-(2**21), 2**21 + 1, 2**14)
    return TargetCurve(-(2**21), 14, np.rint(1e7 * np.exp(estimates / 1e6)).astype(np.int32))


@pytest.mark.parametrize("curve", [None, growing()], ids=["straight", "curved"])
def test_the_next_prediction_has_the_adapted_interval(native, library, network, curve):
    # End to end, in integers and in floats side by side.
    network = replace(network, target_curve=curve)
    whole, of_floats = (Watched(native, library, write_pack(network)) for _ in range(2))
    assert whole.begin() == of_floats.begin() == "ok"
    rng = np.random.default_rng(0)
    quantiles, missed = set(), 0
    for q in rng.integers(-25000, 25001, (600, network.features)).astype(np.int16):
        found = whole.opened.predict_raw_all(q[None])
        one = native.Raw(*(found[name][0] for name, _ in native.Raw._fields_))
        half = min((whole.model.quantile * one.scale) >> 20, LIMIT)
        assert one.low == max(one.mean - half, -LIMIT - 1)
        assert one.high == min(one.mean + half, LIMIT)
        quantiles.add(whole.model.quantile)
        truth = one.mean + round(rng.standard_t(3) * one.scale / 16)
        missed += not one.low <= truth <= one.high
        whole.add(one, truth)
        found = of_floats.opened.predict_all(q[None].astype(np.float32))
        one = native.Prediction(*(found[name][0] for name, _ in native.Prediction._fields_))
        of_floats.add(one, float(reference.targets_of(network, np.array(truth))))
    assert len(quantiles) > 100
    assert whole.watch.predictions == whole.watch.targets == 600
    assert whole.watch.covered == 600 - missed
    assert whole.call("coverage") == 1000 * whole.watch.covered // 600
    assert whole.call("coverage") == pytest.approx(900, abs=42)
    assert whole.call("outside") > 200
    assert whole.watch.owed == of_floats.watch.owed == 0
    for name in ("alpha", "stretch", "predictions", "outside", "targets", "covered"):
        assert getattr(whole.watch, name) == getattr(of_floats.watch, name), name
    assert whole.watch.scales == pytest.approx(of_floats.watch.scales, rel=0.001)
    for truth, flag in ((3e38, ABOVE), (-3e38, BELOW)):  # beyond any estimate
        for _ in range(60):
            of_floats.add_target(one, truth)
        assert of_floats.call("flags") & DRIFT == flag | WORSE
        of_floats.call("clear", DRIFT)
    assert of_floats.watch.covered == whole.watch.covered


def drifts(rng, count):
    """Paths of an offset, in standard deviations of the error."""
    time = np.arange(count)
    steps = rng.integers(1500, 3000, count // 1500 + 1).cumsum()
    return {
        "none": 0,
        "walk": rng.normal(0, 0.02, count).cumsum(),
        "ramp": 0.001 * time,
        "sinusoid": 2 * np.sin(2 * np.pi * time / 3000),
        "jumps": 1.5 * (np.searchsorted(steps, time) % 2),
    }


WILD = {
    "walk": lambda rng, time: rng.normal(0, 0.3, len(time)).cumsum(),
    "sinusoid": lambda rng, time: 8 * np.sin(2 * np.pi * time / 150),
    "jumps": lambda rng, time: rng.normal(0, 10, len(time) // 300 + 1)[time // 300],
}


# Kinds of errors and rows of calibration; few of them, and the rest.
QUICK = [("normal", 60), ("heavy-tailed", 500), ("skewed", 60)]
CALIBRATIONS = [
    pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow)
    for one in itertools.product(ERRORS, (60, 500))
]


@pytest.mark.parametrize(("kind", "rows"), CALIBRATIONS)
def test_any_thousand_truths_are_covered_while_an_offset_walks(calibrate, kind, rows):
    rng = np.random.default_rng([rows, 0])
    ways = drifts(rng, 20000)
    ways |= {f"wild {name}": way(rng, np.arange(20000)) for name, way in WILD.items()}
    for name, offset in ways.items():
        watched = calibrate(rng, kind, rows)
        missed, _, quantile = live(watched, rng, kind, 20000, offset=offset)
        least, most = windows(missed)
        assert 0.858 <= least <= most <= 0.942, name
        # And not with meaningless intervals.
        assert (quantile == WIDEST).mean() < 0.02, name


@pytest.mark.parametrize(("kind", "rows"), CALIBRATIONS)
def test_any_thousand_truths_are_covered_when_each_is_fifty_queries_late(calibrate, kind, rows):
    rng = np.random.default_rng([rows, 0])
    for name, offset in drifts(rng, 20000).items():
        watched = calibrate(rng, kind, rows)
        missed, _, quantile = live(watched, rng, kind, 20000, offset=offset, late=50)
        least, most = windows(missed)
        assert 0.85 <= least <= most <= 0.95, name
        assert missed.mean() == pytest.approx(0.1, abs=0.005), name
        assert (quantile == WIDEST).mean() < 0.05, name


@pytest.mark.parametrize("wants", ["misses", "none", "either", "bursts"])
def test_whoever_chooses_the_truths_cannot_break_the_bound(native, open_watch, wants):
    level = {"misses": 500, "bursts": 990}.get(wants, 900)
    watched = open_watch(NORMAL, level)
    rng = np.random.default_rng(level)
    bound = (1 + 2 / RATE) / (1000 / RATE)
    missed = []
    for number in range(4000):
        half = min((watched.model.quantile * TYPICAL) >> 20, LIMIT)
        wanted = {
            "misses": True,
            "none": False,
            "either": rng.random() < 0.5,
            "bursts": number // 700 % 2 == 0,
        }[wants]
        # Just outside; as near as possible, but never exact.
        truth = min(half + 1, 10**7) if wanted else 1
        watched.add_target(raw(native, half=half), truth)
        missed.append(truth > half)
    least, most = windows(missed)
    assert level / 1000 - bound <= least <= most <= level / 1000 + bound


def test_intervals_narrow_again(calibrate):
    rng = np.random.default_rng(8)
    watched = calibrate(rng, "normal", 500)
    _, _, before = live(watched, rng, "normal", 3000)
    _, _, far = live(watched, rng, "normal", 3000, offset=10)
    _, _, after = live(watched, rng, "normal", 3000)
    assert np.median(before[1000:]) == pytest.approx(1.645 * 65536, rel=0.1)
    assert np.median(far[1000:]) == pytest.approx(11.3 * 65536, rel=0.15)
    assert np.median(after[1000:]) == pytest.approx(1.645 * 65536, rel=0.1)


# ---- flags


def first(flags, wanted):
    """How many queries it took, and the flags raised then."""
    at = np.flatnonzero(flags & wanted)
    return (at[0] + 1, int(flags[at[0]])) if len(at) else (np.inf, 0)


@pytest.mark.parametrize(("kind", "rows"), CALIBRATIONS)
def test_a_step_of_two_standard_deviations_is_flagged_within_200_truths(calibrate, kind, rows):
    delays = []
    for seed, sign in itertools.product(range(20), (-1, 1)):
        rng = np.random.default_rng([rows, seed])
        watched = calibrate(rng, kind, rows)
        assert not live(watched, rng, kind, 500)[1].any()
        _, flags, _ = live(watched, rng, kind, 300, offset=2 * sign, clear=False)
        assert flags[-1] & (ABOVE | BELOW) == (ABOVE if sign > 0 else BELOW)
        delays.append(first(flags, DRIFT)[0])
    assert max(delays) <= 100
    assert np.median(delays) <= 60


@pytest.mark.parametrize(("kind", "rows"), CALIBRATIONS)
def test_no_false_alarm_in_hundreds_of_thousands_of_queries(calibrate, kind, rows):
    alarms = 0
    for seed in range(12):  # each with its own calibration
        rng = np.random.default_rng([rows, seed])
        share = float(rng.choice([0, 0.03, 0.2]))
        watched = calibrate(rng, kind, rows, outside=share)
        alarms += np.count_nonzero(live(watched, rng, kind, 30_000, outside=share)[1])
    assert alarms == 0


@pytest.mark.parametrize(
    ("change", "flag", "within"),
    [
        ({"outside": 1}, OUTSIDE, 60),
        ({"outside": 0.5}, OUTSIDE, 300),
        ({"larger": 2}, SCALE, 400),
        ({"larger": 3}, SCALE, 80),
        ({"grown": 3}, WORSE, 200),
    ],
    ids=str,
)
def test_what_else_changes_is_flagged(calibrate, change, flag, within):
    for seed, rows in itertools.product(range(10), (60, 500)):
        rng = np.random.default_rng([rows, seed])
        watched = calibrate(rng, "normal", rows)
        _, flags, _ = live(watched, rng, "normal", 1000, clear=False, **change)
        delay, raised = first(flags, flag)
        assert delay <= within or (change == {"larger": 2} and rows == 60)
        assert raised in (flag, 0)


def test_a_flag_stays_until_it_is_cleared(calibrate):
    rng = np.random.default_rng(5)
    watched = calibrate(rng, "normal", 500)
    live(watched, rng, "normal", 300, offset=3, outside=1, clear=False)
    assert watched.call("flags") == OUTSIDE | ABOVE | WORSE
    live(watched, rng, "normal", 300, offset=0, clear=False)
    assert watched.call("flags") == OUTSIDE | ABOVE | WORSE
    watched.call("clear", ABOVE)
    assert watched.call("flags") == OUTSIDE | WORSE
    assert watched.watch.sums[2] == 0
    assert watched.watch.sums[0] > 0
    watched.call("clear", 0xFFFFFFFF)
    assert watched.call("flags") == 0
    assert list(watched.watch.sums) == [0] * 5
    assert live(watched, rng, "normal", 5000)[1].any() == 0


def test_one_wild_value_raises_no_flag(open_watch):
    watched = open_watch(NORMAL)
    for truth in (LIMIT, -LIMIT):
        _, flags, _ = watched.drive(scale=[2**32 - 1], truth=[truth], outside=1)
        assert not flags.any()
    assert max(watched.watch.sums) < 3 * 1024


# ---- counts


def test_shares_are_in_thousandths(open_watch, native):
    watched = open_watch(NORMAL)
    for name in ("coverage", "outside", "scale"):
        assert watched.call(name) == 0
    for number in range(400):
        one = raw(native, scale=TYPICAL * (1 + number % 3), outside=4 * (number % 8 == 0))
        watched.add(one, 1001 if number % 5 == 0 else -1000)
    assert watched.call("coverage") == 800
    assert watched.call("outside") == 125
    assert watched.call("scale") == pytest.approx(2000, abs=5)


def test_at_the_limit_of_its_counts_it_goes_on(open_watch, native, tmp_path_factory):
    # The state after 2^32 queries, all of them outside, far too large and covered.
    watched = open_watch(NORMAL)
    watched.watch.predictions = watched.watch.outside = watched.watch.targets = (
        watched.watch.covered
    ) = 65535
    watched.watch.scales = 65535 * 65535
    in_python = load_bytes(watched, tmp_path_factory).watch(0.9)
    in_python.restore(watched.save())
    for _ in range(2):
        watched.add(raw(native, scale=2**32 - 1, outside=1), 0)
        in_python.add_prediction(2**32 - 1, True)
        in_python.add_target_raw(Given(0, 2**32 - 1, -1000, 1000), 0)
        assert in_python.save() == watched.save()
    assert watched.watch.predictions == watched.watch.targets == 32769
    assert watched.call("coverage") == watched.call("outside") == 1000
    assert watched.call("scale") == pytest.approx(64000, abs=5)


# ---- saving


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([500, 900, 990]),
    st.integers(0, 400),
    st.integers(1, 400),
    st.sampled_from([0, 2, 30]),
)
def test_what_was_restored_has_the_same_future(open_watch, seed, level, before, after, offset):
    rng = np.random.default_rng(seed)
    one, other = open_watch(NORMAL, level), open_watch(NORMAL, level=None)
    live(one, rng, "normal", before, offset=offset, clear=False)
    saved = one.save()
    assert other.restore(saved) == "ok"
    assert other.save() == saved
    assert one.state() == other.state()
    futures = [
        live(watched, np.random.default_rng(seed), "normal", after, offset=offset)
        for watched in (one, other)
    ]
    for here, there in zip(*futures, strict=True):
        np.testing.assert_array_equal(here, there)
    assert one.state() == other.state()


def test_the_bytes_are_as_documented(calibrate):
    rng = np.random.default_rng(7)
    watched = calibrate(rng, "normal", 60)
    live(watched, rng, "normal", 5000, offset=5, late=20, clear=False)
    saved = watched.save()
    assert saved[:4] == b"TWW\x01"
    fields = struct.unpack("<2I2i12I", saved[4:-4])
    assert fields[1] == 900
    found = [getattr(watched.watch, name) for name, _ in Watch._fields_]
    flat = itertools.chain(*(one if isinstance(one, ctypes.Array) else [one] for one in found))
    assert fields == tuple(flat)
    assert struct.unpack("<I", saved[-4:])[0] == zlib.crc32(saved[:-4]) ^ 0xFFFFFFFF


def test_every_bit_that_flips_is_found_and_nothing_is_half_restored(calibrate):
    rng = np.random.default_rng(9)
    watched, other = (calibrate(np.random.default_rng(1), "normal", 60) for _ in range(2))
    live(watched, rng, "normal", 700, offset=3, clear=False)
    saved = watched.save()
    live(other, rng, "normal", 50)
    before = other.state()
    for byte in (0x00, 0xFF):  # erased flash
        assert other.restore([byte] * BYTES) == "magic"
    for bit in range(8 * BYTES):
        damaged = bytearray(saved)
        damaged[bit // 8] ^= 1 << bit % 8
        expected = "magic" if bit < 24 else "version" if bit < 32 else "body_crc"
        assert other.restore(damaged) == expected
        assert other.state() == before
    assert other.restore(saved) == "ok"
    assert other.state() == watched.state()


def test_a_watch_of_another_pack_is_refused(open_watch, native, library, plain):
    saved = open_watch(NORMAL).save()
    assert open_watch(NORMAL).restore(saved) == "ok"
    without = Watched(native, library, write_pack(replace_intervals(plain)))
    others = [
        open_watch(NORMAL | {900: 1.646}),
        open_watch({900: 1.645}),
        open_watch(NORMAL, rows=501),
        open_watch(NORMAL, typical=TYPICAL + 1),
    ]
    for other in (*others, without):
        before = other.state()
        assert other.restore(saved) == "level"
        assert other.state() == before
    closed = open_watch(NORMAL)
    closed.model.kernel = None
    before = closed.state()
    assert closed.restore(saved) == "model"
    assert closed.state() == before


def replace_intervals(pack):
    """Return the pack without intervals."""
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in pack.twins)
    return replace(pack, twins=twins, intervals=None)


# ---- misuse


numbers_of_32_bits = st.integers(0, 2**32 - 1) | st.integers(0, 1200)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(numbers_of_32_bits, min_size=11, max_size=11),
    st.lists(numbers_of_32_bits, min_size=15, max_size=15),
)
@example([0, 0, 2**32 - 1, *(900, 7) * 4], [900] + [0] * 14)
@example([0, 0, 0, *(900, 9, 800, 8, 700, 7, 1000, 6)], [1000] + [0] * 14)
def test_no_numbers_in_intervals_or_saved_bytes_do_harm(
    native, library, packs, plain, numbers, saved
):
    # The reader checks only the length of the section; forged bytes have a valid checksum.
    intervals = replace(plain.intervals, quantiles={500: 1, 600: 2, 700: 3, 900: 4})
    data = bytearray(write_pack(replace(plain, intervals=intervals)))
    entry = next(at for at in range(48, 48 + 12 * data[6], 12) if data[at] == 7)
    at = int.from_bytes(data[entry + 4 : entry + 8], "little")
    data[at + 16 : at + 28] = struct.pack("<3I", *numbers[:3])
    data[at + 32 : at + 64] = struct.pack("<8I", *numbers[3:])
    watched = Watched(native, library, packs.repair(data))
    status = watched.begin(next((one for one in numbers[3::2] if one < 65536), 900))
    live(watched, np.random.default_rng(0), "heavy-tailed", 200, offset=1)
    forged = b"TWW\x01" + struct.pack("<16I", watched.watch.pack, *saved)
    forged += struct.pack("<I", zlib.crc32(forged) ^ 0xFFFFFFFF)
    assert watched.restore(forged) == (status if saved[0] <= 999 else "level")
    live(watched, np.random.default_rng(1), "heavy-tailed", 200, offset=1)


def assert_does_nothing(watched, native):
    """Whatever is reported to it, neither the watch nor the model changes."""
    before = watched.state()
    for one in (raw(native), raw(native, outside=1)):
        watched.add(one, 5000)
    watched.add(native.Prediction(0, 0, 1, -1, 1, intervals=1), 5.0)
    assert watched.state() == before


def test_a_watch_that_could_not_begin_does_nothing(native, library, open_watch, plain):
    watched = open_watch(NORMAL, level=None)
    quantile = watched.model.quantile
    for level in (0, 1, 899, 901, 1000, 65535):
        assert watched.begin(level) == "level"
        assert watched.model.quantile == quantile
        assert_does_nothing(watched, native)
    without = Watched(native, library, write_pack(replace_intervals(plain)))
    assert without.begin() == "level"
    assert_does_nothing(without, native)
    closed = Watched(native, library, write_pack(plain)[:-16])
    assert closed.opened.status == "truncated"
    assert closed.begin() == "model"
    assert_does_nothing(closed, native)
    for name in ("coverage", "outside", "scale", "flags"):
        assert closed.call(name) == 0
    for field in ("kernel", "intervals"):  # closed meanwhile
        watched = open_watch(NORMAL)
        setattr(watched.model, field, None)
        assert_does_nothing(watched, native)


def test_what_is_no_prediction_or_no_truth_counts_for_nothing(native, open_watch):
    watched = open_watch(NORMAL)
    before = watched.state()
    watched.add(raw(native, intervals=0), 9999)
    watched.add_target(raw(native), -(2**31))
    watched.add(native.Prediction(*[np.nan] * 5), 1.0)
    for truth in (np.nan, np.inf, -np.inf):
        watched.add_target(native.Prediction(0, 0, 1, -1, 1, intervals=1), truth)
    assert watched.state() == before


EXTREMES = [0, 1, -1, LIMIT, -LIMIT, 2**30]
FLOATS = [0.0, 1e-45, 1.0, -3.4e38, 3.4e38, float("inf")]


def test_extremes_do_no_harm(native, open_watch):
    watched = open_watch(NORMAL)
    for mean, truth, scale in itertools.product(EXTREMES, EXTREMES, (1, 2**16, 2**32 - 1)):
        watched.add(
            native.Raw(mean, 0, scale, -LIMIT, LIMIT, 2**32 - 1, intervals=1, count=1), truth
        )
    for mean, truth, scale in itertools.product(FLOATS, FLOATS, FLOATS):
        watched.add(native.Prediction(mean, 0, abs(scale), -1, 1, intervals=1), truth)
    assert 0 < watched.watch.targets <= watched.watch.predictions


# ---- other compilers, and what is printed


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        ("gcc", ("-O1", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321")),
        pytest.param("gcc", ("-O0",), marks=pytest.mark.slow),
        pytest.param("clang", ("-O3",), marks=pytest.mark.slow),
    ],
)
def test_every_compiler_gives_the_same_state(
    uninstrumented, native, objects, open_watch, tmp_path, compiler, options
):
    others = [path for path in objects(*native.SHARED) if path.stem != "twin_watch"]
    sources = [HERE / "drive_watch.c", native.FIRMWARE / "src" / "twin_watch.c", *others]
    options = (*options, "-fPIC", "-shared", "-DTWIN_HOST=0")
    path = native.compile_c(tmp_path / "libtwin.so", *options, compiler=compiler, sources=sources)
    states = []
    for options in ({"library": native.load(path)}, {}):
        watched = open_watch(NORMAL, **options)
        rng = np.random.default_rng(10)
        futures = live(watched, rng, "heavy-tailed", 5000, offset=3, late=5)
        states.append((watched.save(), *(column.tobytes() for column in futures)))
    assert states[0] == states[1]


@pytest.fixture(scope="module")
def program(native, objects, tmp_path_factory):
    """The program of the page, compiled as it stands."""
    folder = tmp_path_factory.mktemp("program")
    (code,) = re.findall(r"(?ms)^```c\n(.*?)^```", PAGE.read_text())
    (folder / "program.c").write_text(code)
    sources = [folder / "program.c", *objects(*native.SANITIZED)]
    options = ("-DTWIN_HOST=0", *native.SANITIZED)
    return native.compile_c(folder / "watch", *options, sources=sources)


@pytest.fixture
def printed(native, program, cases, packs, tmp_path):
    """Run the program on a pack with these quantiles: ``printed(lines)`` is what it prints."""
    pack = cases.draw(packs, "neighbors", scaled=True)
    quantiles = {level: round(65536 * quantile) for level, quantile in NORMAL.items()}
    intervals = replace(pack.intervals, quantiles=quantiles, rows=500, outside=0)
    fill = np.full(pack.features, NO_FILL, np.int16)
    pack = replace(pack, intervals=intervals, domain=replace(pack.domain, fill=fill))
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    files = tmp_path / "model.twin", tmp_path / "watch.state"
    return pack, lambda lines: native.run(program, *files, input="".join(f"{x}\n" for x in lines))


def test_the_printed_program_watches(printed, tmp_path):
    pack, run = printed
    middle = pack.x_offset.astype(float)
    inside = (pack.domain.least.astype(float) + pack.domain.most) / 2 / pack.x_gain + middle
    query = " ".join(f"{value:.9g}" for value in inside)
    mean, low, high = map(
        float, re.fullmatch(r"(\S+) from (\S+) to (\S+)\n", run([query])).groups()
    )
    assert low <= mean <= high
    far = f"{mean + 0.5 * (high - mean):.9g}"
    assert "predictions" not in run([f"{query} {far}"] * 50)
    output = run([f"{query} {far}"] * 300)  # resumes
    assert output.count("predictions are off to one side") == 2
    state = (tmp_path / "watch.state").read_bytes()
    assert len(state) == BYTES
    assert struct.unpack("<I", state[60:64])[0] == 350


def test_the_printed_program_goes_on_after_a_line_that_is_refused(printed, tmp_path):
    pack, run = printed
    good = " ".join(f"{value:.9g}" for value in pack.x_offset)
    missing = f"nan{good[good.index(' ') :]}"
    output = run([good, missing, "inf " * pack.features, "1", f"{good} inf", good])
    answers = [line for line in output.splitlines() if " from " in line]
    assert len(answers) == 4
    assert answers[0] == answers[2] == answers[3] != answers[1]
    assert output.count("not a number") == 2
    assert struct.unpack("<I", (tmp_path / "watch.state").read_bytes()[48:52])[0] == 4  # seen


# ---- in Python


levels = st.sampled_from([500, 900, 990])


@st.composite
def histories(draw):
    """Intervals, and predictions with their true values, some of them late."""
    table = {level: draw(st.integers(1, WIDEST)) for level in (500, 900, 990)}
    values = sorted(table.values())
    calibration = {
        "rows": draw(st.sampled_from([0, 20, 60, 500, 65535])),
        "typical": draw(st.integers(0, 2**32 - 1)),
        "outside": draw(st.integers(0, 65536)) / 65536,
    }
    number, size = st.integers(-(2**31) + 1, 2**31 - 1), st.integers(0, 2**32 - 1)
    usual = st.integers(1, 10**6)
    steps = draw(
        st.lists(
            st.tuples(usual | number, usual | size, st.booleans(), usual | number), max_size=120
        )
    )
    return dict(zip(table, values, strict=True)), calibration, steps, draw(st.integers(0, 5))


NEAR, FAR = (0, TYPICAL, False, 0), (0, 3 * TYPICAL, True, 10**6)
CALIBRATED = {"rows": 500, "typical": TYPICAL, "outside": 0.0}


@settings(deadline=None, max_examples=60)
@given(histories(), levels)
# Intervals of nothing, every flag, levels whose quantiles fall, and none above the usual one.
@example(({500: 44000, 900: 107000}, CALIBRATED, [NEAR] * 300, 0), 500)
@example(({500: 44000, 900: 107000}, CALIBRATED, [FAR] * 200, 3), 900)
@example(({500: 107000, 900: 44000, 990: 60000}, CALIBRATED, [NEAR, NEAR, FAR] * 9, 0), 900)
def test_python_keeps_the_same_state(native, open_watch, plain, tmp_path_factory, history, level):
    table, calibration, steps, late = history
    watched = open_watch({one: value / 65536 for one, value in table.items()}, level, **calibration)
    device = load_bytes(watched, tmp_path_factory)
    watch = device.watch(level / 1000)
    open_ones = []
    for mean, scale, outside, truth in steps:
        half = min(watch.quantile * scale >> 20, LIMIT)
        low, high = (min(max(mean + one, -(2**31)), 2**31 - 1) for one in (-half, half))
        given_c = native.Raw(mean, 0, scale, low, high, int(outside), intervals=1, count=1)
        watched.add_prediction(given_c)
        watch.add_prediction(scale, outside)
        open_ones.append((given_c, Given(mean, scale, low, high), truth))
        if len(open_ones) > late:
            given_c, given_python, truth = open_ones.pop(0)
            watched.add_target(given_c, truth)
            watch.add_target_raw(given_python, truth)
        assert watch.quantile == watched.model.quantile
    assert watch.save() == watched.save()
    assert sum(1 << FLAGS.index(one) for one in watch.flags) == watched.watch.flags
    again = device.watch(level / 1000)
    again.restore(watched.save())
    assert again.save() == watch.save()
    assert again.quantile == watched.model.quantile or not steps
    watch.clear()
    watched.call("clear", watched.watch.flags)
    assert watch.save() == watched.save()


def load_bytes(watched, folder):
    """Open the pack of a watch in Python."""
    path = folder.mktemp("watch") / "model.twin"
    path.write_bytes(bytes(watched.opened.pack))
    return load(path, "numpy")


def test_python_refuses_other_states(open_watch, tmp_path_factory):
    watched = open_watch({900: 1.5})
    device = load_bytes(watched, tmp_path_factory)
    watch, data = device.watch(), watched.save()
    for words, wrong in (
        ("no state of a watch", b""),
        ("no state of a watch", bytes(BYTES)),
        ("version 2", data[:3] + b"\2" + data[4:]),
        ("damaged", data[:9] + b"\7" + data[10:]),
        ("another pack", open_watch({900: 1.6}).save()),
    ):
        with pytest.raises(InputError, match=words):
            watch.restore(wrong)
        assert watch.save() == data


@pytest.mark.parametrize(("truth", "flag"), [(3e38, "above"), (-3e38, "below")])
def test_in_python_a_truth_beyond_all_numbers_is_missed(open_watch, tmp_path_factory, truth, flag):
    watch = load_bytes(open_watch(NORMAL), tmp_path_factory).watch()
    before, given = watch.save(), Given(0, TYPICAL, -1000, 1000)
    for none in (np.nan, np.inf, -np.inf):
        watch.add_target(given, none)
    assert watch.save() == before
    for _ in range(100):
        watch.add_target(given, truth)
    assert (watch.coverage, watch.flags) == (0.0, [flag, "worse"])
    watch.clear()
    assert watch.flags == []


def test_groups_are_watched_apart_and_the_most_silent_is_forgotten(open_watch, tmp_path_factory):
    device = load_bytes(open_watch(NORMAL), tmp_path_factory)
    watches = Watches(device, most=2)
    for group in "abac":
        watches.of(group).add_prediction(TYPICAL, group == "a")
    assert [*watches.state] == ["a", "c"]
    assert (watches.of("a").outside, watches.of("c").outside) == (1.0, 0.0)
