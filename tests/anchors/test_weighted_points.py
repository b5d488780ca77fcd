"""A device counts its anchors alike: points that hardly count must not be among them."""

import numpy as np
import pytest

from twinedge.anchors import METHODS, choose, recommend, rmse
from twinedge.anchors.curves import measure
from twinedge.anchors.pool import Evidence, Pool

OFFSET = 10.0


@pytest.fixture
def weighted(oracle):
    """A model whose odd anchors are far off, and hardly count."""

    def make(n=60, twins=2, light=1e-3, **more):
        model, validation = oracle(n=n, twins=twins, bias=0.3, noise=0.3, **more)
        odd = np.arange(n) % 2 == 1
        model.written = model.written + OFFSET * odd
        model.anchor_y_ = model.anchor_y_ + OFFSET * odd
        weights = np.where(odd, light, 1.0)
        model.sample_weights_ = weights / weights.mean()
        mean = np.average(model.written.mean(axis=1), axis=1, weights=weights)
        model.predict = lambda X, *, anchors: (
            mean[np.asarray(X)[:, 0].astype(int)]
            if isinstance(anchors, str)
            else model.estimates(X, anchors=anchors).mean(axis=1)
        )
        return model, validation

    return make


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_no_method_chooses_points_that_hardly_count(method, weighted):
    model, validation = weighted()
    given = model.anchor_X_, model.anchor_y_
    rows = choose(*given, 16, method, model=model, validation=validation, twins=2).rows
    assert len(set(rows)) == 16
    assert not (rows % 2).any()
    model.sample_weights_ = None
    rows = choose(*given, 16, method, model=model, validation=validation, twins=2).rows
    if method != "greedy":  # which looks at validation points, and finds out by itself
        assert (rows % 2).any()


@pytest.mark.parametrize("method", METHODS)
def test_as_many_are_chosen_as_were_requested(method, weighted):
    model, validation = weighted()
    given = model.anchor_X_, model.anchor_y_
    rows = choose(*given, 44, method, model=model, validation=validation, twins=2).rows
    assert len(set(rows)) == 44
    assert len(set(rows[rows % 2 == 0])) == 30 or method in ("match", "greedy")


def test_many_points_are_represented_in_proportion_to_their_weights(weighted):
    # More than the 2,000 candidates that greedy and match look at.
    model, validation = weighted(n=5000, v=20, light=0.25)
    pool = Pool.of(model.anchor_X_, model.anchor_y_, 2, model.sample_weights_)
    rows, times = pool.represented(2000, 2, np.random.default_rng(0))
    assert times.sum() == 2000
    assert times[rows % 2 == 1].sum() / 2000 == pytest.approx(0.2, abs=0.01)
    rows = choose(
        model.anchor_X_, model.anchor_y_, 8, "match", model=model, validation=validation, twins=2
    ).rows
    assert (rows % 2 == 1).mean() <= 0.5


def test_few_heavy_points_are_filled_up_with_the_next_heaviest():
    weights = np.r_[np.full(3, 1e6), np.linspace(1, 2, 9997)]
    pool = Pool(np.zeros((10_000, 1)), np.zeros(10_000), 1, weights)
    assert pool.worth == 3
    assert pool.eligible(3, 0).tolist() == [0, 1, 2]
    assert {0, 1, 2} < set(pool.eligible(10, 0).tolist())
    rows, times = pool.represented(2000, 10, np.random.default_rng(0))
    assert len(rows) >= 10
    assert {0, 1, 2} <= set(rows[times > 600])


def test_errors_of_validation_points_are_weighted(weighted):
    model, (X, y) = weighted(twins=1)
    model.validation_ = X, y
    model.validation_weights_ = np.arange(1.0, len(y) + 1)
    rows = [np.array([0, 2, 4])]
    squares = np.square(model.estimates(X, anchors=rows[0]).mean(axis=1) - y)
    evidence = Evidence.of(model, (X, y))
    wanted = np.average(squares, weights=model.validation_weights_)
    assert evidence.squared_errors(rows).mean() == pytest.approx(wanted)
    off = model.predict(X, anchors="all") - y
    wanted = np.sqrt(np.average(np.square(off), weights=model.validation_weights_))
    assert rmse(model, (X, y)) == pytest.approx(wanted)
    residuals = evidence.residuals(rows[0]).mean(axis=(0, 1)) * evidence.scale
    np.testing.assert_allclose(np.square(residuals), evidence.squared_errors(rows)[0], rtol=1e-4)
    # Points that are not the model's own have no weights.
    assert Evidence.of(model, (X[1:], y[1:])).weights is None
    thinned = evidence.thinned(10, 0)
    assert thinned.weights.mean() == pytest.approx(1)


def test_no_more_anchors_are_measured_than_the_points_are_worth(weighted):
    model, validation = weighted()
    found = measure(model, validation)
    assert found.training_points == 30  # of 60
    assert max(found.counts) <= 30
    assert measure(model, validation, counts=[8, 50]).beyond == (50,)
    best = recommend(model, validation)
    assert best.within
    assert best.rmse_val < 1
