"""Numbers with a percent sign: 53.1% is 53.1, in a column where all have one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinedge.data import csvfile, read_features, read_table
from twinedge.data.dialect import names_columns
from twinedge.encoding.cells import CellKind, CellReader, looks_numeric
from twinedge.encoding.tables import column_of

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(repr)
QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("sign", ["%", " %"])
@pytest.mark.parametrize("mark", [".", ","])
def test_percentages_are_numbers(write, sign, mark):
    rows = [f"{k}{mark}5{sign};{k};{k * k}" for k in range(12)]
    path = write("\n".join(["damp;a;y", *rows]))
    table = read_table(path, target="y")
    assert table.X[:, 0].tolist() == [k + 0.5 for k in range(12)]
    assert table.remarks[0] == f"{path}: column 'damp' holds percentages: 53.1% is read as 53.1"
    assert read_features(path, ("damp",))[0][:, 0].tolist() == table.X[:, 0].tolist()


def test_a_target_and_missing_values_may_be_percentages(write):
    path = write("a,y\n1%,10%\n,20%\n3%,35%\nNA,40 %\n")
    table = read_table(path, target="y", impute="median")
    assert table.y.tolist() == [10, 20, 35, 40]
    assert table.missing == 2
    assert "column 'a', 'y' holds percentages" in table.remarks[0]


@pytest.mark.parametrize("cells", [("53.1%", "0.5"), ("0.5", "53.1%"), ("7", "7%"), ("7%", "0")])
@pytest.mark.parametrize("block", [1, 100])
def test_a_column_of_both_kinds_is_ambiguous(write, complaint, monkeypatch, cells, block):
    monkeypatch.setattr(csvfile, "_CELLS_PER_BLOCK", 2 * block)
    first, other = cells
    path = write("a,y\n" + f"{first},1\n" * 3 + f"{other},2\n")
    message = complaint(read_table, path, target="y")
    assert f"row 5, column 'a': {other!r} is ambiguous" in message
    assert "write all with one, or all without" in message


def test_names_may_have_percent_signs(write):
    rows = "".join(f"{'5%' if k % 2 else '10%'},{k},{k * k}\n" for k in range(20))
    table = read_table(write("dose,a,y\n" + rows), target="y", categorical=["dose"])
    assert table.prepare().encoding.inputs == ("dose=10%", "dose=5%", "a")


def test_percentages_of_a_frame_are_those_of_a_file():
    found = column_of(pd.Series(["53.1%", "7 %", None]), "damp")
    np.testing.assert_array_equal(found.values, [53.1, 7, np.nan])
    assert found.texts is None
    assert column_of(pd.Series(["53.1%", "0.5"]), "damp").texts == ("53.1%", "0.5")


def test_quantiles_are_names_of_columns(write):
    assert names_columns(["25%", "50%", "75%"], ["1", "2", "3"])
    assert not names_columns(["25%", "50%", "75%"], ["1%", "2%", "3%"])
    assert not names_columns(["25%", "50%", "3"], ["1%", "2%", "3"])
    table = read_table(write("25%,50%\n1,2\n3,4\n4,6\n"), target="50%")
    assert table.feature_names == ("25%",)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("5%", CellKind.NUMBER),
        (" -1.5e2 % ", CellKind.NUMBER),
        ("%", CellKind.TEXT),
        ("5%%", CellKind.TEXT),
        ("%5", CellKind.TEXT),
        ("x%", CellKind.TEXT),
        ("NA%", CellKind.TEXT),
        ("1e999%", CellKind.INFINITE),
        ("1,234.5%", CellKind.THOUSANDS),
    ],
)
def test_what_a_percent_sign_makes_of_a_cell(cell, kind):
    assert CellReader(comma_allowed=False).read(cell, 0)[0] is kind
    assert CellReader(comma_allowed=False).read(cell)[0] is not CellKind.NUMBER
    assert looks_numeric(cell) == (kind is CellKind.NUMBER or cell == "1e999%")


@QUICK
@given(st.lists(NUMBERS, min_size=2, max_size=9), st.booleans(), st.sampled_from(["%", " %", "% "]))
def test_the_sign_changes_no_bit_of_any_number(tmp_path, numbers, comma, sign):
    words = [f"{one.replace('.', ',') if comma else one}{sign}" for one in numbers]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a;b", *(f"{word};{k}" for k, word in enumerate(words))]))
    table = read_table(path, target=None)
    assert table.X[:, 0].tobytes() == np.array(numbers, float).tobytes()
