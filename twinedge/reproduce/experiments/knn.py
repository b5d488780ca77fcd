"""The figure of k-NN regression beside twins of nearest neighbours."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Curves, Experiment, Measure, Sweep, at, trainer_remark
from twinedge.reproduce.experiments.neighbors import twins_of_neighbours
from twinedge.reproduce.experiments.tnnr_ensemble import twin
from twinedge.reproduce.sizes import NEIGHBOURS


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    k_nn = [Measure(f"{k}", "nearest", at("nearest", "neighbours", k)) for k in NEIGHBOURS]
    curves: Curves = {
        "twin, all anchors": ([1.0], [twin("knn_tnnr")]),
        "twins of neighbours": (NEIGHBOURS, twins_of_neighbours()),
        "k-NN": (NEIGHBOURS, k_nn),
    }
    title = "Error against the number of neighbours, beside k-NN"
    return Experiment(
        "knn",
        "Twins of neighbours and k-NN",
        sweeps=[Sweep(title, "neighbours", curves, logarithmic=True)],
        remarks=[trainer_remark(setup), "twins of neighbours are trained and evaluated on them"],
    )
