import numpy as np
import pytest

from twinedge.training.batches import Examples, Stack
from twinedge.training.network import Architecture

TWIN = Architecture(4, (6, 5), "silu")


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    monkeypatch.setattr("twinedge.training.batches.CHUNK", 50)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2)).astype(np.float32)
    return x, np.sin(x[:, 0]) + x[:, 1]


def rows(*seeds):
    return np.stack([np.random.default_rng(seed).permutation(30) for seed in seeds]).astype("int32")


def stack(examples, architecture=TWIN, *, seeds=(0,), decays=(0.01,), steps=200, seed=0, rate=0.01):
    return Stack(
        architecture,
        examples,
        learning_rate=rate,
        weight_decays=list(decays),
        steps=steps,
        batch=16,
        seeds=list(seeds),
        seed=seed,
    )


def trained(one, until=None):
    while not one.finished and (until is None or one.step < until):
        one.advance()
    return one.state


def assert_same_bits(a, b):
    for found, expected in zip(a, b, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(table):
    examples = Examples.pairs(*table, rows(0))
    state = trained(stack(examples))
    assert_same_bits(trained(stack(examples)), state)
    assert not np.array_equal(trained(stack(examples, seed=1)).weights, state.weights)
    assert not np.array_equal(trained(stack(examples, seeds=(1,))).weights, state.weights)


def test_a_training_restored_from_its_state_ends_with_the_bits_of_one_never_stopped(table):
    examples = Examples.pairs(*table, rows(0, 1))
    whole = trained(stack(examples, seeds=(0, 1), decays=(0.01, 0.1)))
    halfway = trained(stack(examples, seeds=(0, 1), decays=(0.01, 0.1)), until=100)
    assert halfway.step == 100
    other = stack(examples, seeds=(8, 9), decays=(0.01, 0.1))
    other.state = halfway
    assert_same_bits(trained(other), whole)


def test_a_network_in_a_stack_of_two_learns_what_it_learns_alone(table):
    together = trained(
        stack(Examples.pairs(*table, rows(0, 1)), seeds=(3, 4), decays=(0.01, 0.3)),
    )
    for i, (seed, decay) in enumerate(((3, 0.01), (4, 0.3))):
        alone = trained(stack(Examples.pairs(*table, rows(i)), seeds=(seed,), decays=(decay,)))
        np.testing.assert_allclose(together.weights[i], alone.weights[0], atol=1e-4)
        np.testing.assert_allclose(together.average[i], alone.average[0], atol=1e-4)
    assert not np.allclose(together.weights[0], together.weights[1], atol=0.1)


def test_weight_decay_shrinks_kernels_by_the_learning_rate_and_leaves_biases(table):
    # Targets of zero and a last kernel of zero: no gradient, so decay is all that happens.
    x, _ = table
    steps, rate, decay = 200, 0.01, 0.5
    one = stack(
        Examples.pairs(x, np.zeros(30, np.float32), rows(0)), steps=steps, rate=rate, decays=[decay]
    )
    weights = np.ones((1, TWIN.size), np.float32)
    for array in TWIN.parts(weights[0])[-1]:
        array[...] = 0
    one.state = one.state._replace(weights=weights, average=weights)
    (*hidden, _) = TWIN.parts(trained(one).weights[0])
    tenths = np.arange(10, steps + 1, 10)
    expected = np.prod(1 - 10 * rate * decay * 0.5 * (1 + np.cos(np.pi * tenths / steps)))
    assert expected < 0.7
    for kernel, bias in hidden:
        np.testing.assert_allclose(kernel, expected, rtol=1e-4)
        np.testing.assert_array_equal(bias, 1)


def test_steps_are_those_of_adam_with_cosine_decay_and_an_average(table, monkeypatch):
    # A network without hidden layers is a linear model, whose gradient is written down at once.
    monkeypatch.setattr("twinedge.training.batches.CHUNK", 20)
    x, y = table
    steps, rate, decay = 45, 0.05, 0.1
    linear = Architecture(2, (), "relu")
    examples = Examples.points(x, y, rows(0))
    one = stack(examples, linear, seeds=(2,), steps=steps, rate=rate, decays=[decay], seed=7)
    w = one.state.weights[0].astype(np.float64)
    m, v, average = np.zeros(3), np.zeros(3), w.copy()
    for t in range(1, steps + 1):
        k = (t - 1) % 20
        if k == 0:  # each chunk has draws of its own
            draws = examples.kind.draw(min(20, steps - t + 1), 16, [7, t - 1], *examples.tensors)
        inputs, targets = (
            np.asarray(part)[0] for part in examples.kind.batch(k, draws, *examples.tensors)
        )
        inputs = np.column_stack([inputs, np.ones(16)])
        gradient = 2 * inputs.T @ (inputs @ w - targets) / 16
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        now = rate * 0.5 * (1 + np.cos(np.pi * t / steps))
        w = w - now * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)
        if t % 10 == 0 or t == steps:
            w = w - 10 * now * decay * w * [1, 1, 0]
            keep = min(0.999**10, (1 + t) / (10 + t))
            average = w + keep * (average - w)
    state = trained(one)
    np.testing.assert_allclose(state.weights[0], w, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(state.average[0], average, rtol=1e-3, atol=1e-4)
