"""The figure of memory requirements: parameters stored, counted."""

from twinedge.budget.counts import ann_params, twin_params
from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Counts, Experiment

FEATURES = (1, 10, 100, 1000)
HIDDEN = (128, 128)
MEMBERS = [2**k for k in range(11)]


def build(setup: Setup) -> Experiment:
    """Put the experiment together; nothing in the setup changes a count."""
    rows = {}
    for features in FEATURES:
        rows[f"ANNs, f = {features}"] = [ann_params(features, HIDDEN, k) for k in MEMBERS]
        rows[f"twin, f = {features}"] = [twin_params(features, HIDDEN, k) for k in MEMBERS]
    counts = Counts("Parameters stored", "ensemble size", "parameters", MEMBERS, rows)
    return Experiment(
        "memory",
        "Memory of an ensemble",
        counts=counts,
        remarks=["two hidden layers of 128; an anchor is its features and its target"],
    )
