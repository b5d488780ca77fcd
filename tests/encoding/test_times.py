"""Dates and times: what a column may hold, and how its notation is decided."""

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.encoding.times import (
    NUMBERS,
    Notation,
    as_row_times,
    format_time,
    looks_like_time,
    read_times,
    times_of,
)

HALF_PAST_NINE = 1706693400.0  # 2024-01-31 09:30 UTC
MIDNIGHT = 1706659200.0
MOMENTS = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2199, 12, 31))


@pytest.mark.parametrize(
    "text",
    [
        *("2024-01-31T09:30:00Z", "2024-01-31 09:30", "2024-01-31T09:30:00,0"),
        *("2024-01-31 04:30:00-0500", "2024-01-31T15:00:00.000000000+0530"),
        *("2024-01-31T10:30+01", "20240131T0930", "20240131T093000Z", "20240131 093000"),
        *("202401310930", "20240131093000", "2024/01/31 9:30", "2024.1.31 9:30"),
        *("31.1.24 09:30", "31.01.2024, 09:30:00", "31-01-2024 09:30", "1/31/2024 9:30 AM"),
        *("01/31/2024 09:30:00 a.m.", "01/31/24 9:30am", "31 January 2024 09:30"),
        *("31. Jan. 2024 09:30", "Jan 31 2024 09:30", "January 31, 2024 09:30 AM"),
        *("Wed, 31 Jan 2024 09:30:00 GMT", "Wed, 31 Jan 2024 10:30:00 +0100"),
        *("1706693400.0", "1706693400,0", "1.7066934e9", "  2024-01-31 09:30  "),
    ],
)
def test_a_time_is_read_in_every_usual_form(text):
    assert read_times([text]).seconds.tolist() == [HALF_PAST_NINE]


@pytest.mark.parametrize(
    "text",
    [
        *("2024-01-31", "20240131", "31.01.2024", "01/31/2024", "31-Jan-24", "Jan 31, 2024"),
        *("2024-01-30 24:00", "1/31/2024 12:00 AM", "2024-01-31 00:00 UTC"),
    ],
)
def test_a_date_is_its_midnight(text):
    assert read_times([text]).seconds.tolist() == [MIDNIGHT]


def test_a_month_is_its_first_day():
    assert read_times(["2024-02", "2024/03"]).seconds.tolist() == [1706745600.0, 1709251200.0]


def test_months_with_a_point_are_no_fractions():
    # As numbers, October 2024.10 would come before 2024.09.
    seconds = read_times(["2024.09", "2024.10", "2024.11"]).seconds
    assert (np.diff(seconds) > 0).all()
    assert read_times(["1949.08", "1949.17"]).seconds.tolist() == [1949.08, 1949.17]


@given(st.lists(MOMENTS, min_size=1, max_size=5))
def test_what_python_writes_is_read_back(moments):
    expected = [(one - datetime(1970, 1, 1)) / timedelta(seconds=1) for one in moments]
    forms = ["%Y-%m-%dT%H:%M:%S.%f", "%Y/%m/%d %H:%M:%S.%fZ", "%d.%m.%Y %H:%M:%S.%f"]
    forms += ["%d-%b-%Y %H:%M:%S.%f", "%b %d, %Y %I:%M:%S.%f %p", "%Y%m%dT%H%M%S.%f"]
    for form in forms:
        texts = [one.strftime(form) for one in moments]
        np.testing.assert_allclose(read_times(texts).seconds, expected, rtol=0, atol=1e-6)


@given(st.lists(MOMENTS, min_size=1, max_size=5), st.integers(-14 * 60, 14 * 60))
def test_an_offset_leads_to_utc(moments, minutes):
    zone = timezone(timedelta(minutes=minutes))
    aware = [one.replace(tzinfo=zone) for one in moments]
    expected = [one.timestamp() for one in aware]
    seconds = read_times([one.isoformat() for one in aware]).seconds
    np.testing.assert_allclose(seconds, expected, rtol=0, atol=1e-6)


@given(
    st.lists(MOMENTS.filter(lambda one: one.day > 12), min_size=1, max_size=3),
    st.lists(MOMENTS, max_size=5),
    st.booleans(),
)
def test_one_day_after_the_twelfth_decides_for_the_column(sure, others, day_first):
    moments = [*others, *sure]
    form = "%d/%m/%Y %H:%M" if day_first else "%m/%d/%Y %H:%M"
    times = read_times([one.strftime(form) for one in moments])
    expected = [one.replace(second=0, microsecond=0) for one in moments]
    assert times.notation == Notation(day_first=day_first)
    assert times.seconds.tolist() == [
        (one - datetime(1970, 1, 1)) / timedelta(seconds=1) for one in expected
    ]
    assert times.remark is None


@given(st.lists(MOMENTS, min_size=1, max_size=6), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_numbers_are_read_by_their_size(moments, per_second):
    moments = [one.replace(year=1980 + one.year % 100) for one in moments if one.day < 29]
    whole = [(one - datetime(1970, 1, 1)) // timedelta(seconds=1) for one in moments]
    times = read_times([str(one * per_second) for one in whole])
    np.testing.assert_allclose(times.seconds, whole, rtol=0, atol=1e-6)


@given(st.lists(MOMENTS, min_size=1, max_size=5))
def test_a_written_time_is_read_back(moments):
    seconds = read_times([one.isoformat() for one in moments])
    texts = [format_time(one, seconds.notation) for one in seconds.seconds]
    np.testing.assert_allclose(read_times(texts).seconds, seconds.seconds, rtol=0, atol=2e-6)


def test_small_numbers_only_order_the_rows():
    times = read_times(["0", "0.5", "12", "-3"])
    assert times.seconds.tolist() == [0, 0.5, 12, -3]
    assert times.notation.unit == NUMBERS
    assert format_time(0.5, times.notation) == "0.5"
    assert read_times(["1949", "1950"]).notation.unit == NUMBERS


def test_missing_times_are_nan():
    seconds = read_times(["2024-01-31", "", "NA", "NaT"]).seconds
    assert np.isnan(seconds).tolist() == [False, True, True, True]
    assert np.isnan(read_times(["", ""]).seconds).all()
    assert read_times([]).seconds.shape == (0,)


def test_an_order_that_nothing_decides_is_assumed_with_a_remark():
    times = read_times(["03/04/2024", "04/04/2024"])
    assert times.notation.day_first
    assert times.remark == (
        "times such as '03/04/2024' could have day or month first: read day first"
    )
    times = read_times(["03/04/2024 9:00 AM", "04/04/2024 9:00 PM"])
    assert times.notation.day_first is False
    assert "month first, as is usual with AM and PM" in times.remark


def test_the_order_in_which_times_rise_is_believed():
    # The first days of three months: day first they rise, month first they do not.
    times = read_times(["01/02/2024", "02/02/2024", "01/03/2024", "02/03/2024"])
    assert times.notation.day_first
    assert "read day first: then they rise" in times.remark
    times = read_times(["02/01/2024", "02/02/2024", "03/01/2024", "03/02/2024"])
    assert times.notation.day_first is False
    assert "read month first: then they rise" in times.remark


def test_where_both_orders_are_the_same_there_is_no_remark():
    assert read_times(["01/01/2024", "02/02/2024"]).remark is None


def test_a_known_notation_is_kept():
    known = read_times(["01/31/2024"]).notation
    assert read_times(["03/04/2024"], known).seconds == read_times(["2024-03-04"]).seconds
    in_ms = Notation(unit="milliseconds")
    assert read_times(["5000"], in_ms).seconds == [5.0]


def test_some_times_without_a_zone_are_named():
    remark = read_times(["2024-01-31 09:30Z", "2024-01-31 09:31"]).remark
    assert remark == "1 time of 2 without a zone: read as UTC"
    assert read_times(["2024-01-31 09:30", "2024-01-31 09:31"]).remark is None


@pytest.mark.parametrize(
    ("texts", "index", "words"),
    [
        (["2024-01-31", "soon"], 1, "'soon' cannot be read as a time; write it like"),
        (["9:30"], 0, "'9:30' is a time of day without a date; write it like 2024-01-31 09:30"),
        (["2024-02-30"], 0, "'2024-02-30' does not exist"),
        (["2023-02-29"], 0, "does not exist"),
        (["2024-13-01"], 0, "does not exist"),
        (["2024-00-01"], 0, "does not exist"),
        (["0000-01-01"], 0, "does not exist"),
        (["2024-01-31 25:00"], 0, "does not exist"),
        (["2024-01-31 24:01"], 0, "does not exist"),
        (["2024-01-31 09:60"], 0, "does not exist"),
        (["2024-01-31 13:30 PM"], 0, "does not exist"),
        (["2024-01-31 09:30+25:00"], 0, "does not exist"),
        (["31/01/2024", "13/01/2024", "01/31/2024"], 2, "with its day first, as others are"),
        (["2024-01-31 09:30 CET"], 0, "zone that is not known; write its offset from UTC"),
        (["1706693400", "1706693401", "now"], 2, "'now' is not a number, as other times are"),
        (["1706693400"] * 3 + ["1706693400000"], 3, "far beyond the other times, in seconds"),
        (["2024-01-31", "2024-02-01", "12"], 2, "'12' cannot be read as a time"),
    ],
)
def test_what_is_no_time_is_refused_with_its_index(texts, index, words, complaint):
    message = complaint(read_times, texts)
    assert message.startswith(f"time {index}: ")
    assert words in message


def test_every_cell_that_is_no_time_can_be_collected():
    found = []
    texts = ["2024-01-31", "soon", "", "2024-02-30", "2024-02-01 09:30 CET"]
    seconds = read_times(texts, refuse=lambda *one: found.append(one)).seconds
    assert sorted(index for index, *_ in found) == [1, 3, 4]
    assert np.isnan(seconds).tolist() == [False, True, True, True, True]


@pytest.mark.parametrize(
    "values",
    [
        np.array(["2024-01-31T09:30", "NaT"], "datetime64[m]"),
        np.array(["2024-01-31T09:30", "NaT"], "datetime64[ns]"),
        [datetime(2024, 1, 31, 9, 30), None],
        np.array(["2024-01-31 09:30", ""]),
        np.array([HALF_PAST_NINE, np.nan]),
        np.array([HALF_PAST_NINE * 1000, np.nan]),
    ],
)
def test_times_of_every_kind_are_read(values):
    seconds = times_of(values).seconds
    assert seconds[0] == HALF_PAST_NINE
    assert np.isnan(seconds[1])


def test_dates_and_durations_are_read():
    assert times_of([date(2024, 1, 31)]).seconds == [MIDNIGHT]
    durations = times_of(np.array([90, 30], "timedelta64[m]"))
    assert durations.seconds.tolist() == [5400, 1800]
    assert durations.notation.unit == NUMBERS


def test_each_row_needs_one_time(complaint):
    assert as_row_times([3, 1, 2], 3).seconds.tolist() == [3, 1, 2]
    assert "2 entries; the table has 3 rows" in complaint(as_row_times, [1, 2], 3)
    assert "row 1 has none" in complaint(as_row_times, ["2024-01-31", None], 2)
    assert "row 0 has none" in complaint(as_row_times, [np.inf, 2.0], 2)
    assert "has shape (1, 2)" in complaint(as_row_times, [[1, 2]], 2)
    assert "'soon'" in complaint(as_row_times, ["soon", "later"], 2)


@pytest.mark.parametrize(
    "text", ["2024-01", "1.2.2024", "9:30", "31-Jan-24", "2024-01-31 9:30 CET"]
)
def test_dates_and_times_of_day_look_like_times(text):
    assert looks_like_time(text)


@pytest.mark.parametrize("text", ["1.5", "20240131", "Jan", "May", "a-1", "12-34", "x 9:30", ""])
def test_numbers_and_names_do_not_look_like_times(text):
    assert not looks_like_time(text)


def test_a_long_column_is_read():
    start = np.datetime64("2024-01-01T00:00")
    texts = [str(one) for one in start + np.arange(20_000)]
    seconds = read_times(texts).seconds
    assert np.all(np.diff(seconds) == 60)
