"""Several targets in training: the loss, means over targets, teachers, and what sharing costs."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.progress import Progress
from twinedge.scoring.weights import mean_over_targets
from twinedge.training import sharing
from twinedge.training.batches import Examples, Setting
from twinedge.training.network import Architecture, tf
from twinedge.training.selection import PLANS, Candidate, Plan
from twinedge.training.tasks import PairTask
from twinedge.training.trainer import Checkpoint


def table(rows=80, targets=2, missing=0.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2)).astype(np.float32)
    y = (x @ rng.normal(size=(2, targets))).astype(np.float32)
    y[rng.random(y.shape) < missing] = np.nan
    return x, y


def test_networks_of_one_target_are_those_inside_networks_of_several():
    shape = Architecture(4, (5, 3), "relu", targets=3)
    stack = shape.initial([0, 1])
    stack += np.arange(stack.size, dtype=np.float32).reshape(stack.shape) / stack.size
    x = np.random.default_rng(0).normal(size=(2, 7, 4)).astype(np.float32)
    together = shape.outputs(stack, x)
    assert together.shape == (2, 7, 3)
    np.testing.assert_allclose(shape.forward(tf.constant(stack), x), together, rtol=1e-5)
    for target in range(3):
        alone, networks = shape.of_target(stack, target)
        assert alone == Architecture(4, (5, 3), "relu")
        np.testing.assert_allclose(
            alone.outputs(networks, x), together[..., target], rtol=1e-6, atol=1e-6
        )


def test_a_pair_counts_for_targets_that_both_rows_measured():
    x, y = table(missing=0.3)
    rows = np.arange(80, dtype=np.int32)[None]
    examples = Examples.pairs(x, y, rows)
    known = np.isfinite(y).mean(axis=0)
    np.testing.assert_allclose(examples.kind.balance, 1 / known**2)
    draws = examples.kind.draw(1, 500, tf.constant([0, 0]), *examples.tensors)
    _, differences = examples.kind.batch(0, draws, *examples.tensors)
    outputs = tf.zeros_like(differences)
    found = examples.kind.loss(outputs, differences).numpy()
    seen = np.isfinite(differences.numpy())
    squares = np.where(seen, np.square(differences.numpy()), 0) / known**2
    np.testing.assert_allclose(found, squares.mean(axis=(1, 2)), rtol=1e-5)
    assert 0.3 < seen.mean() < 0.7
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        loss = examples.kind.loss(outputs, differences)
    assert np.isfinite(tape.gradient(loss, outputs).numpy()).all()


def test_means_over_targets_give_each_the_same_share():
    rng = np.random.default_rng(0)
    values, weights = rng.random((50, 3)), rng.random(50)
    known = rng.random((50, 3)) < [1, 0.5, 0]
    each = [np.average(values[known[:, t], t], weights=weights[known[:, t]]) for t in (0, 1)]
    found = mean_over_targets(values, known, weights)
    np.testing.assert_allclose(np.average(found, weights=weights), np.mean(each))
    np.testing.assert_allclose(mean_over_targets(values, known > -1), values.mean(axis=1))


def test_networks_that_diverged_do_not_pass_for_missing_targets():
    x, y = table()
    task = PairTask(x, y, 60, 1.0, (4,))
    job = Candidate("relu", Setting(0.01, 0.0)).job(10, 0)
    shape = task.architecture(job)
    assert not np.isfinite(task.score(shape, np.full((1, shape.size), np.nan), [job])).any()


def test_teachers_fill_in_what_rows_did_not_measure(monkeypatch):
    monkeypatch.setitem(PLANS, "normal", replace(PLANS["normal"], folds=8, final=20))
    x, y = table(90, missing=0.2)
    known = np.isfinite(y).any(axis=1)
    model = TwinRegressor(
        hidden=8, activation="relu", teachers=["trees", "networks"], random_state=0
    )
    model.fit(x[known], y[known])
    assert [one["target"] for one in model.teaching_["teachers"]] == ["y0"] * 2 + ["y1"] * 2
    assert model.sharing_ is None  # the folds were too short to tell


@pytest.mark.parametrize("conflict", [False, True])
def test_a_target_that_suffers_from_sharing_is_named(conflict, monkeypatch):
    monkeypatch.setattr(sharing, "LONG_ENOUGH", 1)
    x, y = table(100, missing=0.1)
    task = PairTask(x, y, 80, 1.0, (8,))
    shared = task.y[:80] + (3.0 if conflict else 1e-3) * np.array([0.0, 1.0])
    found = sharing.compare_sharing(
        task,
        Candidate("relu", Setting(0.01, 0.0)),
        shared.astype(np.float32),
        Plan(folds=200, final=500),
        np.array([1.0, 10.0]),
        seed=0,
        progress=Progress(),
        checkpoint=Checkpoint(None),
    )
    first, second = found
    assert first["shared"] == 0.0 < first["alone"]
    assert not first["suffers"]
    assert second["suffers"] is conflict
    assert second["shared"] == pytest.approx(30.0 if conflict else 0.01, rel=1e-3)
