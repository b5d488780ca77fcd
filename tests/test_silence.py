"""Output of compiled libraries is kept from the terminal, and only while requested."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from twinedge.silence import silence


def test_nothing_is_printed_by_whatever_way(capfd):
    print("before")
    with silence():
        print("Python")
        print("Python", file=sys.stderr)
        os.write(1, b"C\n")
        os.write(2, b"C\n")
        subprocess.run(["echo", "child"], check=True)
        warnings.warn("Python", stacklevel=1)
    print("after")
    os.write(2, b"after\n")
    out, err = capfd.readouterr()
    assert out == "before\nafter\n"
    assert err == "after\n"


def test_an_exception_passes_and_the_terminal_comes_back(capfd):
    with pytest.raises(KeyError), silence():
        raise KeyError
    os.write(1, b"back\n")
    assert capfd.readouterr().out == "back\n"


def test_no_descriptor_is_lost():
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with silence():
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before
