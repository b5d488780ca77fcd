"""The figure of training and inference times."""

from typing import Any

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import (
    Comparison,
    Curves,
    Experiment,
    Measure,
    Sweep,
    trainer_remark,
)

NEIGHBOURS = (4, 32, 128)


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""

    def of_one(result: dict[str, Any]) -> float:
        return float(result["training"] / setup.members + result["predicting"])

    def whole(result: dict[str, Any]) -> float:
        return float(result["training"] + result["predicting"])

    network = Measure("an ANN, s", "networks", of_one)
    twin = Measure("a twin, s", "twins", of_one)
    near = [Measure(f"{k} neighbours, s", "neighbour_twin", whole, k) for k in NEIGHBOURS]
    curves: Curves = {
        "an ANN": ([NEIGHBOURS[0]], [network]),
        "a twin": ([NEIGHBOURS[0]], [twin]),
        "a twin of neighbours": (NEIGHBOURS, near),
    }
    return Experiment(
        "timing",
        "Seconds of training and inference",
        [Comparison(network, twin), Comparison(twin, near[1])],
        [Sweep("Training and inference", "neighbours", curves, "seconds")],
        remarks=[
            trainer_remark(setup),
            "on one core, beside other cells; search for settings included, shared by the members "
            "of an ensemble; a twin of neighbours has the whole of its search",
        ],
    )
