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

    def seconds(result: dict[str, Any]) -> float:
        return float(result["training"] + result["predicting"])

    network = Measure("an ANN, s", "timed_network", seconds)
    twin = Measure("a twin, s", "timed_twin", seconds)
    near = [Measure(f"{k} neighbours, s", "timed_twin", seconds, k) for k in NEIGHBOURS]
    curves: Curves = {
        "an ANN": ([NEIGHBOURS[0]], [network]),
        "a twin": ([NEIGHBOURS[0]], [twin]),
        "a twin of neighbours": (NEIGHBOURS, near),
    }
    return Experiment(
        "timing",
        "Seconds of training and inference",
        [Comparison(network, twin), Comparison(twin, near[1])],
        [Sweep("Training and inference", "neighbours", curves, "seconds", True)],
        remarks=[
            trainer_remark(setup),
            "one network on one core, no other cell beside it: training, a search for settings "
            "where there is one, and the predictions of all test points",
        ],
    )
