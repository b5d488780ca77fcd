"""Fixtures for the tests of twinedge.pack."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.pack import write_pack


@pytest.fixture(scope="session")
def packs():
    """Return what ``random_packs.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "random_packs.py")))


@pytest.fixture
def small(packs):
    """A pack with some of everything, in less than a kilobyte."""
    return packs.random_pack(
        np.random.default_rng(0),
        features=2,
        hidden=(3, 5),
        activation="silu",
        dtype=np.int8,
        counts=[2, 1],
        neighbors=2,
        weights="normal",
    )


@pytest.fixture
def data(small):
    """The same as bytes."""
    return write_pack(small)
