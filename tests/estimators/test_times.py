"""With times, the newest rows are held out, and folds are blocks of time."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor
from twinedge.training.tasks import FOLDS

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def log():
    """Rows in no order, and their times."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1], rng.permutation(100)


def prepared(model, X, y, times, validation=None, **more):
    return model._prepare(X, y, validation, 0, None, None, times=times, **more)


def rows_of(part, X):
    """Which rows of X a part has; all rows differ."""
    place = {tuple(row): number for number, row in enumerate(X.tolist())}
    return [place[tuple(row)] for row in part[0].tolist()]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 30), min_size=16, max_size=90).filter(lambda one: len(set(one)) > 1))
def test_the_newest_rows_are_held_out_and_equal_times_stay_together(times):
    X = np.arange(2.0 * len(times)).reshape(-1, 2)
    model = TwinRegressor()
    train, held = prepared(model, X, X[:, 0], times)
    assert len(train[1]) >= 2
    assert len(train[1]) + len(held[1]) == len(times)
    own, others = (np.array(times)[rows_of(part, X)] for part in (train, held))
    if len(others):
        assert own.max() < others.min()
    assert model.validation_groups_ is None
    order = np.argsort(own, kind="stable")
    assert (np.diff(model.groups_[order]) >= 0).all()
    assert model.groups_.max() < FOLDS


def test_the_share_that_is_held_out_is_the_usual_one(log):
    X, y, when = log
    train, held = prepared(TwinRegressor(), X, y, when)
    assert (len(train[1]), len(held[1])) == (88, 12)
    assert sorted(when[rows_of(held, X)]) == list(range(88, 100))


def test_given_validation_points_all_rows_are_trained_on_in_blocks(log):
    X, y, when = log
    model = TwinRegressor()
    train, _ = prepared(model, X, y, when, (X[:10], y[:10]))
    assert len(train[1]) == 100
    np.testing.assert_array_equal(model.groups_, when // 20)


@pytest.mark.parametrize(
    "kind",
    [
        list,
        lambda one: one / 7,
        lambda one: np.datetime64("2024-01-01") + one,
        lambda one: [date(2024, 1, 1) + timedelta(int(k)) for k in one],
        lambda one: [f"{date(2024, 1, 1) + timedelta(int(k)):%d.%m.%Y}" for k in one],
        lambda one: pd.Series(pd.to_datetime("2024-01-01") + pd.to_timedelta(one, "D")),
        lambda one: pd.date_range("2024-01-01", periods=100, tz="Europe/Oslo")[one],
    ],
)
def test_times_may_be_of_any_kind(log, kind):
    X, y, when = log
    _, held = prepared(TwinRegressor(), X, y, kind(when))
    assert sorted(when[rows_of(held, X)]) == list(range(88, 100))


def test_rows_of_weight_0_take_their_times_with_them(log):
    X, y, when = log
    weights = (when < 90).astype(float)
    train, held = prepared(TwinRegressor(), X, y, when, sample_weight=weights)
    assert max(when[rows_of(held, X)]) == 89
    assert len(train[1]) + len(held[1]) == 90


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (np.zeros(40), "one time for all rows; at least two"),
        (np.arange(39), "times has 39 entries; the table has 40 rows"),
        ([], "times has 0 entries"),
        (7, "times has shape (); one for each row"),
        (np.zeros((40, 1)), "times has shape (40, 1)"),
        ([[1, 2], [3]], "times must be one for each row"),
        (np.append(np.arange(39.0), np.nan), "times: row 39 has none"),
        (np.append(np.arange(39.0), np.inf), "times: row 39 has none"),
        ([*map(str, range(39)), None], "times: row 39 has none"),
        (["2024-01-01"] * 39 + ["soon"], "time 39: 'soon' cannot be read as a time"),
        ([True, False] * 20, "cannot be read as a time"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_what_is_no_time_of_each_row_is_refused(complaint, tiny, times, words):
    X = np.arange(80.0).reshape(40, 2)
    assert words in complaint(TwinRegressor(**tiny).fit, X, X[:, 0], times=times)


def test_times_and_groups_exclude_each_other(complaint, tiny):
    X = np.arange(80.0).reshape(40, 2)
    message = complaint(
        TwinRegressor(**tiny).fit, X, X[:, 0], times=np.arange(40), groups=np.arange(40) % 4
    )
    assert "groups and times: rows are held out group by group or in order of time" in message


def test_folds_are_blocks_of_time(log, monkeypatch):
    X, y, when = log
    seen = []

    def stop(self, task, train, held, **more):
        seen.append((task, rows_of(train, X)))
        raise KeyboardInterrupt

    monkeypatch.setattr(AnnRegressor, "_choose", stop)
    with pytest.raises(KeyboardInterrupt):
        AnnRegressor(random_state=0).fit(X, y, times=when)
    ((task, rows),) = seen
    for fold in range(FOLDS):
        held = np.sort(when[np.array(rows)[task.fold(fold)]])
        assert (np.diff(held) == 1).all()


def test_an_ensemble_passes_times_on(log, tiny):
    X, y, when = log
    base = TwinRegressor(**{**tiny, "steps": 20})
    members = EnsembleRegressor(base, 2, random_state=0).fit(X, y, times=when).members_
    for one in members:
        assert sorted(when[rows_of(one.validation_, X)]) == list(range(88, 100))
