from typing import NamedTuple

import numpy as np
import pytest

from twinedge import AnnRegressor, TwinRegressor
from twinedge.learn import selection
from twinedge.learn.checkpoint import Checkpoint
from twinedge.learn.progress import Silent
from twinedge.learn.selection import PLANS, SETTINGS, Candidate, Plan, choose
from twinedge.learn.trainer import Setting
from twinedge.learn.training import Interrupted, Trained


class Race(NamedTuple):
    stage: str
    jobs: list


@pytest.fixture
def races(monkeypatch):
    """Replace the training by scores that a test sets, and note every race."""

    class Races(list):
        stop_in = None

        @staticmethod
        def score(stage, job):
            return 1.0

        def last_score(self, stage, job):
            return self.score(stage, job)

    held = Races()

    def train(task, jobs, *, stage, seed, progress, checkpoint):
        held.append(Race(stage, jobs))
        results = [
            Trained(job, np.full(3, job.seed), held.score(stage, job), held.last_score(stage, job))
            for job in jobs
        ]
        if stage == held.stop_in:
            raise Interrupted(results)
        return results

    monkeypatch.setattr(selection, "train", train)
    return held


CANDIDATES = [
    Candidate(activation, Setting(0.01, decay))
    for activation in ("relu", "silu")
    for decay in (0.1, 0.2, 0.3, 0.4)
]
PLAN = Plan(rounds=((10, 3), (20, 1)), lengths=(100,))


def chosen(networks=1, candidates=CANDIDATES, plan=PLAN, seed=5):
    return choose(
        None,
        candidates,
        plan,
        networks=networks,
        seed=seed,
        progress=Silent(),
        checkpoint=Checkpoint(None),
    )


def test_each_round_is_longer_and_keeps_the_best_settings_of_each_activation(races):
    best = {("relu", 0.2): 0.1, ("relu", 0.3): 0.2, ("relu", 0.1): 0.3, ("silu", 0.4): 0.5}
    races.score = lambda stage, job: best.get((job.activation, job.setting.weight_decay), 1.0)
    choice = chosen()
    assert [race.stage for race in races] == ["round 1", "round 2", "final round"]
    assert [{job.steps for job in race.jobs} for race in races] == [{10}, {20}, {100}]
    assert [len(race.jobs) for race in races] == [8, 6, 2]
    finalists = {(job.activation, job.setting.weight_decay) for job in races[-1].jobs}
    assert finalists == {("relu", 0.2), ("silu", 0.4)}
    assert choice.candidate == Candidate("relu", Setting(0.01, 0.2))
    assert (choice.steps, choice.interrupted) == (100, False)


def test_early_rounds_hold_out_a_different_fold_each_and_the_last_none(races):
    chosen()
    assert [{job.fold for job in race.jobs} for race in races] == [{0}, {1}, {None}]


def test_the_winner_is_the_best_of_the_final_round_not_of_an_early_one(races):
    def score(stage, job):
        early = 0.1 if job.activation == "relu" else 0.9
        return early if stage != "final round" else 1 - early

    races.score = score
    assert chosen().candidate.activation == "silu"


def test_early_rounds_rank_by_the_end_of_a_training_not_by_the_best_on_its_way(races):
    races.score = lambda stage, job: job.setting.weight_decay
    races.last_score = lambda stage, job: 1 - job.setting.weight_decay
    chosen(plan=Plan(rounds=((10, 1),), lengths=(100,)))
    assert {job.setting.weight_decay for job in races[-1].jobs} == {0.4}


def test_the_final_round_tries_every_length_and_the_best_one_wins(races):
    races.score = lambda stage, job: job.steps
    choice = chosen(networks=2, plan=Plan(rounds=(), lengths=(100, 30, 60)))
    assert {job.steps for job in races[-1].jobs} == {100, 30, 60}
    assert choice.steps == 30
    np.testing.assert_array_equal(choice.weights[:, 0], [5, 6])


def test_several_networks_of_a_candidate_are_judged_together_and_differ_in_seed(races):
    def score(stage, job):
        if stage != "final round":
            return job.setting.weight_decay
        # One silu network is the best of all, but its sisters are poor.
        return {("silu", 5): 0.0}.get((job.activation, job.seed), 0.5 + (job.activation == "silu"))

    races.score = score
    choice = chosen(networks=3)
    assert choice.candidate == Candidate("relu", Setting(0.01, 0.1))
    np.testing.assert_array_equal(choice.weights[:, 0], [5, 6, 7])
    assert len(races[-1].jobs) == 6


def test_every_network_trained_is_among_the_trials(races):
    races.score = lambda stage, job: job.setting.weight_decay
    trials = chosen().trials
    assert len(trials) == sum(len(race.jobs) for race in races)
    assert trials[0] == {
        "stage": "round 1",
        "activation": "relu",
        "learning_rate": 0.01,
        "weight_decay": 0.1,
        "steps": 10,
        "rmse_val": 0.1,
    }


def test_one_candidate_goes_straight_to_the_final_round(races):
    choice = chosen(candidates=CANDIDATES[:1])
    assert [race.stage for race in races] == ["final round"]
    assert choice.candidate == CANDIDATES[0]


def test_no_early_round_is_run_where_every_activation_has_so_few_settings_already(races):
    chosen(candidates=[CANDIDATES[0], CANDIDATES[4]], plan=Plan(rounds=((10, 1),), lengths=(100,)))
    assert [race.stage for race in races] == ["final round"]
    assert len(races[0].jobs) == 2


@pytest.mark.parametrize("stage", ["round 1", "round 2", "final round"])
def test_a_stopped_race_gives_the_best_it_had(races, stage):
    races.stop_in = stage
    races.score = lambda stage, job: job.setting.weight_decay + (job.activation == "relu")
    choice = chosen()
    assert choice.interrupted
    assert races[-1].stage == stage
    assert choice.candidate == Candidate("silu", Setting(0.01, 0.1))
    assert len(choice.trials) == sum(len(race.jobs) for race in races)


@pytest.mark.parametrize("kind", [TwinRegressor, AnnRegressor])
def test_what_the_user_fixes_leaves_the_rest_to_choose(kind):
    def left(**fixed):
        return kind(**fixed)._candidates(SETTINGS)

    assert len(left()) == 2 * len(SETTINGS)
    assert {one.activation for one in left(activation="silu")} == {"silu"}
    fixed = left(learning_rate=0.5)
    assert {one.setting.learning_rate for one in fixed} == {0.5}
    decays = {setting.weight_decay for setting in SETTINGS}
    assert {one.setting.weight_decay for one in fixed} == decays
    assert len(fixed) == 2 * len(decays)  # no candidate twice
    both = left(activation="relu", learning_rate=0.5, weight_decay=0)
    assert both == [Candidate("relu", Setting(0.5, 0.0))]


@pytest.mark.parametrize("rows", [100, 1000])
@pytest.mark.parametrize("effort", sorted(PLANS))
def test_the_steps_asked_for_are_the_last_round_and_scale_the_early_ones(effort, rows):
    plan = PLANS[effort]
    half = TwinRegressor(effort=effort, steps=max(plan.lengths) // 2)._plan(rows)
    assert half.lengths == (max(plan.lengths) // 2,)
    assert half.rounds == tuple((length // 2, keep) for length, keep in plan.rounds)
    assert (half.batch, half.settings) == (64, SETTINGS)
    one = TwinRegressor(effort=effort, steps=1)._plan(rows)
    assert all(length >= 1 for length, _ in one.rounds)


@pytest.mark.parametrize("effort", sorted(PLANS))
def test_few_rows_are_learnt_in_steady_steps_unless_the_search_is_quick(effort):
    few, many = (TwinRegressor(effort=effort)._plan(rows) for rows in (399, 400))
    assert many == PLANS[effort]
    if effort == "quick":
        assert few == many
        return
    assert few.batch > many.batch
    low = min(setting.learning_rate for setting in SETTINGS)
    assert {setting.learning_rate for setting in few.settings} == {low}
    assert not few.rounds  # steady steps would lose a short race
    assert few.lengths == (few.pupil,) == (max(many.lengths),)


@pytest.mark.parametrize("kind", [TwinRegressor, AnnRegressor])
def test_the_batch_goes_by_the_training_rows_alone(kind):
    tables = {rows: (np.zeros((rows, 1)), np.arange(rows, dtype=float)) for rows in (20, 390, 410)}
    model = kind()
    assert model._scale(tables[390], tables[20])["batch"] == 128
    assert model._scale(tables[410], tables[20])["batch"] == 64


def test_few_rows_all_settings_meet_in_the_last_round(curve, monkeypatch):
    few = Plan((), (200,), 0, SETTINGS[1:3])
    monkeypatch.setitem(PLANS, "normal", Plan(((50, 1),), (100,), few_rows=few))
    model = TwinRegressor(hidden=(8,), random_state=0).fit(*curve)
    tried = {(one["stage"], one["activation"], one["weight_decay"]) for one in model.trials_}
    assert tried == {
        ("final round", activation, setting.weight_decay)
        for activation in ("relu", "silu")
        for setting in SETTINGS[1:3]
    }


def test_a_race_on_real_data_chooses_the_finalist_with_the_least_error(curve):
    X, y = curve
    model = TwinRegressor(hidden=(8,), effort="quick", steps=1000, random_state=0)
    model.fit(X[:80], y[:80], (X[80:100], y[80:100]))
    stages = [trial["stage"] for trial in model.trials_]
    assert stages == ["round 1"] * 2 * len(SETTINGS) + ["final round"] * 2
    best = min(model.trials_[-2:], key=lambda trial: trial["rmse_val"])
    assert best["activation"] == model.activation_
    assert best["learning_rate"] == model.learning_rate_
    assert best["weight_decay"] == model.weight_decay_
    assert (model.steps_, model.interrupted_) == (1000, False)


def test_a_model_with_everything_fixed_trains_once(curve, tiny):
    X, y = curve
    model = TwinRegressor(**tiny).fit(X, y)
    assert [trial["stage"] for trial in model.trials_] == ["final round"]
