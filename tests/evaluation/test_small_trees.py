"""Trees in few bytes: counted as emlearn stores them, chosen on validation points."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from twinedge.evaluation.small_trees import HEAD_BYTES, fit_small_trees, forest_bytes


@pytest.fixture(scope="module")
def points():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.sign(X[:, 0]) + np.abs(X[:, 1])
    return (X[:200], y[:200]), (X[200:], y[200:])


@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_trees_fit_the_room_and_learn(points, kind):
    train, validation = points
    rooms = (2000, 20_000)
    found = [fit_small_trees(train, validation, room, kinds=[kind], few=True) for room in rooms]
    for one, room in zip(found, rooms, strict=True):
        assert one.bytes <= room
        off = one.predict(validation[0]) - validation[1]
        assert one.rmse_val == pytest.approx(np.sqrt(np.mean(off**2)))
        assert one.rmse_val < 0.8 * validation[1].std()
    assert found[1].rmse_val <= found[0].rmse_val


def test_the_search_is_no_worse_than_a_first_look(points):
    kinds = {"kinds": ["boosting"]}
    first, best = (fit_small_trees(*points, 800, few=few, **kinds) for few in (True, False))
    assert best.rmse_val < first.rmse_val
    assert best.bytes <= 800


def test_what_holds_no_tree_has_none(points):
    assert fit_small_trees(*points, HEAD_BYTES + 3) is None


def test_the_bytes_are_those_of_the_tables_that_emlearn_writes(points):
    """Counted from the C that it generates: 8 bytes per decision, 4 per root, and the leaves."""
    with np.errstate():  # importing emlearn changes numpy's error handling
        from emlearn import trees

    (X, y), _ = points
    y = np.rint(2 * y)  # some leaves are the same, and stored once
    forest = ExtraTreesRegressor(5, max_leaf_nodes=20, random_state=0).fit(X, y)
    nodes, roots, leaves = trees.Wrapper(forest, "loadable").forest_
    grown = [tree.tree_ for tree in forest.estimators_]
    values = {value for one in grown for value in one.value[one.children_left < 0, 0, 0]}
    count = sum(one.n_leaves for one in grown)
    assert len(values) < count
    stored = HEAD_BYTES + 8 * len(nodes) + 4 * len(roots) + 4 * len(leaves)
    assert forest_bytes(5, count, len(values)) == stored
