"""Fixtures for the tests of intervals: random packs, and one of a trained model."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def packs():
    """Return what ``random_packs.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(TESTS / "pack" / "random_packs.py")))


@pytest.fixture(scope="session")
def trained_pack(tiny_twin):
    """The tiny twin with eight anchors and a second output, not calibrated yet."""
    from twinedge_export.quantise import quantise

    return quantise(tiny_twin, [np.arange(0, 80, 10)], intervals=True)
