"""A table with text columns and missing cells through all commands."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from twinedge.data import read_features, split_rows
from twinedge.run_folder import load_run

OPTIONS = ("--target", "price", "--impute", "median", "--categorical", "grade")


@pytest.fixture
def pack(stones_export):
    return stones_export / "model.twin"


def test_remarks_describe_what_became_of_the_table(cli, stones, loud):
    answer = cli("train", stones, *OPTIONS, "-o", "run", "--json", *loud, "--no-intervals")
    assert answer.code == 0
    assert answer.json["features"] == 4
    remarks = answer.err.splitlines()
    assert remarks[:3] == [
        f"{stones}: column 'cut' is a category of 3 levels and one more for 2 rare levels; 1 row "
        "to validate or test with an unknown level",
        f"{stones}: column 'grade' is a category of 3 levels",
        f"{stones}: filled in 6 missing values",
    ]


def test_a_run_has_levels_and_medians_of_its_training_rows(stones, stones_run):
    run = load_run(stones_run)
    rows = list(csv.DictReader(io.StringIO(stones.read_text("utf-8"))))
    train = [rows[k] for k in split_rows(len(rows), 0).train]
    for k, name in ((0, "carat"), (5, "depth")):
        present = [float(row[name]) for row in train if row[name]]
        assert run.fill_values[k] == np.median(present)
        every = [float(row[name]) for row in rows if row[name]]
        assert run.fill_values[k] != np.median(every)
    assert json.loads((stones_run / "run.json").read_text())["columns"] == [
        {"name": "carat"},
        {
            "name": "cut",
            "levels": ["Fair", "Good, really", "Idéal"],
            "others": ["Odd", "Strange"],
        },
        {"name": "depth"},
        {"name": "grade", "levels": ["1", "2", "3"], "others": []},
    ]
    assert run.encoding.names == ("carat", "cut", "depth", "grade")
    X, _ = read_features(stones, run.encoding, fillable=np.isfinite(run.fill_values))
    filled = np.where(np.isnan(X), run.fill_values, X)
    np.testing.assert_array_equal(filled[split_rows(len(rows), 0).test], run.test[0])


def test_runs_and_packs_predict_by_name_and_flag_what_they_do_not_know(
    cli, stones_run, pack, tmp_path
):
    text = 'note;grade;cut;carat;depth\nx;3;Idéal;1,5;61\nx;9;Superb;;61\nx;1,0;"Good, really";2;\n'
    (tmp_path / "new.csv").write_text(text, "utf-8")
    for model in (stones_run, pack):
        answer = cli("predict", model, "new.csv", "--json")
        assert answer.json["outside"] == [[], ["cut", "grade"], []]
        assert answer.json["missing"] == [[], ["carat"], ["depth"]]
        assert answer.err == "new.csv: filled in 2 missing values\n"
        assert len(set(answer.json["prediction"])) == 3


def test_runs_and_packs_are_evaluated_on_it(cli, stones, stones_run, pack):
    run, exported = (cli("evaluate", one, stones, "--json").json for one in (stones_run, pack))
    assert run["rows"] == exported["rows"] == 120
    assert exported["rmse"] == pytest.approx(run["rmse"], rel=0.3)
    assert 0 < run["rmse"] < run["baseline_rmse"]


def test_a_pack_adapts_to_it(cli, stones, pack):
    found = cli("adapt", pack, stones, "--store", "site.store", "--json").json
    assert (found["learnt"], found["points"]) == (120, 120)
    before = cli("predict", pack, stones).out
    assert cli("predict", pack, stones, "--store", "site.store").out != before


def test_a_pack_is_calibrated_with_it_and_keeps_its_columns(cli, stones, pack, tmp_path):
    shutil.copy(pack, tmp_path / "model.twin")
    assert cli("calibrate", "model.twin", stones, "-o", "new.twin").code == 0
    after, before = (cli("predict", one, stones).predictions[1] for one in ("new.twin", pack))
    np.testing.assert_array_equal(after[:, 0], before[:, 0])
    assert (after != before).any()


def test_inspect_shows_columns_with_their_levels(cli, pack):
    lines = cli("inspect", pack).out.splitlines()
    found = [line.split(maxsplit=2) for line in lines if line.startswith(("cut  ", "depth  "))]
    assert ["cut", "4", "'Fair', 'Good, really', 'Idéal'  'Odd', 'Strange'"] in found
    assert ["depth", "1"] in found


def test_anchors_and_a_report_read_it(cli, stones_run, tmp_path):
    assert cli("anchors", stones_run, "--quiet").code == 0
    answer = cli("report", stones_run, "--quick", "--format", "md", "-o", "r.md", "--quiet")
    assert answer.code == 0
    assert "price" in (tmp_path / "r.md").read_text("utf-8")


@pytest.mark.slow
def test_a_board_is_fitted_with_it(cli, stones, tmp_path):
    answer = cli(
        *("budget", "fit", stones, *OPTIONS, "--board", "uno", "--tries", "1", "--steps", "60"),
        *("--effort", "quick", "--anchors", "8"),
        *("-o", "uno", "--run", "run", "--tolerance", "10", "--json", "--quiet"),
    )
    assert answer.code == 0
    run = load_run(tmp_path / "run")
    assert run.encoding.names == ("carat", "cut", "depth", "grade")
    assert run.fill_values is not None
    assert cli("predict", "uno/model.twin", stones, "--quiet").code == 0


@pytest.mark.slow
def test_a_board_evaluates_it_to_the_bit(cli, stones, pack):
    found = cli("firmware", "run", "--board", "mps2-an386", pack, stones, "--json").json
    assert (found["queries"], found["bit_exact"]) == (120, True)


BAD = {
    "id": (
        "who,a,y\n" + "".join(f"p{k},{k % 7},{k}\n" for k in range(30)),
        ["column 'who' has 30 different texts in 30 rows", "leave it out with --drop who"],
    ),
    "target missing": (
        "a,y\n" + "".join(f"{k % 7},{k or ''}\n" for k in range(30)),
        ["row 2, column 'y': missing value", "--drop-missing-target"],
    ),
}


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_learnt_from_is_refused_with_advice(refused, tmp_path, text, says):
    (tmp_path / "t.csv").write_text(text, "utf-8")
    refused("train", "t.csv", "--target", "y", "-o", "run", says=says)


def test_advice_leads_to_a_training(cli, tmp_path, loud):
    rows = "".join(f"{k},p{k},{(k * 7) % 11},{k % 3},{k % 4 or ''}\n" for k in range(60))
    (tmp_path / "t.csv").write_text("sep=,\n,who,a,site,y\n,,mm,,°C\n" + rows, "utf-8")
    answer = cli(
        *("train", "t.csv", "--target", "y", "--drop", "who,a", "--categorical", "site"),
        *("--drop-missing-target", "-o", "run", "--json", *loud, "--no-intervals"),
    )
    assert answer.code == 0
    assert answer.json["rows"] == 45
    assert answer.err.splitlines()[:4] == [
        "t.csv: the first column, without a name, numbers the rows: left out",
        "t.csv: the row below the header holds units, not numbers: left out",
        "t.csv: 15 rows without a target left out",
        "t.csv: column 'site' is a category of 3 levels",
    ]


@pytest.fixture(scope="module")
def page():
    return (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")


@pytest.fixture
def whole_stones(stones, tmp_path):
    """The table as on the page: without missing cells."""
    lines = stones.read_text("utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(",") and '"NA"' not in line]
    (tmp_path / "stones.csv").write_text("\n".join(kept), "utf-8")


@pytest.mark.usefixtures("whole_stones")
def test_the_commands_of_the_page_work(cli, page, tiny):
    commands = re.findall(r"^    twinedge (.*?)(?:  +#.*)?$", page, re.M)
    assert len(commands) == 6
    lines = [f"2024-01-{1 + k // 24:02} {k % 24:02}:00,{k % 7},{k % 24}" for k in range(240)]
    Path("log.csv").write_text("\n".join(["timestamp,load,power", *lines]))
    for number, command in enumerate(commands):
        assert cli(*command.split(), "-o", f"run{number}", *tiny, "--no-intervals").code == 0
