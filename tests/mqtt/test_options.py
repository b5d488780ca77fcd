"""Wrong options of ``twinedge serve`` are refused before it connects to anything."""

import configparser
import sys
from pathlib import Path

import click
import pytest

from twinedge.cli import app, main
from twinedge.mqtt.home_assistant import slug


@pytest.fixture
def refusal(pack, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"\xff")

    def run(*options, model=pack, mqtt="mqtt://localhost:1", topic="plant/+/raw"):
        with pytest.raises(SystemExit) as stop:
            main(["serve", str(model), "--mqtt", mqtt, "--topic", topic, *options])
        out, err = capsys.readouterr()
        assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
        return err

    return run


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--unit", "mm"], "add --discovery"),
        (["--discovery", "a/b"], "--discovery 'a/b' is not a level"),
        (["--name", "a+b"], "--name 'a+b' is not a level"),
        (["--ca", "file"], "begin --mqtt with mqtts://"),
        (["--password-file", "nowhere"], "cannot read nowhere"),
        (["--password-file", "file"], "file is not UTF-8 text"),
        (["--store", "file"], "--store"),
        (["--coverage", "0.99"], "no intervals of coverage 0.99"),
    ],
)
def test_options_that_cannot_work_are_refused(refusal, options, says):
    assert says in refusal(*options)


def test_wrong_addresses_topics_and_models_are_refused(refusal, tmp_path, monkeypatch):
    assert "is not mqtt://HOST" in refusal(mqtt="localhost")
    assert "has no place for answers" in refusal(topic="plant/#")
    assert "export it first" in refusal(model=tmp_path)
    monkeypatch.setenv("TWINEDGE_MQTT_PASSWORD", "secret")
    assert "no user" in refusal()
    tls = {"mqtt": "mqtts://localhost:1"}
    assert "nowhere does not exist" in refusal("--ca", "nowhere", **tls)
    assert "add --cert" in refusal("--key", "file", **tls)
    assert "file: no certificates in PEM" in refusal("--cert", "file", **tls)
    monkeypatch.setenv("TWINEDGE_MQTT_USERNAME", "me")
    assert "no certificates in PEM" in refusal("--ca", "file", **tls)


def test_models_that_cannot_learn_take_no_store(refusal, pack):
    golden = pack.parents[1] / "odd-silu.twin"
    assert "cannot learn" in refusal("--store", "stores", model=golden)


def test_a_unit_is_for_one_target(refusal, pack):
    golden = pack.parents[1] / "two-targets.twin"
    options = ("--discovery", "homeassistant", "--unit", "mm")
    assert "--unit is for models of one target" in refusal(*options, model=golden)


def test_without_paho_the_extra_is_named(refusal, monkeypatch):
    monkeypatch.setattr("twinedge.extras.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "paho", None)
    assert "pip install 'twinedge[mqtt]'" in refusal()


def test_names_for_home_assistant():
    assert slug("plant/+/press 3") == "plant-press-3"
    assert slug("é") == ""
    assert len(slug(100 * "ab")) == 40


def test_the_unit_starts_the_command(monkeypatch):
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read(Path(__file__).parents[2] / "docs" / "examples" / "twinedge-serve.service")
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    program, *words = service["ExecStart"].split()
    assert program == "/opt/twinedge/bin/twinedge"
    assert f"/var/lib/{service['StateDirectory']}/stores" in words
    name = service["LoadCredential"].partition(":")[0]
    assert words[-2:] == ["--password-file", f"${{CREDENTIALS_DIRECTORY}}/{name}"]
    monkeypatch.setattr(click.Command, "invoke", lambda *_: None)  # parse, do not run
    with app.make_context("twinedge", words) as context:
        app.invoke(context)
