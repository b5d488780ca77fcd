import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from twinedge.budget import Model, twin_bytes
from twinedge.cli.output import print_record
from twinedge.cli.train import with_reasons
from twinedge.data import read_table, split_rows
from twinedge.evaluation.comparison import standing_beside
from twinedge.evaluation.rivals import rival_predictions
from twinedge.run_folder import load_run


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
        "input_map": "none",
        "target_curve": "none",
        "steps": 300,
        "taught": None,
        "interrupted": False,
        "run": str(folder),
    }
    assert expected.items() <= report.items()
    assert set(report) - set(expected) == {
        *("rmse_val", "rmse_test", "r2_test", "coverage_test", "rmse_mean", "beats_mean"),
        *("rmse_linear", "beats_linear", "rmse_trees", "beats_trees", "verdict", "seconds"),
    }
    assert 0 < report["rmse_val"] < 10


def test_the_run_holds_what_was_trained(trained):
    folder, report = trained
    run = load_run(folder)
    assert run.feature_names == ("angle", "offset", "idle")
    assert run.target_name == "level"
    assert run.source == {"dataset": "curve.csv", "split": 0, "rows": 120}
    assert run.scores["rmse_test"] == report["rmse_test"]
    assert run.model.rmse(*run.test) == pytest.approx(report["rmse_test"], rel=1e-5)


def test_the_same_seed_gives_the_same_run(cli, trained, curve_csv, tiny, tmp_path):
    folder, report = trained
    answer = cli("train", curve_csv, "--target", "level", "-o", "again", "--json", *tiny)
    unlike = {"seconds", "run"}
    assert {k: v for k, v in answer.json.items() if k not in unlike} == {
        k: v for k, v in report.items() if k not in unlike
    }
    again = cli("predict", "again", curve_csv)
    assert again == cli("predict", folder, curve_csv)
    points = (tmp_path / "again" / "points.npz").read_bytes()
    assert points == (folder / "points.npz").read_bytes()


def test_seed_split_and_columns_are_those_requested(cli, trained, curve_csv, tiny, tmp_path):
    options = ("--target", -1, "--split", 99, "--seed", 1, "--drop", "idle", "--drop", "offset")
    answer = cli("train", curve_csv, *options, "-o", "r", "--json", *tiny, "--no-intervals")
    assert (answer.json["split"], answer.json["features"]) == (99, 1)
    run = load_run(tmp_path / "r")
    assert (run.feature_names, run.target_name) == (("angle",), "level")
    assert run.model.random_state == 1
    assert not np.array_equal(run.test[1], load_run(trained[0]).test[1])


def test_twins_neighbors_and_jobs(cli, curve_csv, tiny, tmp_path, monkeypatch):
    from twinedge.estimators import networks

    requested, jobs_of = [], networks.jobs_of
    monkeypatch.setattr(networks, "jobs_of", lambda n: requested.append(n) or jobs_of(n))
    answer = cli(
        *("train", curve_csv, "--target", "level", "--twins", 2, "--pairs", "neighbors"),
        *("--neighbors", 4, "--jobs", 1, "-o", "run", "--json", *tiny, "--no-intervals"),
    )
    assert set(requested) == {1}
    assert answer.json["twins"] == 2
    assert load_run(tmp_path / "run").model.neighbors == 4


def test_a_person_reads_a_table_of_the_same_in_the_latest_run(cli, curve_csv, tiny, tmp_path):
    answer = cli("train", curve_csv, "--target", "level", *tiny, "--no-intervals")
    record = answer.out.partition("\n\n")[0]
    lines = dict(line.split("  ", 1) for line in record.splitlines())
    assert {key: word.strip() for key, word in lines.items()}.items() >= {
        "dataset": "curve.csv",
        "activation": "relu",
        "interrupted": "no",
    }.items()
    assert answer.err == ""
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["latest"]
    assert sorted(path.name for path in (tmp_path / "runs" / "latest").iterdir()) == [
        *("points.npz", "run.json")
    ]


def test_a_run_replaces_an_earlier_one(cli, trained, curve_csv, tiny, tmp_path):
    shutil.copytree(trained[0], tmp_path / "run")
    cli("train", curve_csv, "--target", "angle", "-o", "run", *tiny, "--no-intervals")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["target_name"] == "angle"


def test_repeated_rows_are_remarked_in_one_line(cli, curve_csv, loud, tmp_path):
    header, *rows = curve_csv.read_text().splitlines()
    (tmp_path / "double.csv").write_text("\n".join([header, *rows, *rows[:2]]))
    answer = cli(
        "train", "double.csv", "--target", "level", "-o", "run", "--json", *loud, "--no-intervals"
    )
    assert answer.err.count("\n") == 1
    assert "double.csv: 2 rows identical to an earlier one" in answer.err
    assert answer.json["rows"] == 122


@pytest.fixture(scope="module")
def noise_run(done, tiny, tmp_path_factory):
    """A run trained on pure noise, and its output."""
    folder = tmp_path_factory.mktemp("noise")
    _write(folder / "noise.csv", lambda X, noise: noise)
    answer = done("train", folder / "noise.csv", "--target", "y", "-o", folder / "run", *tiny)
    return folder / "run", answer.out


def _write(path, target, rows=200):
    """Write a table with the columns a, b and y."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, 2))
    table = np.column_stack([X, target(X, rng.normal(size=rows))])
    np.savetxt(path, table, delimiter=",", header="a,b,y", comments="")


def test_scores_have_those_of_the_mean_and_of_a_linear_model_beside(trained, curve_csv):
    folder, report = trained
    table, rows = read_table(curve_csv, target="level"), split_rows(120, 0)
    y = table.y[rows.test]
    mean = np.sqrt(np.mean((y - table.y[rows.train].mean()) ** 2))
    columns = np.column_stack([table.X, np.ones(120)])
    line = np.linalg.lstsq(columns[rows.train], table.y[rows.train])[0]
    linear = np.sqrt(np.mean((columns[rows.test] @ line - y) ** 2))
    assert report["rmse_mean"] == pytest.approx(mean)
    assert report["rmse_linear"] == pytest.approx(linear, rel=0.02)
    assert report["r2_test"] == pytest.approx(1 - report["rmse_test"] ** 2 / np.var(y))
    scores = load_run(folder).scores
    assert scores == {key: report[key] for key in scores}


def test_the_verdict_names_noise(noise_run):
    folder, out = noise_run
    sentence = out.splitlines()[-1]
    assert "than predicting the mean of the training rows" in sentence
    assert "beats mean     no" in out
    assert load_run(folder).scores["verdict"] == sentence


def test_an_export_of_noise_repeats_the_verdict(cli, noise_run):
    answer = cli("export", noise_run[0], "--anchors", 4, "--formats", "twin")
    assert answer.code == 0
    assert noise_run[1].splitlines()[-1] in answer.err.splitlines()


def test_trees_that_are_better_in_the_same_bytes_are_named(cli, tiny, monkeypatch, tmp_path):
    monkeypatch.delenv("TWINEDGE_DATA", raising=False)  # which the test function does not need
    monkeypatch.setenv("TWINEDGE_CACHE", str(tmp_path / "none"))
    answer = cli("train", "--dataset", "tf", "--split", 24, "-o", "run", *tiny)
    assert (answer.code, answer.err) == (0, "")
    assert "beats linear   yes" in answer.out
    assert "beats trees    no" in answer.out
    room = Model.of(2, (8,), 32, activation="relu", intervals=True)
    sentence = answer.out.splitlines()[-1]
    assert sentence.startswith(f"Trees in the same {twin_bytes(room)} bytes do better (RMSE ")
    run = load_run(Path("run"))
    assert run.scores["verdict"] == sentence
    assert run.source == {"dataset": "tf", "split": 24, "rows": 1000}


def test_a_lower_error_that_beats_nothing_comes_with_a_reason(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    y = X[:, 0] + 0.2 * rng.normal(size=160)
    rivals = rival_predictions((X[:60], y[:60]), X[60:])
    scores = standing_beside(rivals, y[60:], X[60:, 0]).scores()
    assert scores["rmse_linear"] > scores["rmse_test"]
    assert scores["beats_linear"] is False
    print_record(with_reasons(scores))
    out = capsys.readouterr().out
    assert "beats mean    yes\n" in out
    assert "beats linear  no: the difference is within the error of the comparison\n" in out
    scores["rmse_linear"] = scores["rmse_test"] - 0.01
    assert with_reasons(scores) == scores


def test_a_twin_that_is_ahead_is_left_without_words(cli, tiny, changed, tmp_path):
    _write(tmp_path / "bow.csv", lambda X, noise: X[:, 0] * X[:, 1])
    longer = changed(tiny, "--hidden", "16", "--steps", "1500")
    answer = cli("train", "bow.csv", "--target", "y", "-o", "run", *longer)
    assert "beats linear   yes" in answer.out
    assert "beats trees    yes" in answer.out
    assert answer.out.splitlines()[-1].startswith("run ")


def test_few_rows_train_with_a_warning_of_what_they_are_worth(cli, loud, tmp_path):
    rows = 10
    _write(tmp_path / "few.csv", lambda X, noise: np.sin(X[:, 0]), rows)
    answer = cli("train", "few.csv", "--target", "y", "-o", "run", "--json", *loud)
    assert answer.code == 0
    assert answer.err.count("\n") == 1
    assert "2 test rows cannot tell much: the true RMSE may be 0.58 to 4.4 times" in answer.err
    assert "chosen on 1 validation row" in answer.err
    assert cli("export", "run", "--anchors", 4, "--formats", "twin", "--quiet").code == 0
    answer = cli("predict", "out/model.twin", "few.csv")
    assert (answer.code, len(answer.out.splitlines())) == (0, rows + 1)


def test_a_part_that_does_not_vary_is_no_reason_to_fail(cli, tiny, tmp_path):
    """Neither training nor test targets."""
    split = split_rows(15, 0)
    for part in (split.train, split.test):
        y = np.arange(15.0)
        y[part] = 0.1
        _write(tmp_path / "flat.csv", lambda X, noise, y=y: y, 15)
        answer = cli(
            "train", "flat.csv", "--target", "y", "-o", "run", "--json", *tiny, "--no-intervals"
        )
        assert answer.code == 0
        assert (answer.json["r2_test"] is None) == (part is split.test)
        assert answer.json["verdict"]


def test_teachers_are_named_on_the_command_line_and_recorded(cli, curve_csv, tiny, tmp_path):
    command = ("train", curve_csv, "--target", "level", "--json", *tiny, "--no-intervals")
    report = cli(*command, "-o", "run", "--teachers", "trees").json
    record = json.loads((tmp_path / "run" / "run.json").read_text())["teaching"]
    assert [one["teacher"] for one in record["teachers"]] == ["trees"]
    assert report["taught"] is record["taught"]
    assert all(one["weight"] >= 0 and one["rmse"] > 0 for one in record["teachers"])
