"""Numbers and texts that stand for a missing value, as the user says."""

import numpy as np
import pandas as pd
import pytest

from twinedge.data import csvfile, read_features, read_table
from twinedge.data.source import from_table
from twinedge.data.table import missing_texts
from twinedge.encoding.cells import CellKind, CellReader
from twinedge.errors import InputError

HEADER = "a,b,y"
ROWS = [f"{k},{k % 3}.5,{k * k}" for k in range(12)]


def written(write, *more, rows=ROWS, header=HEADER):
    return write("\n".join([header, *rows, *more]) + "\n")


@pytest.mark.parametrize("block", [2, 100])
@pytest.mark.parametrize("cell", ["-9999.0", "-9.999e3"])
@pytest.mark.parametrize("missing", [-9999, ["-9999.00"], np.array([-9999])])
def test_a_number_is_missing_however_it_is_written(write, monkeypatch, cell, missing, block):
    monkeypatch.setattr(csvfile, "_CELLS_PER_BLOCK", 3 * block)
    path = written(write, f"7,{cell},49")
    assert read_table(path, target="y").X[12, 1] == -9999
    table = read_table(path, target="y", missing=missing, impute="median")
    assert table.missing == 1
    np.testing.assert_array_equal(np.isnan(table.X[:, 1]), np.arange(13) == 12)
    np.testing.assert_array_equal(table.X[:12], read_table(written(write), target="y").X)


def test_several_and_texts_are_exact(write, complaint):
    path = written(write, "7,-9999,49", "8,off,64", "9,99999,81")
    table = read_table(path, target="y", missing=[-9999, "off", 99999], impute="median")
    assert table.missing == 3
    assert "row 15, column 'b': 'off' is not a number" in complaint(
        read_table, path, target="y", missing=[-9999, "Off"], impute="median"
    )


def test_what_is_missing_is_refused_filled_in_or_left_out(write, complaint):
    path = written(write, "7,-9999,49")
    message = complaint(read_table, path, target="y", missing=-9999)
    assert "row 14, column 'b': missing value" in message
    assert "use impute='median', or leave such rows out with skip_bad_rows=True" in message
    table = read_table(path, target="y", missing=-9999, skip_bad_rows=True)
    assert len(table.y) == 12
    assert "row 14, column 'b': missing value" in table.remarks[0]


def test_in_the_target_and_in_the_group(write, complaint):
    path = written(write, "7,1,-9999", "-9999,1,3")
    with_target = {"target": "y", "missing": -9999, "drop_missing_target": True}
    table = read_table(path, **with_target, group="a", skip_bad_rows=True)
    assert (len(table.y), len(table.groups)) == (12, 12)
    assert table.rows.tolist() == list(range(2, 14))
    assert "row 15, column 'a': missing" in complaint(read_table, path, **with_target, group="a")


def test_a_target_without_a_value_is_refused_however_many_there_are(write, complaint):
    path = written(write, rows=[f"{k},{k * k % 7}," for k in range(12)])
    message = complaint(read_table, path, target=["b", "y"], drop_missing_target=True)
    assert message.endswith("target column 'y' has no value in any row")


def test_a_model_has_some_targets_but_not_any_number(write, complaint):
    path = written(write)
    assert "0 targets; a model has 1 to 8" in complaint(read_table, path, target=[])


def test_in_a_column_of_names(write):
    rows = [f"{'pq'[k % 2]},{k},{k * k}" for k in range(12)]
    path = written(write, "unknown,3,9", "-9,3,9", rows=rows, header="kind,b,y")
    table = read_table(path, target="y", missing=["unknown", -9], impute="median")
    assert table.columns[0].texts == ("p", "q")
    assert table.missing == 2
    with pytest.raises(InputError, match="column 'kind' holds names: encode them with"):
        _ = table.X
    path = written(write, "3,-9.0,9")
    codes = read_table(path, target="y", missing=-9, categorical=["b"], impute="median")
    assert codes.missing == 1
    assert codes.columns[1].texts == ("0.5", "1.5", "2.5")


def test_a_column_of_names_without_any_cannot_be_learnt_from(write, complaint):
    path = written(write, rows=[f"{k},,{k * k % 7}" for k in range(20)])
    reading = {"target": "y", "categorical": ["b"], "impute": "median"}
    assert "column 'b' does not have two levels" in complaint(from_table, path, **reading)


def test_with_decimal_commas_and_percent_signs(write):
    rows = [f"{k};{k % 3},5%;{k * k}" for k in range(12)]
    path = written(write, "7;-9999;49", "8;-9999,0%;64", rows=rows, header="a;b;y")
    table = read_table(path, target="y", missing="-9999", impute="median")
    assert (table.missing, table.X[1, 1]) == (2, 1.5)


def test_in_a_data_frame():
    frame = pd.DataFrame(
        {"a": np.arange(12.0), "b": [-9999.0, *range(11)], "y": np.arange(12) ** 2}
    )
    assert read_table(frame, target="y", missing=-9999, impute="median").missing == 1


def test_for_a_trained_model(write):
    path = written(write, "7,-9999,49")
    x, _ = read_features(path, ("a", "b"), missing="-9999", fillable=np.array([True, True]))
    assert np.isnan(x[12, 1])
    assert read_features(path, ("a", "b"))[0][12, 1] == -9999


def test_a_source_remembers_them_without_a_remark(write):
    rows = [f"{np.sin(k):.6f},{np.cos(3 * k):.6f},{np.sin(k) + k % 7:.6f}" for k in range(60)]
    path = written(write, "-9999,1,2", "-9999,0,1", rows=rows)
    assert len(from_table(path, target="y").remarks) == 1
    source = from_table(path, target="y", missing=[-9999], impute="median")
    assert source.missing == ("-9999",)
    assert source.remarks == (f"{path}: filled in 2 missing values",)


def test_numbers_are_compared_as_numbers():
    reader = CellReader(comma_allowed=False, missing=missing_texts(0))
    kinds = [reader.read(cell)[0] for cell in ("0", "-0.0", "0e5", "00", "0.01", "zero")]
    assert kinds == [CellKind.MISSING] * 4 + [CellKind.NUMBER, CellKind.TEXT]
    assert reader.read_all(["1", "0.0"]) is None
    assert reader.read_all(["1", "2"]).tolist() == [1, 2]
    assert reader.afresh().is_missing("0.0")
