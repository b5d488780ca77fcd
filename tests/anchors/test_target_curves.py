"""Anchors of a model whose target has a curve: chosen on it, scored in units of the target."""

import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.anchors import choice as subject
from twinedge.anchors import rmse, select
from twinedge.anchors.curves import measure
from twinedge.anchors.methods import METHODS, Candidates
from twinedge.anchors.pool import Evidence, Pool
from twinedge.errors import InputError

TINY = {"hidden": (8,), "activation": "relu", "learning_rate": 0.01, "weight_decay": 0.03}


@pytest.fixture(scope="module")
def both():
    """A model that learnt the logarithm, one that was given it, and points of the first."""
    rng = np.random.default_rng(1)
    X = rng.random((160, 2))
    y = np.exp(3 * X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=160))
    given = {**TINY, "steps": 200, "twins": 2, "random_state": 0}
    weights = np.linspace(0.5, 1.5, 60)
    model, plain = (
        TwinRegressor(**given, target_curve=curve).fit(
            X[:100], t[:100], validation=(X[100:], t[100:], None, weights)
        )
        for curve, t in (("log", y), ("none", np.log(y)))
    )
    return model, plain, (X[100:], y[100:])


def test_errors_of_any_anchors_are_those_of_predictions_with_them(both):
    model, _, (X, y) = both
    evidence = Evidence.of(model, (X, y))
    subsets = [np.arange(8), np.arange(10, 30), np.array([3, 50])]
    found = evidence.squared_errors(subsets)
    for squares, rows in zip(found, subsets, strict=True):
        off = model.predict(X, anchors=rows) - y
        expected = np.square(off) * evidence.weights
        np.testing.assert_allclose(squares, expected, rtol=1e-3, atol=1e-6)
        assert rmse(model, (X, y), rows) == pytest.approx(np.sqrt(squares.mean()), rel=1e-5)


def test_every_method_chooses_what_it_chooses_on_the_curve(both):
    model, plain, (X, y) = both
    for method in METHODS:
        found, expected = (
            select(
                one.anchor_X_,
                one.anchor_y_,
                12,
                method,
                model=one,
                validation=(X, target),
                twins=2,
            )
            for one, target in ((model, y), (plain, np.log(y)))
        )
        np.testing.assert_array_equal(found, expected)


def test_greedy_errors_are_in_units_of_the_target(both):
    model, _, (X, y) = both
    evidence = Evidence.of(model, (X, y))
    pool = Pool.of(model.anchor_X_, np.log(model.anchor_y_), 2)
    candidates = Candidates.of(pool, 4, 0, evidence)
    rows = np.arange(60)
    # Scored on the points that it was chosen on, its errors are those of its predictions.
    chosen = candidates.choose(4)
    mean = candidates.residuals[np.arange(4) % 2, np.searchsorted(candidates.rows, chosen)].mean(0)
    off = model.predict(X, anchors=chosen) - y
    expected = np.square(off) * evidence.weights
    np.testing.assert_allclose(evidence.squared(mean.astype(float), rows), expected, rtol=1e-3)


def test_a_measurement_compares_with_all_anchors_in_units_of_the_target(both):
    model, _, validation = both
    found = measure(model, validation, counts=[4, 16])
    assert found.rmse_all == pytest.approx(rmse(model, validation))
    assert found.rmse_all == pytest.approx(model.validation_rmse_, rel=1e-6)
    assert all(0.8 < point.rmse_val / found.rmse_all < 3 for point in found.points)


@pytest.mark.slow
def test_groups_that_were_left_out_are_evidence_in_units_of_the_target():
    rng = np.random.default_rng(2)
    X = rng.random((120, 2))
    y = np.exp(3 * X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=120))
    model = TwinRegressor(**TINY, steps=100, target_curve="log", random_state=0)
    model.fit(X, y, groups=np.arange(120) % 12)
    assert model.left_out_ is not None
    evidence = Evidence.of(model, model.validation_)
    assert len(evidence) == len(model.validation_[1]) + len(model.anchor_y_)
    wrong = evidence.y[len(model.validation_[1]) :]
    expected = np.log(model.predict(model.anchor_X_)) + model.left_out_.errors
    np.testing.assert_allclose(np.log(wrong), expected, rtol=1e-9)


def test_validation_targets_off_the_curve_are_refused(both):
    model, _, (X, y) = both
    wrong = y.copy()
    wrong[4] = 0
    pool = model.anchor_X_, model.anchor_y_
    with pytest.raises(InputError, match="row 4: the target is 0, but target_curve='log'"):
        subject.choose(*pool, 4, "greedy", model=model, validation=(X, wrong), twins=2)
