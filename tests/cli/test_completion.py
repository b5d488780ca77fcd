"""Completion of commands, options and values, by the protocols of the shells and in the shells."""

import os
import pty
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from twinedge.budget import all_boards
from twinedge.data import names

TABLE = "NOX,CO,air temp\n1,2,3\n4,5,6\n7,8,9\n"


@pytest.fixture
def complete(cli, tmp_path, monkeypatch):
    """Call the command as a shell does on Tab; returns type and value of each completion."""
    (tmp_path / "gas.csv").write_text(TABLE)

    def run(line, shell="bash"):
        words = line.split(" ")
        number = words[-1] if shell == "fish" else str(len(words) - 1)
        monkeypatch.setenv("_TWINEDGE_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", number)
        answer = cli()
        assert (answer.code, answer.err) == (0, "")
        lines = answer.out.splitlines()
        if shell == "zsh" and any(lines):
            return list(zip(lines[::3], lines[1::3], strict=True))
        pairs = [one.partition("\t")[0].partition(",") for one in lines if one]
        return [(kind, value) for kind, _, value in pairs]

    return run


@pytest.fixture
def values(complete):
    """Complete to values that are words, not files."""
    return lambda line, shell="bash": [v for kind, v in complete(line, shell) if kind == "plain"]


SHELLS = ("bash", "zsh", "fish")


def absent(shell):
    return not shutil.which(shell) and "CI" not in os.environ


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_their_options(values, shell):
    assert values("twinedge ex", shell) == ["export"]
    assert values("twinedge budget b", shell) == ["boards"]
    assert values("twinedge firmware r", shell) == ["run"]
    assert values("twinedge export --an", shell) == ["--anchors"]
    assert values("twinedge budget --fe", shell) == ["--features"]
    assert values("twinedge budget --features 8 --fl", shell) == ["--flash"]
    assert set(values("twinedge train data.csv --no", shell)) == {"--no-intervals"}


WORDS = {
    "export --anchors ": ["fewest", "all"],
    "export --anchors f": ["fewest"],
    "export --formats twin,": ["twin,tflite", "twin,onnx", "twin,c"],
    "export --formats twin,t": ["twin,tflite"],
    "export --select m": ["match", "medoids"],
    "export --weights ": ["int8", "int16"],
    "predict out/model.twin new.csv --backend n": ["native", "numpy"],
    "predict out/model.twin new.csv --anchors ": ["auto", "all"],
    "train gas.csv --target ": ["NOX", "CO", "air temp"],
    "train gas.csv --target CO --drop N": ["NOX"],
    "train --target gas.csv ": [],
    "train gas.csv --group ": ["NOX", "CO", "air temp"],
    "train none.csv --target ": [],
    "train --dataset w": ["wn", "wsb"],
    "train --teachers gp,": ["gp,networks", "gp,trees", "gp,boosting"],
    "train --hidden ": ["auto"],
    "train --effort ": ["quick", "normal", "thorough"],
    "budget --board pico": [one for one in all_boards() if one.startswith("pico")],
    "budget out/model.twin -b un": ["uno"],
    "firmware run -b un": ["uno"],
    "report runs/latest --format ": ["html", "md", "csv"],
    "data show ": sorted(names()),
    "anchors runs/latest --methods xy,ra": ["xy,random"],
}


@pytest.mark.parametrize("shell", SHELLS)
def test_values(values, shell):
    for line, words in WORDS.items():
        expected = [f"'{word}'" if shell == "bash" and " " in word else word for word in words]
        assert values(f"twinedge {line}", shell) == expected, line


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_printed_as_the_page_describes(cli, monkeypatch, shell):
    monkeypatch.setenv("_TWINEDGE_COMPLETE", f"{shell}_source")
    assert f"_TWINEDGE_COMPLETE={shell}_complete" in cli().out
    page = Path(__file__).parents[2] / "docs" / "commands.md"
    assert f"_TWINEDGE_COMPLETE={shell}_source twinedge" in page.read_text("utf-8")


@pytest.mark.parametrize("shell", SHELLS)
def test_paths_are_left_to_the_shell(complete, shell):
    for line in ("inspect ou", "predict ", "budget ou", "export -o ", "export --select ro"):
        kinds = [kind for kind, _ in complete(f"twinedge {line}", shell)]
        assert kinds[0] == ("dir" if line == "export -o " else "file"), line


# In each shell: how to start it, how to load its completion, and what it shows when it is ready.
STARTS = {
    "bash": (["bash", "--norc", "-i"], 'eval "$(_TWINEDGE_COMPLETE=bash_source twinedge)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -U compinit; compinit -u -D; eval "$(_TWINEDGE_COMPLETE=zsh_source twinedge)"',
    ),
    "fish": (["fish", "--no-config", "-i"], "_TWINEDGE_COMPLETE=fish_source twinedge | source"),
}


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(
            one,
            marks=[
                pytest.mark.skipif(absent(one), reason=f"no {one}"),
                *[pytest.mark.slow] * (one != "bash"),
            ],
        )
        for one in STARTS
    ],
)
def test_a_shell_completes_what_is_typed(shell, tmp_path):
    (tmp_path / "gas.csv").write_text(TABLE)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "twinedge"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m twinedge "$@"\n')
    command.chmod(0o755)
    start, load = STARTS[shell]
    with Typist(start, tmp_path) as typist:
        typist.type(f"{load}; echo load''ed\n", until="loaded")
        for typed, whole in {
            "twinedge exp\t": "twinedge export ",
            "twinedge export --sing\t": "--single-file",
            "twinedge export --anchors few\t": "fewest",
            "twinedge export --formats twin,tf\t": "twin,tflite",
            "twinedge train gas.csv --target NO\t": "NOX",
            "twinedge inspect gas\t": "gas.csv",
        }.items():
            typist.type(typed, until=whole)
            typist.type("\x15", until="")  # clears the line


class Typist:
    """Types into a shell that believes to be on a terminal."""

    def __init__(self, command, folder):
        self._seen = ""
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        more = {"PATH": path, "HOME": str(folder), "TERM": "dumb", "PS1": "$ "}
        self._process, self._terminal = pty.fork()
        if not self._process:
            os.chdir(folder)
            os.execvpe(command[0], command, {**os.environ, **more})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._terminal)

    def type(self, text, until):
        """Type, and wait for what is to appear after it."""
        start = len(self._seen)
        os.write(self._terminal, text.encode())
        deadline = time.monotonic() + 60
        while until not in self._seen[start:].replace("\x07", ""):
            assert time.monotonic() < deadline, f"{until!r} not in {self._seen[start:]!r}"
            if select.select([self._terminal], [], [], 0.2)[0]:
                self._seen += os.read(self._terminal, 4096).decode(errors="replace")
