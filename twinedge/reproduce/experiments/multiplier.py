"""The figure of the training-set multiplier."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import (
    Comparison,
    Curves,
    Experiment,
    Measure,
    Sweep,
    trainer_remark,
)
from twinedge.reproduce.experiments.tnnr_ensemble import twin
from twinedge.reproduce.sizes import MULTIPLIERS


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    swept = [
        Measure(f"multiplier {m}", "multiplied_twin", lambda found: found["rmse"], m)
        for m in MULTIPLIERS
    ]
    base = twin()
    curves: Curves = {
        "all pairs": ([MULTIPLIERS[0]], [base]),
        "so many": (MULTIPLIERS, swept),
    }
    return Experiment(
        "multiplier",
        "Training-set multiplier",
        [Comparison(swept[0], base)],
        [Sweep("Error against the training-set multiplier", "multiplier", curves)],
        remarks=[
            trainer_remark(setup),
            "multiplier 1 has two partners for each point, as the code has it"
            if setup.protocol == "published"
            else "multiplier 1 has one partner for each point",
        ],
    )
