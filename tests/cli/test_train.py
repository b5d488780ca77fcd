import json

import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.data import read_table, split_rows
from twinedge.learn.run import load_run


def test_a_training_reports_what_it_did(trained):
    folder, report = trained
    expected = {
        "dataset": "curve.csv",
        "split": 0,
        "rows": 120,
        "features": 3,
        "twins": 1,
        "activation": "relu",
        "learning_rate": 0.01,
        "weight_decay": 0.03,
        "steps": 300,
        "interrupted": False,
        "run": str(folder),
    }
    assert expected.items() <= report.items()
    assert set(report) - set(expected) == {"rmse_val", "rmse_test", "seconds"}
    assert 0 < report["rmse_val"] < 10


def test_the_scores_are_those_of_the_python_api(trained, curve_csv):
    table = read_table(curve_csv, target="level")
    rows = split_rows(120, 0)
    parts = [(table.X[some], table.y[some]) for some in rows]
    model = TwinRegressor(
        hidden=(8,),
        steps=300,
        activation="relu",
        learning_rate=0.01,
        weight_decay=0.03,
        random_state=0,
    )
    model.fit(*parts[0], parts[1])
    assert trained[1]["rmse_val"] == model.validation_rmse_
    assert trained[1]["rmse_test"] == model.rmse(*parts[2])


def test_the_run_holds_what_was_trained(trained):
    folder, report = trained
    run = load_run(folder)
    assert run.feature_names == ("angle", "offset", "idle")
    assert run.target_name == "level"
    assert run.source == {"dataset": "curve.csv", "split": 0, "rows": 120}
    assert run.scores["rmse_test"] == report["rmse_test"]
    assert run.model.rmse(*run.test) == pytest.approx(report["rmse_test"], rel=1e-5)


def test_the_same_seed_gives_the_same_run(cli, trained, curve_csv, tiny):
    folder, report = trained
    answer = cli("train", curve_csv, "--target", "level", "-o", "again", "--json", *tiny)
    unlike = {"seconds", "run"}
    assert {k: v for k, v in answer.json.items() if k not in unlike} == {
        k: v for k, v in report.items() if k not in unlike
    }
    again = cli("predict", "again", curve_csv)
    assert again == cli("predict", folder, curve_csv)


def test_the_same_seed_gives_the_same_points(cli, trained, curve_csv, tiny, tmp_path):
    cli("train", curve_csv, "--target", "level", "-o", "again", *tiny)
    points = (tmp_path / "again" / "points.npz").read_bytes()
    assert points == (trained[0] / "points.npz").read_bytes()


def test_another_seed_gives_another_model(cli, trained, curve_csv, tiny):
    answer = cli("train", curve_csv, "--target", "level", "--seed", 1, "-o", "r", "--json", *tiny)
    assert answer.json["rmse_test"] != trained[1]["rmse_test"]


def test_another_split_gives_other_points(cli, trained, curve_csv, tiny, tmp_path):
    answer = cli("train", curve_csv, "--target", -1, "--split", 99, "-o", "r", "--json", *tiny)
    assert answer.json["split"] == 99
    points = load_run(tmp_path / "r").test
    assert not np.array_equal(points[0], load_run(trained[0]).test[0])


@pytest.mark.parametrize("target", ["3", "-1"])
def test_a_target_by_position_is_the_same_target(cli, trained, curve_csv, tiny, target):
    answer = cli("train", curve_csv, "--target", target, "-o", "run", "--json", *tiny)
    assert answer.json["rmse_test"] == trained[1]["rmse_test"]


def test_the_first_column_may_be_the_target(cli, curve_csv, tiny, tmp_path):
    assert cli("train", curve_csv, "--target", 0, "-o", "run", *tiny).code == 0
    assert load_run(tmp_path / "run").target_name == "angle"


def test_a_dropped_column_is_no_feature(cli, curve_csv, tiny, tmp_path):
    answer = cli(
        *("train", curve_csv, "--target", "level", "--drop", "idle", "--drop", "offset"),
        *("-o", "run", "--json", *tiny),
    )
    assert answer.json["features"] == 1
    assert load_run(tmp_path / "run").feature_names == ("angle",)


def test_the_test_function_needs_no_data_folder(cli, tiny, monkeypatch, tmp_path):
    monkeypatch.delenv("TWINEDGE_DATA", raising=False)
    monkeypatch.setenv("TWINEDGE_CACHE", str(tmp_path / "none"))
    answer = cli("train", "--dataset", "tf", "--split", 24, "-o", "run", "--json", *tiny)
    assert (answer.code, answer.err) == (0, "")
    assert (
        answer.json.items() >= {"dataset": "tf", "split": 24, "rows": 1000, "features": 2}.items()
    )


def test_twins_and_neighbours(cli, curve_csv, tiny, tmp_path):
    answer = cli(
        *("train", curve_csv, "--target", "level", "--twins", 2, "--pairs", "neighbors"),
        *("--neighbors", 4, "-o", "run", "--json", *tiny),
    )
    assert answer.json["twins"] == 2
    assert load_run(tmp_path / "run").model.neighbors == 4


def test_a_person_reads_a_table_of_the_same(cli, curve_csv, tiny):
    answer = cli("train", curve_csv, "--target", "level", "-o", "run", *tiny)
    lines = dict(line.split("  ", 1) for line in answer.out.splitlines())
    assert {key: word.strip() for key, word in lines.items()}.items() >= {
        "dataset": "curve.csv",
        "activation": "relu",
        "interrupted": "no",
    }.items()
    assert answer.err == ""


def test_by_default_the_run_is_the_latest(cli, curve_csv, tiny, tmp_path):
    assert cli("train", curve_csv, "--target", "level", *tiny).code == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["latest"]
    assert sorted(path.name for path in (tmp_path / "runs" / "latest").iterdir()) == [
        *("points.npz", "run.json", "twin.keras")
    ]


def test_a_run_takes_the_place_of_an_earlier_one(cli, curve_csv, tiny, tmp_path):
    cli("train", curve_csv, "--target", "level", "-o", "run", *tiny)
    cli("train", curve_csv, "--target", "angle", "-o", "run", *tiny)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["target_name"] == "angle"


def test_repeated_rows_are_remarked_in_one_line(cli, curve_csv, tiny, loud, tmp_path):
    header, *rows = curve_csv.read_text().splitlines()
    (tmp_path / "double.csv").write_text("\n".join([header, *rows, *rows[:2]]))
    answer = cli("train", "double.csv", "--target", "level", "-o", "run", "--json", *loud)
    assert answer.err.count("\n") == 1
    assert "double.csv: 2 rows like an earlier one" in answer.err
    assert answer.json["rows"] == 122
    assert cli("train", "double.csv", "--target", "level", "-o", "run", *tiny).err == ""
