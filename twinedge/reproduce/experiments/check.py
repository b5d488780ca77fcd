"""The paper's advice to check whether a twin suits the data: whom ``twinedge check`` warns."""

from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiment import Experiment, Measure, item


def build(setup: Setup) -> Experiment:
    """Put the experiment together."""
    columns = {
        "warned": "warns",
        "k-NN / twin": "nearest",
        "forest / twin": "forest",
        "ANNs / twin": "networks",
        "all pairs / few": "pairs",
    }
    return Experiment(
        "check",
        "Whom twinedge check warns",
        columns=[Measure(title, "check", item(name)) for title, name in columns.items()],
        remarks=[
            f"effort {setup.effort}; warned: part of the splits; ratios of out-of-fold errors on "
            "training and validation rows; the paper's sets that twins do not suit are bc and wn"
        ],
    )
