"""The example for a Pi logs readings of a sensor and answers of a device."""

import configparser
import csv
import random
import runpy
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from twinedge.runtime.loading import load

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SCRIPT = EXAMPLES / "log_sensor.py"


@pytest.fixture
def log(monkeypatch):
    """Run the script with these arguments, always with the same readings."""

    def run(*arguments):
        random.seed(1)
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        runpy.run_path(str(SCRIPT), run_name="__main__")

    return run


@pytest.mark.parametrize("name", ["model.twin", "tflite-int8/model.tflite"])
def test_every_reading_is_logged_with_its_prediction(exported, log, tmp_path, name):
    path = tmp_path / "log.csv"
    log(exported["tiny"] / name, path, "--every", "0", "--count", "200")
    header, *rows = list(csv.reader(path.open()))
    assert header == ["time", "angle", "offset", "idle", "level", "spread", "outside"]
    assert len(rows) == 200
    device = load(exported["tiny"] / name)
    x = np.array([row[1:4] for row in rows], float)
    for found, words in zip(device.predict(x, return_std=True), (4, 5), strict=True):
        logged = np.array([row[words] for row in rows], float)
        np.testing.assert_allclose(logged, found, rtol=1e-5, atol=1e-3)
    loose = (x == 1e6).any(axis=1)
    assert 0 < loose.sum() < 30
    assert [bool(row[6]) for row in rows] == loose.tolist()
    times = [datetime.fromisoformat(row[0]) for row in rows]
    assert times == sorted(times)


def test_of_a_calibrated_model_low_and_high_are_logged(exported, log, tmp_path):
    model, path = exported["calibrated"] / "model.twin", tmp_path / "log.csv"
    log(model, path, "--every", "0", "--count", "200")
    header, *rows = list(csv.reader(path.open()))
    assert header == ["time", "angle", "offset", "idle", "level", "low", "high", "outside"]
    device = load(model)
    x = np.array([row[1:4] for row in rows], float)
    logged = np.array([row[4:7] for row in rows], float)
    np.testing.assert_allclose(logged[:, 0], device.predict(x), rtol=1e-5)
    np.testing.assert_allclose(logged[:, 1:], device.predict_interval(x, 0.9), rtol=1e-5)
    loose = (x == 1e6).any(axis=1)
    assert 0 < loose.sum() < 30
    assert [bool(row[7]) for row in rows] == loose.tolist()


def test_a_log_is_continued(exported, log, tmp_path):
    path = tmp_path / "log.csv"
    for _ in range(2):
        log(exported["tiny"] / "model.twin", path, "--every", "0", "--count", "3")
    lines = path.read_text().splitlines()
    assert [line.startswith("time,") for line in lines] == [True] + 6 * [False]


def test_the_unit_starts_the_script():
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read(EXAMPLES / "twinedge-sensor.service")
    assert unit.sections() == ["Unit", "Service", "Install"]
    python, script, model, path = map(Path, unit["Service"]["ExecStart"].split())
    assert (python.name, script.name, model.suffix) == ("python", SCRIPT.name, ".twin")
    assert path.parent == Path("/var/log") / unit["Service"]["LogsDirectory"]
