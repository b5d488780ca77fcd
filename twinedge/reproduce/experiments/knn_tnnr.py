"""The table of twins that look at nearest neighbours."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Comparison, Experiment, Measure, at, trainer_remark
from twinedge.reproduce.experiments.tnnr_ensemble import twin

NEIGHBOURS = 32


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    inference = Measure(
        "NN inference",
        "twins",
        at("nearest_anchors", "neighbours", NEIGHBOURS),
        paper=("knn_tnnr", 1),
    )
    both = Measure(
        "NN train+inf.", "neighbour_twin", lambda found: found["rmse"], NEIGHBOURS, ("knn_tnnr", 2)
    )
    k_nn = Measure("k-NN", "nearest", at("nearest", "neighbours", 4))
    base = twin("knn_tnnr")
    return Experiment(
        "knn_tnnr",
        "Twins of nearest neighbours",
        [Comparison(base, inference), Comparison(base, both), Comparison(k_nn, base)],
        remarks=[
            trainer_remark(setup),
            f"{NEIGHBOURS} neighbours for every set: nothing is chosen on test data; k-NN has 4",
        ],
    )
