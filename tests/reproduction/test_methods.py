"""Cells compute what their names say, on the rows the paper took."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from benchmarks.reproduction import forests, networks, pair_gain
from benchmarks.reproduction.published import published_network, published_twin
from benchmarks.reproduction.rows import paper_order
from twinedge import data
from twinedge.training import selection

POINTS = ("train", "val", "test")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Train briefly, search among two settings."""
    plan = selection.Plan(folds=20, final=60, teachers=False)
    monkeypatch.setitem(selection.PLANS, "quick", plan)
    monkeypatch.setattr(forests, "SMALL_GRID", {"max_depth": [3], "max_features": [0.5, 1.0]})
    monkeypatch.setattr(forests, "SMALL_TREES", 2)
    monkeypatch.setattr(forests, "TREES", 4)
    monkeypatch.setattr(forests, "LOOP_WEIGHTS", (1e-12, 1.0))
    monkeypatch.setitem(pair_gain.STEPS, "quick", 50)


@pytest.mark.slow
def test_twins_are_evaluated_in_every_way(cell):
    found = networks.twins(cell("twins", "wsb", members=2))
    assert found["sizes"] == [1, 2, 4, 8, 16, 32, 64]
    assert found["twins"][0] == pytest.approx(found["all_anchors"], rel=1e-6)
    assert found["twins"][1] == found["ensemble"]
    assert found["twins"][2:] == [None] * 5
    assert len(found["anchors"]) == 7
    # 140 training points: 128 of them are nearly all.
    assert found["nearest_anchors"][-1] == pytest.approx(found["all_anchors"], rel=0.1)


@pytest.mark.slow
def test_uncertainties_are_scored(cell):
    found = networks.unsure_twin(cell("unsure_twin", "wsb"))
    assert set(found) == {
        *("rmse", "least_area", "chosen"),
        *("spread", "loop_violation", "asymmetry"),
    }


@pytest.mark.slow
def test_seconds_are_of_one_network_and_of_predicting_with_it(cell):
    found = [
        networks.timed_network(cell("timed_network", "wsb")),
        networks.timed_twin(cell("timed_twin", "wsb")),
        networks.timed_twin(cell("timed_twin", "wsb", number=8)),
    ]
    for one in found:
        assert one["training"] > one["predicting"] > 0
    assert len({one["rmse"] for one in found}) == 3, "three networks"


@pytest.mark.slow
def test_networks_are_the_same_each_time_and_others_on_another_split(cell):
    one, two, other = (
        networks.networks(cell("networks", "wsb", split, members=3)) for split in (0, 0, 1)
    )
    assert one == two
    assert (one["sizes"], len(one["networks"])) == ((1, 2, 3), 3)
    assert one["networks"] != other["networks"]


@pytest.mark.parametrize(
    ("protocol", "number", "pairs"),
    [("published", 1, 2), ("published", 8, 8), ("text", 1, 1)],
    ids=["published 1", "published 8", "text 1"],
)
def test_a_multiplier_has_the_partners_of_its_protocol(cell, monkeypatch, protocol, number, pairs):
    seen = []

    def trained(cell, train, validation, members, **options):
        seen.append((members, options))
        raise RuntimeError("enough")

    monkeypatch.setattr(networks, "_trained_twins", trained)
    with pytest.raises(RuntimeError, match="enough"):
        networks.multiplied_twin(cell("multiplied_twin", "wsb", 0, number, protocol=protocol))
    assert seen == [(1, {"pairs": pairs})]


@pytest.mark.slow
def test_a_twin_of_neighbors_is_trained_on_them(cell):
    found = networks.neighbour_twin(cell("neighbour_twin", "wsb", 0, 8))
    assert 0 < found["rmse"] < 10


def test_forests_see_the_first_200_rows_as_published(cell):
    table = data.load("tf")
    expected = train_test_split(table.X[:200], table.y[:200], test_size=0.5, random_state=3)
    for mine, theirs in zip(forests._halves(cell("forest", "tf", 3)), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    by_text = forests._halves(cell("forest", "tf", 3, protocol="text"))
    assert [len(part) for part in by_text] == [100] * 4
    assert not np.isin(by_text[2], table.y[:200]).all()


def test_boston_housing_is_in_the_order_of_keras(cell):
    keras = np.arange(506)
    np.random.RandomState(113).shuffle(keras)
    np.testing.assert_array_equal(paper_order(cell("forest", "bh")), keras)
    np.testing.assert_array_equal(paper_order(cell("forest", "yh")), np.arange(308))


def test_a_quick_search_ends_with_more_trees(cell, monkeypatch):
    trees = []
    fit = RandomForestRegressor.fit

    def spied(self, *args, **options):
        trees.append(self.n_estimators)
        return fit(self, *args, **options)

    monkeypatch.setattr(RandomForestRegressor, "fit", spied)
    found = forests.twinned_forest(cell("twinned_forest", "tf"))
    assert set(trees[:-1]) == {2}
    assert trees[-1] == 4
    assert found["rmse"] > 0
    assert found["rmse"] != found["rmse_symmetric"]
    assert forests.forest(cell("forest", "tf"))["chosen"]["max_depth"] == 3


def test_other_efforts_search_the_grid_of_the_protocol(cell):
    grids = {
        protocol: forests._grid(cell("forest", effort="normal", protocol=protocol))[0]
        for protocol in ("published", "text")
    }
    count = {name: np.prod([len(one) for one in grid.values()]) for name, grid in grids.items()}
    assert count == {"published": 54, "text": 405}


def test_loops_are_tried_at_every_weight(cell):
    found = forests.loop_forest(cell("loop_forest", "tf"))
    assert found["loop_weights"] == (1e-12, 1.0)
    assert len(found["semi_supervised"]) == 2
    assert len({found["supervised"], *found["semi_supervised"]}) == 3


@pytest.mark.slow
def test_a_check_cell_says_what_a_twin_gains_from_pairs(cell):
    found = networks.check(cell("check", "wsb"))
    assert found["warns"] in (0.0, 1.0)
    assert found["reasons"] or not found["warns"]
    ratios = ("nearest", "networks", "forest", "linear", "mean", "pairs")
    assert min(found[name] for name in ratios) > 0


@pytest.fixture
def wheatstone():
    table, rows = data.load("wsb"), data.splits("wsb", 0)
    return {name: (table.X[part], table.y[part]) for name, part in zip(POINTS, rows, strict=True)}


@pytest.mark.slow
def test_the_published_recipe_learns_and_is_evaluated_as_ours(wheatstone):
    train, validation, (X, y) = wheatstone.values()
    before, after = (
        published_twin(train, validation, 0, epochs=epochs).rmse(X, y) for epochs in (1, 12)
    )
    assert after < before
    network = published_network(train, validation, 0, epochs=2)
    assert network.predict(X).shape == y.shape


@pytest.mark.parametrize("pairs", ["all", "neighbors", 2])
def test_the_published_recipe_pairs_as_requested(wheatstone, pairs):
    train, validation, (X, _) = wheatstone.values()
    model = published_twin(train, validation, 0, pairs=pairs, neighbors=4, epochs=1)
    members = {"all": len(train[1]), "neighbors": 4, 2: len(train[1])}[pairs]
    assert model.estimates(X).shape == (len(X), members)
