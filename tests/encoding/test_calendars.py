"""Times as inputs: sine and cosine of day, week and year, in integers."""

import json
import math
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from twinedge.encoding.calendars import CYCLES, SINE, Calendar, waves
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import Column
from twinedge.encoding.times import Notation
from twinedge.errors import InputError

UTC = timezone.utc


def at(*when):
    return int(datetime(*when, tzinfo=UTC).timestamp())


in_four_centuries = st.integers(at(1900, 1, 1), at(2200, 1, 1))
WEEK = Calendar(Notation(), at(2024, 1, 1), at(2024, 1, 8))


@given(in_four_centuries)
@example(0)
@example(-1)
def test_waves_are_those_of_the_phases(seconds):
    found = waves([seconds])[0].tolist()
    begun = seconds, seconds + 3 * 86_400, seconds
    phases = [t % length / length for t, (length, _) in zip(begun, CYCLES.values(), strict=True)]
    expected = [f(2 * math.pi * phase) for phase in phases for f in (math.sin, math.cos)]
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) < 1e-7


@pytest.mark.parametrize("cycle", ["day", "week", pytest.param("year", marks=pytest.mark.slow)])
def test_every_second_of_a_cycle_is_right_and_a_float32(cycle):
    length, start = CYCLES[cycle]
    k = 2 * list(CYCLES).index(cycle)
    for first in range(0, length, 4_000_000):
        seconds = np.arange(first, min(first + 4_000_000, length))
        found = waves(seconds + start)[:, k : k + 2]
        angle = 2 * np.pi * seconds / length
        assert np.abs(found - np.column_stack([np.sin(angle), np.cos(angle)])).max() < 1e-7
        assert np.array_equal(found, found.astype(np.float32))
        assert np.abs(found).max() <= 1


def test_quarters_are_exact_and_a_week_begins_on_monday():
    hours = waves([at(2024, 2, 29, hour) for hour in (0, 6, 12, 18)])
    assert hours[:, :2].tolist() == [[0, 1], [1, 0], [0, -1], [-1, 0]]
    assert waves([at(2024, 1, 1)])[0, 2:4].tolist() == [0, 1]
    assert datetime(2024, 1, 1, tzinfo=UTC).weekday() == 0


def test_no_time_is_too_far():
    ends = np.iinfo(np.int64)
    found = waves([ends.min, ends.max])
    assert (np.abs(found) <= 1).all()
    assert np.abs(found[:, ::2] ** 2 + found[:, 1::2] ** 2 - 1).max() < 1e-6


@given(in_four_centuries)
def test_a_time_with_the_same_inputs_is_found_again(seconds):
    calendar = Calendar(Notation(), seconds - 10**7, seconds + 10**7)
    inputs = waves([seconds])[0]
    assert np.array_equal(waves([calendar.seconds(inputs)])[0], inputs)


@given(in_four_centuries)
def test_rounded_inputs_give_a_time_nearby(seconds):
    calendar = Calendar(Notation(), seconds - 10**7, seconds + 10**7)
    rough = np.rint(waves([seconds])[0] * 8192) / 8192
    assert np.abs(waves([calendar.seconds(rough)])[0] - rough).max() < 0.02


FORMS = {
    "iso": ("2024-03-04T06:00:00Z", Notation()),
    "a zone": ("2024-03-04T08:00:00+02:00", Notation()),
    "day first": ("04/03/2024 06:00", Notation(day_first=True)),
    "month first": ("03/04/2024 06:00", Notation(day_first=False)),
    "iso in spite of that": ("2024-03-04 06:00", Notation(day_first=True)),
    "seconds": ("1709532000", Notation(unit="seconds")),
    "seconds for dates": ("1709532000", Notation(day_first=True)),
    "a date for seconds": ("2024-03-04 06:00", Notation(unit="seconds")),
    "milliseconds": ("1709532000000", Notation(unit="milliseconds")),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_cell_is_read_as_training_rows_were(form):
    text, notation = FORMS[form]
    encoding = Encoding([("x", None), ("when", Calendar(notation, 0, 1))])
    expected = waves([at(2024, 3, 4, 6)])[0].tolist()
    assert encoding.cell(1, text) == expected
    assert encoding.encode([[1.0, text]])[0, 1:].tolist() == expected
    assert encoding.encode({"when": text, "x": 1.0})[0, 1:].tolist() == expected


def test_numbers_and_dates_of_any_kind_are_times():
    encoding = Encoding([("when", WEEK)])
    expected = waves([at(2024, 3, 4, 6)]).tolist()
    for cell in (
        at(2024, 3, 4, 6),
        at(2024, 3, 4, 6) + 0.75,
        datetime(2024, 3, 4, 6),
        np.datetime64("2024-03-04T06:00"),
    ):
        assert encoding.encode([[cell]]).tolist() == expected
        assert encoding.encode({"when": cell}).tolist() == expected
    twice = ["2024-03-04 06:00"] * 2
    assert encoding.encode([[cell] for cell in twice]).tolist() == 2 * expected
    counted = Encoding([("when", Calendar(Notation(unit="milliseconds"), 0, 1))])
    assert counted.encode(np.array([[at(2024, 3, 4, 6) * 1e3]])).tolist() == expected


def test_a_frame_may_hold_dates():
    import pandas

    times = pandas.date_range("2024-01-01", periods=5, freq="7h")
    frame = pandas.DataFrame({"x": range(5), "when": times})
    encoding = Encoding([("when", WEEK), ("x", None)])
    start = at(2024, 1, 1)
    expected = waves([start + k * 7 * 3600 for k in range(5)])
    assert encoding.encode(frame)[:, :6].tolist() == expected.tolist()
    assert encoding.encode(frame.iloc[3])[0, :6].tolist() == expected[3].tolist()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("soon", "column 'when': 'soon' cannot be read as a time; write it like 2024-01-31 09:30"),
        ("12", "column 'when': '12' is no time; write a date, or seconds since 1970"),
        ("", "column 'when' has no time in row 0 (from 0), and nothing can replace it"),
        (None, "column 'when' has no time in row 0"),
        (math.nan, "column 'when' has no time in row 0"),
        (1e300, "column 'when' holds 1e+300, beyond all times"),
    ],
)
def test_what_is_no_time_is_refused_in_a_line(cell, words, complaint):
    assert words in complaint(Encoding([("x", None), ("when", WEEK)]).encode, [[1.0, cell]])


def test_an_encoding_with_a_calendar_survives_json():
    calendar = Calendar(Notation(day_first=False), at(2024, 1, 1), at(2024, 6, 1))
    encoding = Encoding([("a", None), ("when", calendar)])
    assert encoding.inputs[1:] == tuple(
        f"when:{cycle} {wave}" for cycle in ("day", "week", "year") for wave in ("sin", "cos")
    )
    described = json.loads(json.dumps(encoding.described))
    again = Encoding.of(described, encoding.inputs)
    assert again.kinds == encoding.kinds
    assert not again.is_plain


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"day_first": "yes"},
        {"unit": "years"},
        {"first": 1e400},
        {"last": "now"},
        {"first": 2**62},
    ],
    ids=str,
)
def test_a_damaged_calendar_leaves_plain_inputs(damage):
    encoding = Encoding([("when", WEEK)])
    (column,) = encoding.described
    kept = WEEK.described | damage if damage else {}
    again = Encoding.of([column | {"calendar": kept}], encoding.inputs)
    assert again.is_plain
    assert again.names == encoding.inputs


def test_no_time_is_outside_and_none_is_filled_in():
    start = at(2024, 1, 1)
    seconds = start + np.arange(100) * 60.0
    columns = [Column("x", np.arange(100.0)), Column("when", seconds)]
    encoding = Encoding.learn(columns, calendars={"when": Notation()})
    calendar = encoding.kinds[1]
    assert (calendar.first, calendar.last) == (start, start + 99 * 60)
    X = encoding.apply(columns)
    assert encoding.ranges(X).tolist() == [[0, *[-1] * 6], [99, *[1] * 6]]
    assert np.isnan(encoding.fill(X)).tolist() == [False, *[True] * 6]
    assert encoding.indicators.tolist() == [False, *[True] * 6]
    assert not encoding.unknown(X).any()


def test_numbers_that_are_no_times_are_not_learnt():
    columns = [Column("hour", np.arange(24.0))]
    with pytest.raises(InputError, match="column 'hour' holds numbers such as 0, which are no t"):
        Encoding.learn(columns, calendars={"hour": Notation(unit="numbers")})


def test_middle_is_a_full_hour_of_training():
    assert WEEK.middle == at(2024, 1, 4, 12)
    assert timedelta(seconds=WEEK.middle - WEEK.first) == timedelta(days=3, hours=12)


def test_the_page_has_the_numbers_of_the_code():
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")
    part = text.partition("### Hour, weekday and season")[2].partition("\n### ")[0]
    for length, _ in CYCLES.values():
        assert f"{length:,}" in part
    for term in SINE:
        assert f"= {term}" in part
