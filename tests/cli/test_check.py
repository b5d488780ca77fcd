"""``twinedge check``: names the best model, by the networks that ``train`` would make."""

import re

import numpy as np
import pytest

from twinedge.evaluation import suitability
from twinedge.evaluation.suitability import Suitability
from twinedge.evaluation.verdict import NAMES, Rival
from twinedge.training import selection


@pytest.fixture
def short(monkeypatch):
    """Keep training very short."""
    plan = selection.Plan(folds=40, final=80, teachers=False)
    monkeypatch.setitem(selection.PLANS, "quick", plan)


@pytest.fixture
def found(monkeypatch):
    """Return a function that fakes the findings."""

    def fake(error=0.04, **others):
        errors = {"boosting": 1.2, "forest": 1.3, "trees": 1.4, "nearest": 1.6}
        errors |= {"linear": 1.8, "mean": 2.0} | others
        rivals = {name: Rival(one, one - 1, error) for name, one in errors.items()}
        monkeypatch.setattr(
            suitability, "suitability", lambda *_, **__: Suitability(500, 1.0, rivals)
        )

    return fake


COMMAND = ("check", "curve.csv", "--target", "level")


@pytest.fixture(autouse=True)
def table(curve_csv, tmp_path):
    (tmp_path / "curve.csv").write_bytes(curve_csv.read_bytes())


def write(path, X, y, more=None):
    """Write columns a, b, ..., y, and a last one if there is more."""
    names = [*"abcdefgh"[: X.shape[1]], "y"]
    lines = [",".join(map(repr, map(float, row))) for row in np.column_stack([X, y])]
    if more is not None:
        names.append(more[0])
        lines = [f"{line},{one}" for line, one in zip(lines, more[1], strict=True)]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")


def test_models_are_shown_and_their_networks_reused(cli, short, curve, monkeypatch, tmp_path):
    answer = cli(*COMMAND, "-o", "run")
    assert (answer.code, answer.err) == (0, "")
    lines = [re.split("  +", line) for line in answer.out.splitlines()]
    rmse = {words[0]: float(words[1]) for words in lines[1:8]}
    assert set(rmse) == {"a twin", *(NAMES[name] for name in suitability.RIVALS)}
    X, y = curve
    columns = np.column_stack([X, np.ones(len(y))])
    line = columns @ np.linalg.lstsq(columns, y)[0]
    assert rmse["a linear model"] == pytest.approx(np.std(y - line), rel=0.15)
    assert rmse["the mean of the targets"] == pytest.approx(np.std(y), rel=0.15)
    assert (tmp_path / "run.checkpoint" / "folds.npz").is_file()
    begun = []
    advance = selection.train.__globals__["_Run"]._advance

    def count(run, stop):
        begun.append((run._jobs[0].fold is not None, run.remaining))
        return advance(run, stop)

    monkeypatch.setattr(selection.train.__globals__["_Run"], "_advance", count)
    answer = cli("train", *COMMAND[1:], "--effort", "quick", "-o", "run", "--resume", "--json")
    assert answer.code == 0, answer.err
    assert not any(remaining for fold, remaining in begun if fold)
    assert any(remaining for fold, remaining in begun if not fold)
    assert not (tmp_path / "run.checkpoint").exists()


@pytest.mark.slow
def test_noise_is_named(cli, short, tmp_path):
    rng = np.random.default_rng(0)
    write(tmp_path / "noise.csv", rng.normal(size=(300, 3)), rng.normal(size=300))
    answer = cli("check", "noise.csv", "--target", "y", "--json", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["best"] in ("mean", "linear")
    assert "mean" in answer.json["verdict"] or "linear" in answer.json["verdict"]
    rivals = set(suitability.RIVALS)
    assert set(answer.json["rmse_rivals"]) == set(answer.json["error_rivals"]) == rivals
    assert answer.json["rows"] == 210


@pytest.mark.slow
def test_steps_are_for_trees(cli, short, tmp_path):
    """Trees that fit are named before a linear model, which also does better than the twin."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 4))
    write(tmp_path / "steps.csv", X, np.sign(X) @ [8, 4, 2, 1])
    answer = cli("check", "steps.csv", "--target", "y", "--json", "--quiet").json
    assert answer["outcome"] == "behind"
    assert answer["best"] in ("trees", "boosting", "forest")
    assert answer["best"] == min(answer["rmse_rivals"], key=answer["rmse_rivals"].get)


@pytest.mark.slow
def test_a_copy_of_the_target_is_called_a_leak_not_a_good_model(cli, short, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    X = np.column_stack([rng.normal(size=(200, 2)), 1000 * y])
    write(tmp_path / "leak.csv", X, y)
    answer = cli("check", "leak.csv", "--target", "y")
    assert "is one of the columns computed from the target?" in answer.out
    assert "easier to explain" not in answer.out
    assert "column 'c'" in answer.err


@pytest.mark.slow
def test_whole_groups_are_held_out(cli, short, tmp_path):
    """What rows of a group have in common cannot be known of an unseen one."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(24), 12)
    X = np.column_stack([rng.normal(size=24)[group], rng.normal(size=288)])
    y = rng.normal(size=24)[group] + 0.1 * X[:, 1]
    write(tmp_path / "units.csv", X, y, ("unit", [f"u{g}" for g in group]))
    command = ("check", "units.csv", "--target", "y", "--json", "--quiet")
    alone = cli(*command, "--drop", "unit").json["rmse_rivals"]["boosting"]
    together = cli(*command, "--group", "unit").json["rmse_rivals"]["boosting"]
    assert alone < 0.3 < 0.7 < together


@pytest.mark.slow
def test_times_bring_blocks_and_the_naive_forecast(cli, short, tmp_path):
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=300))
    when = [f"2024-01-{1 + k // 24:02d} {k % 24:02d}:00" for k in range(300)]
    write(tmp_path / "walk.csv", rng.normal(size=(300, 2)), y, ("when", when))
    answer = cli("check", "walk.csv", "--target", "y", "--time", "when", "--json", "--quiet").json
    assert answer["best"] == "naive"
    assert answer["rmse_rivals"]["naive"] == pytest.approx(1, rel=0.15)


def test_models_too_large_for_a_device_are_not_all_that_is_named(cli, found):
    found(boosting=0.8)
    out = cli(*COMMAND).out
    assert "Boosted trees of any size do better (RMSE 0.8 against 1 of the twin)" in out
    assert "Of what fits a small device: The twin is the best of these models" in out
    answer = cli(*COMMAND, "--json").json
    assert (answer["best"], answer["best_of_a_packs_size"]) == ("boosting", "twin")
    assert answer["better"] == ["boosting"]


def test_undecided_comes_with_what_would_decide(cli, found):
    found(boosting=0.9, error=0.2)
    answer = cli(*COMMAND, "--json").json
    assert (answer["outcome"], answer["best"]) == ("undecided", None)
    assert "would decide" in answer["verdict"]
    assert re.search(r"boosted trees of any size +0\.9 +0\.900 +0\.200\n", cli(*COMMAND).out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "best", "small"),
    [("yh", "twin", "twin"), ("rcl", "twin", "twin"), ("wn", "forest", None)],
)
def test_the_papers_sets_get_the_advice_that_a_default_training_confirms(cli, dataset, best, small):
    """On test rows, twins have the least error of YH and RCL, and a large forest that of WN."""
    answer = cli("check", "--dataset", dataset, "--json", "--quiet").json
    assert answer["best"] == best
    assert small is None or answer["best_of_a_packs_size"] == small


@pytest.mark.slow
def test_test_rows_change_nothing(cli, short, tmp_path):
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
        ("nowhere.csv --target level", ["nowhere.csv"]),
        ("curve.csv --target level --group level", ["level", "target"]),
        ("curve.csv --target level,idle -o run", ["--output keeps the networks of one target"]),
        ("curve.csv --target level --effort lazy", ["'--effort'", "'quick', 'normal', 'thorough'"]),
    ],
    ids=["nothing", "no file", "target as group", "several targets", "no effort"],
)
def test_bad_words_are_refused_in_one_line(refused, words, says):
    refused("check", *words.split(), says=says)


def test_too_few_rows_are_refused(refused, tmp_path):
    lines = (tmp_path / "curve.csv").read_text().splitlines()[:31]
    (tmp_path / "few.csv").write_text("\n".join(lines) + "\n")
    refused("check", "few.csv", "--target", "level", says=["21 training rows", "at least 30"])
