"""The figure of the paper."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from twinedge.budget import ann_params, twin_params

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "memory_figure.py"


def draw(path):
    """Draw the figure; returns what the script printed."""
    command = [sys.executable, SCRIPT, "--features", "2", "8", "-o", path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    path = tmp_path_factory.mktemp("figure") / "figure.svg"
    return path, draw(path)


@pytest.mark.slow
def test_the_same_bytes_each_time(drawn, tmp_path):
    draw(tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == drawn[0].read_bytes()


def test_the_drawing_is_whole_and_says_what_it_shows(drawn):
    root = ElementTree.parse(drawn[0]).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = {text.strip() for text in root.itertext()}
    assert {"ensemble size", "parameters stored", "ANNs, f = 8", "twin, f = 8"} <= words


def test_the_last_line_holds_the_numbers(drawn):
    found = json.loads(drawn[1].splitlines()[-1])
    assert found["figure"] == "figure.svg"
    rows = {
        (row["features"], row["members"]): (row["ann"], row["twin"]) for row in found["parameters"]
    }
    assert rows[8, 32] == (569_376, 19_105)
    assert {members for _, members in rows} == {2**power for power in range(11)}
    for (features, members), counts in rows.items():
        ann = ann_params(features, (128, 128), members)
        assert counts == (ann, twin_params(features, (128, 128), members))
