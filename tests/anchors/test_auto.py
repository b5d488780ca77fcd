from dataclasses import replace

import numpy as np
import pytest

from twinedge.anchors import METHODS, choose, rmse, select
from twinedge.anchors.choice import preferred


def automatic(model, validation, k, **options):
    return choose(
        model.anchor_X_,
        model.anchor_y_,
        k,
        model=model,
        validation=validation,
        twins=len(model.weights_),
        **options,
    )


def test_chance_hardly_ever_overrules_the_first_choice(oracle):
    found = [automatic(*oracle(v=v, n=150, bias=0, seed=s), 4) for v in (10, 40) for s in range(10)]
    assert sum(each.method != "match" for each in found) <= 1


def test_a_method_that_is_clearly_better_wins(oracle, monkeypatch):
    model, validation = oracle(v=60, bias=0.1)
    model.written[..., 10:] += 3  # the mean of all anchors is off, that of these is not
    better = replace(METHODS["stratified"], choose=lambda *given: np.arange(4))
    monkeypatch.setitem(METHODS, "stratified", better)
    found = automatic(model, validation, 4)
    assert found.method == "stratified"
    np.testing.assert_array_equal(found.rows, np.arange(4))
    assert found.rmse_val["stratified"] == min(found.rmse_val.values())


def test_what_leaves_a_device_too_sure_is_not_compared(oracle):
    model, validation = oracle(v=60, bias=2, noise=0.5)
    assert "greedy" not in automatic(model, validation, 4).rmse_val


def test_the_choice_is_that_of_the_winner_and_its_score_is_true(tiny_twin, curve):
    X, y = curve
    validation = X[80:120], y[80:120]
    found = automatic(tiny_twin, validation, 8, seed=3)
    given = tiny_twin.anchor_X_, tiny_twin.anchor_y_, 8
    options = {"model": tiny_twin, "validation": validation, "seed": 3}
    np.testing.assert_array_equal(found.rows, select(*given, found.method, **options))
    np.testing.assert_array_equal(found.rows, select(*given, **options))
    for method in ("match", "xy", "medoids", "stratified", "farthest"):
        truth = rmse(tiny_twin, validation, select(*given, method, model=tiny_twin, seed=3))
        assert found.rmse_val[method] == pytest.approx(truth, rel=1e-4)


def test_a_model_of_neighbors_is_scored_as_it_predicts(oracle):
    model, validation = oracle(bias=2, noise=0.1)
    model.pairs = "neighbors"
    model.predict = lambda X, *, anchors: validation[1] + np.mean(anchors)
    found = automatic(model, validation, 4)
    assert found.rmse_val.keys() == {"xy", "medoids", "stratified", "farthest"}
    np.testing.assert_allclose(found.rmse_val[found.method], np.mean(found.rows))


def squares(level, *, shake=0.0, seed=0):
    noise = np.random.default_rng(seed).normal(size=100)
    return level + shake * (noise - noise.mean())


@pytest.mark.parametrize(
    ("errors", "winner"),
    [
        ({"match": squares(1.0), "xy": squares(1.0)}, "match"),
        ({"match": squares(1.0), "xy": squares(0.985)}, "match"),  # 0.8 % of the error
        ({"match": squares(1.0), "xy": squares(0.9)}, "xy"),
        ({"match": squares(1.0, shake=1), "xy": squares(0.85)}, "match"),  # may be chance
        ({"match": squares(1.0, shake=1), "xy": squares(0.75)}, "xy"),
        ({"match": squares(9, shake=3), "xy": squares(8, shake=3)}, "xy"),  # point by point
        ({"match": squares(1.0), "xy": squares(0.8), "medoids": squares(0.79)}, "medoids"),
        ({"match": squares(1.0), "xy": squares(0.79), "medoids": squares(0.8)}, "xy"),
        ({"xy": squares(1.0), "medoids": squares(0.9)}, "medoids"),  # twins of neighbors
        ({"match": np.zeros(5), "xy": np.zeros(5)}, "match"),
        ({"match": np.ones(1), "xy": np.zeros(1)}, "match"),
    ],
)
def test_the_first_method_wins_unless_the_gain_is_clear(errors, winner):
    assert preferred(errors) == winner
