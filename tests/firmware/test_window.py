"""Derived inputs in C: the bits of numpy, after any number of samples."""

import ctypes
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.encoding.derived import STATISTICS, Clock, Derived
from twinedge.encoding.times import Notation
from twinedge.encoding.windows import Window, derive, rows_of_streams

CLOCK = Clock("t", Notation(None, "seconds"), None, 1.0, 90, 60.0)
KINDS = ("lag", "delta", "min", "max", "mean", "std", "slope")  # as in twin_window.h


class CDerived(ctypes.Structure):
    """``twin_derived`` of twin_window.h."""

    _fields_ = tuple((name, ctypes.c_uint16) for name in ("statistic", "samples", "feature"))


class CSource(ctypes.Structure):
    """``twin_source`` of twin_window.h."""

    _fields_ = (
        ("inputs", ctypes.POINTER(CDerived)),
        *((name, ctypes.c_float) for name in ("centre", "scale")),
        *((name, ctypes.c_uint16) for name in ("count", "column", "length")),
    )


class CWindows(ctypes.Structure):
    """``twin_windows`` of twin_window.h."""

    _fields_ = (
        ("sources", ctypes.POINTER(CSource)),
        ("gap", ctypes.c_uint32),
        *((name, ctypes.c_uint16) for name in ("count", "longest")),
    )


class CWindow(ctypes.Structure):
    """``twin_window`` of twin_window.h."""

    _fields_ = (
        ("windows", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("when", ctypes.c_uint32),
        ("samples", ctypes.c_uint16),
    )


class Pushed:
    """A window in C; its samples are the columns ``a``, ``b``, ... of x, derived inputs follow."""

    def __init__(self, native, library, derived, columns="ab"):
        self.status, self.library = native.name_of, library
        native.declare(
            library,
            {
                "twin_window_size": (ctypes.c_uint32, ctypes.c_void_p),
                "twin_window_begin": (ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_uint32),
                "twin_window_reset": (None, ctypes.c_void_p),
                "twin_window_push": (
                    *(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32),
                    ctypes.c_void_p,
                ),
                "twin_window_ready": (ctypes.c_int, ctypes.c_void_p),
            },
        )
        sources, self.kept = [], []
        for number, name in enumerate(columns):
            mine = [(k, one) for k, one in enumerate(derived) if one.column == name]
            if not mine:
                continue
            inputs = (CDerived * len(mine))(
                *(
                    CDerived(KINDS.index(one.statistic), one.samples, len(columns) + k)
                    for k, one in mine
                )
            )
            self.kept.append(inputs)
            one = mine[0][1]
            length = max(one.samples for _, one in mine)
            scale = 2.0**one.bits
            sources.append(CSource(inputs, one.centre, scale, len(mine), number, length))
        self.sources = (CSource * len(sources))(*sources)
        longest = max(one.window for one in derived)
        self.windows = CWindows(self.sources, CLOCK.gap, len(sources), longest)
        self.window = CWindow()
        self.x = np.zeros(len(columns) + len(derived), np.float32)
        self.columns = len(columns)

    @property
    def size(self):
        return self.library.twin_window_size(ctypes.byref(self.windows))

    def begin(self, size=None):
        # Behind it nothing may be written; before it is used, it may hold anything.
        size = self.size if size is None else size
        self.memory = np.full(size // 8 + 2, 0x5A5A5A5A5A5A5A5A, np.int64)
        at = self.memory.ctypes.data
        windows, window = ctypes.byref(self.windows), ctypes.byref(self.window)
        return self.status(self.library.twin_window_begin(window, windows, at, size))

    def push(self, when, *samples):
        self.x[: self.columns] = samples
        at = self.x.ctypes.data
        window = ctypes.byref(self.window)
        ready = self.library.twin_window_push(window, when % 2**32, at)
        assert ready == self.library.twin_window_ready(window)
        return ready, self.x[self.columns :].copy()

    def check_memory(self):
        assert (self.memory[self.size // 8 :] == 0x5A5A5A5A5A5A5A5A).all()


def compare(pushed, derived, values, times):
    """Let C and numpy derive the same; every bit must be equal, NaN where NaN."""
    rows = rows_of_streams(CLOCK, np.asarray(times, np.float64), None)
    columns = dict(zip("ab", np.asarray(values, np.float64).T, strict=True))
    expected, start = derive(derived, columns, rows)
    assert pushed.begin() == "ok"
    found, ready = np.empty((len(times), len(derived)), np.float32), []
    with np.errstate(over="ignore"):
        for row, (when, sample) in enumerate(zip(times, values, strict=True)):
            full, found[row] = pushed.push(int(when), *sample)
            ready.append(full)
    pushed.check_memory()
    np.testing.assert_array_equal(found, np.transpose(expected).astype(np.float32))
    assert ready == (start >= 0).tolist()


def every(column, samples, centre, bits):
    return [
        Derived(kind, column, n, centre, bits, CLOCK)
        for n in samples
        for kind in KINDS
        if STATISTICS[kind][0] <= n <= STATISTICS[kind][1]
    ]


def logged(n, seed):
    """Two columns of a long log with gaps, times that go back, and missing values."""
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(size=(n, 2)), axis=0) + np.array([20, 1e5])
    steps = rng.choice([60, 60, 60, 90, 0], n)
    steps[rng.integers(1, n, n // 2000 + 1)] = 5000
    walk[rng.random((n, 2)) < 0.0005] = np.nan
    walk[rng.random((n, 2)) < 0.0005] = np.inf
    walk[n // 2 : n // 2 + 1000, 0] = walk[n // 2, 0]  # a sensor that is stuck
    return walk.astype(np.float32), np.cumsum(steps)


def test_bits_are_those_of_numpy_in_a_long_log(native, library):
    derived = [*every("a", (1, 2, 12, 100, 1024), 20, 9), *every("b", (5, 60), 1e5, 10)]
    derived += [Derived("max", "b", 5000, 1e5, 10, CLOCK), Derived("lag", "a", 3000, 20, 9, CLOCK)]
    values, times = logged(100_000, 0)
    compare(Pushed(native, library, derived), derived, values, times)


sample = st.one_of(st.floats(width=32), st.integers(-900, 900).map(float))


@given(st.data())
@settings(max_examples=60)
def test_bits_are_those_of_numpy_for_any_samples(native, library, data):
    draw = data.draw
    values = draw(st.lists(st.tuples(sample, sample), min_size=1, max_size=50))
    steps = st.sampled_from([0, 60, 60, 60, 60, 60, 60, 90, 91, 5000])
    times = np.cumsum([draw(steps) for _ in values])
    samples = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True))
    centre = float(np.float32(draw(st.floats(-1e6, 1e6))))
    derived = every("a", samples, centre, draw(st.integers(-80, 80)))
    derived += every("b", [3], 0.0, draw(st.integers(-80, 80)))
    compare(Pushed(native, library, derived), derived, values, times)


def test_time_that_wraps_around_is_no_gap_and_time_that_goes_back_is(native, library):
    derived = [Derived("delta", "a", 1, 0.0, 8, CLOCK)]
    pushed = Pushed(native, library, derived)
    assert pushed.begin() == "ok"
    window = Window(derived)
    for when, value in ((2**32 - 30, 1), (2**32 + 30, 3), (2**32 + 20, 4), (2**32 + 80, 6)):
        _, (found,) = pushed.push(when, value, 0)
        np.testing.assert_array_equal(window.push({"a": value}, when), [found])
    assert found == 2


def test_a_stream_without_a_gap_goes_on_for_ever(native, library):
    """Known samples are counted in 16 bits."""
    pushed = Pushed(native, library, [Derived("delta", "a", 1, 0.0, 8, CLOCK)])
    pushed.begin()
    window, at = ctypes.byref(pushed.window), pushed.x.ctypes.data
    for _ in range(2**16 - 2):
        pushed.library.twin_window_push(window, 0, at)
    for value in range(1, 6):
        assert pushed.push(0, value, 0) == (1, [1])


def test_a_reset_forgets_all_samples(native, library):
    derived = every("a", (3,), 0.0, 8)
    pushed = Pushed(native, library, derived)
    pushed.begin()
    for when in range(4):
        ready, first = pushed.push(when, when, 0)
    assert ready
    pushed.library.twin_window_reset(ctypes.byref(pushed.window))
    for when in range(4):
        ready, again = pushed.push(when, when, 0)
        assert ready == (when == 3)
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize(
    ("statistic", "samples", "length"),
    [(7, 3, 3), (4, 1, 3), (0, 0, 3), (4, 1025, 1025), (2, 65535, 65535), (1, 4, 3)],
)
def test_numbers_out_of_range_are_refused(native, library, statistic, samples, length):
    pushed = Pushed(native, library, [Derived("mean", "a", 3, 0.0, 8, CLOCK)])
    pushed.kept[0][0] = CDerived(statistic, samples, 2)
    pushed.sources[0].length = length
    assert pushed.size == 0
    assert pushed.begin(100) == "value"
    pushed.library.twin_window_reset(ctypes.byref(pushed.window))
    ready, _ = pushed.push(0, 1.0, 2.0)
    assert not ready


def test_too_little_memory_is_refused(native, library):
    pushed = Pushed(native, library, [Derived("mean", "a", 3, 0.0, 8, CLOCK)])
    assert pushed.begin(pushed.size - 1) == "scratch"
    assert not pushed.push(0, 1.0, 2.0)[0]


def test_the_example_of_the_header_is_right(native, library, tmp_path):
    text = (native.FIRMWARE / "include" / "twin_window.h").read_text()
    code = re.search(r"(static const twin_derived.*?)twin_window window;", text, re.DOTALL)[1]
    code = re.sub(r"^ \* +", "", code, flags=re.MULTILINE)
    main = tmp_path / "main.c"
    main.write_text(
        f'#include "twin_window.h"\n#include <stdio.h>\n{code}\nint main(void) {{\n'
        'printf("%u %u", (unsigned)sizeof memory, (unsigned)twin_window_size(&windows));\n'
        "return 0; }\n"
    )
    native.compile_c(tmp_path / "main", sources=[main, native.FIRMWARE / "src" / "twin_window.c"])
    given, needed = map(int, native.run(tmp_path / "main").split())
    assert needed <= given
