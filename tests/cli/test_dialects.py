"""Files as spreadsheets of all locales write them, from training to prediction."""

import numpy as np

from twinedge.data import split_rows


def test_the_dialect_of_a_file_changes_nothing(cli, trained, curve_csv, tiny, tmp_path):
    folder, report = trained
    text = curve_csv.read_text().replace(",", ";").replace(".", ",").replace("\n", "\r\n")
    (tmp_path / "other.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    answer = cli("train", "other.csv", "--target", "level", "-o", "run", "--json", *tiny)
    assert answer.json["rmse_test"] == report["rmse_test"]
    assert cli("predict", "run", "other.csv") == cli("predict", folder, curve_csv)


def test_missing_values_are_filled_with_the_medians_of_training(cli, curve_csv, loud, tmp_path):
    header, *rows = (line.split(",") for line in curve_csv.read_text().splitlines())
    rows[3][1] = ""
    rows[7][1] = "NA"
    (tmp_path / "holes.csv").write_text("\n".join(map(",".join, [header, *rows])))
    answer = cli(
        *("train", "holes.csv", "--target", "level", "--impute", "median", "-o", "run"),
        *("--json", *loud),
    )
    assert answer.code == 0
    assert answer.err == "holes.csv: filled in 2 missing values\n"

    train = split_rows(len(rows), 0).train
    median = np.median([float(rows[k][1]) for k in train if k not in (3, 7)])
    assert median != np.median([float(row[1]) for k, row in enumerate(rows) if k not in (3, 7)])
    (tmp_path / "hole.csv").write_text("angle,offset,idle\n0.5,,-20\n")
    (tmp_path / "filled.csv").write_text(f"angle,offset,idle\n0.5,{median:.17g},-20\n")
    hole, filled = cli("predict", "run", "hole.csv"), cli("predict", "run", "filled.csv")
    assert hole.out == filled.out[:-1] + "offset\n"  # named in the last column, as missing
    assert hole.err == "hole.csv: filled in 1 missing value\n"
    assert cli("predict", "run", "hole.csv", "--quiet").err == ""


def test_without_impute_missing_values_are_refused_in_prediction_too(refused, trained, tmp_path):
    (tmp_path / "hole.csv").write_text("angle,offset,idle\n0.5,,-20\n")
    refused("predict", trained[0], "hole.csv", says=["hole.csv: row 2, column 'offset'", "missing"])
