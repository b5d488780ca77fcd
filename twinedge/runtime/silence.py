"""Keeping compiled libraries quiet."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path


@contextmanager
def silence() -> Iterator[None]:
    """Send what this process writes to its terminal, by whatever way, to nowhere.

    Compiled code writes to the file descriptors themselves, so they are turned away and put back;
    Python's own warnings are switched off, too. An exception passes through.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    saved = [os.dup(number) for number in (1, 2)]
    # Python's own streams may lead elsewhere, into a notebook for one.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        try:
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            for number, old in zip((1, 2), saved, strict=True):
                os.dup2(old, number)
                os.close(old)
