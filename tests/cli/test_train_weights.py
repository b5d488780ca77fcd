"""``twinedge train --weight``: rows count as much as a column says."""

import numpy as np
import pytest

import twinedge
from twinedge.evaluation.comparison import standing_beside
from twinedge.evaluation.rivals import fit_linear, rival_predictions
from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

OFFSET = 100.0
CHOSEN = {"activation": "relu", "learning_rate": 0.01, "weight_decay": 0.03}
QUICK = ["--hidden", 8, "--steps", 300, "--seed", 0]
QUICK += [word for name, one in CHOSEN.items() for word in (f"--{name.replace('_', '-')}", one)]


@pytest.fixture(scope="module")
def rows(curve):
    """Weight, three features and target; every second target is wrong, and hardly counts."""
    X, y = (np.concatenate([one] * 3) for one in curve)
    X = X + np.random.default_rng(0).normal(0, 0.01, X.shape)
    odd = np.arange(len(y)) % 2 == 1
    return np.column_stack([np.where(odd, 1e-3, 2.0), X, y + OFFSET * odd])


@pytest.fixture(scope="module")
def table(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "table.csv"
    rows = np.vstack([rows, [0, 1e9, 0, 0, -1e9]])  # weight 0
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    path.write_text("\n".join(["weight,angle,offset,idle,level", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(done, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    given = ("train", table, "--target", "level", "--weight", "weight", "-o", folder, *QUICK)
    answer = done(*given, "--json")
    return folder, answer.json, answer.err


def test_the_run_names_the_column(trained):
    folder, report, remarks = trained
    assert report["weight"] == "weight"
    assert report["rows"] == 360
    assert "1 row of weight 0 left out" in remarks
    run = load_run(folder)
    assert run.source["weight"] == "weight"
    assert run.feature_names == ("angle", "offset", "idle")


def test_every_row_keeps_its_weight(trained, rows):
    run = load_run(trained[0])
    weight = {tuple(row[1:4]): row[0] for row in rows.tolist()}
    for (X, _), found in (
        ((run.model.anchor_X_, None), run.model.sample_weights_),
        (run.validation, run.model.validation_weights_),
        (run.test, run.test_weights),
    ):
        wanted = np.array([weight[tuple(row)] for row in X.tolist()])
        np.testing.assert_allclose(found, wanted / wanted.mean())


def test_all_errors_are_weighted(trained):
    run, report = load_run(trained[0]), trained[1]
    X, y = run.test
    off = run.model.predict(X) - y
    weighted = np.sqrt(np.average(np.square(off), weights=run.test_weights))
    assert report["rmse_test"] == pytest.approx(weighted)
    assert report["rmse_test"] < 0.2 * OFFSET < np.sqrt(np.mean(np.square(off)))
    assert report["rmse_val"] == run.model.validation_rmse_ < 0.2 * OFFSET
    mean = np.average(run.model.anchor_y_, weights=run.model.sample_weights_)
    wanted = np.sqrt(np.average(np.square(mean - y), weights=run.test_weights))
    assert report["rmse_mean"] == pytest.approx(wanted)
    linear = fit_linear(run.model.anchor_X_, run.model.anchor_y_, run.model.sample_weights_)
    wanted = np.sqrt(np.average(np.square(linear.predict(X) - y), weights=run.test_weights))
    assert report["rmse_linear"] == pytest.approx(wanted)
    assert report["rmse_trees"] < 0.5 * OFFSET
    centred = y - np.average(y, weights=run.test_weights)
    variance = np.average(np.square(centred), weights=run.test_weights)
    assert report["r2_test"] == pytest.approx(1 - weighted**2 / variance)


def test_so_is_the_coverage_of_intervals(trained):
    run = load_run(trained[0])
    X, y = run.test
    low, high = run.model.predict_interval(X, 0.9).T
    covered = (low <= y) & (y <= high)
    assert run.scores["coverage_test"] == np.average(covered, weights=run.test_weights)
    assert run.scores["coverage_test"] > covered.mean() + 0.3


def test_python_trains_the_same_model(trained, table):
    options = {"hidden": 8, "steps": 300, "random_state": 0, **CHOSEN}
    run = twinedge.fit_csv(table, target="level", weight="weight", **options)
    assert np.array_equal(run.model.weights_, load_run(trained[0]).model.weights_)
    assert run.scores["rmse_test"] == trained[1]["rmse_test"]


def test_an_export_of_the_run_follows_the_heavy_rows(cli, trained, curve, tmp_path):
    assert cli("export", trained[0], "--anchors", 16, "--formats", "twin").code == 0
    device = twinedge.load(tmp_path / "out" / "model.twin")
    assert np.abs(device.predict(curve[0]) - curve[1]).mean() < 0.1 * OFFSET


def test_without_weights_rivals_are_those_of_before(curve):
    X, y = curve
    train, validation, test = [slice(80), slice(80, 100), slice(100, None)]
    rivals, weighed = (
        rival_predictions(
            (X[train], y[train]), X[test], (X[validation], y[validation]), weights=one
        )
        for one in [(None, None), (np.ones(80), np.ones(20))]
    )
    predicted = y[test] + 0.1
    assert standing_beside(rivals, y[test], predicted) == standing_beside(
        rivals, y[test], predicted, weights=np.ones(20)
    )
    assert list(weighed) == list(rivals)
    for name, one in rivals.items():
        np.testing.assert_allclose(weighed[name], one, rtol=1e-9)
