import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.estimators.loops import LoopedPairs, SemiSupervisedTask
from twinedge.training.batches import Examples, Setting
from twinedge.training.pairs import ExtraPairs
from twinedge.training.tasks import PairTask
from twinedge.training.trainer import NetworkJob

ROWS, UNLABELLED, BATCH = 10, 4, 12
JOBS = [NetworkJob("relu", Setting(0.01, 0.01), 100, seed) for seed in (0, 1)]


@pytest.fixture
def task():
    """Rows whose single feature is their number, the last two for validation."""
    x = np.arange(ROWS, dtype=np.float32)[:, None]
    y = np.random.default_rng(0).normal(size=ROWS).astype(np.float32)
    return PairTask(x, y, ROWS - 2, 3.0, (4,))


def with_loops(task, weight=0.5):
    unlabelled = np.arange(100, 100 + UNLABELLED, dtype=np.float32)[:, None]
    return SemiSupervisedTask.of(task, unlabelled, weight, None)


def with_extra(task, count=16):
    rng = np.random.default_rng(1)
    points = np.arange(200, 220, dtype=np.float32)[:, None]
    differences = rng.normal(size=count).astype(np.float32)
    return SemiSupervisedTask.of(
        task, None, 0.0, ExtraPairs(points, rng.integers(20, size=(count, 2)), differences)
    )


def drawn(examples, count=40, seed=(5, 0)):
    """Inputs ``(count, c, n, 2)`` and targets ``(count, c, batch)`` of ``count`` batches."""
    draws = examples.kind.draw(count, BATCH, list(seed), *examples.tensors)
    batches = [examples.kind.batch(k, draws, *examples.tensors) for k in range(count)]
    return tuple(np.stack([np.asarray(one) for one in part]) for part in zip(*batches, strict=True))


def test_loops_come_besides_the_pairs_that_are_drawn_without_them(task):
    inputs, targets = drawn(with_loops(task).examples(JOBS))
    plain, differences = drawn(task.examples(JOBS))
    assert inputs.shape == (40, 2, BATCH + 3 * (BATCH // 3), 2)
    np.testing.assert_array_equal(inputs[:, :, :BATCH], plain)
    np.testing.assert_array_equal(targets, differences)


def test_a_loop_is_closed_and_goes_through_an_unlabelled_point_and_any_others(task):
    examples = with_loops(task).examples(JOBS)
    inputs, _ = drawn(examples, count=100)
    sides = inputs[:, :, BATCH:].reshape(100, 2, BATCH // 3, 3, 2)
    np.testing.assert_array_equal(sides[..., 1], np.roll(sides[..., 0], -1, axis=3))
    unlabelled, training = set(range(100, 104)), set(range(ROWS - 2))
    for network in range(2):
        first, *others = np.moveaxis(sides[:, network, ..., 0], 2, 0)
        assert set(first.ravel()) == unlabelled
        for corner in others:
            assert set(corner.ravel()) == unlabelled | training
    assert not np.array_equal(sides[:, 0], sides[:, 1])


def test_a_network_with_rows_held_out_closes_no_loop_through_them():
    x = np.arange(40, dtype=np.float32)[:, None]
    task = with_loops(PairTask(x, x[:, 0], 30, 3.0, (4,)))
    job = NetworkJob("relu", Setting(0.01, 0.01), 100, 0, fold=1)
    inputs, _ = drawn(task.examples([job]), count=100)
    seen = set(inputs.ravel().astype(int)) - set(range(100, 104))
    assert seen == set(task.rows(job))
    assert not seen & set(task.validation(job))


def test_the_loss_is_that_of_the_pairs_and_the_weighted_square_of_the_mean_side():
    rng = np.random.default_rng(0)
    outputs, targets = rng.normal(size=(2, BATCH + 12)), rng.normal(size=(2, BATCH))
    pairs = Examples.pairs(np.zeros((3, 1)), np.zeros(3), np.zeros((1, 3), np.int32)).kind
    loss = LoopedPairs(1, pairs, 0.25).loss(outputs.astype("f4"), targets.astype("f4")).numpy()
    for network, found in enumerate(loss):
        error = np.mean((outputs[network, :BATCH] - targets[network]) ** 2)
        loops = outputs[network, BATCH:].reshape(4, 3).sum(axis=1)
        assert found == pytest.approx(error + 0.25 * np.mean(loops**2) / 9, rel=1e-5)


def test_listed_pairs_come_in_the_stead_of_some_with_their_own_difference(task):
    mixed = with_extra(task)
    inputs, targets = drawn(mixed.examples(JOBS), count=100)
    plain, differences = drawn(task.examples(JOBS), count=100)
    listed = inputs[..., 0] >= 200
    np.testing.assert_array_equal(inputs[~listed], plain[~listed])
    np.testing.assert_array_equal(targets[~listed], differences[~listed])
    extra = mixed.extra
    known = {
        (*(200 + pair), difference)
        for pair, difference in zip(extra.rows, extra.differences, strict=True)
    }
    found = {(*pair, d) for pair, d in zip(inputs[listed], targets[listed], strict=True)}
    assert found == known
    # 16 of the list beside 64 ordered pairs of the training rows.
    assert listed.mean() == pytest.approx(16 / 80, abs=0.05)


def test_partners_drawn_once_are_counted_as_so_many_pairs(task):
    partners = np.zeros((ROWS - 2, 2), np.int32)
    few = PairTask(task.x, task.y, ROWS - 2, 3.0, (4,), foldable=False, partners=partners)
    assert with_extra(few).examples(JOBS).kind.share == 16 / (16 + 16)


def test_the_fingerprint_tells_unlabelled_points_and_extra_pairs_apart(task):
    loops, extra = with_loops(task), with_extra(task)
    prints = {
        task.fingerprint(),
        loops.fingerprint(),
        SemiSupervisedTask.of(task, loops.unlabelled + 1, 0.5, None).fingerprint(),
        SemiSupervisedTask.of(task, loops.unlabelled.reshape(2, 2), 0.5, None).fingerprint(),
        extra.fingerprint(),
        with_extra(task, 17).fingerprint(),
    }
    assert len(prints) == 6
    assert with_loops(task).fingerprint() == loops.fingerprint()


def fitted(curve, parameters, **options):
    X, y = curve
    return TwinRegressor(**parameters).fit(
        X[:20], y[:20], validation=(X[80:100], y[80:100]), **options
    )


@pytest.fixture
def U(curve):  # noqa: N802 - points without targets
    return curve[0][20:80]


def test_a_loop_weight_of_zero_gives_the_bits_of_the_supervised_twin(curve, tiny, U):
    tiny = {**tiny, "steps": 50, "intervals": False}
    supervised = fitted(curve, tiny)
    weights = supervised.weights_
    again = fitted(curve, {**tiny, "loop_weight": 0.0}, unlabelled=U)
    np.testing.assert_array_equal(again.weights_, weights)
    without_points = fitted(curve, {**tiny, "loop_weight": 1.0})
    np.testing.assert_array_equal(without_points.weights_, weights)
    no_pairs = ExtraPairs(U, np.empty((0, 2), int), np.empty(0))
    np.testing.assert_array_equal(fitted(curve, tiny, extra=no_pairs).weights_, weights)


def test_loops_make_a_twin_consistent_on_points_without_targets(curve, tiny, U):
    tiny = {**tiny, "steps": 1000, "intervals": False}
    violation, asymmetry = [], []
    for weight in (0.0, 30.0):
        model = fitted(curve, {**tiny, "loop_weight": weight}, unlabelled=U)
        rng = np.random.default_rng(0)
        a, b, c = (U[rng.permutation(len(U))] for _ in range(3))
        loops = model.differences(a, b) + model.differences(b, c) + model.differences(c, a)
        violation.append(np.sqrt(np.mean(loops**2)))
        asymmetry.append(np.mean(model.asymmetry(U)))
    assert violation[1] < 0.7 * violation[0]
    assert asymmetry[1] < 0.7 * asymmetry[0]


def test_pairs_with_known_differences_teach_what_the_targets_do_not(curve, tiny):
    X, y = curve
    order = np.argsort(X[:80, 0])
    here, there = order[:20], order[20:]  # targets of one corner, differences of the rest
    rows = np.random.default_rng(0).integers(60, size=(2000, 2))
    truth = y[there][rows[:, 0]] - y[there][rows[:, 1]]
    known = ExtraPairs(X[there], rows, truth)
    model = TwinRegressor(**{**tiny, "hidden": (16, 16), "steps": 1000, "intervals": False})
    errors = []
    for extra in (None, known):
        model.fit(X[here], y[here], validation=(X[80:100], y[80:100]), extra=extra)
        errors.append(np.std(model.differences(known.first, known.second) - truth))
    assert errors[1] < 0.3 * errors[0]


def test_loops_for_a_twin_trained_on_neighbors_are_refused(complaint, curve, tiny, U):
    parameters = {**tiny, "loop_weight": 1.0, "pairs": "neighbors"}
    assert "neighbors" in complaint(fitted, curve, parameters, unlabelled=U)


def test_unlabelled_points_that_do_not_fit_are_refused(curve, tiny, U):
    parameters = {**tiny, "loop_weight": 0.0}
    with pytest.raises(ValueError, match="X has 2 features"):
        fitted(curve, parameters, unlabelled=U[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        fitted(curve, parameters, unlabelled=np.full((2, 3), np.nan))
