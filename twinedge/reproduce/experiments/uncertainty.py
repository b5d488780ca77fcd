"""What the paper reports without a table: how well uncertainties rank, and weighing by them."""

from typing import Any

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import (
    Comparison,
    Experiment,
    Measure,
    Read,
    item,
    trainer_remark,
)

KINDS = {"spread": "spread", "loop_violation": "loops", "asymmetry": "asymmetry"}


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    plain = Measure("plain mean", "unsure_twin", item("rmse"))
    weighted = [
        Measure(f"by {title}", "unsure_twin", _of(kind, "weighted_rmse"))
        for kind, title in KINDS.items()
    ]
    ranks = [
        Measure(f"correlation of {title}", "unsure_twin", _of(kind, "correlation"))
        for kind, title in KINDS.items()
    ]
    return Experiment(
        "uncertainty",
        "Uncertainties, and anchors weighted by them",
        [Comparison(plain, one) for one in weighted],
        columns=ranks,
        remarks=[
            trainer_remark(setup),
            "correlation: Spearman's, of the uncertainty with the absolute error on test points",
        ],
    )


def _of(kind: str, name: str) -> Read:
    def read(result: dict[str, Any]) -> float:
        return float(result[kind][name])

    return read
