"""The figure of nearest-neighbour twins against the number of neighbours."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import (
    Curves,
    Experiment,
    Measure,
    Sweep,
    at,
    item,
    trainer_remark,
)
from twinedge.reproduce.experiments.tnnr_ensemble import twin
from twinedge.reproduce.sizes import NEIGHBOURS


def twins_of_neighbours() -> list[Measure]:
    """Give twins that are trained and evaluated on so many neighbours."""
    return [Measure(f"{k}", "neighbour_twin", item("rmse"), k) for k in NEIGHBOURS]


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    curves: Curves = {
        "all anchors": ([1.0], [twin("knn_tnnr")]),
        "NN inference": (
            NEIGHBOURS,
            [Measure(f"{k}", "twins", at("nearest_anchors", "neighbours", k)) for k in NEIGHBOURS],
        ),
        "NN training + inference": (NEIGHBOURS, twins_of_neighbours()),
    }
    return Experiment(
        "neighbors",
        "Number of neighbours",
        sweeps=[Sweep("Error against the number of neighbours", "neighbours", curves)],
        remarks=[trainer_remark(setup)],
    )
