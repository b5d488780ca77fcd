"""Fixtures for the tests of ports: packs, and boards that are compiled for only once."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

TESTS = Path(__file__).parents[1]


def defined_in(path):
    """Make a fixture of what a file defines."""
    return pytest.fixture(scope="session")(lambda: SimpleNamespace(**runpy.run_path(str(path))))


packs = defined_in(TESTS / "pack" / "random_packs.py")
cases = defined_in(TESTS / "firmware" / "cases.py")
native = defined_in(TESTS / "firmware" / "library.py")
devices = defined_in(TESTS / "ports" / "devices.py")
golden = defined_in(TESTS / "golden" / "packs.py")


@pytest.fixture(scope="session")
def builder(tmp_path_factory):
    """A builder for a board, the same one each time: ``builder(name, flags, program)``."""
    from twinedge_export.boards import Builder, port_named

    made = {}

    def make(name, flags=(), program="main"):
        what = name, flags, program
        if what not in made:
            folder = tmp_path_factory.mktemp(name)
            made[what] = Builder(port_named(name), folder, flags, program=program)
        return made[what]

    return make


@pytest.fixture(scope="session")
def untrained():
    """A pack of 8 features, 60 points: ``untrained(hidden, activation, counts, features=8)``.

    Weights are twice as large as initial ones, so that sums of layers spread like those of trained
    networks.
    """
    from twinedge import TwinRegressor
    from twinedge.encoding.encoder import Encoding
    from twinedge.training.network import Architecture, Scaling
    from twinedge_export.quantise import quantise

    def make(hidden, activation, counts, features=8):
        X = np.random.default_rng(0).normal(size=(60, features))
        twin = TwinRegressor(hidden=hidden, activation=activation, twins=len(counts))
        twin.remember_columns(Encoding.numbered(features))
        twin.activation_ = activation
        twin.anchor_X_, twin.anchor_y_ = X, X.sum(axis=1)
        twin.scaling_ = Scaling.of(X, twin.anchor_y_)
        twin.architecture_ = Architecture(2 * features, hidden, activation)
        twin.weights_ = 2 * twin.architecture_.initial(list(range(len(counts))))
        rows = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
        return quantise(twin, rows)

    return make
