import numpy as np
import pytest

from twinedge import export, load
from twinedge.run_folder import load_run
from twinedge.scoring.scores import rank_correlation


def test_errors_are_those_of_the_python_api(cli, tiny_run, curve_csv, curve):
    X, y = curve
    model = load_run(tiny_run).model
    mean, scale = model.predict(X, return_std=True)
    error = mean - y
    report = cli("evaluate", tiny_run, curve_csv, "--json").json
    intervals, words = report.pop("intervals"), report.pop("in_words")
    assert report == {
        "run": str(tiny_run),
        "target": "level",
        "rows": 120,
        "rmse": pytest.approx(np.sqrt(np.mean(error**2))),
        "mae": pytest.approx(np.abs(error).mean()),
        "largest_error": pytest.approx(np.abs(error).max()),
        "r2": pytest.approx(model.score(X, y)),
        "baseline_rmse": pytest.approx(y.std()),
        "mean_spread": pytest.approx(model.spread(X).mean()),
        "mean_scale": pytest.approx(scale.mean()),
        "rank_correlation": pytest.approx(rank_correlation(scale, error)),
        "trained_on": 80,
        "trained_on_exact": True,
    }
    assert [one["claimed"] for one in intervals] == list(model.calibration_.quantiles)
    low, high = model.predict_interval(X).T
    ninety = next(one for one in intervals if one["claimed"] == 0.9)
    assert ninety["covered"] == pytest.approx(np.mean((low <= y) & (y <= high)))
    assert ninety["mean_width"] == pytest.approx(np.mean(high - low))
    assert f"cover {100 * ninety['covered']:.0f} % where 90 % is claimed" in words


def test_the_test_rows_of_a_run_give_its_test_error(cli, trained, write_points, tmp_path):
    folder, report = trained
    write_points(tmp_path / "test.csv", *load_run(folder).test)
    answer = cli("evaluate", folder, "test.csv", "--json")
    assert answer.json["rmse"] == pytest.approx(report["rmse_test"], rel=1e-5)


def test_a_person_reads_a_table(cli, tiny_run, curve_csv):
    answer = cli("evaluate", tiny_run, curve_csv)
    record, table, words = answer.out.split("\n\n")
    assert [line.split("  ")[0] for line in record.splitlines()] == [
        *("run", "target", "rows", "rmse", "mae", "largest error", "r2", "baseline rmse"),
        *("mean spread", "mean scale", "rank correlation", "trained on"),
    ]
    assert table.splitlines()[0].split("  ")[0] == "claimed"
    assert "is claimed" in words
    assert "80 of 120 rows were trained on: errors on new rows will be larger" in answer.err


def test_a_pack_is_scored_by_its_integers(cli, pack, curve_csv, curve):
    X, y = curve
    device = load(pack, "numpy")
    report = cli("evaluate", pack, curve_csv, "--json").json
    assert report["file"] == str(pack)
    assert report["rmse"] == pytest.approx(np.sqrt(np.mean((device.predict(X) - y) ** 2)))
    assert (report["trained_on"], report["trained_on_exact"]) == (80, True)
    assert [one["claimed"] for one in report["intervals"]] == list(device.coverages)


def test_a_pack_without_intervals_is_scored_by_its_errors(cli, tiny_run, curve_csv, tmp_path):
    export(tiny_run, tmp_path / "out", anchors=8, formats=("twin",), intervals=False)
    answer = cli("evaluate", tmp_path / "out" / "model.twin", curve_csv)
    assert "There are no intervals" in answer.out
    lines = curve_csv.read_text().splitlines()
    sites = ["site", *("north" if k % 3 else "south" for k in range(len(lines) - 1))]
    (tmp_path / "sites.csv").write_text("\n".join(map(",".join, zip(lines, sites, strict=True))))
    command = ("evaluate", tmp_path / "out" / "model.twin", "sites.csv", "--group", "site")
    groups = cli(*command, "--json").json["groups"]
    assert {one["name"] for one in groups} == {"north", "south"}
    assert all(one["coverage"] is None for one in groups)


def test_one_row_has_no_variance_to_explain(cli, tiny_run, tmp_path):
    (tmp_path / "one.csv").write_text("angle,offset,idle,level\n0.5,2,-20,60\n")
    assert cli("evaluate", tiny_run, "one.csv", "--json").json["r2"] is None
    lines = cli("evaluate", tiny_run, "one.csv").out.splitlines()
    assert [line.split() for line in lines if line.startswith("r2")] == [["r2", "-"]]


def test_without_targets_there_is_nothing_to_compare(refused, tiny_run, tmp_path):
    (tmp_path / "bare.csv").write_text("angle,offset,idle,levl\n0.5,2,-20,60\n")
    refused("evaluate", tiny_run, "bare.csv", says=["no column 'level'", "did you mean 'levl'?"])
