from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

from twinedge import AnnRegressor, TwinRegressor
from twinedge.progress import Progress
from twinedge.scoring.scores import rmse
from twinedge.training import selection
from twinedge.training.batches import Setting
from twinedge.training.selection import PLANS, SETTINGS, Candidate, Plan, choose
from twinedge.training.tasks import PointTask
from twinedge.training.teachers import SHARE, Predictions, Teaching
from twinedge.training.trainer import Checkpoint, Interrupted, Trained

TRAIN, ROWS = 100, 120
CANDIDATES = [
    Candidate(activation, Setting(0.01, decay))
    for activation in ("relu", "silu")
    for decay in (0.1, 0.3)
]
PLAN = Plan(folds=8_000, final=100)
SHORT = Plan(folds=10, final=100)


class Race(NamedTuple):
    stage: str
    jobs: list


@dataclass(frozen=True)
class Scripted(PointTask):
    """A task whose networks have given errors, on held-out rows and on validation rows.

    ``scores`` are errors of all validation rows, or of each: by activation, whether taught, and
    optionally whether the weights are the last ones.
    """

    off: dict = field(default_factory=dict)
    scores: dict = field(default_factory=dict)

    def predict(self, architecture, stack, x, jobs):
        rows = np.rint(x[..., 0]).astype(int)
        errors = [self.off.get((job.activation, job.setting.weight_decay), 1.0) for job in jobs]
        each = [
            np.broadcast_to(one, TRAIN)[of % TRAIN] for one, of in zip(errors, rows, strict=True)
        ]
        return self.y[rows] + np.stack(each)

    def errors(self, architecture, stack, jobs):
        known = jobs[0].activation, bool(stack[0, 1])
        found = self.scores.get((*known, bool(stack[0, 2])), self.scores.get(known, 1.0))
        return np.broadcast_to(found, ROWS - TRAIN)


def scripted(off=None, scores=None, held=True, **more):
    x = np.arange(ROWS if held else TRAIN, dtype=np.float32)[:, None]
    y = np.sin(x[:, 0]).astype(np.float32)
    return Scripted(x, y, TRAIN, 1.0, (4,), off=off or {}, scores=scores or {}, **more)


@pytest.fixture
def races(monkeypatch):
    """Replace the training, and record every race; weights encode seed, stage and completion."""

    class Races(list):
        stop_in = None
        before = False

        @staticmethod
        def score(stage, job):
            return 1.0

    held = Races()

    def train(task, jobs, *, stage, seed, progress, checkpoint, threads):
        held.append(Race(stage, jobs))
        if stage == held.stop_in and held.before:
            raise KeyboardInterrupt
        results = [
            Trained(job, weights, held.score(stage, job), weights - np.array([0, 0, 1]))
            for job in jobs
            for weights in [np.array([job.seed, job.taught, 1])]
        ]
        if stage == held.stop_in:
            raise Interrupted(results)
        return results

    monkeypatch.setattr(selection, "train", train)
    return held


class Teachers:
    """Teachers with a prediction for every row."""

    fitted = 0

    def __init__(self, noise=0.5, named=False):
        self.noise = noise
        self.named = named

    def seconds(self):
        return {"Fitting trees": 1.0}

    def points(self, task):
        return task.x[:3]

    def predict(self, task, points, own, stage):
        self.fitted += 1
        self.own = own
        record = [{"teacher": "trees"}]
        return Teaching(task.y[: task.train], points, task.y[:3], record, self.noise)


def chosen(task=None, networks=1, candidates=CANDIDATES, plan=PLAN, seed=5, teachers=None):
    return choose(
        scripted() if task is None else task,
        candidates,
        plan,
        networks=networks,
        seed=seed,
        progress=Progress(),
        checkpoint=Checkpoint(None),
        teachers=teachers,
    )


def test_candidates_are_compared_on_folds_and_the_best_goes_on(races):
    choice = chosen(scripted({("silu", 0.3): 0.5}))
    assert choice.candidate == Candidate("silu", Setting(0.01, 0.3))
    assert (choice.steps, choice.interrupted, choice.teaching) == (100, False, None)


def test_the_best_goes_on_alone_however_close_the_others_are(races):
    off = {("relu", 0.1): 0.5, ("silu", 0.1): 0.5 + 1e-4}
    chosen(scripted(off, {("silu", False): 0.1}))
    assert {(job.activation, job.setting.weight_decay) for job in races[-1].jobs} == {("relu", 0.1)}


def test_a_short_race_chooses_among_settings_but_not_among_activations(races):
    off = {("relu", 0.1): 0.5, ("relu", 0.3): 0.4, ("silu", 0.1): 0.9}
    choice = chosen(scripted(off, {("silu", False): 0.5}), plan=SHORT)
    finals = {(job.activation, job.setting.weight_decay) for job in races[-1].jobs}
    assert finals == {("relu", 0.3), ("silu", 0.1)}
    assert choice.candidate.activation == "silu"


def test_one_wild_row_does_not_decide_between_candidates(races):
    wild = np.full(TRAIN, 0.8)
    wild[0] = 9.0
    chosen(scripted({("silu", 0.3): wild}))
    assert [job.activation for job in races[-1].jobs] == ["silu"]


def test_a_network_that_diverged_is_the_worst(races):
    chosen(scripted({("relu", 0.1): np.nan, ("relu", 0.3): np.inf, ("silu", 0.1): 0.9}))
    assert [job.activation for job in races[-1].jobs] == ["silu"]


@pytest.mark.parametrize("reason", ["few rows", "few groups", "no folds"])
def test_where_nothing_can_be_held_out_all_candidates_meet_in_the_final_round(races, reason):
    task = scripted()
    if reason == "few rows":
        task = Scripted(task.x[:12], task.y[:12], 9, 1.0, (4,))
    elif reason == "few groups":
        task = scripted(groups=np.arange(TRAIN) % 3)
    else:
        task = scripted(foldable=False)
    chosen(task)
    assert len(races[-1].jobs) == len(CANDIDATES)


# Errors of validation rows: on average 1, but some rows gain what others lose.
UNEVEN = np.where(np.arange(ROWS - TRAIN) % 2, 0.9, 1.1)


@pytest.mark.parametrize("noise", [0.25, 0.33])
@pytest.mark.parametrize(
    ("of_taught", "verdict"),
    [(0.5, "taught"), (1.5, "alone"), (UNEVEN - 0.01, "as expected"), (UNEVEN, "as expected")],
)
def test_teachers_are_followed_if_the_target_is_noisy_unless_validation_rows_object(
    races, noise, of_taught, verdict
):
    teachers = Teachers(noise)
    scores = {("relu", True): of_taught}
    choice = chosen(scripted({("relu", 0.1): 0.5}, scores), networks=2, teachers=teachers)
    assert teachers.fitted == 1
    followed = noise > 0.32 if verdict == "as expected" else verdict == "taught"
    assert choice.teaching == {
        "taught": followed,
        "share": SHARE if followed else 1.0,
        "noise": noise,
        "teachers": [{"teacher": "trees"}],
    }
    assert choice.weights[:, 1].all() == followed
    assert choice.score == pytest.approx(rmse(of_taught) if followed else 1.0)


def test_of_each_activation_the_best_networks_teach(races):
    teachers = Teachers()
    chosen(scripted({("silu", 0.3): 0.5, ("relu", 0.3): 0.7}), teachers=teachers)
    assert [one.name for one in teachers.own] == ["silu networks", "relu networks"]
    for one, off in zip(teachers.own, (0.5, 0.7), strict=True):
        np.testing.assert_allclose(np.abs(one.rows - scripted().y[:TRAIN]), off, rtol=1e-5)


def test_taught_networks_take_the_least_decay(races):
    chosen(scripted({("silu", 0.3): 0.5}), teachers=Teachers())
    assert [(job.taught, job.setting.weight_decay) for job in races[1].jobs] == [
        (False, 0.3),
        (True, 0.1),
    ]
    assert {job.activation for job in races[1].jobs} == {"silu"}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("noise", "steps"), [(0.19, 100), (0.009, 200)])
def test_a_target_without_noise_needs_no_teachers_and_one_without_any_more_steps(
    races, named, noise, steps
):
    choice = chosen(teachers=Teachers(noise, named))
    assert any(job.taught for race in races for job in race.jobs) == named
    assert {job.steps for race in races[1:] for job in race.jobs} == {steps}
    assert choice.steps == steps
    assert choice.teaching["taught"] is False


@pytest.mark.parametrize(("noise", "decay"), [(0.011, 0.3), (0.009, 0.1)])
def test_an_exact_target_takes_the_least_decay_of_the_best_kind(races, noise, decay):
    choice = chosen(scripted({("silu", 0.3): 0.5}), teachers=Teachers(noise))
    assert choice.candidate == Candidate("silu", Setting(0.01, decay))


def test_with_given_steps_an_exact_target_changes_nothing(races):
    plan = Plan(folds=8_000, final=100, teachers=False)
    teachers = Teachers(0.001, named=True)
    choice = chosen(scripted({("silu", 0.3): 0.5}), teachers=teachers, plan=plan)
    assert (choice.steps, choice.candidate.setting.weight_decay) == (100, 0.3)


@pytest.mark.parametrize(("earlier", "back"), [(0.5, True), (UNEVEN - 0.04, False)])
def test_networks_are_kept_as_they_ended_unless_earlier_weights_are_clearly_better(
    races, earlier, back
):
    scores = {("relu", False, False): earlier}
    choice = chosen(scripted(scores=scores), candidates=CANDIDATES[:1])
    assert choice.weights[0, 2] == (not back)
    assert choice.score == pytest.approx(rmse(earlier) if back else 1.0)


def test_networks_are_compared_as_they_ended(races):
    # The best of many looks at the validation rows is low there, whatever it is worth.
    scores = {("relu", False, False): 0.3, ("relu", False, True): 0.9, ("relu", True): 0.6}
    choice = chosen(scripted(scores=scores), teachers=Teachers(), candidates=CANDIDATES[:1])
    assert (choice.teaching["taught"], choice.score) == (True, pytest.approx(0.6))


def test_without_validation_rows_teachers_are_not_followed(races):
    task = scripted(scores={("relu", True): 0.1}, held=False)
    choice = chosen(task, teachers=Teachers(), candidates=CANDIDATES[:1])
    assert choice.teaching["taught"] is False


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("stage", ["folds", "final round"])
def test_a_stopped_training_gives_the_best_it_had(races, stage, before):
    races.stop_in, races.before = stage, before
    races.score = lambda stage, job: job.setting.weight_decay + (job.activation == "relu")
    if (stage, before) == ("folds", True):  # then there is nothing to give
        with pytest.raises(KeyboardInterrupt):
            chosen(teachers=Teachers())
        return
    task = scripted({("silu", 0.1): 0.5}, {("silu", True): 0.5})
    choice = chosen(task, teachers=Teachers())
    assert choice.interrupted
    assert races[-1].stage == stage
    assert choice.candidate == Candidate("silu", Setting(0.01, 0.1))
    # Networks of the round that was stopped count, those of one that never started do not.
    assert bool(choice.weights[0, 1]) == (stage == "final round" and not before)


@pytest.mark.parametrize("kind", [TwinRegressor, AnnRegressor])
def test_what_the_user_fixes_leaves_the_rest_to_choose(kind):
    def left(**fixed):
        return kind(**fixed)._candidates(scripted())

    every = [Candidate(name, one) for name, settings in SETTINGS.items() for one in settings]
    assert left() == every
    assert {one.activation for one in left(activation="silu")} == {"silu"}
    fixed = left(learning_rate=0.5)
    assert {one.setting.learning_rate for one in fixed} == {0.5}
    assert [one.setting.weight_decay for one in fixed] == [
        one.setting.weight_decay for one in every
    ]
    assert len(left(weight_decay=0.5)) == 2  # no candidate twice
    both = left(activation="relu", learning_rate=0.5, weight_decay=0)
    assert both == [Candidate("relu", Setting(0.5, 0.0))]


@pytest.mark.parametrize("rows", [100, 5000])
@pytest.mark.parametrize("effort", sorted(PLANS))
def test_the_steps_given_are_those_of_the_last_round_and_scale_the_folds(effort, rows):
    plan = TwinRegressor(effort=effort)._plan(rows)
    half = TwinRegressor(effort=effort, steps=plan.final // 2)._plan(rows)
    assert half == Plan(round(plan.folds / 2), plan.final // 2, False, plan.batch)
    assert TwinRegressor(effort=effort, steps=1)._plan(rows).folds >= 1


@pytest.mark.parametrize("effort", sorted(PLANS))
def test_thousands_of_rows_are_learnt_longer_and_in_larger_batches(effort):
    few, many = (TwinRegressor(effort=effort)._plan(rows) for rows in (2999, 3000))
    assert few == PLANS[effort]
    assert many.batch > few.batch
    assert many.final > few.final


def test_a_search_on_real_data_ends_with_the_finalist_of_least_error(curve):
    X, y = curve
    model = TwinRegressor(hidden=(8,), effort="quick", steps=400, random_state=0)
    model.fit(X[:80], y[:80], validation=(X[80:100], y[80:100]))
    last = [one for one in model.trials_ if one["stage"] == "final round"]
    assert len(last) == 2 < len(model.trials_)
    best = min(last, key=lambda one: one["rmse_val"])
    assert best["activation"] == model.activation_
    assert best["learning_rate"] == model.learning_rate_
    assert best["weight_decay"] == model.weight_decay_
    assert (model.steps_, model.interrupted_, model.teaching_) == (400, False, None)


def ranked(candidates, errors):
    """Rank candidates that are off by these errors, one for all rows or one for each."""
    x = np.zeros((100, 1), np.float32)
    task = PointTask(x, x[:, 0], len(x), 1.0, (4,))
    off = [Predictions("", np.broadcast_to(error, len(x)), x[:0, 0]) for error in errors]
    return selection.best_candidates(task, candidates, off)


PLAIN, SMOOTH = Candidate("relu", Setting(0.01, 0.03)), Candidate("silu", Setting(0.01, 0.1))
MAPPED = Candidate("relu", Setting(0.01, 0.03), 16)


def test_a_map_must_be_clearly_better_on_folds():
    assert ranked([PLAIN, MAPPED], [1.08, 1.001]) == [0, 1]
    assert ranked([PLAIN, MAPPED], [1.08, 0.999]) == [1, 0]


def test_a_map_that_puts_a_few_rows_far_off_comes_last():
    wild = np.full(100, 0.6)
    wild[:2] = 8.0
    assert ranked([PLAIN, SMOOTH, MAPPED], [1.0, 1.1, 0.6]) == [2, 0, 1]
    assert ranked([PLAIN, SMOOTH, MAPPED], [1.0, 1.1, wild]) == [0, 1, 2]


def test_where_silu_is_best_a_map_must_be_far_better():
    assert ranked([PLAIN, SMOOTH, MAPPED], [1.3, 1.2, 1.001]) == [1, 0, 2]
    assert ranked([PLAIN, SMOOTH, MAPPED], [1.3, 1.2, 0.999]) == [2, 1, 0]


def test_with_a_map_alone_the_best_of_them_wins():
    other = Candidate("relu", Setting(0.01, 0.3), 16)
    assert ranked([MAPPED, other], [1.0, 0.9]) == [1]


@pytest.mark.parametrize(("rows", "both"), [(2999, False), (3000, True)])
def test_long_tables_teach_networks_with_a_map_and_without(rows, both):
    x = np.zeros((rows, 1), np.float32)
    task = PointTask(x, x[:, 0], rows, 1.0, (4,))
    plain, smooth, mapped = (
        Candidate("relu", Setting(0.01, 0.03)),
        Candidate("silu", Setting(0.01, 0.1)),
        Candidate("relu", Setting(0.01, 0.03), 16),
    )
    assert selection._other_kind(task, [plain, smooth, mapped]) == (mapped if both else None)
    assert selection._other_kind(task, [mapped, smooth, plain]) == (smooth if both else None)
    assert selection._other_kind(task, [plain, smooth]) is None
