"""The table of ensembles of ordinary networks."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Comparison, Experiment, Measure, at, item, trainer_remark


def one_network() -> Measure:
    """Give the first network of an ensemble."""
    return Measure("one ANN", "networks", item("networks", 0), paper=("ann_ensemble", 0))


def many_networks(setup: Setup) -> Measure:
    """Give all of them."""
    title = f"{setup.members} ANNs"
    return Measure(title, "networks", item("networks", -1), paper=("ann_ensemble", 1))


def networks_of(size: int) -> Measure:
    """Give so many of them."""
    return Measure(f"{size} ANNs", "networks", at("networks", "sizes", size))


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    return Experiment(
        "ann_ensemble",
        "Ensembles of ordinary networks",
        [Comparison(one_network(), many_networks(setup))],
        remarks=[trainer_remark(setup), "the paper's ensembles have 32 members"],
    )
