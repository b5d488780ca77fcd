"""Fixtures for the tests of firmware_ref."""

import ctypes
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def packs():
    """Return what ``random_packs.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(HERE.parent / "pack" / "random_packs.py")))


@pytest.fixture(scope="session")
def native():
    """Return what ``library.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(HERE / "library.py")))


@pytest.fixture(scope="session")
def cases():
    """Return what ``cases.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(HERE / "cases.py")))


@pytest.fixture(scope="session")
def library(native, tmp_path_factory):
    """The runtime, compiled for this machine."""
    path = tmp_path_factory.mktemp("library") / "libtwin.so"
    return ctypes.CDLL(str(native.compile_c(path, "-O2", "-fPIC", "-shared")))


@pytest.fixture(scope="session")
def open_pack(native, library):
    """Open bytes with the C runtime: ``open_pack(data)``."""
    return lambda data, **options: native.Native(library, data, **options)
