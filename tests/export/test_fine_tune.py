"""A little training with rounded kernels: what it trains, and that it never makes a pack worse."""

import numpy as np
import pytest

from twinedge import InputError
from twinedge.progress import Progress
from twinedge.runtime.reference import evaluate
from twinedge.training.batches import Examples, Stack
from twinedge.training.network import Architecture, tf
from twinedge_export.fine_tune import RoundedArchitecture, fine_tune
from twinedge_export.quantise import quantise

SHAPE = 6, (5, 4), "silu"
ROUNDED, PLAIN = RoundedArchitecture(*SHAPE, 7), Architecture(*SHAPE)


@pytest.fixture
def stack():
    return PLAIN.initial([1, 2])


@pytest.fixture
def pairs():
    return np.random.default_rng(0).normal(size=(2, 30, 6)).astype(np.float32)


@pytest.fixture
def briefly(monkeypatch):
    """Make the training short."""
    monkeypatch.setattr("twinedge_export.fine_tune._STEPS", 600)


def pack_error(model, X, y, **settings):
    twins = len(model.weights_)
    rows = np.arange(len(model.anchor_y_) // twins * twins).reshape(-1, twins).T
    return np.sqrt(np.mean(np.square(evaluate(quantise(model, rows, **settings), X).mean - y)))


def test_hidden_kernels_lie_on_the_steps_of_each_output_and_the_rest_is_as_it_was(stack):
    rounded = ROUNDED.rounded(stack)
    for network, before in zip(rounded, stack, strict=True):
        *hidden, last = zip(PLAIN.parts(network), PLAIN.parts(before), strict=True)
        for (kernel, bias), (old_kernel, old_bias) in hidden:
            largest = np.abs(old_kernel).max(axis=0)
            steps = 7 * kernel / largest
            np.testing.assert_allclose(steps, np.rint(steps), atol=1e-5)
            np.testing.assert_allclose(np.abs(kernel).max(axis=0), largest, rtol=1e-6)
            assert (np.abs(kernel - old_kernel) <= 0.51 * largest / 7).all()
            np.testing.assert_array_equal(bias, old_bias)
        for now, old in zip(*last, strict=True):
            np.testing.assert_array_equal(now, old)


def test_the_network_in_training_is_the_rounded_one(stack, pairs):
    expected = PLAIN.forward(ROUNDED.rounded(stack), pairs).numpy()
    np.testing.assert_allclose(ROUNDED.forward(stack, pairs).numpy(), expected, rtol=1e-5)
    assert not np.allclose(PLAIN.forward(stack, pairs).numpy(), expected, rtol=0.01)


def test_gradients_are_those_of_the_rounded_network(stack, pairs):
    def gradient(architecture, weights):
        weights = tf.constant(weights)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = tf.reduce_sum(tf.square(architecture.forward(weights, pairs)))
        return tape.gradient(loss, weights).numpy()

    expected = gradient(PLAIN, ROUNDED.rounded(stack))
    np.testing.assert_allclose(gradient(ROUNDED, stack), expected, rtol=1e-4, atol=1e-4)


def test_an_output_without_weights_is_no_trouble(stack):
    stack[:] = 0
    np.testing.assert_array_equal(ROUNDED.rounded(stack), 0)


@pytest.mark.parametrize("weights", ["int8", pytest.param("int16", marks=pytest.mark.slow)])
def test_the_pack_of_a_brief_training_gets_better(tiny_twin, curve, briefly, weights):
    X, y = curve
    before = tiny_twin.weights_.copy()
    tuned = fine_tune(tiny_twin, X[80:100], y[80:100], weights=weights)
    np.testing.assert_array_equal(tiny_twin.weights_, before)
    assert tuned is not tiny_twin
    errors = [pack_error(m, X[80:100], y[80:100], weights=weights) for m in (tuned, tiny_twin)]
    assert errors[0] < 0.99 * errors[1]
    assert tuned.validation_rmse_ == pytest.approx(tuned.rmse(X[80:100], y[80:100]))
    # Its kernels are already rounded, so rounding each by itself is as good.
    plain = pack_error(tuned, X[80:100], y[80:100], weights=weights, compensate=False)
    assert plain == pytest.approx(errors[0], rel=0.01)


def test_the_same_seed_gives_the_same_model(tiny_twin, curve, monkeypatch):
    monkeypatch.setattr("twinedge_export.fine_tune._STEPS", 50)
    X, y = curve
    one, same, other = (fine_tune(tiny_twin, X[80:], y[80:], seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.weights_, same.weights_)
    assert not np.array_equal(one.weights_, other.weights_)


@pytest.mark.parametrize("change", [0.0, 3.0, np.nan], ids=["nothing", "worse", "diverged"])
def test_what_does_not_help_is_not_taken(tiny_twin, curve, monkeypatch, change):
    class Spoilt(Stack):
        def advance(self):
            self.step = self.steps
            weights = tiny_twin.weights_ * np.float32(1 + change)
            self.state = self.state._replace(weights=weights, average=weights)
            return np.zeros(1)

    monkeypatch.setattr("twinedge_export.fine_tune.Stack", Spoilt)
    X, _ = curve
    # A pack that can hardly be improved: the model's own predictions are the targets.
    target = tiny_twin.predict(X[80:])
    assert fine_tune(tiny_twin, X[80:], target, weights="int16") is tiny_twin
    # Where the model itself will not do, anything else is better.
    tuned = fine_tune(tiny_twin, X[80:], target, weights="int16", refused=True)
    assert (tuned is tiny_twin) == np.isnan(change)


def test_several_twins_are_tuned_together_with_progress(four_twins, curve, briefly):
    class Counted(Progress):
        def __init__(self):
            self.steps, self.done = [], 0

        def stage(self, title, steps, *, seconds):
            assert title == "fine-tuning"
            assert seconds > 0
            self.steps.append(steps)

        def advance(self, steps, loss, score):
            assert np.isfinite([loss, score]).all()
            self.done += steps

    X, y = curve
    counted = Counted()
    tuned = fine_tune(four_twins, X[80:100], y[80:100], progress=counted)
    assert counted.steps == [4 * 600]
    assert counted.done == 4 * 600
    assert tuned.weights_.shape == four_twins.weights_.shape
    assert (tuned.weights_ != four_twins.weights_).any(axis=1).all()
    errors = [pack_error(model, X[80:100], y[80:100]) for model in (tuned, four_twins)]
    assert errors[0] < errors[1]


def test_a_model_of_neighbors_is_tuned_on_near_pairs(untrained, curve, briefly, monkeypatch):
    X, y = curve
    model = untrained(X[:80], y[:80], (8,), "silu", pairs="neighbors", neighbors=4)
    model.learning_rate_, model.weight_decay_ = 0.1, 0.0
    seen = []

    def pairs(*data, own=Examples.pairs):
        seen.append(data)
        return own(*data)

    monkeypatch.setattr("twinedge_export.fine_tune.Examples.pairs", pairs)
    tuned = fine_tune(model, X[80:], y[80:])
    assert seen[0][3].shape == (80, 4)
    assert pack_error(tuned, X[80:], y[80:]) < 0.7 * pack_error(model, X[80:], y[80:])


def test_impossible_settings_are_refused(tiny_twin, curve, complaint):
    X, y = curve
    assert "int4" in complaint(fine_tune, tiny_twin, X, y, weights="int4")
    assert "there are none" in complaint(fine_tune, tiny_twin, X[:0], y[:0])
    with pytest.raises(InputError, match="features"):
        fine_tune(tiny_twin, X[:, :2], y)
