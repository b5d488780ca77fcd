"""``twinedge check``: says whether a twin suits the data, and what does better if not."""

import re

import numpy as np
import pytest

from twinedge.learn import suitability as home
from twinedge.learn.suitability import Rival, Suitability


@pytest.fixture
def short(monkeypatch):
    """Keep training very short."""
    monkeypatch.setitem(home.STEPS, "quick", 150)


@pytest.fixture
def found(monkeypatch):
    """Return a function that fakes the findings."""

    def say(few=1.3, error=0.04, **others):
        errors = {"networks": 1.1, "forest": 1.2, "trees": 1.3, "nearest": 1.5}
        errors |= {"linear": 1.6, "mean": 2.0}
        rivals = {name: Rival(e, e - 1, error) for name, e in (errors | others).items()}
        pairs = {1: Rival(few, few - 1, error), 4: Rival(1.0, 0.0, error)}
        verdict = Suitability(1.0, pairs, rivals, 90)
        monkeypatch.setattr(home, "suitability", lambda *_, **__: verdict)

    return say


COMMAND = ("check", "curve.csv", "--target", "level")


@pytest.fixture(autouse=True)
def table(curve_csv, tmp_path):
    (tmp_path / "curve.csv").write_bytes(curve_csv.read_bytes())


def test_a_smooth_curve_suits_a_twin(cli, short, curve):
    answer = cli(*COMMAND)
    assert (answer.code, answer.err) == (0, "")
    assert "a twin, all pairs" in answer.out
    assert "a random forest" in answer.out
    rmse = {
        words[0]: float(words[1])
        for words in (re.split("  +", line) for line in answer.out.splitlines()[1:10])
    }
    X, y = curve
    columns = np.column_stack([X, np.ones(len(y))])
    line = columns @ np.linalg.lstsq(columns, y)[0]
    assert rmse["a linear model"] == pytest.approx(np.std(y - line), rel=0.1)
    assert rmse["the mean of the targets"] == pytest.approx(np.std(y), rel=0.1)
    assert "A twin suits these data." in answer.out
    assert "Warning" not in answer.out


def test_noise_does_not(cli, short, tmp_path):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(200, 3)), rng.integers(3, 8, 200)])
    np.savetxt(tmp_path / "noise.csv", rows, delimiter=",", header="a,b,c,level", comments="")
    answer = cli("check", "noise.csv", "--target", "level", "--json", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["suits"] is False
    assert len(answer.json["reasons"]) >= 2
    assert "the twin is no better than predicting the mean" in answer.json["reasons"]
    assert set(answer.json["rmse_multipliers"]) == {"1", "4"}
    rivals = {"networks", "forest", "trees", "nearest", "linear", "mean"}
    assert set(answer.json["rmse_rivals"]) == set(answer.json["error_rivals"]) == rivals
    assert 0.9 < answer.json["rmse_rivals"]["mean"] / rows[:, 3].std() < 1.1


def test_a_warning_names_its_reasons_and_what_does_better(cli, found):
    found(few=1.02, nearest=1.0, forest=0.95)
    out = cli(*COMMAND).out
    assert "Warning: a twin may be the wrong model for these data." in out
    assert "Accuracy hardly rises with the number of pairs." in out
    assert "Nearest neighbors, which learn nothing, come close to the twin." in out
    assert "A random forest does better than the twin." in out
    assert "Better than the twin: a random forest." in out


@pytest.mark.parametrize(
    "sign",
    [{"few": 1.02}, {"nearest": 1.0}, {"forest": 0.95}, {"linear": 0.98}],
    ids=["pairs", "nearest", "forest", "linear"],
)
def test_one_sign_alone_is_no_warning(cli, found, sign):
    found(**sign)
    assert cli(*COMMAND, "--json").json["suits"] is True


@pytest.mark.parametrize(
    ("sign", "says"),
    [
        ({"linear": 0.9}, "A linear model does better than the twin."),
        ({"mean": 1.02}, "The twin is no better than predicting the mean."),
    ],
    ids=["linear", "mean"],
)
def test_to_be_behind_the_simplest_is_a_warning_by_itself(cli, found, sign, says):
    found(**sign)
    out = cli(*COMMAND).out
    assert "Warning: a twin may be the wrong model for these data." in out
    assert says in out


def test_a_difference_below_its_error_is_none(cli, found):
    """Neither rivals nor more pairs."""
    found(few=1.1, networks=0.9, forest=0.95, linear=0.95, nearest=0.99, error=0.12)
    answer = cli(*COMMAND, "--json").json
    assert answer["better"] == []
    assert answer["rises_with_pairs"] is False
    assert "a random forest does better than the twin" not in answer["reasons"]
    assert "a linear model does as well as the twin" in answer["reasons"]
    out = cli(*COMMAND).out
    assert "etter than the twin" not in out
    assert "0.900      0.120" in out


def test_rivals_that_are_better_are_named_even_so(cli, found):
    found(networks=0.9, forest=0.8)
    out = cli(*COMMAND).out
    assert "A twin suits these data." in out
    assert "Accuracy rises with the number of pairs." in out
    assert "Better than the twin: a random forest, an ensemble of ordinary networks." in out


def test_trees_that_fit_and_are_better_are_advised(cli, found):
    found(trees=0.9)
    out = cli(*COMMAND).out
    assert "Better than the twin: trees of a pack's size." in out
    assert "Trees that fit 20,480 bytes do better than the twin (RMSE 0.9 against 1)" in out
    assert "emlearn" in out
    found(trees=0.97)  # less than the error of the comparison
    assert "emlearn" not in cli(*COMMAND).out
    assert cli(*COMMAND, "--json").json["advice"] is None


def test_test_rows_have_no_say(cli, short, tmp_path):
    from twinedge.data import split_rows

    lines = (tmp_path / "curve.csv").read_text().splitlines()
    for row in split_rows(len(lines) - 1, 0).test:
        features = lines[row + 1].split(",")[:-1]
        lines[row + 1] = ",".join([*features, "1e6"])
    (tmp_path / "other.csv").write_text("\n".join(lines) + "\n")
    before = cli(*COMMAND, "--json").json
    after = cli("check", "other.csv", "--target", "level", "--json").json
    assert {**after, "dataset": "curve.csv"} == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", ["DATA.csv", "--dataset"]),
        ("curve.csv", ["--target is missing"]),
        ("curve.csv --target colour", ["colour"]),
        ("nowhere.csv --target level", ["nowhere.csv"]),
        ("--dataset iris", ["iris"]),
        ("--dataset tf --split 99", ["99"]),
        ("curve.csv --target level --effort lazy", ["'--effort'", "'quick', 'normal', 'thorough'"]),
    ],
    ids=["nothing", "no target", "no column", "no file", "no set", "no split", "no effort"],
)
def test_bad_words_are_refused_in_one_line(refused, words, says):
    refused("check", *words.split(), says=says)


def test_too_few_rows_are_refused(refused, tmp_path):
    lines = (tmp_path / "curve.csv").read_text().splitlines()[:31]
    (tmp_path / "few.csv").write_text("\n".join(lines) + "\n")
    refused("check", "few.csv", "--target", "level", says=["24 rows", "at least 30"])
