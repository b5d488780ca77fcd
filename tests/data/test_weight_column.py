"""A column that says how much each row counts."""

import numpy as np
import pytest

from twinedge import InputError
from twinedge.data import read_table
from twinedge.data.source import from_table

TABLE = "w,a,y,b\n1,1,10,0.5\n0,2,20,0.25\n2.5,3,30,-1\n0.5,4,,2\n1e-3,5,50,7\n"


@pytest.fixture
def table(tmp_path):
    def write(text=TABLE):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return path

    return write


def test_the_column_is_no_feature_and_rows_of_weight_zero_are_left_out(table):
    found = read_table(table(), target="y", weight="w", drop_missing_target=True)
    assert found.feature_names == ("a", "b")
    assert found.weights.tolist() == [1, 2.5, 0.001]
    assert found.X[:, 0].tolist() == [1, 3, 5]
    assert found.y.tolist() == [10, 30, 50]
    assert [str(one).partition(": ")[2] for one in found.remarks[:2]] == [
        "1 row without a target left out",
        "1 row of weight 0 left out",
    ]
    assert "w" in found.dropped


def test_groups_and_weights_stay_with_their_rows(table):
    rows = [f"{k % 4},g{k % 5},{k},{k * k},{k / 7}" for k in range(60)]
    path = table("\n".join(["w,g,a,y,b", *rows]))
    found = read_table(path, target="y", weight="w", group="g")
    assert len(found.y) == 45
    assert found.weights.tolist() == [k % 4 for k in range(60) if k % 4]
    assert found.groups.tolist() == [f"g{k % 5}" for k in range(60) if k % 4]


def test_a_source_without_rows_of_weight_zero_is_the_same(table):
    rng = np.random.default_rng(0)
    rows = [(rng.integers(0, 3), *rng.random(3)) for _ in range(80)]
    lines = [",".join(map(str, row)) for row in rows]
    kept = [line for line, row in zip(lines, rows, strict=True) if row[0]]
    every = from_table(table("\n".join(["w,a,b,y", *lines])), target="y", weight="w")
    some = from_table(table("\n".join(["w,a,b,y", *kept])), target="y", weight="w")
    for name in ("X", "y", "weights"):
        assert np.array_equal(getattr(every, name), getattr(some, name))
    assert every.weight_name == "w"
    for one, other in zip(every.rows, some.rows, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (TABLE, {"weight": "W"}, "no column 'W' for the weights .did you mean 'w'.*columns are"),
        (TABLE, {"weight": "y"}, "column 'y' is the target and cannot hold weights"),
        (TABLE, {"weight": "w", "group": "w"}, "column 'w' is the group and cannot hold weights"),
        (TABLE, {"weight": "w", "categorical": ["w"]}, "'w' is a category and cannot hold weights"),
        (TABLE.replace("2.5", "-2.5"), {"weight": "w"}, "'w' holds the weight -2.5; weights are"),
        (TABLE.replace("2.5", ""), {"weight": "w"}, "row 4, column 'w': missing value"),
        (TABLE.replace("2.5", "inf"), {"weight": "w"}, "row 4, column 'w': .*inf"),
        (TABLE.replace("2.5", "much"), {"weight": "w"}, "column 'w': 'much' is not a number"),
        ("w,a,y\n0,1,2\n0,2,3\n", {"weight": "w"}, "all weights in column 'w' are zero"),
    ],
    ids=["name", "target", "group", "category", "negative", "missing", "inf", "word", "zero"],
)
def test_a_column_that_cannot_hold_weights_is_refused(text, options, words, table):
    with pytest.raises(InputError, match=words) as found:
        read_table(table(text), target="y", drop_missing_target=True, **options)
    assert "\n" not in str(found.value)
