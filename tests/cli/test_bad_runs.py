"""Run folders that are damaged, or not runs at all."""

import shutil

import pytest


@pytest.fixture
def run(tiny_run, tmp_path):
    """A private copy of a run, to damage."""
    shutil.copytree(tiny_run, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_no_such_run(refused, curve_csv, command):
    refused(command, "run", curve_csv, says=["run does not exist", "twinedge train"])


def test_a_folder_that_is_no_run(refused, curve_csv, tmp_path):
    (tmp_path / "photos").mkdir()
    refused("predict", "photos", curve_csv, says=["photos is not a run", "run.json"])


def test_a_file_that_is_no_run(refused, curve_csv):
    refused("export", curve_csv, says=["curve.csv is not a run"])
    refused("evaluate", curve_csv, curve_csv, says=["curve.csv is not one of the files", ".twin"])
    refused("predict", curve_csv, curve_csv, says=["curve.csv is not one of the files", ".twin"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "damaged"),
        (b'{"format": "twinedge run", "version": 99}', "version 99"),
        (b'{"format": "twinedge run", "version": 1}', "damaged"),
    ],
)
def test_a_damaged_record(refused, run, curve_csv, content, says):
    (run / "run.json").write_bytes(content)
    refused("predict", run, curve_csv, says=["run.json", says])
