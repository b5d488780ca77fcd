"""``twinedge train --folds`` and ``--test``: scores of all rows, or of a table of one's own."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge import fit_csv
from twinedge.data.source import from_table
from twinedge.data.splitting import cross_splits, split_in_two
from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.evaluation.held_out import HeldOut, fold_scores
from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

BRIEF = {
    "hidden": 8,
    "steps": 60,
    "activation": "relu",
    "learning_rate": 0.01,
    "weight_decay": 0.03,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def frame(curve):
    """120 rows with a batch, a day, a weight and a color."""
    X, y = curve
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "angle": X[:, 0],
            "offset": X[:, 1],
            "color": rng.choice(["red", "green", "blue"], len(y)),
            "level": y,
            "batch": [f"b{k:02}" for k in rng.permutation(np.arange(120) % 12)],
            "day": [f"2024-{1 + k // 28:02}-{1 + k % 28:02}" for k in rng.permutation(120)],
            "worth": rng.integers(1, 4, len(y)),
        }
    )


@pytest.fixture(scope="module")
def table(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("folds") / "table.csv"
    frame.to_csv(path, index=False)
    return path


BESIDE = ["batch", "day", "worth"]


@settings(deadline=None)
@given(
    n=st.integers(30, 90),
    folds=st.integers(2, 6),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["rows", "groups", "times"]),
)
def test_each_row_is_tested_once_and_never_by_a_model_that_saw_it(n, folds, seed, kind):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(n) % 11) if kind == "groups" else None
    times = rng.permutation(n) if kind == "times" else None
    found = cross_splits(n, folds, seed, groups, times)
    assert len(found) == folds
    np.testing.assert_array_equal(np.sort(np.concatenate([one.test for one in found])), range(n))
    for one in found:
        assert sorted(np.concatenate(one)) == list(range(n))
        assert len(one.train) > len(one.val) >= 1
        if groups is not None:
            sides = [set(groups[part]) for part in one]
            assert sum(map(len, sides)) == len(set.union(*sides))
        if times is not None:
            assert np.ptp(times[one.test]) == len(one.test) - 1  # one block
            assert times[one.val].min() > times[one.train].max()
    again = cross_splits(n, folds, seed, groups, times)
    for one, other in zip(found, again, strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)


def test_what_is_not_tested_is_split_eight_to_one():
    train, val, test = split_in_two(160, 3)
    assert (len(train), len(val), len(test)) == (140, 20, 0)
    assert sorted([*train, *val]) == list(range(160))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"groups": np.arange(40) % 3}, "4 folds need at least 4 groups, and there are 3"),
        ({"groups": np.arange(40) % 4}, None),
        ({"times": np.arange(40) % 2}, "too few different times for 4 folds; use 2"),
        ({"times": np.arange(40) % 4}, None),
    ],
)
def test_too_few_parts_for_the_folds_are_refused(more, says):
    if says is None:
        assert len(cross_splits(40, 4, 0, **more)) == 4
    else:
        with pytest.raises(InputError, match=says):
            cross_splits(40, 4, 0, **more)
    with pytest.raises(InputError, match="fold 1 of 2: of what it leaves, 2 groups of rows cannot"):
        cross_splits(40, 2, 0, np.arange(40) % 4)


@pytest.fixture(scope="module")
def crossed(table):
    return fit_csv(table, target="level", drop=BESIDE, folds=3, **BRIEF)


def test_the_model_is_trained_with_no_test_rows_lost(crossed):
    assert len(crossed.test[1]) == 0
    assert len(crossed.model.anchor_y_) + len(crossed.validation[1]) == 120


def test_the_test_error_is_that_of_all_rows_each_by_the_fold_that_did_not_see_it(crossed, table):
    source = from_table(table, target="level", drop=BESIDE, folds=3)
    errors = np.full(120, np.nan)
    for make in source.folds:
        fold = make()
        model = TwinRegressor(**BRIEF, intervals=False).fit(
            *fold.part(fold.rows.train),
            validation=fold.part(fold.rows.val),
            encoding=fold.encoding,
        )
        X, y = fold.part(fold.rows.test)
        errors[fold.rows.test] = model.predict(X) - y
    scores = crossed.scores
    assert scores["rmse_test"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    each = [one["rmse"] for one in scores["folds"]]
    assert [one["rows"] for one in scores["folds"]] == [40, 40, 40]
    assert scores["rmse_fold_mean"] == pytest.approx(np.mean(each))
    assert scores["rmse_fold_error"] == pytest.approx(np.std(each, ddof=1) / np.sqrt(3))
    assert {"rmse_mean", "rmse_linear", "verdict", "coverage_test"} <= set(scores)


def test_folds_of_groups_score_every_group_with_weights(table):
    options = {"drop": ["day"], "group": "batch", "weight": "worth", "intervals": False}
    run = fit_csv(table, target="level", folds=2, **options, **BRIEF)
    assert np.isfinite(run.scores["rmse_test"])
    tested = [one for one in run.scores["groups"] if one["part"] == "test"]
    assert [one["name"] for one in tested] == [f"b{k:02}" for k in range(12)]
    assert sum(one["rows"] for one in tested) == 120


def test_folds_in_blocks_of_time_show_all_times(table):
    options = {"drop": ["batch", "worth"], "time": "day", "intervals": False}
    run = fit_csv(table, target="level", folds=2, **options, **BRIEF)
    assert sum(one["rows"] for one in run.scores["by_time"]) == 120
    assert run.scores["rmse_naive"] > 0


def test_the_command_states_that_scores_are_cross_validated(cli, table, tiny, tmp_path):
    options = ["--target", "level", "--folds", "2", "--no-intervals", *tiny]
    options += [word for name in BESIDE for word in ("--drop", name)]
    answer = cli("train", table, *options, "-o", "run")
    assert answer.code == 0
    assert "Cross-validated: test scores are of all rows, in 2 folds." in answer.out
    assert not list(tmp_path.glob("*checkpoint*"))
    assert len(load_run(tmp_path / "run").scores["folds"]) == 2


def test_rivals_that_a_fold_lacks_are_left_out():
    y = np.arange(4.0)
    one = HeldOut(y, y + 1, {"mean": y * 0, "trees": y}, 100)
    two = HeldOut(y, y - 1, {"mean": y * 0}, 100)
    both = HeldOut.together([one, two])
    assert list(both.rivals) == ["mean"]
    assert both.rmse == 1
    assert both.coverage is None
    assert fold_scores([one, two])["rmse_fold_error"] == 0


@pytest.mark.parametrize("folds", [1, 0, -2, 2.5, "five", True])
def test_what_is_no_number_of_folds_is_refused(table, folds):
    with pytest.raises(InputError, match=r"folds.*is not a whole number of at least 2"):
        from_table(table, target="level", drop=BESIDE, folds=folds)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--folds", "many"], ["--folds"]),
        (["--folds", "200"], ["table.csv: 200 folds need at least 200 rows, and there are 120"]),
        (["--folds", "3", "--test", "other.csv"], ["--folds 3 and --test", "not both"]),
        (["--test", "gone.csv"], ["gone.csv"]),
    ],
)
def test_bad_folds_and_test_files_are_refused(refused, table, options, says):
    drop = [word for name in BESIDE for word in ("--drop", name)]
    refused("train", table, "--target", "level", *drop, *options, "-o", "run", says=says)


# A test set of one's own.


@pytest.fixture(scope="module")
def parts(frame, tmp_path_factory):
    """The table in two files, the second with other columns first and a level never seen."""
    folder = tmp_path_factory.mktemp("test")
    later = frame.iloc[90:, ::-1].copy()
    later.loc[later.index[0], "color"] = "violet"
    frame.iloc[:90].to_csv(folder / "table.csv", index=False)
    later.to_csv(folder / "later.csv", index=False)
    return folder / "table.csv", folder / "later.csv"


def test_rows_of_the_test_file_are_tested_and_no_others(parts, frame):
    table, later = parts
    run = fit_csv(table, target="level", drop=BESIDE, test=later, intervals=False, **BRIEF)
    np.testing.assert_allclose(run.test[1], frame["level"][90:])
    assert len(run.model.anchor_y_) == 79
    assert len(run.validation[1]) == 11
    error = run.model.predict(run.test[0]) - run.test[1]
    assert run.scores["rmse_test"] == pytest.approx(np.sqrt(np.mean(error**2)))
    of_frame = fit_csv(
        frame[:90], target="level", drop=BESIDE, test=frame[90:], intervals=False, **BRIEF
    )
    np.testing.assert_array_equal(of_frame.model.weights_, run.model.weights_)


def test_groups_weights_and_times_of_the_test_file_are_read(parts, frame):
    table, later = parts
    more = {"test": later, "target": "level"}
    grouped = from_table(table, group="batch", weight="worth", drop=["day"], **more)
    assert list(grouped.groups[90:]) == list(frame["batch"][90:])
    assert list(grouped.weights[90:]) == list(frame["worth"][90:])
    assert not set(grouped.groups[grouped.rows.train]) & set(grouped.groups[grouped.rows.val])
    both = len(set(frame["batch"][:90]) & set(frame["batch"][90:]))
    assert any(f"{both} groups also in table.csv" in str(one) for one in grouped.remarks)
    timed = from_table(table, time="day", drop=["batch", "worth"], **more)
    assert len(timed.times) == 120
    assert timed.times[timed.rows.val].min() > timed.times[timed.rows.train].max()


def test_rows_of_weight_zero_in_the_test_file_are_left_out(parts, frame, tmp_path):
    later = frame[90:].copy()
    later.loc[later.index[:4], "worth"] = 0
    later.to_csv(tmp_path / "zero.csv", index=False)
    options = {"target": "level", "weight": "worth", "drop": ["day"], "group": "batch"}
    source = from_table(parts[0], test=tmp_path / "zero.csv", **options)
    assert len(source.rows.test) == 26
    assert list(source.groups[90:]) == list(frame["batch"][94:])


def test_missing_values_of_the_test_file_are_filled_in_like_the_others(parts, frame, tmp_path):
    later = frame[90:].astype({"angle": object})
    later.loc[later.index[:2], "angle"] = ["-9999", ""]
    later.to_csv(tmp_path / "holes.csv", index=False)
    options = {"target": "level", "drop": BESIDE, "test": tmp_path / "holes.csv"}
    source = from_table(parts[0], impute="median", missing=[-9999], **options)
    middle = np.median(frame["angle"].to_numpy()[:90][source.rows.train])
    np.testing.assert_allclose(source.X[90:92, 0], middle)
    assert any("filled in 2 missing values" in str(one) for one in source.remarks)
    with pytest.raises(InputError, match=r"holes.csv: row 2, column 'angle': missing value"):
        from_table(parts[0], missing=[-9999], **options)


def test_rows_in_both_files_are_remarked(parts, frame, tmp_path):
    frame[80:].to_csv(tmp_path / "both.csv", index=False)
    source = from_table(parts[0], target="level", drop=BESIDE, test=tmp_path / "both.csv")
    assert any("10 rows also in table.csv" in str(one) for one in source.remarks)


def test_a_test_file_without_a_column_is_refused(refused, parts, frame, tmp_path):
    frame[90:].drop(columns="offset").to_csv(tmp_path / "less.csv", index=False)
    drop = [word for name in BESIDE for word in ("--drop", name)]
    options = ["--target", "level", *drop, "--test", "less.csv", "-o", "run"]
    refused("train", parts[0], *options, says=["less.csv", "'offset'"])
