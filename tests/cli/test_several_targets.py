"""Commands for a pack with several targets: what belongs to a target is printed for each."""

import csv
import json
import re
import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import joined, read_pack, write_pack
from twinedge.pack.sections import pack_id
from twinedge.runtime.loading import load

PACKS = runpy.run_path(str(Path(__file__).parents[1] / "pack" / "random_packs.py"))
COLUMNS = ("temp", "load")


def pack_of(*names):
    """Make a calm pack with these targets, whose errors and scales are ordinary numbers."""
    pack = PACKS["random_pack"](
        np.random.default_rng(2),
        features=2,
        hidden=(8,),
        counts=[6],
        neighbors=0,
        scaled=True,
        outputs=len(names),
        weights="normal",
    )
    about = [{"name": name, "min": -9.0, "max": 9.0} for name in COLUMNS]
    return joined(
        [
            replace(
                one,
                x_offset=np.zeros(2, np.float32),
                x_gain=np.full(2, 1000, np.float32),
                y_offset=np.float32(10 * number),
                y_gain=np.float32(1e-4),
                targets=(one.targets % 100_000).astype(np.int32),
                intervals=replace(
                    one.intervals,
                    by_spread=0,
                    by_asymmetry=0,
                    by_difficulty=0,
                    constant=4096 * 2000,
                    typical=16 * 2000,
                    trust=50000,
                    quantiles={500: 45000, 900: 110000},
                ),
                domain=replace(
                    one.domain,
                    least=np.full(2, -9000, np.int16),
                    most=np.full(2, 9000, np.int16),
                    fill=np.array([0, -32768], np.int16),
                ),
                metadata={"features": about, "target": name},
            )
            for number, (name, one) in enumerate(zip(names, pack.singles, strict=True))
        ]
    )


@pytest.fixture
def pack(tmp_path):
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(pack_of("NOX", "CO")))
    return path


@pytest.fixture
def table(tmp_path, pack):
    """A table whose targets are off by about 0.3 and -0.1; some were not measured."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-8, 8, (40, 2)).round(2)
    off = np.array([0.3, -0.1]) + rng.normal(0, 0.01, (40, 2))
    y = load(pack, "numpy").predict(x) + off
    rows = [[f"{one:.6f}" for one in row] for row in np.hstack([x, y])]
    for row in rows[:10]:
        row[2] = ""
    rows[-1][3] = ""
    path = tmp_path / "measured.csv"
    path.write_text("\n".join(map(",".join, [["temp", "load", "NOX", "CO"], *rows])) + "\n")
    return path


def test_predictions_have_columns_for_each_target(cli, pack):
    Path("new.csv").write_text("load,temp,site\n1,2,a\n3,,b\n99,1,c\n")
    answer = cli("predict", pack, "new.csv")
    assert answer.code == 0
    header, *rows = csv.reader(answer.out.splitlines())
    assert header == [
        *("NOX", "NOX_spread", "NOX_scale", "NOX_low", "NOX_high"),
        *("CO", "CO_spread", "CO_scale", "CO_low", "CO_high"),
        *("outside", "missing"),
    ]
    found = load(pack, "numpy").predict_all([[2, 1], [np.nan, 3], [1, 99]])
    columns = [found.mean, found.spread, found.scale, found.low, found.high]
    numbers = np.array([row[:10] for row in rows], float).reshape(3, 2, 5)
    np.testing.assert_allclose(numbers, np.stack(columns, axis=-1), rtol=1e-6)
    assert [row[10:] for row in rows] == [["", ""], ["", "temp"], ["load", ""]]
    shown = cli("predict", pack, "new.csv", "--json", "--coverage", "0.5").json
    assert (shown["targets"], shown["coverage"], shown["rows"]) == (["NOX", "CO"], 0.5, 3)
    assert "target" not in shown
    assert list(shown["prediction"]) == ["NOX", "CO"]
    np.testing.assert_allclose(shown["prediction"]["CO"], found.mean[:, 1], rtol=1e-6)
    assert shown["missing"] == [[], ["temp"], []]
    single = Path("single.twin")
    single.write_bytes(write_pack(read_pack(pack.read_bytes()).single(1)))
    alone = cli("predict", single, "new.csv").out.splitlines()
    assert alone[0] == "CO,spread,outside,scale,low,high,missing"
    assert [one.split(",")[0] for one in alone[1:]] == [row[5] for row in rows]


def test_each_target_is_evaluated_where_it_was_measured(cli, pack, table):
    shown = cli("evaluate", pack, table, "--json").json
    assert list(shown["targets"]) == ["NOX", "CO"]
    nox, co = shown["targets"].values()
    assert (nox["rows"], co["rows"]) == (30, 39)
    assert nox["rmse"] == pytest.approx(0.3, abs=0.02)
    assert co["rmse"] == pytest.approx(0.1, abs=0.02)
    assert [one["claimed"] for one in co["intervals"]] == [0.5, 0.9]
    text = cli("evaluate", pack, table).out
    assert text.index("NOX") < text.index("CO")
    groups = cli("evaluate", pack, table, "--group", "temp", "--json").json["targets"]["NOX"]
    assert sum(one["rows"] for one in groups["groups"]) == 30


def test_a_target_that_no_row_has_is_refused(refused, pack):
    Path("some.csv").write_text("temp,load,NOX,CO\n1,2,3,\n2,3,4,\n")
    refused("evaluate", pack, "some.csv", says=["CO"])
    Path("less.csv").write_text("temp,load,NOX\n1,2,3\n")
    refused("evaluate", pack, "less.csv", says=["less.csv", "CO"])


def test_each_target_is_calibrated(cli, pack, table):
    before = read_pack(pack.read_bytes())
    shown = cli("calibrate", pack, table, "-o", "new.twin", "--json").json
    assert list(shown["mean_scale"]) == ["NOX", "CO"]
    after = read_pack(Path("new.twin").read_bytes())
    assert [one.intervals.rows for one in after.every_target] == [30, 39]
    np.testing.assert_array_equal(after.anchors, before.anchors)
    checked = cli("evaluate", "new.twin", table, "--json").json["targets"]
    for one in checked.values():
        assert one["intervals"][-1]["covered"] >= one["intervals"][-1]["claimed"]


def test_points_teach_the_targets_that_they_have(cli, pack, table):
    shown = cli("adapt", pack, table, "--store", "site.store", "--json").json
    assert (shown["learnt"], shown["known"], shown["points"]) == (40, 0, 40)
    for name, off in (("NOX", 0.3), ("CO", 0.1)):
        of = shown["targets"][name]
        assert of["rmse_shipped"] == pytest.approx(off, abs=0.02)
        assert of["rmse_adapted"] < of["rmse_shipped"] / 2
    again = cli("adapt", pack, table, "--store", "site.store")
    record, targets = again.out.split("\n\n")
    assert "known   40" in record
    assert [line.split()[0] for line in targets.splitlines()] == ["target", "NOX", "CO"]
    assert again.err == ""
    with_store = cli("evaluate", pack, table, "--store", "site.store", "--json").json["targets"]
    assert with_store["NOX"]["rmse"] < 0.15
    adapted = cli("adapt", pack, table, "-o", "adapted.twin", "--json")
    assert adapted.code == 0
    alone = cli("evaluate", "adapted.twin", table, "--json").json["targets"]
    assert alone["NOX"]["rmse"] < 0.15
    assert alone["CO"]["rmse"] < 0.08


def test_a_store_is_shown_exported_and_merged(cli, refused, pack, table):
    cli("adapt", pack, table, "--store", "site.store")
    shown = cli("store", "show", "site.store", "--pack", pack, "--json").json
    assert shown["targets"]["NOX"]["used"] == 30
    assert shown["targets"]["CO"]["used"] == 39
    assert shown["list"][0]["target"]["NOX"] is None
    assert shown["list"][-1]["target"]["CO"] is None
    text = cli("store", "show", "site.store", "--pack", pack).out
    assert "NOX error shipped" in text
    plain = cli("store", "show", "site.store", "--targets", 2, "--json").json
    assert list(plain["list"][0]["target"]) == ["y0", "y1"]
    cli("store", "export", "site.store", "--pack", pack, "-o", "points.csv")
    header, *rows = csv.reader(Path("points.csv").read_text().splitlines())
    assert header == ["temp", "load", "NOX", "CO", "device"]
    assert (len(rows), rows[0][2], rows[-1][3]) == (40, "", "")
    assert cli("evaluate", pack, "points.csv", "--json").json["targets"]["NOX"]["rows"] == 30
    cli("store", "merge", "site.store", "--targets", 2, "-o", "all.store")
    assert cli("store", "show", "all.store", "--pack", pack, "--json").json["points"] == 40
    refused("store", "show", "site.store", "--targets", 9, says=["site.store", "9 targets"])


def test_what_is_inside_is_shown_for_each_target(cli, pack):
    shown = cli("inspect", pack, "--json").json
    assert [one["name"] for one in shown["ranges"]] == ["temp", "load", "NOX", "CO"]
    assert shown["targets"] == [
        {"name": "NOX", "target_curve": None},
        {"name": "CO", "target_curve": None},
    ]
    assert sum(one["size"] for one in shown["parts"]) == shown["bytes"]
    text = cli("inspect", pack).out
    assert "target 1 scale" in text
    assert "how many targets there are" in text


def test_lines_are_answered_with_all_targets(cli, pack, monkeypatch):
    asked = ["temp,load", "1,2", json.dumps({"temp": 1, "load": 2}), "1,2,=3,="]
    Path("lines.txt").write_text("\n".join(asked) + "\n")
    with Path("lines.txt").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        header, answer, as_json, last = cli("predict", pack, "-").out.splitlines()
    assert header.startswith("NOX,NOX_spread")
    assert header.endswith("CO_high,outside,missing")
    assert answer == last
    assert list(json.loads(as_json)["low"]) == ["NOX", "CO"]


def test_a_budget_counts_all_targets(cli, pack):
    shown = cli("budget", pack, "--json")
    assert shown.code == 0
    assert shown.json["targets"] == 2
    assert shown.json["twin_bytes"] <= shown.json["file_bytes"] == len(pack.read_bytes())
    single = Path("single.twin")
    single.write_bytes(write_pack(read_pack(pack.read_bytes()).single(0)))
    alone = cli("budget", single, "--json").json
    assert "targets" not in alone
    # An anchor's target, a last layer with a bias, and twice as many outputs of a network.
    assert shown.json["twin_params"] - alone["twin_params"] == 6 + 8 + 1
    assert shown.json["ann_params"] - alone["ann_params"] == 6 * (8 + 1)
    assert cli("budget", pack).code == 0


def test_a_fleet_is_ranked_by_one_of_the_targets(cli, refused, pack, table):
    cli("adapt", pack, table, "--store", "site.store")
    shown = cli("store", "show", "site.store", "--pack", pack, "--json").json["targets"]
    for name, used in (("NOX", 30), ("CO", 39)):
        [device] = cli("fleet", "site.store", "--pack", pack, "--target", name, "--json").json[
            "ranking"
        ]
        assert (device["points"], device["used"]) == (40, used)
        for score in ("rmse_shipped", "rmse_adapted"):
            assert device[score] == pytest.approx(shown[name][score])
    refused("fleet", "site.store", "--pack", pack, says=["NOX, CO", "--target NOX"])
    refused("fleet", "site.store", "--pack", pack, "--target", "SO2", says=["NOX, CO"])


@pytest.mark.slow
def test_a_report_has_sections_on_each_target(cli, pack, table):
    answer = cli("report", pack, "--data", table, "--json")
    assert answer.code == 0
    assert list(answer.json["targets"]) == ["NOX", "CO"]
    nox, co = answer.json["targets"].values()
    assert (nox["rows"], co["rows"]) == (30, 39)
    whole = read_pack(pack.read_bytes())
    assert answer.json["twin_bytes"] == len(write_pack(whole, metadata=False))
    assert answer.json["id"] == pack_id(pack.read_bytes()).hex()
    page = Path("report.html").read_text()
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    for name in ("NOX", "CO"):
        assert f"{name}: How accurate it is" in titles
        assert f"{name}: What an interval is worth" in titles
        # What it says is what a report on this target alone says.
        alone = cli("report", pack, "--data", table, "--target", name, "-o", "one.html", "--json")
        for key in ("rows", "rmse", "r2", "verdict", "covered_of_90_percent", "importance"):
            assert alone.json[key] == answer.json["targets"][name][key]
    assert titles.count("Boards that hold it") == titles.count("What every byte is for") == 1
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    linked = set(re.findall(r'href="#([^"]+)"', page))
    assert linked <= set(ids)
    assert "Worth using for NOX and CO." in page


@pytest.mark.slow
def test_a_report_on_targets_is_text_and_a_sheet_as_well(cli, pack, table):
    for form in ("md", "csv"):
        answer = cli("report", pack, "--data", table, "--format", form, "--figures", form)
        assert answer.code == 0
        text = Path(f"report.{form}").read_text()
        assert "NOX" in text
        assert "CO" in text
    names = {path.name for path in Path("md").iterdir()}
    assert {"predictions-of-NOX.svg", "predictions-of-CO.png", "pack.svg"} <= names
    assert "twin bytes" in answer.out


def test_models_are_compared_by_one_target(cli, refused, pack, table):
    shutil.copy(pack, "other.twin")
    refused("report", pack, "other.twin", "--data", table, says=["NOX", "CO", "--target"])
    both = cli("report", pack, "other.twin", "--data", table, "--target", "CO", "--json")
    assert both.code == 0
