import numpy as np
import pytest

from twinedge.learn.run import load_run


def test_errors_are_those_of_the_python_api(cli, tiny_run, curve_csv, curve):
    X, y = curve
    mean, spread = load_run(tiny_run).model.predict(X, return_std=True)
    error = mean - y
    report = cli("evaluate", tiny_run, curve_csv, "--json").json
    assert report == {
        "run": str(tiny_run),
        "target": "level",
        "rows": 120,
        "rmse": pytest.approx(np.sqrt(np.mean(error**2))),
        "mae": pytest.approx(np.abs(error).mean()),
        "largest_error": pytest.approx(np.abs(error).max()),
        "r2": pytest.approx(load_run(tiny_run).model.score(X, y)),
        "mean_spread": pytest.approx(spread.mean()),
    }


def test_the_test_rows_of_a_run_give_its_test_error(cli, trained, tmp_path):
    folder, report = trained
    X, y = load_run(folder).test
    np.savetxt(
        tmp_path / "test.csv",
        np.column_stack([X, y]),
        fmt="%.17g",
        delimiter=",",
        header="angle,offset,idle,level",
        comments="",
    )
    answer = cli("evaluate", folder, "test.csv", "--json")
    assert answer.json["rmse"] == pytest.approx(report["rmse_test"], rel=1e-5)


def test_a_person_reads_a_table(cli, tiny_run, curve_csv):
    answer = cli("evaluate", tiny_run, curve_csv)
    names = [line.split("  ")[0] for line in answer.out.splitlines()]
    assert names == ["run", "target", "rows", "rmse", "mae", "largest error", "r2", "mean spread"]
    assert answer.err == ""


def test_one_row_has_no_variance_to_explain(cli, tiny_run, tmp_path):
    (tmp_path / "one.csv").write_text("angle,offset,idle,level\n0.5,2,-20,60\n")
    assert cli("evaluate", tiny_run, "one.csv", "--json").json["r2"] is None
    assert "r2             -\n" in cli("evaluate", tiny_run, "one.csv").out


def test_without_targets_there_is_nothing_to_compare(refused, tiny_run, tmp_path):
    (tmp_path / "bare.csv").write_text("angle,offset,idle,levl\n0.5,2,-20,60\n")
    refused("evaluate", tiny_run, "bare.csv", says=["no column 'level'", "did you mean 'levl'?"])
