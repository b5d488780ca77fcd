"""``twinedge firmware esphome``: a package for ESPHome, as users see it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from twinedge.pack import read_pack, write_pack

GOLDEN = Path(__file__).parents[1] / "golden"
COMPONENT = Path("power/components/twinedge")


@pytest.fixture
def pack(tmp_path):
    """A pack of one unnamed feature."""
    shutil.copyfile(GOLDEN / "one-of-everything.twin", tmp_path / "model.twin")
    return read_pack((tmp_path / "model.twin").read_bytes())


def write(path, pack, columns):
    """Write a pack with these columns, and a feature for each."""
    features = [{"name": one["name"]} for one in columns]
    metadata = {"columns": columns, "features": features, "target": "rain: tomorrow"}
    path.write_bytes(write_pack(replace(pack, metadata=metadata)))


def test_it_writes_all_that_a_configuration_needs(cli, pack):
    answer = cli("firmware", "esphome", "model.twin", "-o", "power")
    assert answer.code == 0
    assert "power: !include power/model.yaml" in answer.err
    header, row = answer.out.splitlines()
    assert header.split()[:2] == ["column", "substitution"]
    assert row.split()[:3] == ["x0", "power_x0", "x0"]
    assert Path("power/model.twin").read_bytes() == Path("model.twin").read_bytes()
    for name in ("twin.c", "twin.h", "twinedge.cpp", "sensor.py", "number/truth_number.h"):
        assert (COMPONENT / name).is_file()
    package = Path("power/model.yaml").read_text("utf-8")
    assert "id: power_model" in package
    assert "- ${power_x0}" in package


def test_json_names_the_substitutions(cli, pack, tmp_path):
    write(tmp_path / "model.twin", pack, [{"name": "Luft, °C"}])
    found = cli("firmware", "esphome", "model.twin", "-o", "power", "--json").json
    (source,) = found["sources"]
    assert source["column"] == "Luft, °C"
    assert source["substitution"].startswith("power_luft")
    assert found["package"] == str(Path("power/model.yaml"))
    package = Path("power/model.yaml").read_text("utf-8")
    assert f'"Luft, °C": ${{{source["substitution"]}}}' in package
    assert 'name: "rain: tomorrow"' in package


def test_it_replaces_what_it_wrote_and_nothing_else(cli, refused, pack):
    assert cli("firmware", "esphome", "model.twin", "-o", "power").code == 0
    (COMPONENT / "__pycache__").mkdir()  # ESPHome reads the component where it is
    (COMPONENT / "__pycache__" / "sensor.cpython-311.pyc").write_bytes(b"")
    assert cli("firmware", "esphome", "model.twin", "-o", "power").code == 0
    assert not (COMPONENT / "__pycache__").exists()
    Path("power/model.yaml").write_text("mine")
    refused("firmware", "esphome", "model.twin", "-o", "power", says=["model.yaml", "--overwrite"])
    answer = cli("firmware", "esphome", "model.twin", "-o", "power", "--overwrite")
    assert answer.code == 0
    assert "power/model.yaml" in answer.err
    assert json.loads(Path("power/esphome.json").read_text())["package"] == "model.yaml"


def test_what_the_component_cannot_serve_is_refused(refused, pack, tmp_path):
    shutil.copyfile(GOLDEN / "two-targets.twin", tmp_path / "two.twin")
    refused("firmware", "esphome", "two.twin", says=["two.twin", "2 targets"])
    (tmp_path / "bad.twin").write_bytes((tmp_path / "model.twin").read_bytes()[:-1])
    refused("firmware", "esphome", "bad.twin", says=["bad.twin"])
    assert not (tmp_path / "esphome").exists()
