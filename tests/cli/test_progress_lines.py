"""What a command prints while it works, without a terminal: stage, share, and time left."""

import io
import re
from contextlib import redirect_stderr

import pytest

from twinedge.training import selection

LINE = re.compile(r"(.+): (\d+) % done(?:, about [\d.]+ (?:s|min|h) left)?")


@pytest.fixture
def often(monkeypatch):
    """A line every few hundredths of a second, and a check that is brief."""
    monkeypatch.setattr("twinedge.progress.INTERVAL", 0.02)
    monkeypatch.setattr("twinedge.progress._REFRESH", 0.02)
    plan = selection.Plan(folds=100, final=400, teachers=False)
    monkeypatch.setitem(selection.PLANS, "quick", plan)


def progress_of(answer):
    """Stages and percentages of the lines, which must be all that was printed but for remarks."""
    found = [LINE.fullmatch(line) for line in answer.err.splitlines() if "% done" in line]
    assert all(found), answer.err
    return [one[1] for one in found], [int(one[2]) for one in found]


def check_whole(shares):
    """The share is that of the whole command: it rises once from nothing to nearly all."""
    assert len(shares) >= 3
    assert shares == sorted(shares), shares
    assert shares[0] < 50 < shares[-1] <= 100, shares


def test_a_training_shows_how_far_it_is(cli, often, curve_csv, loud):
    answer = cli("train", curve_csv, "--target", "level", "--json", "-o", "run", *loud)
    assert answer.json["rmse_val"] > 0
    stages, shares = progress_of(answer)
    check_whole(shares)
    assert {"Training the networks", "Learning how large errors are"} <= set(stages)


@pytest.mark.slow
def test_choosing_settings_and_learning_from_teachers_are_part_of_the_whole(cli, often, curve_csv):
    given = "--effort normal --steps 200 --teachers networks,trees --hidden 8"
    answer = cli("train", curve_csv, "--target", "level", "-o", "run", *given.split())
    assert answer.code == 0, answer.err
    stages, shares = progress_of(answer)
    check_whole(shares)
    wanted = ["Comparing settings", "Fitting trees", "Training the networks"]
    assert [one for one in dict.fromkeys(stages) if one in wanted] == wanted


def test_an_export_shows_how_far_it_is(cli, often, tiny_run):
    answer = cli("export", tiny_run, "--anchors", "8", "--formats", "twin,tflite", "-o", "out")
    assert answer.code == 0, answer.err
    stages, shares = progress_of(answer)
    check_whole(shares)
    assert any(stage.endswith(".tflite") for stage in stages)  # some stages are over in no time


@pytest.mark.slow
def test_a_check_shows_how_far_it_is(cli, often, curve_csv):
    answer = cli("check", curve_csv, "--target", "level", "--json")
    assert "best" in answer.json
    stages, shares = progress_of(answer)
    check_whole(shares)
    wanted = ["Training the other models", "Comparing settings", "Training the networks"]
    titles = dict.fromkeys(stage.partition(",")[0] for stage in stages)
    assert [one for one in titles if one in wanted] == wanted


@pytest.mark.slow
def test_a_report_shows_how_far_it_is(cli, often, tiny_run):
    answer = cli("report", tiny_run, "--anchors", "8", "--ann-steps", "100")
    assert answer.code == 0, answer.err
    stages, shares = progress_of(answer)
    check_whole(shares)
    assert any(stage.startswith("Training 8 ordinary networks") for stage in stages)
    assert "Drawing" in stages


@pytest.mark.parametrize("command", ["train", "export", "anchors"])
def test_quiet_is_quiet(cli, often, tiny_run, curve_csv, tiny, command):
    arguments = {
        "train": (curve_csv, "--target", "level", "-o", "run", *tiny),
        "export": (tiny_run, "--anchors", "8", "--formats", "twin", "-o", "out", "--quiet"),
        "anchors": (tiny_run, "--methods", "xy", "--quiet"),
    }
    answer = cli(command, *arguments[command])
    assert (answer.code, answer.err) == (0, "")


def test_a_terminal_shows_the_same_share_as_a_bar(cli, often, tiny_run, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    with redirect_stderr(Terminal()) as shown:
        cli("export", tiny_run, "--anchors", "8", "--formats", "twin,tflite", "-o", "out")
    pictures = re.findall(r"\r\x1b\[K(\S+)  \[(#*)\.*\]  (\d+) %", shown.getvalue())
    assert any(stage.endswith(".tflite") for stage, *_ in pictures)
    shares = [int(percent) for *_, percent in pictures]
    assert shares == sorted(shares)
    assert all(
        abs(len(bar) / 30 - share / 100) < 0.03
        for (_, bar, _), share in zip(pictures, shares, strict=True)
    )
    assert "% done" not in shown.getvalue()
