"""Several tables with the same columns are read as one."""

import numpy as np
import pytest

from twinedge.data import read_table
from twinedge.data.source import from_table

BASE = "a,b,y\n" + "".join(f"{k},{k * k % 11},{2 * k}\n" for k in range(20))
POINTS = "device,y,b,a\n" + "".join(f"d{k % 5},{3 * k},{k % 7},{100 + k}\n" for k in range(30))


@pytest.fixture
def two(write):
    """An old table, and points from devices, with another order of columns and one more."""
    return [write(BASE, "base.csv"), write(POINTS, "points.csv")]


def test_rows_are_joined_in_the_order_of_the_files(two):
    table = read_table(two, target="y", group="device")
    assert table.paths == tuple(two)
    assert table.feature_names == ("a", "b")
    assert table.X[:, 0].tolist() == [*range(20), *range(100, 130)]
    assert table.X[:, 1].tolist() == [k * k % 11 for k in range(20)] + [k % 7 for k in range(30)]
    assert table.y.tolist() == [2 * k for k in range(20)] + [3 * k for k in range(30)]
    assert table.rows.tolist() == [*range(2, 22), *range(2, 32)]
    assert table.file_of.tolist() == [0] * 20 + [1] * 30


def test_tables_may_be_joined_without_a_target(two):
    table = read_table(two, target=None, drop=["device"])
    assert table.feature_names == ("a", "b", "y")
    assert table.X[:, 2].tolist() == read_table(two, target="y", group="device").y.tolist()


def test_the_first_table_decides_about_the_order_of_columns_and_the_position_of_the_target(two):
    table = read_table(two[::-1], target=1, group="device")
    assert (table.feature_names, table.target_name) == (("b", "a"), "y")
    assert table.X[30:, 1].tolist() == list(range(20))


def test_each_table_has_its_own_dialect(two, write):
    other = write("b;y;a\n1,5;2;3\n2,5;4;4\n", "comma.csv")
    table = read_table([two[0], other], target="y")
    assert table.X[-2:].tolist() == [[3, 1.5], [4, 2.5]]


def test_rows_without_a_group_are_groups_of_their_own(two):
    table = read_table(two, target="y", group="device")
    assert len(set(table.groups[:20])) == 20
    assert table.groups[20:].tolist() == [f"d{k % 5}" for k in range(30)]
    assert table.grouped.tolist() == [False] * 20 + [True] * 30
    found = [one for one in table.remarks if "group" in one]
    assert found == [
        f"{two[0]}: no column 'device' for the groups: each of its rows is a group of its own"
    ]


def test_the_order_of_the_tables_does_not_matter_to_groups(two):
    table = read_table(two[::-1], target="y", group="device")
    assert table.grouped.tolist() == [True] * 30 + [False] * 20
    assert len(set(table.groups)) == 25


@pytest.mark.parametrize("more", [{}, {"folds": 3}, {"test": "later.csv"}], ids=str)
def test_named_groups_are_in_every_part_and_whole(write, more):
    base = "a,b,y\n" + "".join(f"{k},{k * k % 11},{2 * k}\n" for k in range(400))
    two = [write(base, "base.csv"), write(POINTS, "points.csv")]
    if "test" in more:
        more = {"test": write("device,a,b,y\nz,1,2,3\nz,2,3,5\n", "later.csv")}
    source = from_table(two, target="y", group="device", split=1, **more)
    splits = [source.rows, *(fold().rows for fold in source.folds)]
    for rows in splits:
        assert sorted(np.concatenate(rows)) == list(range(len(source.y) if len(rows.test) else 430))
        held = [set(source.groups[part[source.grouped[part]]]) for part in rows]
        assert all(held[:2])
        assert bool(held[2]) == bool(len(rows.test))
        assert sum(map(len, held)) == len(set.union(*held))
        assert [bool((part < 400).any()) for part in rows[:2]] == [True, True]
    assert any("5 groups of rows" in one or "6 groups of rows" in one for one in source.remarks)
    assert not any("single row" in one for one in source.remarks)


def test_too_few_named_groups_are_split_with_all_others(write, two):
    points = write("device,a,b,y\nd,50,1,7\nd,51,2,8\n", "few.csv")
    source = from_table([two[0], points], target="y", group="device")
    assert sorted(np.concatenate(source.rows)) == list(range(22))
    assert sum({20, 21} <= set(part.tolist()) for part in source.rows) == 1


def test_rows_without_a_weight_count_one(write, two):
    weighed = write("a,b,y,w\n1,2,3,0.5\n4,5,6,0\n7,8,9,2\n", "weighed.csv")
    table = read_table([two[0], weighed], target="y", weight="w")
    assert table.weights.tolist() == [1] * 20 + [0.5, 2]
    assert table.X[-2:].tolist() == [[1, 2], [7, 8]]
    assert table.remarks == (
        f"{two[0]}: no column 'w' for the weights: each of its rows counts 1",
        f"{weighed}: 1 row of weight 0 left out",
    )


def test_levels_are_those_of_all_tables(write):
    one = write("kind,a,y\nred,1,1\nblue,2,2\nred,3,4\nblue,5,5\n", "one.csv")
    two = write("y,kind,a\n3,green,2\n4,7,3\n5,green,4\n6,blue,5\n7,7,8\n", "two.csv")
    table = read_table([one, two], target="y")
    kind = table.columns[0]
    words = [kind.texts[int(code)] for code in kind.values]
    assert words == ["red", "blue", "red", "blue", "green", "7", "green", "blue", "7"]
    (category, _) = table.prepare().encoding.kinds
    assert {*category.levels, *category.others} == {"red", "blue", "green", "7"}


def test_missing_names_stay_missing(write):
    one = write("kind,a,y\nred,1,1\nblue,2,2\nred,3,4\nblue,5,5\n", "one.csv")
    two = write("kind,a,y\n,1,1\nblue,2,2\nred,,4\nblue,5,5\n", "two.csv")
    table = read_table([one, two], target="y", impute="median")
    assert np.isnan(table.columns[0].values).tolist() == [False] * 4 + [True] + [False] * 3
    assert table.missing == 2


def test_what_is_constant_in_one_table_may_vary_in_all(write):
    one = write("site,a,y\n1,1,1\n1,2,2\n1,3,4\n", "one.csv")
    two = write("site,a,y\n2,1,1\n", "two.csv")
    assert read_table([one, two], target="y").X[:, 0].tolist() == [1, 1, 1, 2]


def test_times_in_the_notation_of_each_table(write):
    one = write(
        "at,a,y\n" + "".join(f"{k}/01/2024,{k},{2 * k}\n" for k in range(10, 25)), "one.csv"
    )
    two = write("a,at,y\n1,03/02/2024,2\n3,04/02/2024,5\n", "two.csv")
    iso = write("a,at,y\n1,2024-03-01,3\n", "iso.csv")
    table = read_table([one, two, iso], target="y", time="at")
    days = (table.times[-3:] - table.times[0]) / 86400
    assert days.tolist() == [24, 25, 51]  # day first, as the first table shows
    assert table.notation.day_first is True


def test_a_dropped_column_may_be_in_one_table_only(two):
    assert read_table(two, target="y", drop=["device"]).feature_names == ("a", "b")
    assert read_table(two, target="y", drop=["device,b"]).feature_names == ("a",)


def test_data_frames_are_joined_with_files(two):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"y": [1.0, 2.0], "a": [3.0, 4.0], "b": [5.0, 6.0]})
    table = read_table([frame, two[0]], target="y")
    assert table.where == f"data frame 1 and {two[0]}"
    assert table.X[:2].tolist() == [[3, 5], [4, 6]]


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("a,y\n1,2\n", {}, ["no column 'b'", "base.csv", "drop=['b']"]),
        ("a,b,c,y\n1,2,3,4\n", {}, ["a column 'c'", "base.csv", "drop=['c']"]),
        ("a,B,y\n1,2,3\n", {}, ["no column 'b' (did you mean 'B'?)", "drop=['b', 'B']"]),
        ("a,b\n1,2\n", {}, ["no column 'y'", "the same columns"]),
        ("1,2,3\n4,5,6\n", {}, ["has no header", "base.csv", "'a', 'b', 'y'"]),
        ("a,b,y\n1,2,3\n4,x,6\n", {}, ["row 3, column 'b': 'x'", "categorical=['b']"]),
        ("a,b,y\n1,2,3\n4,,6\n", {}, ["row 3, column 'b': missing value"]),
        ("a,b,y\n1,2,3\n4,5\n", {}, ["row 3: has 2 cells"]),
        ("a,b,y\n1,2,3\n", {"group": "who"}, ["base.csv: no column 'who' for the groups"]),
        ("a,b,y\n1,2,3\n", {"weight": "w"}, ["base.csv: no column 'w' for the weights"]),
        ("a,b,y\n1,2,3\n", {"drop": ["q"]}, ["base.csv: no column 'q' to drop"]),
        ("a,b,y,at\n1,2,3,5\n", {"time": "at"}, ["base.csv: no column 'at' for the times"]),
        ("a,b,y,w\n1,2,3,-5\n", {"weight": "w"}, ["points.csv: column 'w' holds the weight -5"]),
        ("a,b,y,g\n1,2,3,\n", {"group": "g"}, ["row 2, column 'g': missing"]),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_with_its_file(complaint, write, text, options, says):
    two = [write(BASE, "base.csv"), write(text, "points.csv")]
    message = complaint(read_table, two, target="y", **options)
    file = "base.csv" if says[0].startswith("base.csv") else "points.csv"
    assert message.startswith(str(two[0].with_name(file)))
    for word in says:
        assert word in message


def test_a_file_that_is_named_twice_is_refused(complaint, two):
    again = two[0].parent / ".." / two[0].parent.name / "base.csv"
    assert "named twice" in complaint(read_table, [*two, again], target="y", group="device")
    assert "at least one" in complaint(read_table, [], target="y")


def test_plain_numbers_beside_dates_are_refused(complaint, write):
    one = write("at,a,y\n1,1,1\n2,2,3\n", "one.csv")
    two = write("at,a,y\n2024-01-01,1,1\n", "two.csv")
    message = complaint(read_table, [one, two], target="y", time="at")
    assert message.startswith(f"{one}: its times are plain numbers")
    assert str(two) in message


def test_cells_far_from_all_others_are_named_with_their_file(write):
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{a + b}" for a, b in rng.normal(20, 5, (60, 2)).round(3).tolist()]
    rows[4] = rows[4].replace(rows[4].split(",")[0], "-9999", 1)
    rows[40] = rows[40].replace(rows[40].split(",")[0], "-9999", 1)
    one = write("\n".join(["a,b,y", *rows[:30]]) + "\n", "one.csv")
    two = write("\n".join(["a,b,y", *rows[30:]]) + "\n", "two.csv")
    (found,) = [one for one in from_table([one, two], target="y").remarks if "-9999" in one]
    assert found.startswith(f"{one} and {two}: -9999 is far")
    assert f"rows 6 of {one}, 12 of {two};" in found


def test_bad_rows_are_left_out_and_counted_by_file(write):
    one = write(BASE + "1,x,2\n", "one.csv")
    two = write("y,b,a\n1,2,3\n2,3\n4,4,4\n", "two.csv")
    table = read_table([one, two], target="y", skip_bad_rows=True)
    assert len(table.y) == 22
    found = [str(remark) for remark in table.remarks]
    assert found[0].startswith(f"{one}: 1 row that cannot be read left out (22)")
    assert found[1].startswith(f"{two}: 1 row that cannot be read left out (3)")


def test_a_source_knows_the_rows_of_each_table(two):
    source = from_table(two, target="y", group="device")
    assert source.name == "base.csv and points.csv"
    assert source.tables == {"base.csv": 20, "points.csv": 30}
    numbers = source.row_numbers()
    lines = [path.read_text().splitlines() for path in two]
    for part, rows in source.rows._asdict().items():
        for (file, number), row in zip(numbers[part].tolist(), rows, strict=True):
            cells = dict(
                zip(lines[file][0].split(","), lines[file][number - 1].split(","), strict=True)
            )
            assert float(cells["y"]) == source.y[row]


def test_tables_of_the_same_name_are_distinguished(write, tmp_path):
    (tmp_path / "more").mkdir()
    two = [write(BASE, "t.csv"), write(BASE.replace("1,", "7,"), "more/t.csv")]
    assert list(from_table(two, target="y").tables) == [str(path) for path in two]
