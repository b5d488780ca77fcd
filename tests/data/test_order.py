"""Tables that look as if their rows were in order of time, and those that only seem to."""

import numpy as np
import pytest

from twinedge.data.order import looks_ordered, of_order
from twinedge.data.source import from_table

ROWS = 600


def slow(rng, columns, memory=0.95):
    """Series whose values resemble the ones before."""
    found = np.zeros((ROWS, columns))
    for k in range(1, ROWS):
        found[k] = memory * found[k - 1] + np.sqrt(1 - memory**2) * rng.normal(size=columns)
    return found


def target(X, noise):
    return X[:, 0] + np.sin(2 * X[:, 1]) + noise


@pytest.mark.parametrize("seed", range(2))
def test_a_slow_process_gets_a_remark_with_both_errors(seed):
    rng = np.random.default_rng(seed)
    X = slow(rng, 3)
    remark = of_order(X, target(X, 0.5 * slow(rng, 1)[:, 0]), ())
    assert remark.startswith("neighboring rows are alike, and errors on later rows may be larger")
    assert "in the order of the file, trees have an error of" in remark
    assert [one.name for one in remark.parts if not isinstance(one, str)] == ["time"]


@pytest.mark.parametrize("seed", range(2))
def test_a_drift_gets_a_remark(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 3))
    y = target(X, np.linspace(0, 2, ROWS) + rng.normal(0, 0.3, ROWS))
    assert of_order(X, y, ()) is not None
    numbered = np.column_stack([X, np.arange(ROWS)])  # a row number is no sort key
    assert looks_ordered(numbered, y)


@pytest.mark.parametrize("seed", range(2))
def test_rows_in_no_order_get_none(seed):
    rng = np.random.default_rng(seed)
    X = slow(rng, 3)
    y = target(X, 0.5 * slow(rng, 1)[:, 0])
    order = rng.permutation(ROWS)
    assert of_order(X[order], y[order], ()) is None


def test_a_target_that_hardly_varies_for_its_size_has_nothing_that_could_be_alike():
    X = slow(np.random.default_rng(0), 3)
    y = target(X, 0)
    assert looks_ordered(X, y)
    assert not looks_ordered(X, 1e10 + y)


def test_rows_without_times_have_no_ranges_of_them(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a,y", *(f"{k * k % 17},{k % 7}" for k in range(40))]))
    assert from_table(path, target="y").time_ranges() == {}


@pytest.mark.parametrize("column", [0, 1, "target", "backwards"])
def test_a_sorted_table_is_not_in_order_of_time(column):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3))
    y = target(X, rng.normal(0, 0.3, ROWS))
    key = X[:, column] if isinstance(column, int) else y if column == "target" else -y
    order = np.argsort(key)
    assert of_order(X[order], y[order], ()) is None


def test_settings_in_turn_are_not_in_order_of_time():
    X = np.array(np.meshgrid(*[np.arange(5.0)] * 4, indexing="ij")).reshape(4, -1).T
    y = X[:, 0] ** 2 + 3 * np.sin(X[:, 1]) + X[:, 2] * X[:, 3]
    assert of_order(X, y, ()) is None


def test_few_rows_get_no_remark():
    rng = np.random.default_rng(0)
    X = slow(rng, 3)[:99]
    assert of_order(X, target(X, 0.0), ()) is None


@pytest.mark.parametrize("X", [np.full((200, 1), 1e300), np.arange(200.0)[:, None]])
def test_odd_columns_are_no_obstacle(X):
    X = X * np.linspace(1, 1.5, 200)[:, None]
    assert of_order(X, np.sin(np.arange(200.0)), ()) is None
    assert "holds dates or times" in of_order(X, np.sin(np.arange(200.0)), ("at",))


def table(seed=0, dates=True):
    rng = np.random.default_rng(seed)
    X = slow(rng, 2)
    y = target(X, 0.5 * slow(rng, 1)[:, 0])
    start = np.datetime64("2024-01-01T00:00")
    rows = [f"{a:.4f},{b:.4f},{c:.4f}" for (a, b), c in zip(X, y, strict=True)]
    rows = [f"{start + 10 * k},{row}" for k, row in enumerate(rows)] if dates else rows
    return "\n".join(["at,a,b,y" if dates else "a,b,y", *rows]) + "\n"


def remarks(path, **options):
    return [one for one in from_table(path, target="y", **options).remarks if "later rows" in one]


def test_a_dropped_date_is_named_with_both_errors(write):
    (remark,) = remarks(write(table()), drop=["at"])
    assert (
        "column 'at', which is left out, holds dates or times, and errors on later rows" in remark
    )
    assert remark.endswith("to train on the past and test on the future, use time='at'")


def test_rows_that_resemble_their_neighbors_are_noticed(write):
    (remark,) = remarks(write(table(dates=False)))
    assert "neighboring rows are alike" in remark


def test_with_times_or_groups_there_is_no_remark(write):
    assert not remarks(write(table()), time="at")
    text = table().splitlines()
    grouped = [f"{line},{k // 60}" for k, line in enumerate(text[1:])]
    path = write("\n".join([f"{text[0]},batch", *grouped]) + "\n")
    assert not remarks(path, drop=["at"], group="batch")
