"""The command line as users see it: arguments in; exit code, stdout and stderr out."""

import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple

import numpy as np
import pytest

from twinedge.cli import main


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def predictions(self):
        """Header, and the numbers below it, without names of features."""
        header, *rows = self.out.splitlines()
        flags = [name in ("outside", "missing") for name in header.split(",")]
        numbers = [
            [float(word) for word, flag in zip(row.split(","), flags, strict=True) if not flag]
            for row in rows
        ]
        return header, np.array(numbers)


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """Run a command in this process, in its own folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(one) for one in arguments])
        return Answer(stop.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def refused(cli, tmp_path):
    """Run a command that must fail with one line that has all of these words, and no traceback."""

    def run(*arguments, says):
        before = _contents(tmp_path)
        answer = cli(*arguments)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("twinedge: ")
        assert answer.err.endswith("\n")
        assert answer.err.count("\n") == 1
        for word in says:
            assert word in answer.err
        assert _contents(tmp_path) == before

    return run


def _contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="session")
def tiny():
    """Options of a training that takes half a second."""
    options = "--hidden 8 --steps 300 --activation relu --learning-rate 0.01 --weight-decay 0.03"
    return (*options.split(), "--quiet")


@pytest.fixture(scope="session")
def loud(tiny):
    """The same with remarks."""
    return tuple(word for word in tiny if word != "--quiet")


@pytest.fixture(scope="session")
def changed():
    """Return a function that gives some of these options other values."""

    def change(options, *others):
        words = list(options)
        for name, value in zip(others[::2], others[1::2], strict=True):
            words[words.index(name) + 1] = value
        return tuple(words)

    return change


@pytest.fixture(scope="session")
def curve_csv(curve, write_points, tmp_path_factory):
    """The curve as a file: angle, offset, idle, level."""
    return write_points(tmp_path_factory.mktemp("tables") / "curve.csv", *curve)


@pytest.fixture(scope="session")
def done():
    """Run a command that must succeed, for fixtures that outlive a test."""

    def run(*arguments):
        with (
            redirect_stdout(StringIO()) as out,
            redirect_stderr(StringIO()) as err,
            pytest.raises(SystemExit) as stop,
        ):
            main([str(one) for one in arguments])
        assert stop.value.code == 0, err.getvalue()
        return Answer(0, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def trained(done, curve_csv, tiny, tmp_path_factory):
    """A run that ``twinedge train`` wrote, and the JSON it printed."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    answer = done("train", curve_csv, "--target", "level", "-o", folder, "--json", *tiny)
    return folder, answer.json


@pytest.fixture(scope="session")
def exported_pack(tiny_run, tmp_path_factory):
    """A pack with intervals, for columns angle, offset and idle; copy it before changing it."""
    from twinedge import export

    folder = tmp_path_factory.mktemp("exported") / "out"
    export(tiny_run, folder, anchors=8, formats=("twin",))
    return folder / "model.twin"


@pytest.fixture
def pack(exported_pack, tmp_path):
    """The same in the folder of the test."""
    return shutil.copy(exported_pack, tmp_path / "model.twin")


@pytest.fixture(scope="session")
def write_points():
    """Write a table of points: ``write_points(path, X, y)`` returns the path."""

    def write(path, X, y, header="angle,offset,idle,level"):
        rows = np.column_stack([X, y])
        np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=header, comments="")
        return path

    return write


@pytest.fixture(scope="session")
def points(curve):
    """20 points from a site where everything is higher."""
    return curve[0][100:], curve[1][100:] + 2
