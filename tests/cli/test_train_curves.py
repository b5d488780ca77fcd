"""``--target-curve`` and ``--input-map``: from a table to a device, as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest

import twinedge
from twinedge.run_folder import load_run

HEADER = "width,depth,price"


@pytest.fixture(scope="module")
def prices():
    """Prices from 0.4 to 150 whose noise grows with them."""
    rng = np.random.default_rng(5)
    X = rng.random((200, 2))
    return X, np.exp(4 * X[:, 0] + X[:, 1] - 1 + 0.2 * rng.normal(size=len(X)))


@pytest.fixture(scope="module")
def table(prices, write_points, tmp_path_factory):
    return write_points(tmp_path_factory.mktemp("prices") / "prices.csv", *prices, HEADER)


@pytest.fixture(scope="module")
def trained(done, table, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    given = ("--target", "price", "--target-curve", "log", "-o", folder, "--json", *tiny)
    return folder, done("train", table, *given).json


def test_a_run_says_what_was_learnt_and_errors_are_in_units_of_the_target(trained):
    folder, report = trained
    assert report["target_curve"] == "log"
    assert "curve_choice" not in report
    record = json.loads((folder / "run.json").read_text())
    assert record["parameters"]["target_curve"] == "log"
    assert record["chosen"]["target_curve"] == "log"
    run = load_run(folder)
    X, y = run.test
    off = run.model.predict(X) - y
    assert report["rmse_test"] == pytest.approx(np.sqrt(np.mean(np.square(off))))
    assert report["rmse_test"] < report["rmse_mean"]
    low, high = run.model.predict_interval(X).T
    assert report["coverage_test"] == np.mean((low <= y) & (y <= high))
    assert (low > 0).all()


def test_a_run_predicts_and_is_evaluated_in_units_of_the_target(cli, trained, table, prices):
    folder, _ = trained
    header, found = cli("predict", folder, table).predictions
    assert header.startswith("price")
    np.testing.assert_allclose(found[:, 0], load_run(folder).model.predict(prices[0]), rtol=1e-5)
    answer = cli("evaluate", folder, table, "--json")
    assert answer.code == 0, answer.err
    off = load_run(folder).model.predict(prices[0]) - prices[1]
    assert answer.json["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(off))), rel=1e-4)


def test_anchors_are_compared_in_units_of_the_target(cli, trained):
    folder, report = trained
    answer = cli("anchors", folder, "--json")
    assert answer.code == 0, answer.err
    for point in answer.json["points"]:
        assert 0.5 < point["ratio_to_all"] < 3
        assert point["rmse_val"] == pytest.approx(report["rmse_val"], rel=2)


def test_a_device_adapts_to_points_in_units_of_the_target(cli, trained, table, prices, tmp_path):
    assert cli("export", trained[0], "--anchors", 16, "--formats", "twin").code == 0
    X, y = prices
    model, device = load_run(trained[0]).model, twinedge.load(tmp_path / "out" / "model.twin")
    off = np.abs(device.predict(X) / model.predict(X) - 1)
    assert np.median(off) < 0.05
    higher = np.column_stack([X[:30], 1.5 * y[:30]])
    np.savetxt("site.csv", higher, fmt="%.9g", delimiter=",", header=HEADER, comments="")
    answer = cli("adapt", "out/model.twin", "site.csv", "--store", "site.store", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["learnt"] == 30
    assert answer.json["rmse_adapted"] < 0.8 * answer.json["rmse_shipped"]
    off = device.predict(X[:30]) - 1.5 * y[:30]
    shipped = np.sqrt(np.mean(np.square(off)))
    assert answer.json["rmse_shipped"] == pytest.approx(shipped, rel=0.01)


def test_a_curve_is_chosen_and_the_numbers_are_printed(cli, table, tiny):
    given = ("train", table, "--target", "price", "--target-curve", "auto", *tiny)
    answer = cli(*given, "-o", "run")
    assert answer.code == 0, answer.err
    words = " ".join(answer.out.split())
    chosen = json.loads(Path("run/run.json").read_text())
    kind = chosen["chosen"]["target_curve"]
    assert f"target curve {kind}" in words
    assert f"Target curve {kind}: the skewness of the target is 1." in words
    assert "short trainings have an RMSE of none" in words
    assert set(chosen["curve_choice"]["rmse"]) == {"none", "sqrt", "log"}
    assert load_run(Path("run")).model.curve_choice_ == chosen["curve_choice"]
    assert load_run(Path("run")).model.resolved().target_curve == kind


def test_why_no_curve_was_compared_is_printed(cli, curve_csv, tiny):
    answer = cli("train", curve_csv, "--target", "level", "--target-curve", "auto", *tiny)
    assert answer.code == 0, answer.err
    assert "No target curve was compared with none: the skewness" in " ".join(answer.out.split())


@pytest.mark.parametrize("command", ["train", "check"])
def test_a_target_off_the_curve_is_refused_with_its_row_and_column(refused, command, tmp_path):
    lines = [HEADER, *(f"{k},{k % 7},{k + 1}" for k in range(60))]
    lines[41] = "40,5,0"
    (tmp_path / "zero.csv").write_text("\n".join(lines))
    given = (command, "zero.csv", "--target", "price", "--quiet", "--target-curve")
    where = "twinedge: zero.csv: row 42, column 'price': the target is 0, but "
    if command == "train":
        given = (*given[:-1], "--folds", 2, given[-1])  # so that every row is for training
        says = [where, "--target-curve log takes targets above 0; use --target-curve log1p"]
        refused(*given, "log", says=says)
        lines[41] = "40,5,-3"
        (tmp_path / "zero.csv").write_text("\n".join(lines))
        says = [
            "row 42, column 'price': the target is -3",
            "of at least 0; use --target-curve none",
        ]
        refused(*given, "sqrt", says=says)
    else:
        (tmp_path / "zero.csv").write_text("\n".join([HEADER, *["1,2,0"] * 3, *lines[1:]]))
        refused(*given, "log", says=["column 'price': the target is 0, but --target-curve log"])


def test_tables_are_named_if_there_are_several(refused, tmp_path):
    for name, price in (("one", 1), ("two", 0)):
        lines = [HEADER, *(f"{k},{k % 7},{price * (k + 1)}" for k in range(30))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    given = ("train", "one.csv", "two.csv", "--target", "price", "--target-curve", "log", "--quiet")
    refused(*given, says=["two.csv: row ", ", column 'price': the target is 0"])


@pytest.mark.slow
def test_check_learns_the_curve_as_well(cli, table, monkeypatch):
    from twinedge.training import selection

    plan = selection.Plan(folds=40, final=80, teachers=False)
    monkeypatch.setitem(selection.PLANS, "quick", plan)
    found = {}
    for curve in ("none", "log", "auto"):
        given = ("check", table, "--target", "price", "--target-curve", curve, "--json", "-q")
        answer = cli(*given)
        assert answer.code == 0, answer.err
        found[curve] = answer.json
    assert found["log"]["rmse_twin"] != found["none"]["rmse_twin"]
    assert found["log"]["rmse_rivals"] == pytest.approx(found["none"]["rmse_rivals"])
    assert 0.2 < found["log"]["rmse_twin"] / found["none"]["rmse_twin"] < 5
    assert found["auto"]["rmse_twin"] > 0


def test_a_map_is_trained_and_printed(cli, table, tiny):
    answer = cli("train", table, "--target", "price", "--input-map", 4, "-o", "run", *tiny)
    assert answer.code == 0, answer.err
    assert "curves of at most 4 pieces in front of the networks" in answer.out
    model = load_run(Path("run")).model
    assert model.input_map_ == 4
    assert model.map_ is not None
