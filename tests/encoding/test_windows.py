"""Derived inputs of a table and of a stream: the same bits, and what the names promise."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.encoding.derived import Clock, Derived, parse_terms
from twinedge.encoding.times import Notation
from twinedge.encoding.windows import (
    LARGEST,
    Window,
    clock_of,
    derive,
    quantisation,
    quantise,
    resolve,
    rows_of_streams,
)
from twinedge.errors import InputError

SECONDS = Notation(None, "seconds")
CLOCK = Clock("t", SECONDS, None, 1.0, 90, 60.0)


def every(column: str, n: int, centre: float = 0.0, bits: int = 8) -> list[Derived]:
    kinds = ("lag", "delta", "min", "max", "mean", "std", "slope")
    return [Derived(one, column, n, centre, bits, CLOCK) for one in kinds]


def stretches(begins: Any) -> Iterator[slice]:
    edges = [*np.flatnonzero(begins).tolist(), len(begins)]
    return (slice(*one) for one in pairwise(edges))


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[float], list[int], list[Derived]]:
    value = st.one_of(st.floats(width=32), st.just(float("nan")), st.integers(-900, 900).map(float))
    values = draw(st.lists(value, max_size=60))
    steps = st.sampled_from([0, 60, 60, 60, 60, 60, 60, 90, 91, 5000])
    times = np.cumsum([draw(steps) for _ in values]).tolist()
    centre = float(np.float32(draw(st.floats(-1e6, 1e6))))
    bits = draw(st.integers(-30, 40))
    derived = every("v", draw(st.integers(2, 9)), centre, bits)
    return values, times, [*derived, *every("v", 3, centre, bits)[::2]]


@given(streams())
def test_a_stream_gives_the_bits_of_the_table(
    case: tuple[list[float], list[int], list[Derived]],
) -> None:
    values, times, derived = case
    rows = rows_of_streams(CLOCK, np.array(times, np.float64), None)
    table, start = derive(derived, {"v": np.array(values)}, rows)
    window = Window(derived)
    for row, (value, when) in enumerate(zip(values, times, strict=True)):
        np.testing.assert_array_equal(
            window.push({"v": value}, when), [column[row] for column in table]
        )
        assert (window.lacks == 0) == (start[row] >= 0)


@given(streams(), st.integers(0, 60))
def test_a_restored_window_goes_on_as_if_nothing_had_happened(
    case: tuple[list[float], list[int], list[Derived]], at: int
) -> None:
    values, times, derived = case
    window = Window(derived)
    for row, (value, when) in enumerate(zip(values, times, strict=True)):
        if row == at:
            state, window = window.state, Window(derived)
            window.restore(state)
            assert window.state == state
        expected = Window(derived)
        for before, then in zip(values[: row + 1], times, strict=False):
            last = expected.push({"v": before}, then)
        np.testing.assert_array_equal(window.push({"v": value}, when), last)


@given(streams())
@settings(max_examples=30)
def test_values_are_those_of_the_definitions(
    case: tuple[list[float], list[int], list[Derived]],
) -> None:
    values, times, derived = case
    rows = rows_of_streams(CLOCK, np.array(times, np.float64), None)
    table, _ = derive(derived, {"v": np.array(values)}, rows)
    one = derived[0]
    q = quantise(values, one.centre, one.bits)
    unit = 2.0**-one.bits
    for part in stretches(rows.begins):
        for row in range(part.start, part.stop):
            for one, column in zip(derived, table, strict=True):
                first = row + 1 - one.window
                window = q[max(first, 0) : row + 1].astype(float) * unit
                known = (
                    q[first : first + 1] if one.statistic == "lag" else q[max(first, 0) : row + 1]
                )
                if first < part.start or (known < -LARGEST).any():
                    assert np.isnan(column[row])
                    continue
                expected = {
                    "lag": lambda w: w[0],
                    "delta": lambda w: w[-1] - w[0],
                    "min": np.min,
                    "max": np.max,
                    "mean": np.mean,
                    "std": np.std,
                    "slope": lambda w: np.polyfit(np.arange(len(w)), w - w.mean(), 1)[0],
                }[one.statistic](window)
                places = ("lag", "min", "max", "mean")
                expected += one.centre if one.statistic in places else 0.0
                size = max(np.abs(window).max(), abs(expected), unit)
                # std of nearly equal numbers loses digits in floating point, not here.
                assert abs(column[row] - expected) <= 1e-6 * size + unit * 2**-10


def test_groups_do_not_see_each_other() -> None:
    times = np.array([0.0, 0, 60, 60, 120, 120])
    groups = np.array(["a", "b"] * 3)
    clock = clock_of("t", SECONDS, "device", times, groups)
    values = np.array([1.0, 10, 2, 20, 3, 30])
    rows = rows_of_streams(clock, times, groups)
    derived = [Derived("delta", "v", 1, 0.0, 8, clock)]
    (change,), start = derive(derived, {"v": values}, rows)
    np.testing.assert_array_equal(change, [np.nan, np.nan, 1, 10, 1, 10])
    assert start.tolist() == [-1, -1, 0, 1, 2, 3]


def test_rows_in_any_order_are_taken_by_time() -> None:
    times = np.array([120.0, 0, 60])
    clock = clock_of("t", SECONDS, None, times, None)
    (before,), _ = derive(
        [Derived("lag", "v", 1, 0.0, 8, clock)],
        {"v": np.array([3.0, 1, 2])},
        rows_of_streams(clock, times, None),
    )
    np.testing.assert_array_equal(before, [2, np.nan, 1])


def test_the_gap_follows_from_the_usual_step() -> None:
    even = np.arange(100) * 60.0
    assert clock_of("t", SECONDS, None, even, None).gap == 90_000  # milliseconds
    uneven = np.cumsum(np.random.default_rng(0).exponential(60, 500))
    clock = clock_of("t", SECONDS, None, uneven, None)
    assert clock.gap == pytest.approx(10_000 * clock.period, abs=1)
    years = np.arange(30) * 365.25 * 86_400
    assert clock_of("t", SECONDS, None, years, None).ticks == 1  # milliseconds would not fit


def test_spans_become_samples_of_even_tables_only() -> None:
    even = np.arange(100) * 60.0
    clock = clock_of("t", SECONDS, None, even, None)
    terms = parse_terms("mean(v, 10 min), v@1h, min(v, 3)")
    assert resolve(terms, clock, even, None) == [10, 60, 3]
    with pytest.raises(InputError, match=r"mean\(v, 1 min\) is 1 sample, and mean takes 2 to"):
        resolve(parse_terms("mean(v, 1 min)"), clock, even, None)
    uneven = np.cumsum(np.random.default_rng(0).exponential(60, 500))
    clock = clock_of("t", SECONDS, None, uneven, None)
    with pytest.raises(InputError, match="rows are not evenly sampled"):
        resolve(terms, clock, uneven, None)
    numbers = clock_of("t", Notation(None, "numbers"), None, even, None)
    with pytest.raises(InputError, match="column 't' has no unit of time"):
        resolve(terms, numbers, even, None)


def test_quantisation_leaves_room_on_both_sides() -> None:
    centre, bits = quantisation("v", np.array([100.0, 104.0, np.nan]))
    assert (centre, bits) == (102.0, 20)
    ends = quantise([98.0, 106.0, 1e30, -np.inf, np.nan], centre, bits)
    assert ends.tolist() == [-LARGEST, LARGEST, LARGEST, -LARGEST, -(2**31)]
    with pytest.raises(InputError, match="varies too little"):
        quantisation("v", np.array([0.0, 1e-30]))
    with pytest.raises(InputError, match="has no value"):
        quantisation("v", np.array([np.nan]))


def test_nothing_drifts_in_a_long_stream() -> None:
    rng = np.random.default_rng(1)
    values = np.cumsum(rng.normal(size=5_000)) + 1e5
    derived = every("v", 50, 1e5, 10)
    window = Window(derived)
    for value in values.tolist():
        last = window.push({"v": value})
    fresh = Window(derived)
    for value in values[-60:].tolist():
        expected = fresh.push({"v": value})
    assert last == expected


@pytest.mark.parametrize(
    "damage", [{"count": 99}, {"samples": {}}, {"when": "now"}, {"samples": {"v": [9**9] * 3}}]
)
def test_a_damaged_state_is_refused(damage: dict[str, object]) -> None:
    window = Window([Derived("mean", "v", 3, 0.0, 8, CLOCK)])
    for value in range(5):
        window.push({"v": float(value)}, 60 * value)
    with pytest.raises((KeyError, TypeError)):
        window.restore(window.state | damage)
