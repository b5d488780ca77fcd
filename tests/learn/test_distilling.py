import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor
from twinedge.learn import distilling, selection
from twinedge.learn.checkpoint import Checkpoint
from twinedge.learn.distilling import Distillation, distil, voices
from twinedge.learn.progress import Silent
from twinedge.learn.selection import Candidate, Choice, Plan
from twinedge.learn.tasks import PairTask, PointTask
from twinedge.learn.trainer import Setting
from twinedge.learn.training import Interrupted, Job, Trained

TRAIN, ROWS = 40, 50
FAR = 100.0  # where the validation rows are


def task(kind=PairTask, **more):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 2)).astype(np.float32)
    x[TRAIN:] += FAR
    return kind(x, x[:, 0] + x[:, 1], TRAIN, 3.0, (4,), **more)


def teacher(score, activation="relu", decay=0.03, steps=100, seed=0, weights=None):
    job = Job(activation, Setting(0.01, decay), steps, seed)
    return Trained(job, np.zeros(3) if weights is None else weights, score, score)


def taught(kind=PairTask, scores=(1.0, 1.2)):
    mine = task(kind)
    architecture = mine.architecture("relu")
    networks = architecture.initial(list(range(len(scores))))
    teachers = [teacher(s, weights=w) for s, w in zip(scores, networks, strict=True)]
    return mine, teachers, Distillation.of(mine, teachers, 7)


errors = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8)


@given(errors)
def test_voices_add_up_to_one_and_a_better_teacher_is_never_quieter(scores):
    found = voices([teacher(score) for score in scores])
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    order = np.argsort(scores)
    assert (np.diff(found[order]) <= 1e-12).all()


@given(errors, st.floats(1e-3, 1e3))
def test_voices_do_not_depend_on_the_units_of_the_target(scores, unit):
    mine = voices([teacher(score) for score in scores])
    np.testing.assert_allclose(voices([teacher(unit * s) for s in scores]), mine, rtol=1e-6)


def test_a_poor_teacher_and_one_that_diverged_are_not_heard():
    assert list(voices([teacher(1.0), teacher(3.0), teacher(np.inf)])) == [1, 0, 0]


def test_a_teacher_without_any_error_speaks_alone():
    assert list(voices([teacher(0.5), teacher(0.0)])) == [0, 1]


def test_made_up_points_lie_between_training_rows_and_know_nothing_of_validation_rows():
    mine, _, made = taught()
    least, most = mine.x[:TRAIN].min(axis=0), mine.x[:TRAIN].max(axis=0)
    assert (made.x >= least - 1e-6).all()
    assert (made.x <= most + 1e-6).all()


@pytest.mark.parametrize("kind", [PairTask, PointTask])
def test_their_targets_are_the_mean_of_what_the_teachers_say(kind, perceptron):
    mine, teachers, made = taught(kind)
    weights, expected = voices(teachers), 0.0
    x = made.x[5].astype(np.float64)
    for weight, one in zip(weights, teachers, strict=True):
        net = mine.architecture("relu")
        if kind is PointTask:
            said = perceptron(net, one.weights, x)
        else:
            ways = [
                (np.concatenate([x, a]), np.concatenate([a, x])) for a in mine.x[mine.rows(one.job)]
            ]
            values = [[perceptron(net, one.weights, pair) for pair in both] for both in ways]
            differences = [(there - back) / 2 for there, back in values]
            said = np.mean(differences + mine.y[mine.rows(one.job)])
        expected += weight * said
    assert made.y[5] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_other_seeds_make_up_other_points():
    mine, teachers, made = taught()
    again, other = Distillation.of(mine, teachers, 7), Distillation.of(mine, teachers, 8)
    np.testing.assert_array_equal(again.x, made.x)
    np.testing.assert_array_equal(again.y, made.y)
    assert not np.array_equal(other.x, made.x)


@pytest.mark.parametrize("kind", [PairTask, PointTask])
def test_a_pupil_sees_measured_and_made_up_points_but_no_validation_row(kind):
    mine, teachers, made = taught(kind)
    x, y, rows = made.examples([teachers[0].job, teachers[1].job]).tensors
    np.testing.assert_array_equal(x[:ROWS], mine.x)
    np.testing.assert_array_equal(x[ROWS:], made.x)
    np.testing.assert_array_equal(y, np.concatenate([mine.y, made.y]))
    assert rows.shape[0] == 2
    for own in rows:
        seen, times = np.unique(own, return_counts=True)
        assert set(seen) == set(range(TRAIN)) | set(range(ROWS, ROWS + len(made.y)))
        assert set(times[TRAIN:]) == {1}
        assert len(set(times[:TRAIN])) == 1
        assert times[:TRAIN].sum() / len(own) == pytest.approx(0.6, abs=0.01)


def test_where_there_are_many_rows_each_is_seen_once(monkeypatch):
    monkeypatch.setattr(distilling, "_MADE_UP", 10)
    _, teachers, made = taught()
    *_, rows = made.examples([teachers[0].job]).tensors
    assert rows.shape == (1, TRAIN + 10)


def test_a_pupil_is_scored_as_its_teachers_are():
    mine, teachers, made = taught()
    architecture = made.architecture("relu")
    stack, jobs = architecture.initial([3]), [teachers[0].job]
    assert made.batch == mine.batch
    assert architecture == mine.architecture("relu")
    assert made.score(architecture, stack, jobs) == mine.score(architecture, stack, jobs)


@pytest.fixture
def pupils(monkeypatch):
    """Replace the training of the pupils by scores that a test sets, and note their jobs."""

    class Pupils(list):
        scores = (0.5, 0.6)
        stopped = False

    held = Pupils()

    def train(task, jobs, *, stage, seed, progress, checkpoint):
        assert isinstance(task, Distillation)
        held.extend(jobs)
        weights = [np.full(3, k) for k in range(len(jobs))]
        results = list(map(Trained, jobs, weights, held.scores, held.scores))
        if held.stopped:
            raise Interrupted(results)
        return results

    monkeypatch.setattr(distilling, "train", train)
    monkeypatch.setattr(Distillation, "of", lambda *_: Distillation(None, None, None))
    return held


FINALISTS = [
    teacher(1.0, "relu", 0.03, steps=100, seed=5),
    teacher(1.6, "relu", 0.03, steps=30, seed=5),
    teacher(1.1, "silu", 0.3, steps=100, seed=5),
    teacher(1.05, "silu", 0.3, steps=30, seed=5),
]


def distilled(finalists=FINALISTS):
    winner = min(finalists, key=lambda one: one.score)
    before = Choice(
        Candidate(winner.job.activation, winner.job.setting),
        np.full((1, 3), 9.0),
        winner.job.steps,
        [{"stage": "final round"}],
        finalists,
        winner.score,
    )
    return before, distil(None, before, 70, seed=5, progress=Silent(), checkpoint=Checkpoint(None))


def test_pupils_have_the_activation_heard_most_and_the_setting_of_its_best_network(pupils):
    _, choice = distilled()
    assert {job.activation for job in pupils} == {"silu"}  # relu has the best, silu two good ones
    assert [job.setting.weight_decay for job in pupils] == pytest.approx([0.3, 0.1])
    assert {(job.setting.learning_rate, job.steps, job.seed, job.fold) for job in pupils} == {
        (0.01, 70, 6, None)
    }
    assert choice.candidate == Candidate("silu", Setting(0.01, 0.3))
    assert choice.steps == 30


def test_the_better_pupil_is_the_outcome_and_both_are_among_the_trials(pupils):
    pupils.scores = (0.6, 0.5)
    before, choice = distilled()
    np.testing.assert_array_equal(choice.weights, [[1, 1, 1]])
    assert choice.trials[:1] == before.trials
    assert [(trial["stage"], trial["rmse_val"]) for trial in choice.trials[1:]] == [
        ("distillation", 0.6),
        ("distillation", 0.5),
    ]
    assert not choice.interrupted


@pytest.mark.parametrize(("score", "kept"), [(0.99, True), (1.01, False), (np.inf, False)])
def test_a_pupil_far_behind_its_teachers_is_not_kept(pupils, score, kept):
    errors = np.array([one.score for one in FINALISTS])
    typical = np.average(errors, weights=errors**-6)  # all four of them are heard
    pupils.scores = (score * 1.1 * typical, np.inf)
    before, choice = distilled()
    assert np.array_equal(choice.weights, [[0, 0, 0]]) == kept
    if not kept:
        np.testing.assert_array_equal(choice.weights, before.weights)
        assert (choice.candidate, choice.steps) == (before.candidate, before.steps)
    assert len(choice.trials) == 3


def test_pupils_stopped_on_their_way_are_judged_as_they_are(pupils):
    pupils.stopped = True
    _, choice = distilled()
    assert choice.interrupted
    np.testing.assert_array_equal(choice.weights, [[0, 0, 0]])
    pupils.scores = (2.0, 2.0)
    before, choice = distilled()
    assert choice.interrupted
    np.testing.assert_array_equal(choice.weights, before.weights)


def test_a_stop_while_the_teachers_speak_keeps_the_best_of_them(pupils, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Distillation, "of", pressed)
    before, choice = distilled()
    assert choice.interrupted
    assert choice.weights is before.weights
    assert not pupils


def test_networks_that_all_diverged_teach_nobody(pupils):
    before, choice = distilled([teacher(np.inf), teacher(np.inf)])
    assert choice is before
    assert not pupils


@pytest.fixture
def brief(monkeypatch):
    """A search with a pupil that takes seconds."""
    plan = Plan(rounds=((50, 1),), lengths=(400, 100), pupil=2000)
    monkeypatch.setitem(selection.PLANS, "normal", plan)


def stages(model, curve, **options):
    X, y = curve
    model.fit(X[:80], y[:80], (X[80:100], y[80:100]), **options)
    return [trial["stage"] for trial in model.trials_]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("kind", [TwinRegressor, AnnRegressor])
def test_a_pupil_is_what_a_search_ends_with(kind, curve):
    X, y = curve
    model = kind(hidden=(8,), random_state=0)
    assert stages(model, curve)[-3:] == ["final round", "distillation", "distillation"]
    trials = {
        stage: [trial for trial in model.trials_ if trial["stage"] == stage]
        for stage in ("final round", "distillation")
    }
    best = min(trial["rmse_val"] for trial in trials["distillation"])
    assert best <= 1.1 * max(trial["rmse_val"] for trial in trials["final round"])
    assert model.rmse(X[80:100], y[80:100]) == pytest.approx(best, rel=0.05)  # of 64 anchors
    assert model.steps_ in (400, 100)
    chosen = [t for t in trials["final round"] if t["activation"] == model.activation_]
    assert {(t["learning_rate"], t["weight_decay"]) for t in chosen} == {
        (model.learning_rate_, model.weight_decay_)
    }


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    "parameters",
    [
        {"twins": 2},
        {"pairs": "neighbors", "neighbors": 5},
        {"pairs": 3},
        {"steps": 100},
        {"distil": False},
    ],
)
def test_no_pupil_of_several_networks_or_listed_pairs_or_where_none_is_wanted(parameters, curve):
    model = TwinRegressor(hidden=(8,), activation="relu", learning_rate=0.01, **parameters)
    assert "distillation" not in stages(model, curve)


@pytest.mark.usefixtures("brief")
def test_no_pupil_beside_unlabelled_points(curve):
    model = TwinRegressor(hidden=(8,), activation="relu", learning_rate=0.01, loop_weight=1.0)
    assert "distillation" not in stages(model, curve, unlabelled=curve[0][100:])


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("kind", [TwinRegressor, AnnRegressor])
def test_no_pupil_in_an_ensemble(kind, curve):
    base = kind(hidden=(8,), activation="relu", learning_rate=0.01)
    model = EnsembleRegressor(base, 2, random_state=0).fit(*curve)
    assert base.distil  # left as it was given
    for member in model.members_:
        assert "distillation" not in [trial["stage"] for trial in member.trials_]


def test_a_quick_search_has_no_pupil_and_longer_ones_have():
    assert {name: bool(plan.pupil) for name, plan in selection.PLANS.items()} == {
        "quick": False,
        "normal": True,
        "thorough": True,
    }
