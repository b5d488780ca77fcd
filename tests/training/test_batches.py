import numpy as np
import pytest

from twinedge.training.batches import Examples

ROWS = 12


@pytest.fixture
def table():
    """Rows whose single feature is their number, with patternless targets."""
    x = np.arange(ROWS, dtype=np.float32)[:, None]
    return x, np.random.default_rng(0).normal(size=ROWS).astype(np.float32)


def drawn(examples, seed=(5, 0), count=20, batch=64):
    """Inputs and targets of ``count`` batches, ``(count, c, batch, ...)``."""
    draws = examples.kind.draw(count, batch, list(seed), *examples.tensors)
    batches = [examples.kind.batch(k, draws, *examples.tensors) for k in range(count)]
    return tuple(
        np.stack([np.asarray(part) for part in parts]) for parts in zip(*batches, strict=True)
    )


def rows_of(inputs):
    return inputs.astype(int)


def test_points_come_from_the_rows_of_a_network_with_their_targets(table):
    x, y = table
    rows = np.array([[0, 1, 2, 3], [4, 6, 8, 11]], np.int32)
    inputs, targets = drawn(Examples.points(x, y, rows))
    for network, mine in enumerate(rows):
        seen = rows_of(inputs[:, network, :, 0])
        assert set(seen.ravel()) == set(mine)
        np.testing.assert_array_equal(targets[:, network], y[seen])


def test_pairs_come_from_the_rows_of_a_network_with_their_difference(table):
    x, y = table
    rows = np.array([[0, 1, 2, 3], [4, 6, 8, 11]], np.int32)
    inputs, targets = drawn(Examples.pairs(x, y, rows))
    for network, mine in enumerate(rows):
        first, second = rows_of(inputs[:, network, :, 0]), rows_of(inputs[:, network, :, 1])
        every_pair = {(i, j) for i in mine for j in mine}
        assert set(zip(first.ravel(), second.ravel(), strict=True)) == every_pair
        np.testing.assert_array_equal(targets[:, network], y[first] - y[second])


def test_both_points_of_a_pair_keep_all_their_features():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(ROWS, 3)).astype(np.float32), np.arange(ROWS, dtype=np.float32)
    inputs, targets = drawn(Examples.pairs(x, y, np.arange(ROWS, dtype=np.int32)[None]))
    points = {tuple(row): i for i, row in enumerate(x)}
    for pair, target in zip(inputs.reshape(-1, 6), targets.ravel(), strict=True):
        assert points[tuple(pair[:3])] - points[tuple(pair[3:])] == target


def test_listed_pairs_join_a_row_with_its_partners_in_both_orders(table):
    x, y = table
    partners = np.stack([(np.arange(ROWS) + step) % ROWS for step in (1, 3)], 1).astype(np.int32)
    rows = np.array([[0, 1, 2, 3], [4, 6, 8, 11]], np.int32)
    inputs, targets = drawn(Examples.pairs(x, y, rows, partners))
    for network, mine in enumerate(rows):
        first, second = rows_of(inputs[:, network, :, 0]), rows_of(inputs[:, network, :, 1])
        listed = {(i, j) for i in mine for j in partners[i]}
        either_order = listed | {(j, i) for i, j in listed}
        assert set(zip(first.ravel(), second.ravel(), strict=True)) == either_order
        np.testing.assert_array_equal(targets[:, network], y[first] - y[second])


@pytest.fixture(params=["points", "pairs", "listed"])
def kind(request, table):
    """Make examples of each kind for given rows."""
    partners = np.stack([(np.arange(ROWS) + step) % ROWS for step in (1, 2)], 1).astype(np.int32)
    return {
        "points": lambda rows: Examples.points(*table, rows),
        "pairs": lambda rows: Examples.pairs(*table, rows),
        "listed": lambda rows: Examples.pairs(*table, rows, partners),
    }[request.param]


def test_draws_depend_on_seed_and_step_alone(kind):
    rows = np.arange(ROWS, dtype=np.int32)[None]
    inputs, _ = drawn(kind(rows), seed=(5, 500))
    np.testing.assert_array_equal(drawn(kind(rows), seed=(5, 500))[0], inputs)
    assert not np.array_equal(drawn(kind(rows), seed=(6, 500))[0], inputs)
    assert not np.array_equal(drawn(kind(rows), seed=(5, 1000))[0], inputs)


def test_batches_of_a_network_do_not_depend_on_who_else_is_in_the_stack(kind):
    rows = np.random.default_rng(1).permuted(np.tile(np.arange(ROWS), (3, 1)), axis=1)
    together = drawn(kind(rows.astype(np.int32)))
    alone = drawn(kind(rows[1:2].astype(np.int32)))
    for stacked, single in zip(together, alone, strict=True):
        np.testing.assert_array_equal(stacked[:, 1], single[:, 0])
        assert not np.array_equal(stacked[:, 0], single[:, 0])
