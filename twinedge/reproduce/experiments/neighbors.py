"""The figures of nearest-neighbour twins and k-NN against the number of neighbours."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Curves, Experiment, Measure, Sweep, at, trainer_remark
from twinedge.reproduce.experiments.tnnr_ensemble import twin
from twinedge.reproduce.sizes import NEIGHBOURS


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    curves: Curves = {
        "all anchors": ([1.0], [twin("knn_tnnr")]),
        "NN inference": (
            NEIGHBOURS,
            [Measure(f"{k}", "twins", at("nearest_anchors", "neighbours", k)) for k in NEIGHBOURS],
        ),
        "NN training + inference": (
            NEIGHBOURS,
            [Measure(f"{k}", "neighbour_twin", lambda found: found["rmse"], k) for k in NEIGHBOURS],
        ),
        "k-NN": (
            NEIGHBOURS,
            [Measure(f"{k}", "nearest", at("nearest", "neighbours", k)) for k in NEIGHBOURS],
        ),
    }
    return Experiment(
        "neighbors",
        "Number of neighbours",
        sweeps=[Sweep("Error against the number of neighbours", "neighbours", curves)],
        remarks=[trainer_remark(setup)],
    )
