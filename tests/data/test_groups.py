"""Rows that belong together: the column that says so, and splits that keep them together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.data import csvfile, read_table, split_groups
from twinedge.encoding.cells import looks_missing

TABLE = "batch,a,y,b\nred,1,10,0.5\nblue,2,20,0.25\nred,3,30,-1\n"

names = st.one_of(
    st.lists(st.integers(-(2**60), 2**60), min_size=4, max_size=60),
    st.lists(st.integers(0, 9), min_size=4, max_size=60),
    st.lists(st.text("abcdß ", max_size=3), min_size=4, max_size=60),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=60),
    st.lists(st.booleans(), min_size=4, max_size=9),
)
seeds = st.integers(0, 2**32 - 1)


@given(names, seeds)
def test_no_group_is_on_two_sides_and_every_row_on_one(groups, seed):
    count = len(set(groups))
    if count < 4:
        return
    split = split_groups(groups, seed)
    assert sorted(np.concatenate(split).tolist()) == list(range(len(groups)))
    sides = [{groups[row] for row in part} for part in split]
    train, val, test = map(len, sides)
    assert train + val + test == len(set.union(*sides)) == count
    assert (val, test) == (max(1, count // 10), max(1, int(0.2 * count)))
    for part in split:
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()


@given(st.permutations(range(12)), seeds)
def test_only_which_rows_are_of_one_group_counts_not_what_it_is_called(order, seed):
    groups = np.array([0, 1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9])
    named = np.array([f"machine {one}" for one in groups])
    for one, other in zip(split_groups(groups, seed), split_groups(named, seed), strict=True):
        np.testing.assert_array_equal(one, other)
    # Other rows, the same groups on each side.
    moved = split_groups(groups[order], seed)
    for one, other in zip(split_groups(groups, seed), moved, strict=True):
        assert set(groups[one]) == set(groups[order][other])


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([], "there are 0 groups of rows; at least 4"),
        (["a"] * 50, "there is 1 group of rows; at least 4"),
        ([1, 2, 3, 3, 2, 1], "there are 3 groups of rows; at least 4"),
    ],
    ids=["none", "one", "three"],
)
def test_too_few_groups_are_refused(complaint, groups, says):
    assert says in complaint(split_groups, groups, 0)


@pytest.mark.parametrize(
    "groups",
    [np.arange(12).reshape(4, 3), np.int64(7), "text", [[1], [2, 3]]],
    ids=["two-dimensional", "a number", "a word", "ragged"],
)
def test_groups_that_are_not_one_for_each_row_are_refused(complaint, groups):
    assert "one for each row" in complaint(split_groups, groups, 0)


@pytest.mark.parametrize(
    "groups",
    [
        [1.0, 2.0, np.nan, 3.0, 4.0],
        [1.0, 2.0, np.inf, 3.0, 4.0],
        np.array(["a", "b", "c", "d", None], object),
        np.array(["a", "b", "c", "d", np.nan], object),
        np.array([1, "a", 2, "b"], object),
        np.array(["2026-01-01", "NaT", "2026-01-02", "2026-01-03"], "datetime64[D]"),
    ],
    ids=["nan", "inf", "None", "nan among words", "mixed", "no day"],
)
def test_groups_that_name_none_are_refused(complaint, groups):
    assert "groups" in complaint(split_groups, groups, 0)


def test_a_column_of_text_groups_the_rows_and_is_no_feature(write):
    table = read_table(write(TABLE), target="y", group="batch")
    assert table.groups.tolist() == ["red", "blue", "red"]
    assert table.feature_names == ("a", "b")
    assert table.X.tolist() == [[1, 0.5], [2, 0.25], [3, -1]]
    assert table.y.tolist() == [10, 20, 30]
    assert "batch" in table.dropped


def test_numbers_group_rows_as_they_are_spelt(write):
    path = write("a,y,run\n1,2,007\n2,3, 7\n3,4,1e3\n4,5,7 \n")
    assert read_table(path, target="y", group="run").groups.tolist() == ["007", "7", "1e3", "7"]


def test_a_dropped_column_may_group_rows(write):
    table = read_table(write(TABLE), target="y", group="batch", drop=["batch", "b"])
    assert table.groups.tolist() == ["red", "blue", "red"]
    assert table.feature_names == ("a",)


def test_a_table_longer_than_a_block_keeps_rows_and_groups_in_step(write, monkeypatch):
    monkeypatch.setattr(csvfile, "_CELLS_PER_BLOCK", 300)
    labels = np.random.default_rng(0).integers(0, 9, 450)
    rows = "".join(f"{k},g{label},{2 * k}\n" for k, label in enumerate(labels))
    table = read_table(write("a,who,y\n" + rows), target="y", group="who")
    assert table.groups.tolist() == [f"g{label}" for label in labels]
    assert table.X[:, 0].tolist() == list(range(450))


def test_a_table_without_a_header_has_numbered_columns(write):
    table = read_table(write("1,5,10\n2,6,20\n3,5,30\n"), target="x2", group="x1")
    assert table.groups.tolist() == ["5", "6", "5"]
    assert table.X.tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("cell", ["", "NA"])
def test_a_row_without_its_group_is_refused_with_its_place(complaint, write, cell):
    path = write(f"batch,a,y\nred,1,1\n{cell},2,2\n")
    message = complaint(read_table, path, target="y", group="batch")
    assert "row 3, column 'batch'" in message
    assert "every row needs its group" in message


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"group": "batches"}, ["no column 'batches' for the groups", "'batch'?", "'a', 'y'"]),
        ({"group": ""}, ["no column ''"]),
        ({"group": "y"}, ["'y' is the target and cannot hold groups"]),
        ({"group": "batch", "drop": ["a", "b"]}, ["no feature"]),
    ],
    ids=["unknown", "empty", "the target", "nothing else left"],
)
def test_a_column_that_cannot_group_is_refused(complaint, write, options, says):
    message = complaint(read_table, write(TABLE), target="y", **options)
    for word in says:
        assert word in message


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("aZ09é漢😀,;|\"' #=-.\\"), max_size=8))
def test_any_name_comes_back_as_it_was_written(tmp_path_factory, labels):
    labels = [label for label in map(str.strip, labels) if not looks_missing(label)]
    labels = ["first", *labels, "last"]  # a table needs two rows
    path = tmp_path_factory.mktemp("labels") / "t.csv"
    quoted = ['"{}"'.format(label.replace('"', '""')) for label in labels]
    rows = "".join(f"{k},{label},{k}\n" for k, label in enumerate(quoted))
    path.write_text("a,who,y\n" + rows, encoding="utf-8", newline="")
    assert read_table(path, target="y", group="who").groups.tolist() == labels
