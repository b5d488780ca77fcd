import numpy as np
import pytest

from twinedge.data.catalogue import paper_test_function, rcl_circuit, wheatstone_bridge


def bridge(X):
    u, r1, r2, r3 = X.T[:4]
    return u * (r2 / (r1 + r2) - r3 / (r2 + r3))


def circuit(X, power):
    v0, r, inductance, c, omega, t = X.T
    reactance = (omega * inductance - 1 / (omega * c)) ** power
    return v0 * np.cos(omega * t) / np.sqrt(r**2 + reactance)


def test_tf_is_the_papers_rows_bit_for_bit():
    state = np.random.get_state()
    np.random.seed(0)
    X = np.random.sample([1000, 2]) * 2 - 1
    np.random.set_state(state)
    made = paper_test_function()
    np.testing.assert_array_equal(made.X, X)
    x1, x2 = X.T
    np.testing.assert_allclose(
        made.y, x1**3 + x1**2 - x1 - 1 + x1 * x2 + np.sin(x2), rtol=0, atol=1e-15
    )
    assert made.X[0].tolist() == [0.09762700785464951, 0.43037873274483895]


def test_generators_leave_the_global_random_state_alone():
    before = np.random.get_state()[1].copy()
    paper_test_function()
    rcl_circuit()
    wheatstone_bridge()
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize(("variant", "power", "noise"), [("published", 1, 0.01), ("paper", 2, 0.1)])
def test_rcl_follows_its_formula_with_its_noise(variant, power, noise):
    made = rcl_circuit(variant, rows=20_000)
    residual = made.y - circuit(made.X, power)
    assert residual.std() == pytest.approx(noise, rel=0.02)
    assert abs(residual.mean()) < 4 * noise / np.sqrt(20_000)


@pytest.mark.parametrize(
    ("variant", "columns", "noise"), [("published", 6, 0.01), ("paper", 4, 0.1)]
)
def test_wsb_follows_its_formula_with_its_noise(variant, columns, noise):
    made = wheatstone_bridge(variant, rows=20_000)
    assert made.X.shape == (20_000, columns)
    assert len(made.feature_names) == columns
    residual = made.y - bridge(made.X)
    assert residual.std() == pytest.approx(noise, rel=0.02)


@pytest.mark.parametrize("make", [rcl_circuit, wheatstone_bridge])
def test_a_variant_that_is_not_there_is_refused(make, complaint):
    assert complaint(make, "papre") == "no variant 'papre'; use 'published' or 'paper'"


@pytest.mark.parametrize("make", [rcl_circuit, wheatstone_bridge])
@pytest.mark.parametrize("variant", ["published", "paper"])
def test_inputs_are_uniform_from_1_to_3(make, variant):
    X = make(variant, rows=20_000).X
    assert X.min() >= 1
    assert X.max() <= 3
    np.testing.assert_allclose(X.mean(0), 2, atol=0.02)
    np.testing.assert_allclose(X.std(0), 2 / np.sqrt(12), atol=0.01)


@pytest.mark.parametrize(("make", "rows"), [(rcl_circuit, 4000), (wheatstone_bridge, 200)])
def test_a_seed_fixes_the_rows_and_another_changes_them(make, rows):
    first, again, other = make(), make(seed=0), make(seed=1)
    assert first.X.shape == (rows, 6)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(("name", "formula"), [("rcl", lambda X: circuit(X, 1)), ("wsb", bridge)])
def test_the_published_file_follows_the_published_formula(name, formula, true_values):
    values = true_values(name)
    residual = values[:, -1] - formula(values[:, :-1])
    assert residual.std() == pytest.approx(0.01, rel=0.1)
