"""Fixtures for the tests of twinedge.pack."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from twinedge.pack import write_pack


@pytest.fixture(scope="session")
def packs():
    """Return what ``random_packs.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "random_packs.py")))


@pytest.fixture(scope="session")
def faults():
    """Return what ``faults.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "faults.py")))


@pytest.fixture
def small(packs, faults):
    """A pack with some of everything, in less than a kilobyte."""
    return faults.small(packs)


@pytest.fixture
def data(small):
    """The same as bytes."""
    return write_pack(small)
