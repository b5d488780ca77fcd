"""``twinedge report``: files, what it prints, and what it refuses."""

import csv
import sys
from dataclasses import replace

import pytest

from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

QUICK = ("--quick", "--anchors", "8")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_a_page_with_ordinary_networks(cli, tiny_run, tmp_path):
    command = ("report", tiny_run, "--no-intervals", "--anchors", "8", "--ann-steps", "20")
    answer = cli(*command, "--json")
    assert (answer.code, answer.err) == (0, "")
    found = answer.json
    assert (found["file"], found["anchors"]) == ("report.html", 8)
    page = tmp_path / "report.html"
    assert found["bytes"] == page.stat().st_size < 450_000
    assert names(tmp_path) == ["report.html"]
    # Eight of one neuron are too many, as there are no intervals to take bytes.
    assert [one["members"] for one in found["ordinary_networks"]] == [1, 2, 4]
    assert found["intervals"] == []
    assert found["spread_factor"] > 0
    assert all(one["bytes"] <= found["twin_bytes"] for one in found["ordinary_networks"])
    assert found["boards"]["uno"] in ("fits", "not measured")
    text = page.read_text(encoding="utf-8")
    assert f"twinedge report {tiny_run} --anchors 8 --no-intervals --ann-steps 20" in text
    assert text.startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_a_page_is_the_same_every_time(cli, tiny_run, tmp_path):
    for name in ("one.html", "again.html"):
        assert cli("report", tiny_run, "--anchors", "8", "--ann-steps", "20", "-o", name).code == 0
    one, again = ((tmp_path / name).read_text("utf-8") for name in ("one.html", "again.html"))
    assert again.replace("again.html", "one.html") == one


def test_text_sheet_and_figures(cli, tiny_run, tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.txt").write_text("stays")
    answer = cli("report", tiny_run, *QUICK, "--format", "md", "--figures", "figures")
    assert answer.code == 0
    assert "16 files in figures" in answer.out
    written = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert written.startswith("# tiny: level from 3 columns\n")
    assert "](<figures/memory-bytes.svg>)" in written
    pictures = names(tmp_path / "figures")
    assert len(pictures) == 17
    assert {name.rpartition(".")[2] for name in pictures} == {"svg", "png", "txt"}
    found = cli("report", tiny_run, *QUICK, "--format", "csv", "-o", "r.csv", "--json").json
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = [row for row in rows if (row["table"], row["row"]) == ("predictions", "test")]
    assert float(next(r["value"] for r in scores if r["quantity"] == "RMSE")) == found["rmse"]
    # With intervals by default.
    levels = [one["claimed"] for one in found["intervals"]]
    assert levels == [0.5, 0.8, 0.9, 0.95]
    assert found["covered_of_90_percent"] == found["intervals"][2]["covered"]
    assert found["spread_factor"] is None
    scores = [row for row in rows if row["table"] == "intervals" and row["row"] == "0.9"]
    assert {row["quantity"] for row in scores} == {"covered", "mean width", "interval score"}


def test_without_measurements_there_is_no_verdict_on_boards(cli, tiny_run, tmp_path):
    from twinedge.budget import write_firmware

    write_firmware({}, tmp_path / "none.json")
    command = ("report", tiny_run, *QUICK, "--firmware", "none.json", "--format", "md")
    found = cli(*command, "--json").json
    assert set(found["boards"].values()) == {"not measured"}
    written = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "The runtime has not been measured on any core" in written
    assert "no board is known to hold it" in written


BAD = [
    ("--format pdf", ["'--format'", "'html', 'md', 'csv'"]),
    ("--select nearest", ["'nearest' is not a way to choose anchors"]),
    ("--ann-steps 0", ["'--ann-steps'", "x>=1"]),
    ("--firmware none.json", ["none.json", "No such file"]),
    ("-o none/report.html", ["none/report.html", "there is no folder none"]),
    ("-o .", [". is a folder: name a file"]),
    ("--figures none/figures", ["none/figures", "folder for figures"]),
]


@pytest.mark.parametrize(("line", "says"), BAD, ids=[line for line, _ in BAD])
def test_bad_values(refused, tiny_run, line, says):
    refused("report", tiny_run, "--quick", *line.split(), says=says)


def test_a_run_without_validation_points(refused, tiny_run, tmp_path):
    run = load_run(tiny_run)
    X, y = run.validation
    replace(run, validation=(X[:0], y[:0])).save(tmp_path / "run")
    refused("report", "run", *QUICK, says=["no validation points"])


@pytest.mark.parametrize("name", ["jinja2", "matplotlib"])
def test_without_its_libraries_the_line_names_the_extra(refused, tiny_run, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    refused("report", tiny_run, says=[name, "pip install 'twinedge[report]'"])


@pytest.fixture
def measured(tiny_run, tmp_path):
    """The test rows of the run as a table."""
    run = load_run(tiny_run)
    X, y = run.test
    rows = [",".join(map(repr, [*x, t])) for x, t in zip(X.tolist(), y.tolist(), strict=True)]
    header = ",".join([*run.feature_names, run.target_name])
    path = tmp_path / "measured.csv"
    path.write_text("\n".join([header, *rows, ""]))
    return path


def test_a_pack_alone_is_scored_as_evaluate_does(cli, tiny_run, measured, tmp_path):
    options = ("--anchors", "8", "--select", "xy")  # as chosen by --quick
    assert cli("export", tiny_run, *options, "--formats", "twin").code == 0
    answer = cli("report", "out/model.twin", "--data", "measured.csv", "--no-try", "--json")
    assert (answer.code, answer.err) == (0, "")
    scores = cli("evaluate", "out/model.twin", "measured.csv", "--json").json
    found = answer.json
    assert (found["rmse"], found["r2"]) == (
        pytest.approx(scores["rmse"]),
        pytest.approx(scores["r2"]),
    )
    assert found["intervals"] == scores["intervals"]
    assert (found["judged_on"], found["rows"]) == ("measured.csv", 20)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "twinedge evaluate out/model.twin measured.csv" in text
    assert "twinedge report out/model.twin --data measured.csv" in text
    assert 'id="predictor"' not in text
    # The run on the same rows says the same, and so does the folder of the export.
    for model in ((tiny_run, *QUICK), ("out",)):
        same = cli("report", *model, "--data", "measured.csv", "--format", "csv", "--json").json
        assert same["rmse"] == found["rmse"]


def test_no_tensorflow_for_a_pack(pack, measured, tmp_path):
    import subprocess

    code = (
        "import sys; from twinedge.cli import main\n"
        "try: main(['report', 'model.twin', '--data', 'measured.csv', '--quiet'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "assert 'tensorflow' not in sys.modules and 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)


def test_models_side_by_side(cli, tiny_run, tmp_path):
    assert cli("export", tiny_run, "--anchors", "4", "--formats", "twin").code == 0
    answer = cli("report", tiny_run, "out", "--anchors", "8", "--json")
    assert (answer.code, answer.err) == (0, "")
    models = answer.json["models"]
    assert [(one["model"], one["anchors"]) for one in models] == [(str(tiny_run), 8), ("out", 4)]
    assert [one["judged_on"] for one in models] == ["test", "test"]
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "2 models of level compared" in text


def test_packs_that_cannot_be_scored(refused, cli, tiny_run, stones_export, measured, tmp_path):
    pack = stones_export / "model.twin"
    refused("report", pack, says=["model.twin is a pack", "--data"])
    refused("report", pack, "--data", "none.csv", says=["none.csv", "no such file"])
    refused("report", pack, "--data", "measured.csv", says=["measured.csv", "missing 'carat'"])
    (tmp_path / "few.csv").write_text("carat,cut,depth,grade,price\n1,Fair,61,1,9\n")
    refused("report", pack, "--data", "few.csv", says=["few.csv: 1 rows are too few to score"])
    refused("report", tiny_run, pack, *QUICK, says=["different columns", "--data"])
    (tmp_path / "bad.twin").write_bytes(b"TWIN")
    refused("report", "bad.twin", "--data", "measured.csv", says=["bad.twin"])
    refused("report", "none.twin", "--data", "measured.csv", says=["none.twin does not exist"])
