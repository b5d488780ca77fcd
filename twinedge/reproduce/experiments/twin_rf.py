"""The table of twinned random forests."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Comparison, Experiment, Measure, item


def grid_remark(setup: Setup) -> str:
    """Say among how many settings forests were chosen."""
    if setup.effort == "quick":
        return "grid: small, 4 settings ranked by 10 trees; the forests have 100"
    settings = {"published": "54 settings, as published", "text": "405 settings, as in the text"}
    return f"grid: {settings[setup.protocol]}"


def rows_remark(setup: Setup) -> str:
    """Say which rows forests saw."""
    which = "the first 200 rows" if setup.protocol == "published" else "200 random rows"
    return f"100 points to train on, 100 to test, of {which}"


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    plain = Measure("forest", "forest", item("rmse"), paper=("twin_rf", 0))
    twinned = Measure("twinned forest", "twinned_forest", item("rmse"), paper=("twin_rf", 1))
    return Experiment(
        "twin_rf",
        "Twinned random forests",
        [Comparison(plain, twinned)],
        remarks=[grid_remark(setup), rows_remark(setup)],
    )
