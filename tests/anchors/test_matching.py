import numpy as np
import pytest

from twinedge.anchors import select
from twinedge.anchors.methods import exchanged, forward


def matched(model, k, **options):
    twins = len(model.weights_)
    return select(model.anchor_X_, model.anchor_y_, k, "match", model=model, twins=twins, **options)


def deviations(model, X, rows):
    """Rms difference from all anchors of mean and spread, over the spread of all."""
    mean, spread = model.predict(X), model.spread(X)
    mine, own = model.predict(X, anchors=rows), model.spread(X, anchors=rows)
    return np.sqrt([np.mean((mine - mean) ** 2), np.mean((own - spread) ** 2)]) / spread.mean()


@pytest.mark.parametrize(("name", "k"), [("tiny_twin", 4), ("tiny_twin", 16), ("four_twins", 16)])
def test_few_anchors_predict_and_spread_like_all(request, curve, name, k):
    model, X = request.getfixturevalue(name), curve[0][80:]
    rows, twins = matched(model, k), len(model.weights_)
    assert len(set(rows.tolist())) == k
    draws = [select(*curve_of(model), k, "random", twins=twins, seed=seed) for seed in range(10)]
    random = np.mean([deviations(model, X, each) for each in draws], axis=0)
    assert (deviations(model, X, rows) < random / 2).all()


def curve_of(model):
    return model.anchor_X_, model.anchor_y_


def test_all_anchors_are_all(tiny_twin):
    assert sorted(matched(tiny_twin, 80)) == list(range(80))


def test_no_target_is_looked_at(oracle):
    model, validation = oracle()
    rows = matched(model, 4)
    model.anchor_y_ = model.anchor_y_[::-1].copy()
    np.testing.assert_array_equal(matched(model, 4), rows)
    np.testing.assert_array_equal(matched(model, 4, validation=validation), rows)


def test_the_same_seed_gives_the_same_rows_where_points_are_drawn(tiny_twin, monkeypatch):
    monkeypatch.setattr("twinedge.anchors.methods.MOST_CANDIDATES", 30)
    monkeypatch.setattr("twinedge.anchors.methods._MOST_QUERIES", 10)
    one, same, other = (matched(tiny_twin, 8, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert set(one.tolist()) != set(other.tolist())
    assert len(matched(tiny_twin, 40)) == 40  # more than its usual candidates


def test_memory_is_bounded(oracle, monkeypatch):
    monkeypatch.setattr("twinedge.anchors.methods._DIFFERENCES", 2 * 60 * 7)
    model, _ = oracle(n=60)
    matched(model, 4)
    assert sum(model.calls) == 60 * 7


def test_estimates_that_are_all_the_same_are_no_trouble(oracle):
    model, _ = oracle(bias=0, noise=0)
    assert len(set(matched(model, 5).tolist())) == 5


def test_without_a_model_it_is_refused(complaint, oracle):
    model, validation = oracle()
    message = complaint(select, *curve_of(model), 4, "match", validation=validation)
    assert "'match' anchors need a fitted model" in message
    assert "validation" not in message
    assert "medoids" in message


@pytest.mark.parametrize("twins", [1, 3])
def test_exchanges_leave_nothing_that_one_exchange_could_better(twins):
    rng = np.random.default_rng(twins)
    table = rng.normal(size=(twins, 20, 5)).astype(np.float32)
    first = forward(table, 6)
    chosen = exchanged(table, first)
    twin = np.arange(6) % twins
    length = [np.square(table[twin, rows].sum(axis=0)).sum() for rows in (first, chosen)]
    assert length[1] <= length[0]
    assert len(set(chosen.tolist())) == 6
    for place in range(6):
        for row in set(range(20)) - set(chosen.tolist()):
            other = chosen.copy()
            other[place] = row
            assert np.square(table[twin, other].sum(axis=0)).sum() > length[1] - 1e-4
