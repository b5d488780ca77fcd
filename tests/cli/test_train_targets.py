"""Training for several targets from the command line, and the run that it writes."""

import json

import numpy as np
import pytest

from twinedge import fit_csv, load
from twinedge.errors import InputError
from twinedge.evaluation.held_out import describe_sharing
from twinedge.provenance import TrainingRows

BRIEF = ("--hidden", 8, "--effort", "quick", "--steps", 400, "--activation", "silu")


def lines(rows=150):
    rng = np.random.default_rng(0)
    yield 'a,b,NOX,"CO, lab",note'
    for row, (a, b) in enumerate(rng.uniform(-1, 1, (rows, 2))):
        lab = "" if row % 5 == 0 else f"{100 * a * b + rng.normal():.3f}"
        yield f"{a:.4f},{b:.4f},{np.sin(2 * a) + 0.05 * rng.normal():.4f},{lab},{row % 3}"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("targets") / "turbine.csv"
    path.write_text("\n".join(lines()) + "\n")
    return path


@pytest.fixture(scope="module")
def run(table):
    return fit_csv(
        table,
        target=["NOX", "CO, lab"],
        drop="note",
        hidden=8,
        effort="quick",
        steps=400,
        activation="silu",
        random_state=0,
        run=table.with_name("run"),
    )


def test_a_run_of_several_targets_is_read_as_it_was_written(run, table):
    read = load(table.with_name("run"))
    x = run.test[0]
    assert read.model.target_names_ == ("NOX", "CO, lab")
    assert read.target_name == "NOX, CO, lab"
    for ask in ("predict", "spread", "predict_interval"):
        np.testing.assert_array_equal(
            getattr(read.model, ask)(x, **({"coverage": 0.5} if "interval" in ask else {})),
            getattr(run.model, ask)(x, **({"coverage": 0.5} if "interval" in ask else {})),
        )
    np.testing.assert_array_equal(read.model.validation_rmse_, run.model.validation_rmse_)
    assert read.model.trust_ == run.model.trust_
    assert read.model.coverages == run.model.coverages
    assert json.loads((table.with_name("run") / "run.json").read_text())["target_names"]
    one = read.model.of_target("CO, lab")
    np.testing.assert_array_equal(one.predict(x), run.model.predict(x)[:, 1])
    assert "NOX, CO, lab" in read._repr_html_()


def test_every_target_has_scores_of_the_rows_that_measured_it(run):
    first, second = run.scores["targets"]
    assert (first["target"], second["target"]) == ("NOX", "CO, lab")
    X, Y = run.test
    error = (run.model.predict(X) - Y)[:, 1]
    known = error[np.isfinite(error)]
    assert 0 < len(known) < len(error)
    assert second["rmse_test"] == pytest.approx(np.sqrt(np.mean(known**2)))
    assert first["rmse_test"] < first["rmse_mean"]
    assert 0.7 < first["coverage_test"] <= 1
    assert first["sharing"] is None  # the folds were too short to tell


def test_the_digest_of_rows_knows_all_targets(run):
    model = run.model
    digest = TrainingRows.of(model.anchor_X_, model.anchor_y_)
    assert digest.known(model.anchor_X_, model.anchor_y_).rows == len(model.anchor_y_)
    assert digest.known(model.anchor_X_, model.anchor_y_[:, ::-1]).rows == 0


@pytest.mark.slow
def test_targets_may_be_named_in_any_of_three_ways(cli, table, tmp_path):
    names = table.with_name("plain.csv")
    names.write_text(table.read_text().replace('"CO, lab"', "CO"))
    options = ("--drop", "note", *BRIEF, "-o", tmp_path / "run", "--json", "--quiet")
    first = cli("train", names, "--target", "NOX,CO", *options).json
    again = cli("train", names, "--target", "NOX", "--target", "CO", *options).json
    by_number = cli("train", names, "--target", "2,3", *options).json
    for one in (first, again, by_number):
        one.pop("seconds")
    assert first == again == by_number
    assert [one["target"] for one in first["targets"]] == ["NOX", "CO"]


def test_scores_are_printed_in_a_table(cli, table, tmp_path):
    found = cli(
        *("train", table, "--target", "NOX", "--target", "CO, lab", "--drop", "note", *BRIEF),
        *("-o", tmp_path / "run", "--quiet", "--folds", 2),
    )
    head = next(line for line in found.out.splitlines() if line.startswith("target  "))
    assert "rmse test" in head
    assert "rmse fold mean" in head
    assert [line for line in found.out.splitlines() if line.startswith("CO, lab  ")]


WRONG = {
    "one twice": ("NOX,NOX", "target 'NOX' is named twice"),
    "one that is dropped": ("NOX,note", "column 'note' is the target and cannot be dropped"),
    "one that is not there": ("NOX,SO2", "no column 'SO2' for the target"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_targets_are_refused_in_one_line(refused, table, case):
    target, message = WRONG[case]
    refused("train", table, "--target", target, "--drop", "note", "-o", "run", says=[message])


def test_a_row_without_any_target_is_refused_or_left_out(table, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join([*lines(), "0.1,0.2,,,1"]) + "\n")
    with pytest.raises(InputError, match=r"row 152 has none of the targets .*drop_missing_target"):
        fit_csv(path, target=["NOX", "CO, lab"], drop="note")


def test_a_curve_of_several_targets_is_refused(table):
    with pytest.raises(InputError, match="is for a model of one target"):
        fit_csv(table, target=["NOX", "CO, lab"], drop="note", target_curve="sqrt")


def test_the_alternative_is_named_where_a_target_suffers():
    words = describe_sharing("CO", {"shared": 1.1, "alone": 1.0, "suffers": True})
    assert words.startswith("CO suffers from sharing networks")
    assert "10 % larger" in words
    assert words.endswith("A pack for CO alone is the alternative.")
    assert describe_sharing("CO", {"shared": 1.01, "alone": 1.0, "suffers": False}) is None


def test_a_run_predicts_and_is_evaluated_target_by_target(cli, run, table):
    folder = table.with_name("run")
    predicted = cli("predict", folder, table, "--quiet", "--coverage", 0.5)
    head, *rows = predicted.out.splitlines()
    assert head.startswith("NOX,NOX_spread,")
    assert '"CO, lab","CO, lab_spread"' in head
    assert len(rows) == 150
    found = cli("evaluate", folder, table, "--json", "--quiet").json["targets"]
    assert (found["NOX"]["rows"], found["CO, lab"]["rows"]) == (150, 120)
    assert found["NOX"]["rmse"] < found["NOX"]["baseline_rmse"]


@pytest.mark.slow
def test_every_target_is_checked_by_itself(cli, table):
    options = ("--drop", "note", "--effort", "quick", "--quiet")
    found = cli("check", table, "--target", "NOX", "--target", "CO, lab", *options, "--json").json
    alone = cli("check", table, "--target", "NOX", "--drop", "CO, lab", *options, "--json").json
    assert [one["target"] for one in found["targets"]] == ["NOX", "CO, lab"]
    assert found["targets"][0]["rmse_twin"] == pytest.approx(alone["rmse_twin"])


def test_a_run_is_counted_like_the_pack_that_it_becomes(cli, run, table, tmp_path):
    counted = cli("budget", table.with_name("run"), "--members", 8, "--json").json
    out = tmp_path / "out"
    done = cli("export", table.with_name("run"), "--anchors", 8, "--formats", "twin", "-o", out)
    assert done.code == 0, done.err
    pack = cli("budget", out / "model.twin", "--json").json
    for key in ("targets", "twin_bytes", "own_pack_bytes", "sections", "intervals"):
        assert counted[key] == pack[key]
    assert counted["own_pack_bytes"] < counted["twin_bytes"] < 2 * counted["own_pack_bytes"]
    shown = cli("budget", table.with_name("run"), "--board", "pico").out
    assert "A pack of one target takes" in shown
    assert "The runtime was not run with several targets on cortex-m0." in shown


@pytest.mark.slow  # quickly, test_several_targets.py has reports of a pack
def test_a_report_is_on_one_of_the_targets_or_on_each(cli, refused, run, table, tmp_path):
    folder = table.with_name("run")
    quick = ("report", folder, "--quick", "--anchors", 8)
    every = cli(*quick, "--format", "md", "--json", "-o", tmp_path / "every.md")
    assert every.code == 0, every.err
    assert list(every.json["targets"]) == ["NOX", "CO, lab"]
    text = (tmp_path / "every.md").read_text()
    assert text.startswith("# run: NOX and CO, lab from 2 columns")
    assert "The same networks predict" not in text
    refused(*quick, "--target", "CO", says=["--target CO is not what", "'CO, lab'"])
    answer = cli(*quick, "--target", "CO, lab", "--format", "md", "--json")
    assert answer.code == 0, answer.err
    alone = run.of_target("CO, lab")
    assert answer.json["rows"] == len(alone.test[1]) < len(run.test[1])
    assert answer.json["rmse"] == every.json["targets"]["CO, lab"]["rmse"]
    assert answer.json["rmse"] == pytest.approx(alone.scores["rmse_test"], rel=0.3)
    page = (tmp_path / "report.md").read_text()
    assert page.startswith("# run: CO, lab from 2 columns")
    assert "The same networks predict 'NOX', 'CO, lab'" in page
    out = tmp_path / "out"
    assert cli("export", folder, "--anchors", 8, "--formats", "twin", "-o", out).code == 0
    measured = ("report", out, "--data", table, "--target", "NOX", "-o", "pack.html")
    assert cli(*measured).code == 0


def test_the_run_of_a_target_has_the_rows_that_measured_it(run):
    alone = run.of_target("CO, lab")
    assert alone.model.targets_ == 1
    assert alone.target_name == "CO, lab"
    assert alone.scores["target"] == "CO, lab"
    for (X, y), (_, whole) in ((alone.test, run.test), (alone.validation, run.validation)):
        np.testing.assert_array_equal(y, whole[np.isfinite(whole[:, 1]), 1])
        assert len(X) == len(y)
    assert {part: len(numbers) for part, numbers in alone.rows.items()} == {
        "train": len(alone.model.anchor_y_),
        "val": len(alone.validation[1]),
        "test": len(alone.test[1]),
    }
    assert alone.of_target(0) is alone
