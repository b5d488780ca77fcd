"""``twinedge anchors``: how many anchors are enough, as users see it."""

import sys
from dataclasses import replace

import pytest

from twinedge.anchors import METHODS, rmse, select
from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def test_errors_are_those_of_the_python_api(cli, tiny_run):
    report = cli("anchors", tiny_run, "--counts", "8,2", "--methods", "xy,random", "--json").json
    run = load_run(tiny_run)
    model, everything = run.model, rmse(run.model, run.validation)
    assert [(one["method"], one["k"]) for one in report["points"]] == [
        *(("xy", 2), ("xy", 8), ("random", 2), ("random", 8))
    ]
    for one in report["points"]:
        rows = select(model.anchor_X_, model.anchor_y_, one["k"], one["method"])
        error = rmse(model, run.validation, rows)
        assert one["rmse_val"] == pytest.approx(error, rel=1e-4)
        assert one["ratio_to_all"] == pytest.approx(error / everything, rel=1e-4)
    chosen = ("recommended", "smallest_of_each")
    about = {key: value for key, value in report.items() if key not in chosen}
    assert about == {
        "run": str(tiny_run),
        "target": "level",
        "twins": 1,
        "training_points": 80,
        "validation_points": 20,
        "seed": 0,
        "rmse_all": everything,
        "plot": None,
        "tolerance": 0.01,
        "auto_chooses": {},
        "points": report["points"],
        "more_than_there_are": [],
    }


def test_the_smallest_number_within_a_percent_is_recommended(cli, tiny_run):
    report = cli("anchors", tiny_run, "--json").json
    bound = 1.01 * report["rmse_all"]
    chosen = [point for point in report["points"] if point["method"] == "auto"]
    good = [
        point
        for point in chosen
        if all(other["rmse_val"] <= bound for other in chosen if other["k"] >= point["k"])
    ]
    fewest = min(good, key=lambda point: point["k"])
    best = report["recommended"]
    method = report["auto_chooses"][str(fewest["k"])]
    assert best == {**fewest, "method": method, "within": True}
    assert report["smallest_of_each"].keys() == {"auto", *METHODS}
    answer = cli("anchors", tiny_run)
    verdict = f"Recommended: {best['k']} anchors, chosen by {method}, the fewest within 1 % of all"
    assert answer.out.splitlines()[-1] == f"{verdict} 80."


def test_anchors_export_and_report_recommend_the_same(cli, tiny_run, tmp_path):
    best = cli("anchors", tiny_run, "--seed", 3, "--json").json["recommended"]
    options = ("--anchors", "fewest", "--seed", 3, "--json")
    answer = cli("export", tiny_run, *options, "--formats", "twin")
    exported = answer.json
    assert answer.err == ""
    assert (exported["anchors"], exported["method"]) == (best["k"], best["method"])
    assert (exported["anchors_asked"], exported["remarks"]) == ("fewest", [])
    reported = cli("report", tiny_run, *options, "--format", "md", "--ann-steps", 10).json
    assert reported["recommended"] == {key: best[key] for key in reported["recommended"]}
    assert (reported["anchors"], reported["method"]) == (best["k"], best["method"])
    words = f"Recommended: {best['k']} anchors, chosen by {best['method']}, the fewest"
    assert words in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_former_name_of_the_fewest_is_taken_with_a_remark(cli, tiny_run, tmp_path):
    remark = "for the number of anchors, 'auto' is called 'fewest' now\n"
    answer = cli("report", tiny_run, "--quick", "--format", "md", "--anchors", "auto", "--json")
    assert answer.json["anchors_asked"] == "fewest"
    assert answer.err.endswith(remark)
    assert "export" in (text := (tmp_path / "report.md").read_text(encoding="utf-8"))
    assert "--anchors fewest" in text
    for command in ("export", "report"):
        assert "N|fewest|all" in cli(command, "--help").out


def test_a_number_that_twins_cannot_share_is_answered_with_the_nearest(
    refused, four_twins, tiny_run, tmp_path
):
    replace(load_run(tiny_run), model=four_twins).save(tmp_path / "four")
    for number, near in {29: 28, 30: 32, 31: 32, 33: 32, 1: 4, 2: 4, 59: 60}.items():
        says = [f"{number} cannot be shared evenly by 4 twins; {near} can"]
        refused("export", "four", "--anchors", number, "--formats", "twin", says=says)


def test_more_anchors_than_points_are_all_of_them(cli, tiny_run, tmp_path):
    remark = "anchors were asked for, but there are only 80 training points: all of them are used\n"
    shown = cli("anchors", tiny_run, "--counts", "4,81,99", "--methods", "xy", "--json")
    assert shown.err == f"81 {remark}99 {remark}"
    assert [point["k"] for point in shown.json["points"]] == [4, 80]
    assert shown.json["more_than_there_are"] == [81, 99]
    answer = cli("report", tiny_run, "--anchors", 200, "--quick", "--format", "csv", "--json")
    assert answer.err == f"200 {remark}"
    assert answer.json["remarks"] == [f"200 {remark}".rstrip()]


def test_a_person_reads_a_table_and_a_plot(cli, tiny_run):
    answer = cli("anchors", tiny_run, "--counts", "1,4,16")
    assert (answer.code, answer.err) == (0, "")
    record, table, plot, _ = answer.out.split("\n\n")
    assert record.splitlines()[-1].split() == ["plot", "-"]
    header, *rows, enough = table.splitlines()
    assert header.split()[0] == "anchors"
    assert set(header.split()[1:]) == {"auto", *METHODS}
    assert [row.split()[0] for row in rows] == ["1", "4", "16"]
    assert all(len(row.split()) == 2 + len(METHODS) for row in rows)
    assert enough.startswith("Enough for 1 %: ")
    assert " all\n" in plot
    assert plot.splitlines()[-2].split() == ["anchors", "1", "4", "16"]


def test_several_twins_share_the_anchors(cli, four_twins, tiny_run, tmp_path):
    run = load_run(tiny_run)
    replace(run, model=four_twins).save(tmp_path / "four")
    report = cli("anchors", "four", "--methods", "xy", "--json").json
    assert [point["k"] for point in report["points"]] == [4, 8, 16, 32, 60]
    assert report["twins"] == 4


def test_none_of_few_may_be_enough(cli, tiny_run):
    options = ("--methods", "farthest", "--counts", "2")
    report = cli("anchors", tiny_run, *options, "--json").json
    assert report["smallest_of_each"] == {"farthest": None}
    assert (report["recommended"]["k"], report["recommended"]["within"]) == (2, False)
    answer = cli("anchors", tiny_run, *options)
    assert "Enough for 1 %: none of these.\n" in answer.out
    expected = "None of these is within 1 % of all 80; the most is 2 anchors, chosen by farthest."
    assert answer.out.splitlines()[-1] == f"{expected} Try more with --counts."


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_plot_is_written_whole(cli, tiny_run, tmp_path, ending):
    command = ("anchors", tiny_run, "--methods", "xy", "--plot", f"plot.{ending}")
    report = cli(*command, "--json").json
    assert report["plot"] == f"plot.{ending}"
    first = (tmp_path / f"plot.{ending}").read_bytes()
    assert f"plot               plot.{ending}\n" in cli(*command).out
    assert (tmp_path / f"plot.{ending}").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [f"plot.{ending}"]


BAD = {
    "--counts 0": ["'--counts'", "0 is not in the range x>=1", "like 4,8,16"],
    "--counts 2,x": ["'--counts'", "'x' is not a valid whole number", "like 4,8,16"],
    "--methods xyz": ["'--methods'", "'xyz'", "'xy', 'medoids'"],
    "--plot plot.pdf": ["plot.pdf", ".svg or .png"],
    "--plot plot": ["plot", ".svg or .png"],
    "--plot none/plot.svg": ["none/plot.svg", "there is no folder none"],
}


@pytest.mark.parametrize(("options", "says"), BAD.items(), ids=BAD)
def test_bad_values(refused, tiny_run, options, says):
    refused("anchors", tiny_run, *options.split(), says=says)


def test_a_run_without_validation_points(refused, tiny_run, tmp_path):
    run = load_run(tiny_run)
    X, y = run.validation
    replace(run, validation=(X[:0], y[:0])).save(tmp_path / "run")
    refused("anchors", "run", says=["no validation points"])


def test_a_model_of_neighbors_is_measured_without_those_that_average_all(
    cli, refused, tiny_run, tmp_path
):
    run = load_run(tiny_run)
    run.model.set_params(pairs="neighbors", neighbors=4)
    run.save(tmp_path / "near")
    report = cli("anchors", "near", "--counts", "2,16", "--json").json
    measured = {point["method"] for point in report["points"]}
    assert measured == {"auto", *METHODS} - {"match", "greedy"}
    for method in ("match", "greedy"):
        refused("anchors", "near", "--methods", method, says=[method, "trained on neighbors"])


def test_without_matplotlib_the_line_names_the_extra(cli, refused, tiny_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    says = ["matplotlib", "pip install 'twinedge[report]'"]
    refused("anchors", tiny_run, "--plot", "plot.svg", says=says)
    assert cli("anchors", tiny_run, "--methods", "xy", "--counts", "2").code == 0


def test_the_words_are_those_that_select_knows():
    from twinedge.cli.options import METHODS as WORDS

    assert set(WORDS) == {"auto", *METHODS}
