"""Inputs derived from the samples of a table: which rows have them, and how it is split."""

import re
from itertools import pairwise

import numpy as np
import pytest

from twinedge.data import read_features, read_table
from twinedge.data.features import SideColumn
from twinedge.data.source import from_table
from twinedge.data.splitting import Split
from twinedge.data.streams import guarded
from twinedge.errors import InputError

EVERY = "a@1, mean(a, 3)"


def table_of(path, rows, header="t,a,y"):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))
    return path


@pytest.fixture
def even(tmp_path):
    """A value a minute, with a gap after the fiftieth."""
    rng = np.random.default_rng(0)
    rows = [
        (1_700_000_000 + 60 * k + 600 * (k >= 50), a, a + rng.normal())
        for k, a in enumerate(rng.normal(0, 1, 100).round(3).tolist())
    ]
    return table_of(tmp_path / "even.csv", rows), np.array(rows)


def test_derived_inputs_are_columns_behind_the_others(even):
    path, rows = even
    source = from_table(path, target="y", time="t", derive=EVERY)
    assert source.encoding.names == ("a", "a@1", "mean(a, 3)")
    assert source.encoding.derivation == "a@1, mean(a, 3)"
    a, kept = rows[:, 1], np.r_[2:50, 52:100]
    assert source.numbers.tolist() == (kept + 2).tolist()
    step = 2.0 ** -source.encoding.derived[0].bits
    np.testing.assert_allclose(source.X[:, 1], a[kept - 1], atol=step)
    np.testing.assert_allclose(source.X[:, 2], (a[kept] + a[kept - 1] + a[kept - 2]) / 3, atol=step)


def test_rows_without_a_full_window_are_counted(even):
    source = from_table(even[0], target="y", time="t", derive=EVERY)
    (words,) = [one for one in source.remarks if "full window" in one]
    assert words.endswith(
        "4 rows without a full window of 3 samples left out: at the beginning of the stream, and "
        "after 1 gap of more than 90 s"
    )


@pytest.mark.parametrize(("gap", "kept"), [("11 min", 98), (12, 98), ("9min", 96), (None, 96)])
def test_what_counts_as_a_gap_is_an_option(even, gap, kept):
    assert len(read_table(even[0], target="y", time="t", derive=EVERY, gap=gap).y) == kept


def test_a_span_of_time_is_a_number_of_samples(even):
    found = [
        from_table(even[0], target="y", time="t", derive=[f"mean(a, {n})"]).X
        for n in ("3", "3 min", "180s")
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_no_row_shares_a_sample_with_another_part(even):
    source = from_table(even[0], target="y", time="t", derive="mean(a, 5)")
    (words,) = [one for one in source.remarks if "reaches back" in one]
    assert "8 rows left out" in words  # four at either end
    parts = [source.numbers[rows] for rows in source.rows]
    for earlier, later in pairwise(parts):
        assert earlier.max() < later.min() - 4
    folded = from_table(even[0], target="y", time="t", derive="mean(a, 5)", folds=3)
    for fold in folded.folds:
        rows = fold().rows
        samples = [{n - k for n in source.numbers[part] for k in range(5)} for part in rows]
        assert not samples[0] & samples[1]
        assert not samples[0] & samples[2]
        assert not samples[1] & samples[2]


def test_a_window_over_a_whole_part_is_not_inside_one():
    times = np.arange(6.0)
    split = Split(np.array([0, 1, 4, 5]), np.array([2]), np.array([3]))
    kept, count = guarded(split, times, times - np.array([0, 0, 0, 0, 3, 1]))
    assert [part.tolist() for part in kept] == [[0, 1, 5], [2], [3]]
    assert count == 1


def test_samples_without_a_target_are_samples_all_the_same(tmp_path):
    rows = [(k, k * k % 17, "" if k % 4 else k % 7) for k in range(80)]
    path = table_of(tmp_path / "sparse.csv", rows)
    found = read_table(path, target="y", time="t", derive="a@1", drop_missing_target=True)
    kept = [k for k in range(1, 80) if k % 4 == 0]
    assert found.times.tolist() == kept
    assert found.columns[-1].values == pytest.approx([(k - 1) ** 2 % 17 for k in kept], abs=1e-5)


def test_groups_are_streams_and_rows_are_held_out_by_time(stream_log):
    reading = {"target": "power", "time": "at", "group": "device", "impute": "median"}
    source = from_table(
        stream_log, derive="temp@1, mean(flow, 3)", drop_missing_target=True, **reading
    )
    assert source.groups is None
    assert set(source.streams) == {"A", "B"}
    train, _, test = (source.times[rows] for rows in source.rows)
    assert train.max() < test.min()
    lines = [line.split(",") for line in stream_log.read_text().splitlines()]
    for row in range(0, len(source.X), 17):
        cells = [lines[source.numbers[row] - 1 - back] for back in (0, 1, 2)]
        assert len({one[1] for one in cells}) == 1  # of one device
        flows = [float(one[3]) for one in cells]
        assert source.X[row, -1] == pytest.approx(sum(flows) / 3, abs=1e-5)
        if cells[1][2]:
            assert source.X[row, -2] == pytest.approx(float(cells[1][2]), abs=1e-4)


def test_a_trained_model_derives_the_same_from_another_table(even, tmp_path):
    path, rows = even
    source = from_table(path, target="y", time="t", derive=EVERY)
    later = table_of(tmp_path / "later.csv", [(one[0] + 9, *one[1:]) for one in rows[::-1]])
    ready = SideColumn("")
    X, y = read_features(later, source.encoding, target="y", ready=ready)
    np.testing.assert_array_equal(y, rows[::-1, 2])
    np.testing.assert_array_equal(X[ready.values][::-1], source.X)
    notes = []
    X, _ = read_features(later, source.encoding, say=notes.append)
    np.testing.assert_array_equal(X[::-1], source.X)
    kept = {"y": []}
    read_features(later, source.encoding, keep=kept)
    assert list(map(float, kept["y"][::-1])) == source.y.tolist()
    assert notes[0].endswith("later.csv: 4 rows without a full window of 3 samples left out")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"derive": "a@1", "time": None}, "derive needs the order of the samples"),
        ({"gap": 3}, "gap=3 is for derived inputs"),
        ({"derive": "b@1"}, "at character 1, no column 'b'"),
        ({"derive": "a@1, y@1"}, "at character 6, column 'y' is the target"),
        ({"derive": "t@1"}, "column 't' is the time"),
        ({"derive": "mean(a, 3), mean(a, 3min)"}, "it is the same as mean(a, 3)"),
        ({"derive": "a@90"}, "at most 50 rows follow each other without a gap of more than 90 s"),
        ({"derive": "a@2", "gap": "1 parsec"}, "gap '1 parsec' is neither a span of time"),
        ({"derive": "a@2", "gap": 0}, "gap '0' is neither"),
        ({"derive": "a@2", "gap": 10**12}, "a gap of 6e+13, where the usual step is 60, is out of"),
        ({"derive": "mean(a, 45)"}, "the longest window reaches over all rows to validate"),
    ],
)
def test_what_cannot_be_derived_is_refused(even, options, words):
    with pytest.raises(InputError) as caught:
        from_table(even[0], **{"target": "y", "time": "t", **options})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("cell", "derive", "words"),
    [
        (lambda k: k if k > 37 else "", "b@2", "it is not known in any row; its samples are miss"),
        (lambda k: k, "delta(b)", "it is 1 in every row; leave out what never changes"),
    ],
)
def test_inputs_that_teach_nothing_are_refused(tmp_path, cell, derive, words):
    rows = [(k, k * k % 17, cell(k), k % 7) for k in range(40)]
    path = table_of(tmp_path / "dull.csv", rows, "t,a,b,y")
    with pytest.raises(InputError, match=re.escape(f"derive {derive}: {words}")):
        read_table(path, target="y", time="t", derive=derive, impute="median")


@pytest.mark.parametrize(("repeats", "is_noticed"), [(1, False), (2, True)])
def test_many_rows_of_the_same_time_may_be_of_different_sensors(tmp_path, repeats, is_noticed):
    rows = [(k // repeats, k * k % 17, k % 7) for k in range(80)]
    source = from_table(table_of(tmp_path / "t.csv", rows), target="y", time="t", derive="a@1")
    assert any("many rows have the same time" in one for one in source.remarks) == is_noticed


def test_rows_of_one_time_have_no_order(tmp_path):
    path = table_of(tmp_path / "same.csv", [(5, k * k % 17, k % 7) for k in range(40)])
    with pytest.raises(InputError, match="column 't' has no two different times: there is no"):
        read_table(path, target="y", time="t", derive="a@1")


def test_test_rows_of_their_own_have_streams_of_their_own(stream_log, tmp_path):
    header, *rows = stream_log.read_text().splitlines()
    parts = [row for row in rows if ",A," in row], [row for row in rows if ",B," in row]
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    for path, part in zip((before, after), parts, strict=True):
        path.write_text("\n".join([header, *(row for row in part if row[-1] != ",")]))
    reading = {"target": "power", "time": "at", "group": "device", "impute": "median"}
    source = from_table(before, derive="flow@1", test=after, **reading)
    assert set(source.streams[source.rows.test]) == {"B"}
    assert set(source.streams[source.rows.train]) == {"A"}


def test_a_span_needs_times_with_a_unit(tmp_path):
    rows = [(k, k * k % 17, k % 7) for k in range(40)]
    path = table_of(tmp_path / "plain.csv", rows)
    for options in ({"derive": "mean(a, 3 s)"}, {"derive": "a@1", "gap": "3 s"}):
        with pytest.raises(InputError, match="column 't' has no unit of time"):
            read_table(path, target="y", time="t", **options)


def test_a_column_that_has_the_name_of_an_input_is_refused(tmp_path):
    path = table_of(tmp_path / "x.csv", [(k, k % 5, k % 3, k % 7) for k in range(40)], "t,a,a@1,y")
    with pytest.raises(InputError, match="a column of that name already"):
        read_table(path, target="y", time="t", derive="a@1")
