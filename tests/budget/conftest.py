"""Fixtures for the tests of twinedge.budget."""

import copy
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

# A made-up core: round numbers, so that a test can be checked by hand.
REFERENCES = [
    {
        "features": 8,
        "hidden": [128, 128],
        "counts": [32],
        "neighbors": 0,
        "scratch_bytes": 1047,
        "instructions": 2_000_000,
    },
    {
        "features": 2,
        "hidden": [6, 5],
        "counts": [1, 1],
        "neighbors": 0,
        "scratch_bytes": 63,
        "instructions": 1000,
    },
]
CORE = {
    "port": "made up",
    "compiler": "none",
    "flags": "",
    "stacks": {},
    "builds": [
        {
            "activation": activation,
            "weights": weights,
            "neighbors": False,
            "intervals": intervals,
            "text_bytes": 4000
            + 300 * (activation == "silu")
            + 200 * (weights == "int16")
            + 900 * intervals,
            "rodata_bytes": 60,
            "data_bytes": 20,
            "bss_bytes": 30,
            "program_bytes": 40,
            "context_bytes": 50 + 10 * intervals,
            "stack_bytes": 200 + 50 * intervals,
            "scratch": {
                "align": 8,
                "unit": 4,
                "partial_bytes": 8,
                "block_bytes": 0,
                "room_bytes": 0,
                "lines": 0,
                "work_bytes": 0,
            },
            "references": REFERENCES if (activation, weights) == ("relu", "int8") else [],
            "worst": None,
        }
        for intervals in (False, True)
        for activation in ("relu", "silu")
        for weights in ("int8", "int16")
    ],
}
# What an input map and a target curve add to a build of it.
PARTS = {
    "map": {
        "text_bytes": 300,
        "rodata_bytes": 8,
        "data_bytes": 4,
        "bss_bytes": 2,
        "context_bytes": 12,
        "stack_bytes": 40,
        "place_bytes": 4,
        "rates": {"map": 20, "map product": 2.5},
    },
    "target_curve": {
        "text_bytes": 100,
        "rodata_bytes": 0,
        "data_bytes": 0,
        "bss_bytes": 0,
        "context_bytes": 4,
        "stack_bytes": 0,
        "place_bytes": 0,
        "rates": None,
    },
}


@pytest.fixture
def core():
    """An entry of a firmware file, to change at will."""
    return copy.deepcopy(CORE)


@pytest.fixture
def firmware(core):
    """Measurements of one made-up core."""
    from twinedge.budget.measurements import read_runtime

    return {"avr5": read_runtime(core)}


@pytest.fixture
def parts():
    """What curves add to this core, to change at will."""
    return copy.deepcopy(PARTS)


@pytest.fixture(scope="session")
def packs():
    """Return what ``random_packs.py`` defines."""
    path = Path(__file__).parents[1] / "pack" / "random_packs.py"
    return SimpleNamespace(**runpy.run_path(str(path)))
