"""A model that the search found for an Uno is built for it, and runs within its limits."""

import json
import re
import subprocess

import pytest

from twinedge.budget import board_named
from twinedge.cli import main

UNO = board_named("uno")


def command(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main([*map(str, words)])
    out, err = capsys.readouterr()
    assert stop.value.code == 0, err
    return out, err


@pytest.mark.slow
def test_the_winner_for_an_uno_runs_on_one(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit = ("budget", "fit", "--board", "uno", "--dataset", "tf", "--effort", "quick")
    _, err = command(capsys, *fit, "--tries", "2", "--steps", "400")
    # As the command itself says.
    words = re.search("To try it out: twinedge (.*)", err)[1].split()
    result = json.loads(command(capsys, *words, "--json")[0])
    assert result["bit_exact"]
    assert result["ram_bytes"] <= UNO.free_ram
    file = words[-1]
    budget = json.loads(command(capsys, "budget", file, "--board", "uno", "--json")[0])
    assert result["pack_bytes"] == budget["twin_bytes"]
    (verdict,) = budget["boards"]
    assert verdict["verdict"] in ("fits", "fits, slowly")
    assert abs(verdict["ram_bytes"] - result["ram_bytes"]) <= 64
    command(capsys, "firmware", "build", "--board", "uno", file, "-o", "image.elf")
    output = subprocess.run(["avr-size", "image.elf"], capture_output=True, text=True, check=True)
    text, data, static = map(int, output.stdout.splitlines()[1].split()[:3])
    assert text + data <= UNO.free_flash
    assert text + data == pytest.approx(verdict["flash_bytes"], rel=0.01)
    assert data + static + result["scratch_bytes"] + result["stack_bytes"] <= UNO.free_ram
