import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.training.batches import Setting
from twinedge.training.tasks import FOLDS, PairTask, PointTask
from twinedge.training.trainer import NetworkJob


def job(seed=0, fold=None):
    return NetworkJob("relu", Setting(0.01, 0.01), 100, seed, fold)


def task(rows, train, kind=PairTask, **more):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2)).astype(np.float32)
    return kind(x, x[:, 0] + x[:, 1], train, 3.0, (4,), **more)


tables = st.integers(2, 80).flatmap(
    lambda train: st.tuples(st.just(train), st.integers(train, train + 20))
)


@given(tables, st.integers(0, FOLDS - 1), st.integers(0, 1000))
def test_no_row_a_network_is_scored_on_is_among_its_training_rows(table, fold, seed):
    train, rows = table
    mine = task(rows, train)
    if rows == train and train < 2 * FOLDS:
        return  # nothing to hold out: training rows serve for both
    learnt, held = mine.rows(job(seed, fold)), mine.validation(job(seed, fold))
    assert len(held)
    assert not set(learnt) & set(held)
    assert set(learnt) | set(held) == set(range(rows))


@given(st.integers(2 * FOLDS, 200))
def test_folds_are_disjoint_and_a_fifth_of_the_training_rows_each(train):
    mine = task(train, train)
    folds = [mine.validation(job(fold=fold)) for fold in range(FOLDS)]
    together = np.concatenate(folds)
    assert sorted(together) == list(range(train))
    assert {len(fold) for fold in folds} <= {train // FOLDS, train // FOLDS + 1}


@given(tables, st.integers(0, 1000))
def test_the_last_round_trains_on_every_training_row(table, seed):
    train, rows = table
    mine = task(rows, train)
    assert sorted(mine.rows(job(seed))) == list(range(train))
    expected = range(train, rows) if rows > train else range(train)
    assert list(mine.validation(job(seed))) == list(expected)


def test_the_score_of_a_point_task_is_the_error_in_units_of_the_target(perceptron):
    mine = task(50, 40, PointTask)
    architecture = mine.architecture(job())
    assert architecture.inputs == 2
    stack = architecture.initial([0, 1])
    score = mine.score(architecture, stack, [job(0), job(1)])
    for network, found in zip(stack, score, strict=True):
        error = perceptron(architecture, network, mine.x[40:]) - mine.y[40:]
        assert found == pytest.approx(3.0 * np.sqrt(np.mean(error**2)), rel=1e-4)


@pytest.mark.parametrize("neighbors", [None, 4])
@pytest.mark.parametrize("fold", [None, 1])
def test_the_score_of_a_pair_task_is_the_error_of_the_mean_over_its_anchors(
    perceptron, neighbors, fold
):
    mine = task(50, 40, neighbors=neighbors)
    architecture = mine.architecture(job())
    assert architecture.inputs == 4
    stack = architecture.initial([3])
    (found,) = mine.score(architecture, stack, [job(5, fold)])

    def f(p, q):
        return perceptron(architecture, stack[0], np.concatenate([p, q]))

    errors = []
    for i in mine.validation(job(5, fold)):
        anchors = mine.rows(job(5, fold))
        if neighbors:
            distance = np.linalg.norm(mine.x[anchors] - mine.x[i], axis=1)
            anchors = anchors[np.argsort(distance)[:neighbors]]
        estimates = [
            (f(mine.x[i], mine.x[a]) - f(mine.x[a], mine.x[i])) / 2 + mine.y[a] for a in anchors
        ]
        errors.append(np.mean(estimates) - mine.y[i])
    assert found == pytest.approx(3.0 * np.sqrt(np.mean(np.square(errors))), rel=1e-3)


def test_the_fingerprint_tells_tables_apart():
    mine = task(50, 40)
    others = [
        PairTask(mine.x + 1, mine.y, 40, 3.0, (4,)),
        PairTask(mine.x, mine.y * 2, 40, 3.0, (4,)),
        PairTask(mine.x, mine.y, 41, 3.0, (4,)),
        PairTask(mine.x, mine.y, 40, 6.0, (4,)),  # the target in other units
    ]
    prints = {one.fingerprint() for one in [mine, task(50, 40), *others]}
    assert len(prints) == 1 + len(others)
