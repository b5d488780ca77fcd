"""A column that says when rows were measured: reading it, and splitting in its order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.data import read_features, read_table
from twinedge.data.features import SideColumn
from twinedge.data.source import from_table
from twinedge.data.splitting import split_times, time_blocks

TABLE = "at,a,y\n2024-01-03,1,10\n2024-01-01,2,20\n2024-01-02,4,30\n"
DAY = 86400
FIRST = 1704067200.0  # 2024-01-01

moments = st.lists(st.integers(0, 40), min_size=10, max_size=80)


@given(moments)
def test_every_row_is_on_one_side_and_none_is_trained_on_before_a_later_one(times):
    cuts = len({*sorted(times)[1:]} - {sorted(times)[0]} | {sorted(times)[1]}) - 1
    if cuts < 2:
        return
    split = split_times(times)
    assert sorted(np.concatenate(split).tolist()) == list(range(len(times)))
    train, val, test = (np.array(times)[part] for part in split)
    assert min(map(len, (train, val, test))) > 0
    assert len(train) > 1
    assert train.max() < val.min()
    assert val.max() < test.min()
    for part in (train, val, test):
        assert (np.diff(part) >= 0).all()


def test_rows_of_one_time_move_the_cut_as_little_as_possible():
    times = np.repeat(np.arange(10), [10, 10, 10, 10, 10, 10, 12, 8, 10, 10])
    assert [len(part) for part in split_times(times)] == [72, 8, 20]
    assert split_times(times * 1.0).train.tolist() == list(range(72))


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([1, 2, 3], "has 3 rows; at least 10"),
        ([7] * 20, "1 different time; more are needed"),
        ([7] * 10 + [8] * 10, "2 different times; more are needed"),
        ([1, *[7] * 10, *[8] * 10], "3 different times; more are needed"),
    ],
)
def test_rows_that_time_does_not_divide_are_refused(times, says, complaint):
    assert says in complaint(split_times, times)


@given(moments, st.integers(1, 6))
def test_blocks_follow_each_other_and_keep_equal_times_together(times, count):
    times = np.array(times)
    block = time_blocks(times, count)
    order = np.argsort(times, kind="stable")
    assert (np.diff(block[order]) >= 0).all()
    assert set(block) == set(range(block.max() + 1))
    assert block.max() < count
    for one in np.unique(times):
        assert len(set(block[times == one])) == 1


def test_blocks_are_of_about_equal_size():
    assert np.bincount(time_blocks(np.arange(103), 5)).tolist() == [21, 20, 21, 20, 21]


def test_times_are_read_and_are_no_feature(write):
    table = read_table(write(TABLE), target="y", time="at")
    assert table.feature_names == ("a",)
    assert table.times.tolist() == [FIRST + 2 * DAY, FIRST, FIRST + DAY]
    assert table.dropped == ("at",)
    assert table.dated == ()


def test_a_dropped_column_may_still_hold_the_times(write):
    table = read_table(write(TABLE), target="y", time="at", drop=["at"])
    assert table.times is not None


def test_a_dropped_column_of_dates_is_noticed(write):
    assert read_table(write(TABLE), target="y", drop=["at"]).dated == ("at",)
    text = TABLE.replace("a,y", "a,y,b").replace("0\n", "0,word\n")
    assert read_table(write(text), target="y", drop=["at", "b"]).dated == ("at",)


def test_rows_without_a_target_take_their_times_with_them(write):
    text = TABLE + "2024-01-09,5,\n2023-12-31,6,60\n"
    table = read_table(write(text), target="y", time="at", drop_missing_target=True)
    assert table.times.tolist() == [FIRST + one * DAY for one in (2, 0, 1, -1)]


def test_weights_and_times_go_together(write):
    text = "at,a,w,y\n2024-01-03,1,1,10\n2024-01-01,2,0,20\n2024-01-02,4,3,30\n"
    table = read_table(write(text), target="y", time="at", weight="w")
    assert table.times.tolist() == [FIRST + 2 * DAY, FIRST + DAY]
    assert table.weights.tolist() == [1, 3]


def test_a_data_frame_may_have_times(write):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(write(TABLE), parse_dates=["at"])
    table = read_table(frame, target="y", time="at")
    assert table.times.tolist() == [FIRST + 2 * DAY, FIRST, FIRST + DAY]


BAD = "at,a,y\n2024-01-03,1,10\n{},2,20\n2024-01-02,4,30\n2024-01-05,5,11\n"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("", "missing value"),
        ("NaT", "missing value"),
        ("yesterday", "'yesterday' cannot be read as a time; write it like 2024-01-31 09:30"),
        ("2024-02-30", "'2024-02-30' does not exist"),
        ("09:30", "is a time of day without a date"),
        ("1706693400", "'1706693400' cannot be read as a time"),
    ],
)
def test_a_bad_time_is_refused_with_row_and_column_or_skipped(write, complaint, cell, says):
    path = write(BAD.format(cell))
    message = complaint(read_table, path, target="y", time="at")
    assert "t.csv: row 3, column 'at': " in message
    assert says in message
    assert "skip_bad_rows=True" in message
    table = read_table(path, target="y", time="at", skip_bad_rows=True)
    assert table.rows.tolist() == [2, 4, 5]
    assert table.y.tolist() == [10, 30, 11]
    assert table.X[:, 0].tolist() == [1, 4, 5]
    assert len(table.times) == 3
    assert "1 row that cannot be read left out (3)" in table.remarks[0]


def test_more_bad_times_than_good_ones_are_refused(write, complaint):
    text = "at,a,y\nsoon,1,10\nlater,2,20\n2024-01-02,4,30\n"
    message = complaint(read_table, write(text), target="y", time="at", skip_bad_rows=True)
    assert "2 of 3 rows cannot be read" in message


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"time": "At"}, ["no column 'At' for the times", "did you mean 'at'?"]),
        ({"time": "y"}, ["column 'y' is the target and cannot hold times"]),
        ({"time": "at", "weight": "at"}, ["column 'at' is the weight and cannot hold times"]),
        ({"time": "at", "categorical": ["at"]}, ["'at' is a category and cannot hold times"]),
        ({"time": "at", "group": "a"}, ["group='a' and time='at'", "not both; choose one"]),
        ({"time": "a"}, ["column 'at' holds dates or times", "use time='at'"]),
    ],
)
def test_a_column_that_cannot_hold_the_times_is_refused(write, complaint, options, says):
    message = complaint(read_table, write(TABLE), target="y", **options)
    for words in says:
        assert words in message


def test_a_split_has_no_number_in_order_of_time(write, complaint):
    message = complaint(from_table, write(ordered()), target="y", time="at", split=3)
    assert "split=3 and time='at': in order of time there is one split" in message


def ordered(rows=40, order=None, every=1):
    """A table of daily rows, in any order, ``every`` of which share a day."""
    rng = np.random.default_rng(0)
    lines = [
        f"{np.datetime64('2024-01-01') + k // every},{rng.normal():.3f},{rng.normal():.3f}"
        for k in range(rows)
    ]
    lines = lines if order is None else [lines[k] for k in order]
    return "at,a,y\n" + "\n".join(lines) + "\n"


def test_the_past_is_trained_on_and_the_ranges_are_remarked(write):
    source = from_table(write(ordered()), target="y", time="at")
    assert source.rows.train.tolist() == list(range(28))
    assert source.rows.test.tolist() == list(range(32, 40))
    (remark,) = source.remarks
    assert remark.endswith(
        "rows in order of time: 28 to train until 2024-01-28, 4 to validate until 2024-02-01, "
        "8 to test until 2024-02-09"
    )
    assert source.time_ranges() == {
        "train": ["2024-01-01T00:00:00Z", "2024-01-28T00:00:00Z"],
        "validation": ["2024-01-29T00:00:00Z", "2024-02-01T00:00:00Z"],
        "test": ["2024-02-02T00:00:00Z", "2024-02-09T00:00:00Z"],
    }


def test_unsorted_rows_are_sorted_with_a_remark(write):
    order = np.random.default_rng(1).permutation(40)
    source = from_table(write(ordered(order=order)), target="y", time="at")
    assert sorted(order[source.rows.test]) == list(range(32, 40))
    assert any("rows in another order: they are sorted by time" in one for one in source.remarks)
    source = from_table(write(ordered(order=range(39, -1, -1))), target="y", time="at")
    assert any("rows the newest first: they are sorted" in one for one in source.remarks)


def test_rows_of_one_time_stay_together_with_a_remark(write):
    source = from_table(write(ordered(every=3)), target="y", time="at")
    sides = [set(source.times[part]) for part in source.rows]
    assert not sides[0] & sides[1]
    assert not sides[1] & sides[2]
    assert any(
        "26 rows of the same time as an earlier one; rows of one time stay on one side" in one
        for one in source.remarks
    )


def test_an_assumed_order_of_day_and_month_is_remarked(write):
    text = ordered().splitlines()
    lines = [
        f"{k % 12 + 1:02}/{k // 12 + 1:02}/2024,{line[11:]}" for k, line in enumerate(text[1:])
    ]
    source = from_table(write("\n".join([text[0], *lines])), target="y", time="at")
    assert any(
        "column 'at': times such as '01/01/2024' are read day first" in one
        for one in source.remarks
    )


def test_plain_numbers_put_rows_in_order_and_stay_numbers(write):
    text = "hour,a,y\n" + "\n".join(f"{k / 2},{(7 * k) % 5},{k % 3}" for k in range(20)) + "\n"
    source = from_table(write(text), target="y", time="hour")
    assert source.time_ranges()["test"] == ["8", "9.5"]


def test_times_are_read_beside_the_columns_of_a_model(write):
    time = SideColumn("at")
    X, y = read_features(write(TABLE), ("a",), target="y", time=time)
    assert time.values.tolist() == [FIRST + 2 * DAY, FIRST, FIRST + DAY]
    assert X[:, 0].tolist() == [1, 2, 4]
    assert y.tolist() == [10, 20, 30]


def test_a_calendar_knows_how_its_times_are_written(write):
    rows = "\n".join(f"{k % 12 + 1:02}/{k % 28 + 1:02}/2024,{k % 7},{k % 5}" for k in range(40))
    table = read_table(write(f"at,a,y\n{rows}\n"), target="y", calendar=["at"])
    time = SideColumn("at")
    later = write("at,a,y\n03/04/2024,1,1\n")
    read_features(later, table.prepare().encoding, target="y", time=time)
    assert time.notation.day_first is False
    assert time.values.tolist() == [FIRST + 63 * DAY]


def test_times_for_a_model_are_checked(write, complaint):
    path = write(TABLE)
    assert "is a feature and cannot hold" in complaint(
        read_features, path, ("a",), target="y", time=SideColumn("a")
    )
    assert "no column 'when'" in complaint(read_features, path, ("a",), time=SideColumn("when"))
    bad = write(TABLE.replace("2024-01-01", "soon"))
    message = complaint(read_features, bad, ("a",), target="y", time=SideColumn("at"))
    assert "row 3, column 'at': 'soon' cannot be read as a time" in message
