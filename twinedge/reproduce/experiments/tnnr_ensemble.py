"""The table of ensembles of twins, and the figure of all kinds of ensembles."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import (
    Comparison,
    Curves,
    Experiment,
    Measure,
    Sweep,
    at,
    item,
    trainer_remark,
)
from twinedge.reproduce.experiments.ann_ensemble import networks_of, one_network
from twinedge.reproduce.sizes import ANCHORS, sizes


def twin(table: str = "tnnr_ensemble") -> Measure:
    """Give one twin with all anchors, which two tables of the paper have."""
    column = 1 if table == "tnnr_ensemble" else 0
    return Measure("one twin", "twins", item("all_anchors"), paper=(table, column))


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    one_anchor = Measure(
        "one anchor", "twins", at("anchors", "sizes", 1), paper=("tnnr_ensemble", 0)
    )
    all_anchors = Measure("all anchors", "twins", item("all_anchors"), paper=("tnnr_ensemble", 1))
    several = Measure(
        f"{setup.members} twins", "twins", item("ensemble"), paper=("tnnr_ensemble", 2)
    )
    members = sizes(setup.members)
    curves: Curves = {
        "one twin, all anchors": ([1], [twin()]),
        "one twin, so many anchors": (ANCHORS, [_curve("anchors", k) for k in ANCHORS]),
        "so many ANNs": (members, [networks_of(k) for k in members]),
        "so many twins, all anchors": (members, [_curve("twins", k) for k in members]),
        "so many twins, an anchor each": (members, [_curve("single_anchor", k) for k in members]),
    }
    return Experiment(
        "tnnr_ensemble",
        "Ensembles of twins",
        [
            Comparison(one_anchor, all_anchors),
            Comparison(twin(), several),
            Comparison(one_network(), twin()),
        ],
        [Sweep("Error against the size of the ensemble", "ensemble size", curves)],
        remarks=[trainer_remark(setup), "the paper's ensembles have 32 members"],
    )


def _curve(name: str, size: int) -> Measure:
    return Measure(f"{name} {size}", "twins", at(name, "sizes", size))
