"""A model that trains becomes a pack that predicts the same, whatever its table is like."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twinedge
from twinedge import TwinRegressor
from twinedge.errors import InputError
from twinedge.scoring.scores import rmse

TINY = {
    "twins": 1,
    "hidden": 8,
    "activation": "silu",
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "steps": 150,
    "intervals": False,
    "random_state": 0,
}
TESTED = 300


def tame(rng, rows):
    """Return three ordinary columns and a noisy target."""
    X = rng.normal(size=(rows, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows)


def cauchy(rng, rows):
    X = rng.standard_cauchy((rows, 3))
    return X, np.arctan(X[:, 0]) + np.tanh(X[:, 1]) + 0.3 * rng.normal(size=rows)


def heavy_target(rng, rows):
    X, y = tame(rng, rows)
    return X, y + rng.standard_t(2, rows)


def beside(column):
    """Return a kind of table: an ordinary one with a fourth column."""

    def make(rng, rows):
        X, y = tame(rng, rows)
        values, effect = column(rng, rows)
        return np.column_stack([X, values]), y + effect

    return make


def rare(rng, rows):
    values = np.zeros(rows)
    some = rng.permutation(rows)[: max(2, rows // 200)]
    values[some] = 1e3 * rng.normal(size=len(some))
    return values, np.sign(values)


def near(mean, spread):
    def column(rng, rows):
        u = rng.normal(size=rows)
        return mean + spread * u, np.sin(u)

    return column


def wild(size):
    """Return a kind of table with a wild cell, anywhere but in the rows that are tested."""

    def make(rng, rows):
        X, y = tame(rng, rows)
        X[rng.integers(rows - TESTED), 0] = size
        return X, y

    return make


TABLES = {
    "tame": tame,
    "heavy tails": cauchy,
    "heavy-tailed target": heavy_target,
    "zeros with rare values": beside(rare),
    "constant": beside(lambda _, rows: (np.full(rows, 0.1), 0)),
    "constant to a device": beside(near(5.0, 1e-9)),
    "seconds since 1970": beside(near(1.7e9, 600.0)),
    "near-constant": beside(near(1e6, 0.3)),
    "wild cell of 1e2": wild(1e2),
    "wild cell of -1e4": wild(-1e4),
    "wild cell of 1e9": wild(1e9),
}


def check(tmp_path, X, y, **parameters):
    """Train on all rows but the last, export, and compare model and pack there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about digits that a device cannot see
        model = TwinRegressor(**(TINY | parameters)).fit(X[:-TESTED], y[:-TESTED])
    done = twinedge.export(model, tmp_path / "out", formats=["twin"], overwrite=True)
    device = twinedge.load(tmp_path / "out" / "model.twin")
    X, y = X[-TESTED:], y[-TESTED:]
    expected = rmse(model.predict(X, anchors=done.rows), y)
    assert rmse(device.predict(X), y) == pytest.approx(expected, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_any_kind_of_column(tmp_path, kind):
    # Above 4,096 rows, one in two thousand at either end is ignored.
    for rows in (200, 5000):
        check(tmp_path, *TABLES[kind](np.random.default_rng(0), rows + TESTED))


@settings(max_examples=3)
@given(
    kind=st.sampled_from(sorted(TABLES)),
    powers=st.lists(st.integers(-9, 9), min_size=4, max_size=4),
    power=st.integers(-6, 6),
    activation=st.sampled_from(["relu", "silu"]),
    seed=st.integers(0, 99),
)
def test_any_unit_of_features_and_target(tmp_path, kind, powers, power, activation, seed):
    X, y = TABLES[kind](np.random.default_rng(seed), 250 + TESTED)
    units = 10.0 ** np.array(powers[: X.shape[1]])
    check(tmp_path, units * X, 10.0**power * y, activation=activation)


def protein_like(rng, rows):
    """Return sizes that are nearly the same, and a column with a tail.

    What counts are the small differences of the sizes, so weights become large and their sums
    cancel, but for the rows in the tail.
    """
    size, tail = rng.lognormal(0, 0.3, rows), rng.standard_t(2, rows)
    ratio = 1 + 0.05 * rng.normal(size=rows)
    y = np.sin(20 * (ratio - 1)) + np.sin(2 * np.arcsinh(tail)) + 0.3 * rng.normal(size=rows)
    return np.column_stack([size, size * ratio, tail]), y


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        # An output that could reach 18,000 deviations of the target.
        {"hidden": (12, 48), "learning_rate": 0.1, "steps": 2000, "intervals": True},
        {"hidden": (32, 32), "learning_rate": 0.3, "steps": 1000},  # sums of 1,100
        {"hidden": (8, 8, 8), "learning_rate": 0.5, "steps": 2000},  # sums of 20,000
        {"hidden": (8, 8), "learning_rate": 0.5, "steps": 2000, "activation": "relu"},
    ],
    ids=lambda parameters: str(parameters["hidden"]),
)
def test_weights_that_grow_without_decay(tmp_path, parameters):
    X, y = protein_like(np.random.default_rng(0), 5000 + TESTED)
    check(tmp_path, X, y, **parameters)


def test_a_wild_cell_among_the_validation_points(tmp_path):
    X, y = tame(np.random.default_rng(0), 300 + TESTED)
    X[200, 0] = 1e5
    model = TwinRegressor(**TINY).fit(X[:200], y[:200], validation=(X[200:300], y[200:300]))
    twinedge.export(model, tmp_path / "out", formats=["twin"])


def fit(X, y):
    return TwinRegressor(**(TINY | {"steps": 1})).fit(X, y)


@pytest.mark.parametrize("unit", [1e-35, 1e38])
def test_units_that_no_device_can_hold_are_refused_before_the_training(unit):
    X, y = tame(np.random.default_rng(0), 50)
    for table in ((unit * X, y), (X, unit * y)):
        with pytest.raises(InputError, match=r"32-bit floats need a unit .* 1e-30 and 1e\+37"):
            fit(*table)


def test_a_target_that_varies_too_little_for_a_device_is_refused_before_the_training():
    X, y = tame(np.random.default_rng(0), 50)
    fit(X, 1e5 + y)
    with pytest.raises(InputError, match=r"target 'y' .* around 1e\+09, .* are 64 apart: subtract"):
        fit(X, 1e9 + y)
