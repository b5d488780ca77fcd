"""Every entry of the troubleshooting page is about a message that really occurs."""

import random
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from twinedge.troubleshooting import address_of, entries, page

PAGE = page()
ANCHORS = [anchor for anchor, _ in entries(PAGE)]


def table(first=None, names="a,b,y", cells=lambda a, b: f"{a:.3f},{b:.3f},{a - b:.3f}", rows=60):
    draw = random.Random(0)
    lines = [cells(draw.random(), draw.random()) for _ in range(rows)]
    return "\n".join([names, *([first] if first else []), *lines]) + "\n"


def semicolons(a, b):
    return f"{a:.3f};{b:.3f};{a - b:.3f}"


def test_a_message_has_no_address_where_the_page_is_not_installed(monkeypatch, tmp_path):
    message = entries(PAGE)[0].message
    assert address_of(message) == f"{PAGE}#{ANCHORS[0]}"
    monkeypatch.setattr("twinedge.troubleshooting._FOLDERS", (tmp_path,))
    assert address_of(message) is None


# What a file holds, and the command that refuses it.
TABLES = {
    "a-cell-is-empty": table(",0.5,1"),
    "a-cell-is-not-a-number": table("high,0.5,1"),
    "a-cell-is-infinite": table("inf,0.5,1"),
    "a-row-has-too-many-or-too-few-cells": table("1,2"),
    "numbers-have-thousands-separators": table("1.234,5;2;3", "a;b;y", semicolons),
    "decimal-points-and-commas-are-mixed": table("1,5;2;3", "a;b;y", semicolons),
    "a-column-never-changes": table(cells=lambda a, b: f"1,{a:.3f},{b:.3f}"),
    "the-target-never-changes": table(cells=lambda a, b: f"{a:.3f},{b:.3f},1"),
    "there-are-too-few-rows": table(rows=3),
    "numbers-have-a-unit": table(cells=lambda a, b: f"€ {a:.3f},{b:.3f},{a:.3f}"),
    "a-column-looks-like-an-id": table(cells=lambda a, b: f"u{a},{b:.3f},{a:.3f}"),
    "a-column-holds-dates-or-times": table(cells=lambda a, b: f"2026-01-1{int(9 * a)},{a},{b}"),
    "two-columns-have-the-same-name": table(names="a,a,y"),
    "numbers-vary-too-little-or-are-out-of-range": table(
        cells=lambda a, b: f"{a:.3f},{b:.3f},{1e9 + a - b:.3f}"
    ),
}
COMMANDS = {
    "the-file-does-not-exist": "train none.csv --target y",
    "there-is-no-such-target-column": "train good.csv --target z",
    "the-folder-holds-something-else": "train good.csv --target y -o taken --steps 20 --hidden 8",
    "a-target-has-no-place-on-the-curve": "train good.csv --target y --target-curve log",
    "the-training-diverged": "train good.csv --target y --hidden 8 --steps 50 --learning-rate 1e30 "
    "--weight-decay 0 --activation relu",
    "there-is-no-run-to-export": "export",
    "anchors-do-not-divide-evenly": "export four --anchors 31 --formats twin",
    "rounding-costs-too-much": "export run --formats twin --no-qat --tolerance 0",
    "a-column-of-the-model-is-missing": "predict model.twin swapped.csv",
    "the-number-of-columns-is-wrong": "predict model.twin bare.csv",
    "this-is-a-run-not-a-pack": "inspect run",
    "this-is-a-pack-not-a-run": "export model.twin",
    "this-is-not-a-file-of-an-export": "predict good.csv good.csv",
    "a-file-is-damaged": "predict damaged.onnx good.csv",
    "there-are-no-intervals-of-that-coverage": "predict model.twin good.csv --coverage 0.97",
    "the-model-cannot-learn-on-site": "adapt bare.twin good.csv --store s",
    "no-such-board": "budget fit --board unoo good.csv --target y",
}
ELSEWHERE = {"something-is-not-installed", "the-header-of-a-stream-does-not-fit"}  # tested below


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a run of one twin, a run of four, and files of an export."""
    import twinedge

    folder = tmp_path_factory.mktemp("models")
    (folder / "good.csv").write_text(table(rows=300))
    options = {"target": "y", "activation": "relu", "random_state": 0}
    options |= {"learning_rate": 0.01, "weight_decay": 0.03}
    given = {"hidden": 8, "steps": 200, **options}
    twinedge.fit_csv(folder / "good.csv", run=folder / "run", **given)
    few = {"hidden": 8, "steps": 20, "twins": 4, "intervals": False, **options}
    twinedge.fit_csv(folder / "good.csv", run=folder / "four", **few)
    loose = {"anchors": 8, "tolerance": 10.0}
    twinedge.export(folder / "run", folder / "out", formats=("twin", "onnx"), **loose)
    twinedge.export(folder / "run", folder / "less", formats=("twin",), intervals=False, **loose)
    return folder


@pytest.fixture
def place(tmp_path, models):
    """A folder with all that the commands name."""
    for run in ("run", "four"):
        shutil.copytree(models / run, tmp_path / run)
    shutil.copy(models / "good.csv", tmp_path)
    shutil.copy(models / "out" / "model.twin", tmp_path)
    shutil.copy(models / "less" / "model.twin", tmp_path / "bare.twin")
    onnx = bytearray((models / "out" / "model.onnx").read_bytes())
    onnx[100] ^= 1
    (tmp_path / "damaged.onnx").write_bytes(onnx)
    (tmp_path / "swapped.csv").write_text("b,A\n1,2\n")
    (tmp_path / "bare.csv").write_text("1,2,3,4\n5,6,7,8\n")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    return tmp_path


def test_every_entry_is_tried():
    tried = {*TABLES, *COMMANDS, *ELSEWHERE}
    assert set(ANCHORS) == tried
    assert len(ANCHORS) == len(tried)


@pytest.mark.parametrize("anchor", TABLES)
def test_a_table_that_is_refused_leads_to_its_entry(anchor, cli, tmp_path):
    (tmp_path / "table.csv").write_text(TABLES[anchor])
    ends_with(cli("train", "table.csv", "--target", "y"), anchor)


@pytest.mark.parametrize("anchor", COMMANDS)
def test_a_command_that_is_refused_leads_to_its_entry(anchor, cli, place):
    ends_with(cli(*COMMANDS[anchor].split()), anchor)


def test_a_missing_library_leads_to_its_entry(cli, place, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    ends_with(cli("export", "run", "--formats", "onnx"), "something-is-not-installed")


def ends_with(answer, anchor):
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith(f" (see {PAGE}#{anchor})\n"), answer.err
    assert answer.err.count("\n") == 1


def test_anchors_are_those_of_the_headings():
    headings = re.findall("^### (.*)$", PAGE.read_text("utf-8"), re.M)
    assert [re.sub("[^a-z0-9 ]", "", one.lower()).replace(" ", "-") for one in headings] == ANCHORS


def test_other_messages_have_no_address():
    assert address_of("something nobody has met yet") is None


def test_a_stream_with_a_wrong_header_leads_to_its_entry(models, tmp_path):
    command = [sys.executable, "-m", "twinedge", "predict", str(models / "out"), "-"]
    done = subprocess.run(command, input="b,A\n1,2\n", capture_output=True, text=True)
    answer = SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)
    ends_with(answer, "the-header-of-a-stream-does-not-fit")
