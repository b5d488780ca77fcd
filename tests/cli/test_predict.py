import numpy as np
import pytest

from twinedge.run_folder import load_run
from twinedge.scoring.calibration import Calibration


@pytest.fixture(scope="module")
def plain_run(tiny_run, tmp_path_factory):
    """A run that was not calibrated."""
    return saved(tiny_run, tmp_path_factory, None)


@pytest.fixture(scope="module")
def calibrated(tiny_run, tmp_path_factory):
    """A run that maps a spread of 1 to an error of 2, with intervals of 0.5 and 0.8."""
    calibration = Calibration(
        np.array([2.0, 0, 0]), 0.0, {0.5: 0.25, 0.8: 1.5}, rows=20, typical=1.0, outside=0.0
    )
    return saved(tiny_run, tmp_path_factory, calibration)


def saved(run, factory, calibration):
    """Return a copy of a run with a different calibration."""
    trained = load_run(run)
    trained.model.calibration_ = calibration
    trained.save(folder := factory.mktemp("runs") / "run")
    return folder


def test_predictions_are_those_of_the_python_api(cli, plain_run, curve_csv, curve):
    answer = cli("predict", plain_run, curve_csv)
    model = load_run(plain_run).model
    header, numbers = answer.predictions
    assert (answer.code, answer.err, header) == (0, "", "level,spread,outside")
    expected = np.column_stack([model.predict(curve[0]), model.spread(curve[0])])
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)


def outside(model, X):
    """Names of the features of each point that are outside the training range."""
    low, high = model.anchor_X_.min(axis=0), model.anchor_X_.max(axis=0)
    names = np.array(["angle", "offset", "idle"])
    return [names[(x < low) | (x > high)].tolist() for x in X]


def test_what_is_outside_or_missing_is_named(cli, tiny_run, tmp_path):
    trained = load_run(tiny_run)
    trained.model.fill_values_ = np.array([0.25, np.nan, -20.0])
    trained.save(tmp_path / "run")
    (tmp_path / "odd.csv").write_text("angle,offset,idle\n0.5,2,-20\n7,2,-500\n,2,\n")
    found = cli("predict", "run", "odd.csv", "--json", "--quiet").json
    assert found["outside"] == [[], ["angle", "idle"], []]
    assert found["missing"] == [[], [], ["angle", "idle"]]
    (tmp_path / "full.csv").write_text("angle,offset,idle\n0.25,2,-20\n")
    full = cli("predict", "run", "full.csv", "--json", "--quiet").json
    assert found["prediction"][2] == pytest.approx(full["prediction"][0])
    lines = cli("predict", "run", "odd.csv", "--quiet").out.splitlines()
    assert lines[0].endswith(",missing")
    assert ",angle|idle," in lines[2]
    assert lines[3].endswith(",angle|idle")
    (tmp_path / "worse.csv").write_text("angle,offset,idle\n0.5,,-20\n")
    assert cli("predict", "run", "worse.csv").code == 2


def test_fewer_anchors(cli, tiny_run, curve_csv, curve):
    options = {"anchors": 8, "neighbors": 3}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    report = cli("predict", tiny_run, curve_csv, "--json", *words).json
    expected = load_run(tiny_run).model.predict(curve[0], **options)
    assert report["prediction"] == expected.tolist()


def test_a_target_with_a_comma_in_its_name_is_quoted(cli, tiny, tmp_path, curve):
    rows = "\n".join(f"{a:.6g};{b:.6g}" for a, b in zip(curve[0][:, 0], curve[1], strict=True))
    (tmp_path / "t.csv").write_text(f"x;level, mm\n{rows}\n")
    cli("train", "t.csv", "--target", "level, mm", "-o", "run", *tiny, "--no-intervals")
    assert cli("predict", "run", "t.csv").out.startswith('"level, mm",spread')


@pytest.mark.parametrize("options", [(), ("--neighbors", "3")])
def test_a_point_far_outside_the_training_data_gets_a_number(cli, plain_run, tmp_path, options):
    (tmp_path / "far.csv").write_text("angle,offset,idle\n1e300,2,-20\n0.5,2,-20\n")
    answer = cli("predict", plain_run, "far.csv", "--json", *options)
    assert (answer.code, answer.err) == (0, "")
    assert all(isinstance(value, float) for value in answer.json["prediction"])


@pytest.mark.parametrize(("options", "coverage"), [({}, 0.5), ({"anchors": 8}, 0.8)])
def test_a_run_that_was_calibrated_has_intervals(
    cli, calibrated, curve_csv, curve, coverage, options
):
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    answer = cli("predict", calibrated, curve_csv, "--json", "--coverage", coverage, *words)
    remark = "low and high were calibrated for different anchors\n"
    assert answer.err == (remark if options else "")
    model = load_run(calibrated).model
    mean, scale = model.predict(curve[0], return_std=True, **options)
    low, high = model.predict_interval(curve[0], coverage, **options).T
    spread = model.spread(curve[0], **options)
    np.testing.assert_allclose(scale, 2 * spread, rtol=1e-4)
    assert answer.json == {
        "run": str(calibrated),
        "target": "level",
        "coverage": coverage,
        "rows": 120,
        "prediction": mean.tolist(),
        "spread": spread.tolist(),
        "outside": outside(model, curve[0]),
        "scale": scale.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
    }


def test_by_default_a_run_has_the_highest_coverage_up_to_ninety_percent(cli, calibrated, curve_csv):
    answer = cli("predict", calibrated, curve_csv)
    header, numbers = answer.predictions
    assert header == "level,spread,outside,scale,low,high"
    assert answer.err == "low and high are for a coverage of 0.8: there is no 0.9\n"
    np.testing.assert_allclose(numbers[:, 4] - numbers[:, 0], 1.5 * numbers[:, 2], atol=1e-4)


def test_a_coverage_that_a_run_has_not_is_refused(refused, calibrated, plain_run, curve_csv):
    says = ["0.95", "0.5, 0.8"]
    refused("predict", calibrated, curve_csv, "--coverage", "0.95", says=says)
    refused("predict", plain_run, curve_csv, "--coverage", "0.9", says=["no intervals"])
