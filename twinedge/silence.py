"""Keeps other libraries from writing to the user's terminal."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path


@contextmanager
def silence() -> Iterator[None]:
    """Discard what this process writes to its terminal, whichever way it writes.

    Compiled code writes to the file descriptors themselves, so they are redirected and restored.
    Python's warnings are ignored, too. Exceptions pass through.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    saved = [os.dup(number) for number in (1, 2)]
    # Python's own streams may lead elsewhere, into a notebook for example.
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
