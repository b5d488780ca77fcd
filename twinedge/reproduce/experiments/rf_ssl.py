"""The table and figure of semi-supervised twinned forests."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Comparison, Curves, Experiment, Measure, Sweep, at, item
from twinedge.reproduce.experiments.twin_rf import grid_remark, rows_remark
from twinedge.reproduce.sizes import LOOP_WEIGHTS


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    supervised = Measure("supervised", "loop_forest", item("supervised"), paper=("rf_ssl", 0))
    with_loops = Measure(
        "semi-supervised",
        "loop_forest",
        at("semi_supervised", "loop_weights", 1.0),
        paper=("rf_ssl", 1),
    )
    # What stands for a weight of 0 is drawn at a tenth of the least.
    places = [max(weight, LOOP_WEIGHTS[1] / 10) for weight in LOOP_WEIGHTS]
    swept = [
        Measure(f"{weight:g}", "loop_forest", at("semi_supervised", "loop_weights", weight))
        for weight in LOOP_WEIGHTS
    ]
    curves: Curves = {"supervised": ([1.0], [supervised]), "with loops": (places, swept)}
    return Experiment(
        "rf_ssl",
        "Semi-supervised forests",
        [Comparison(supervised, with_loops)],
        [Sweep("Error against the weight of loops", "loop weight", curves, ceiling=1.1)],
        remarks=[
            grid_remark(setup),
            rows_remark(setup),
            "loop weight 1 for every set in the table: nothing is chosen on test data",
            "in the figure the leftmost weight stands for 0; panels end at 1.1 supervised errors",
        ],
    )
