"""One small file for each table or figure of the paper."""

from importlib import import_module

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Experiment

NAMES = (
    "ann_ensemble",
    "tnnr_ensemble",
    "knn_tnnr",
    "twin_rf",
    "rf_ssl",
    "memory",
    "timing",
    "multiplier",
    "neighbors",
    "knn",
    "uncertainty",
    "check",
)


def experiment(name: str, setup: Setup) -> Experiment:
    """Put one of the ``NAMES`` together."""
    home = import_module(f"twinedge.reproduce.experiments.{name}")
    found: Experiment = home.build(setup)
    return found
