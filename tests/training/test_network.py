import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.training.network import ACTIVATIONS, LARGEST_SUM, Architecture

architectures = st.builds(
    Architecture,
    st.integers(1, 5),
    st.lists(st.integers(1, 6), max_size=3).map(tuple),
    st.sampled_from(sorted(ACTIVATIONS)),
)


@settings(max_examples=20)
@given(architectures, st.integers(1, 3), st.integers(0, 2**31))
def test_forward_is_a_plain_perceptron_for_every_network_of_a_stack(
    perceptron, architecture, networks, seed
):
    rng = np.random.default_rng(seed)
    stack = rng.normal(size=(networks, architecture.size)).astype(np.float32)
    x = rng.normal(size=(networks, 7, architecture.inputs)).astype(np.float32)
    expected = [perceptron(architecture, *one) for one in zip(stack, x, strict=True)]
    np.testing.assert_allclose(architecture.forward(stack, x), expected, rtol=1e-4, atol=1e-4)


@given(architectures)
def test_parts_are_views_that_cover_the_flat_vector_in_order(architecture):
    network = np.arange(architecture.size, dtype=np.float32)
    parts = architecture.parts(network)
    assert [kernel.shape for kernel, _ in parts] == architecture.layers
    flat = [array.ravel() for part in parts for array in part]
    np.testing.assert_array_equal(np.concatenate(flat), network)
    for kernel, bias in parts:
        kernel[...] = bias[...] = -1
    assert (network == -1).all()


def test_initial_weights_of_a_network_depend_on_its_own_seed_alone():
    architecture = Architecture(4, (8, 8), "relu")
    three, seven = architecture.initial([3, 7])
    np.testing.assert_array_equal(architecture.initial([7])[0], seven)
    np.testing.assert_array_equal(architecture.initial([1, 3])[1], three)
    assert not np.array_equal(three, seven)


def test_initial_kernels_fill_the_glorot_interval_and_biases_are_zero():
    architecture = Architecture(40, (60,), "relu")
    for kernel, bias in architecture.parts(architecture.initial([0])[0]):
        limit = np.sqrt(6 / sum(kernel.shape))
        assert 0.9 * limit < np.abs(kernel).max() <= limit
        assert not bias.any()


@pytest.mark.parametrize(("hidden", "size"), [((128, 128), 19_073), ((64,), 1_281)])
def test_size_counts_every_weight_of_a_twin_of_nine_features(hidden, size):
    assert Architecture(18, hidden, "relu").size == size


def sums(architecture, network, x):
    """Return the largest sum of each hidden layer."""
    found = []
    for kernel, bias in architecture.parts(network)[:-1]:
        x = x @ kernel + bias
        found.append(np.abs(x).max())
        x = x / (1 + np.exp(-x.clip(-80, None)))
    return found


@pytest.mark.parametrize("hidden", [(9,), (9, 7), (9, 7, 5)], ids=str)
def test_sums_that_are_too_large_shrink_and_the_outputs_hardly_change(hidden):
    architecture = Architecture(4, hidden, "silu")
    small, large = stack = architecture.initial([0, 1])
    for kernel, _ in architecture.parts(large)[:-1]:
        kernel *= 1000
    before = stack.copy()
    x = np.random.default_rng(0).normal(size=(2, 500, 4)).astype(np.float32)
    expected = architecture.outputs(stack, x)
    assert max(sums(architecture, large, x[1])) > 2 * LARGEST_SUM
    assert architecture.limit_sums(stack, x)
    assert max(sums(architecture, large, x[1])) <= 1.001 * LARGEST_SUM
    found = architecture.outputs(stack, x)
    off = np.sqrt(np.mean(np.square(found[1] - expected[1]))) / expected[1].std()
    assert off < 0.01
    np.testing.assert_array_equal(small, before[0])
    assert not architecture.limit_sums(stack[:1], x[:1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_network_that_diverged_is_not_limited(bad):
    architecture = Architecture(4, (9, 7), "silu")
    stack = 1e4 * architecture.initial([0])
    stack[0, 3] = bad
    before = stack.copy()
    assert not architecture.limit_sums(stack, np.ones((1, 5, 4), np.float32))
    np.testing.assert_array_equal(stack, before)
