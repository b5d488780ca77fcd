"""Fixtures for the tests of the golden vectors."""

import runpy
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def plain():
    """Read bytes with the plain evaluator: ``plain(data).evaluate(x)``."""
    file = Path(__file__).parents[1] / "runtime" / "plain_evaluator.py"
    return runpy.run_path(str(file))["Plain"]
