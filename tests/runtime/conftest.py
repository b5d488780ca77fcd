"""Fixtures for the tests of twinedge.runtime."""

import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def random_pack():
    """Draw a pack: ``random_pack(rng, **fixed)``."""
    return runpy.run_path(str(HERE.parent / "pack" / "random_packs.py"))["random_pack"]


@pytest.fixture(scope="session")
def plain():
    """Read bytes with the plain evaluator: ``plain(data).evaluate(x)``."""
    return runpy.run_path(str(HERE / "plain_evaluator.py"))["Plain"]
