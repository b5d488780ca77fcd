"""The example ``concrete``: compiles, runs on a Cortex-M4, and matches Python."""

import re
import runpy
from types import SimpleNamespace

import numpy as np
import pytest

import twinedge

# Ages of the samples of each mix: often, twice, more than once at an age, at two ages in all.
DAYS = ([3, 7, 14, 28, 56], [7, 28], [3, 3, 7, 28, 28], [1, 1, 1, 1, 3])
# How many samples the meter learns before nothing later is left.
LEARNT = (3, 1, 3, 3)


@pytest.fixture(scope="module")
def folder(firmware):
    return firmware / "examples" / "concrete"


@pytest.fixture(scope="module")
def script(folder):
    """Return what ``concrete.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(folder / "concrete.py")))


@pytest.fixture(scope="module")
def device(four_twins, tmp_path_factory):
    place = tmp_path_factory.mktemp("concrete") / "export"
    # Its accuracy does not matter here.
    twinedge.export(four_twins, place, anchors=12, formats=("twin",), tolerance=10)
    return twinedge.load(place / "model.twin")


@pytest.fixture(scope="module")
def mixes(script, device, curve):
    """Mixes whose samples are all off to one side, one of them below zero."""
    made = []
    for number, days in enumerate(DAYS):
        mix = script.Mix(curve[0][100 + number, :2], np.array(days), np.zeros(len(days)))
        off = (-200.0, 3.0, -4.0, 6.0)[number]
        made.append(mix._replace(strengths=device.predict(mix.at(mix.days)) + off))
    return made


@pytest.fixture(scope="module")
def lines(script, device, mixes, tmp_path_factory):
    """What the board prints."""
    image, flash = script.build(tmp_path_factory.mktemp("board"), device.pack, mixes)
    assert 5_000 < flash < 20_000  # the pack is in there once
    return script.board_lines(image)


def test_the_board_prints_what_python_says(script, device, mixes, lines):
    assert lines == list(script.expected(device, mixes))
    assert script.compare(lines, lines) == 3 * len(list(script.answers(lines)))


def test_each_mix_learns_what_is_known_and_predicts_what_is_later(script, lines):
    found = list(script.answers(lines))
    learnt = [max(one.learnt for one in found if one.mix == mix) for mix in range(1, 5)]
    assert tuple(learnt) == LEARNT
    predicted = [(one.learnt, one.days) for one in found if one.mix == 3]
    later = [(2, 7), (2, 28), (2, 28), (3, 28), (3, 28)]
    assert predicted == [(learnt, days) for learnt in (0, 1) for days in (7, 28, 28)] + later


def test_a_sample_moves_predictions_towards_it(script, lines):
    found = list(script.answers(lines))
    for mix in range(1, 5):
        before = {one.days: one for one in found if one[:2] == (mix, 0)}
        for after in (one for one in found if one.mix == mix and one.learnt):
            first = before[after.days]
            assert first.low < first.mean < first.high
            off = first.measured - first.mean
            if mix == 1 and after.learnt == 1:  # one sample that far off may be a mistake
                assert after[3:] == first[3:]
            else:
                assert (after.mean - first.mean) * off > 0
    assert any(one.measured < 0 for one in found)


def test_another_number_is_refused(script, lines):
    wrong = [line.replace("1", "2") if line.startswith("    ") else line for line in lines]
    with pytest.raises(SystemExit, match="of Python"):
        script.compare(wrong, lines)
    with pytest.raises(SystemExit, match="lines"):
        script.compare(lines[:-1], lines)


def test_scores_are_of_the_same_samples_before_and_after(script):
    found = [
        script.Answer(1, 0, 7, 10.0, 8.0, 12.0, 13.0),
        script.Answer(1, 0, 28, 20.0, 18.0, 22.0, 24.0),
        script.Answer(1, 1, 7, 12.0, 11.0, 13.0, 13.0),
        script.Answer(1, 1, 28, 23.0, 22.0, 24.0, 24.0),
        script.Answer(1, 2, 28, 24.0, 23.0, 26.0, 24.0),
        script.Answer(2, 0, 28, 5.0, 4.0, 9.0, 5.0),
        script.Answer(2, 1, 28, 5.0, 4.0, 9.0, 5.0),
    ]
    one, two = (script.scores(found, learnt) for learnt in (1, 2))
    assert (one["mixes"], one["later"]) == (2, 3)
    assert one["before"]["rmse"] == pytest.approx(np.sqrt((9 + 16) / 3))
    assert one["after"]["rmse"] == pytest.approx(np.sqrt(2 / 3))
    assert (one["before"]["covered"], one["after"]["covered"]) == pytest.approx((1 / 3, 1))
    assert one["before"]["width"] == pytest.approx((4 + 4 + 5) / 3)
    assert (two["mixes"], two["later"], two["before"]["rmse"], two["after"]["rmse"]) == (1, 1, 4, 0)


def test_mixes_are_rows_that_differ_in_age_alone(script):
    X = np.array([[1.0, 2, 28], [1, 2, 3], [5, 5, 7], [1, 2, 28], [6, 6, 7], [6, 6, 7]])
    table = SimpleNamespace(X=X, y=np.arange(6.0))
    (mix,) = script.mixes_of(table, np.arange(6))
    assert mix.amounts.tolist() == [1, 2]
    assert (mix.days.tolist(), mix.strengths.tolist()) == ([3, 28, 28], [1, 0, 3])
    assert mix.at([4]).tolist() == [[1, 2, 4]]


def test_the_figure_is_drawn_alike_each_time(script, device, mixes, lines, tmp_path):
    found = list(script.answers(lines))
    many = [one for one in found if one.mix == 1]
    three = many + [one._replace(mix=mix) for mix in (2, 3) for one in many]
    drawn = []
    for name in ("one.svg", "two.svg"):
        script.draw(tmp_path / name, device, [mixes[0]] * 3, three)
        drawn.append((tmp_path / name).read_text())
    assert drawn[0] == drawn[1]
    assert "helped most" in drawn[0]
    assert device.learnt == 0


def test_the_page_points_to_files_that_are_there(folder):
    text = (folder / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)", text)
    assert {"main.c", "concrete.svg", "../../../docs/learning.md"} <= set(links)
    assert [link for link in links if not (folder / link).is_file()] == []
