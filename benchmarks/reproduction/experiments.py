"""The tables and figures of the paper, one function each."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.reproduction.cells import Setup
from benchmarks.reproduction.measures import (
    ANCHORS,
    LOOP_WEIGHTS,
    MULTIPLIERS,
    NEIGHBORS,
    Comparison,
    Counts,
    Curves,
    Experiment,
    Measure,
    Sweep,
    at,
    item,
    sizes,
    trainer_remark,
)
from twinedge.budget.model import ann_params, twin_params

ONE_NETWORK = Measure("one ANN", "networks", item("networks", 0), paper=("ann_ensemble", 0))


def _ann_ensemble(setup: Setup) -> Experiment:
    title = f"{setup.members} ANNs"
    several = Measure(title, "networks", item("networks", -1), paper=("ann_ensemble", 1))
    return Experiment(
        "ann_ensemble",
        "Ensembles of ordinary networks",
        [Comparison(ONE_NETWORK, several)],
        remarks=[trainer_remark(setup), "the paper's ensembles have 32 members"],
    )


def twin(table: str = "tnnr_ensemble") -> Measure:
    """Measure one twin with all anchors, which two tables of the paper have."""
    column = 1 if table == "tnnr_ensemble" else 0
    return Measure("one twin", "twins", item("all_anchors"), paper=(table, column))


def _tnnr_ensemble(setup: Setup) -> Experiment:
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
        "one twin, n anchors": (ANCHORS, _each("twins", "anchors", "sizes", ANCHORS)),
        "n ANNs": (members, _each("networks", "networks", "sizes", members)),
        "n twins, all anchors": (members, _each("twins", "twins", "sizes", members)),
        "n twins, one anchor each": (members, _each("twins", "single_anchor", "sizes", members)),
    }
    return Experiment(
        "tnnr_ensemble",
        "Ensembles of twins",
        [
            Comparison(one_anchor, all_anchors),
            Comparison(twin(), several),
            Comparison(ONE_NETWORK, twin()),
        ],
        [Sweep("Error against the size of the ensemble", "ensemble size", curves)],
        remarks=[trainer_remark(setup), "the paper's ensembles have 32 members"],
    )


def _each(method: str, name: str, positions: str, numbers: Sequence[float]) -> list[Measure]:
    """Measure each of several numbers, which are positions in a list of results."""
    return [Measure(f"{name} {one:g}", method, at(name, positions, one)) for one in numbers]


def _check(setup: Setup) -> Experiment:
    columns = {
        "warned": "warns",
        "k-NN / twin": "nearest",
        "forest / twin": "forest",
        "ANNs / twin": "networks",
        "all pairs / few": "pairs",
    }
    return Experiment(
        "check",
        "Where twins gain little from more pairs",
        columns=[Measure(title, "check", item(name)) for title, name in columns.items()],
        remarks=[
            f"effort {setup.effort}; warned: share of the splits; ratios of out-of-fold errors on "
            "training and validation rows; the paper's sets that twins do not suit are bc and wn"
        ],
    )


def _knn(setup: Setup) -> Experiment:
    curves: Curves = {
        "twin, all anchors": ([1.0], [twin("knn_tnnr")]),
        "twins of neighbors": (NEIGHBORS, twins_of_neighbors()),
        "k-NN": (NEIGHBORS, _each("nearest", "nearest", "neighbours", NEIGHBORS)),
    }
    title = "Error against the number of neighbors, beside k-NN"
    return Experiment(
        "knn",
        "Twins of neighbors and k-NN",
        sweeps=[Sweep(title, "neighbors", curves, logarithmic=True)],
        remarks=[trainer_remark(setup), "twins of neighbors are trained and evaluated on them"],
    )


NEAREST = 32


def _knn_tnnr(setup: Setup) -> Experiment:
    inference = Measure(
        "NN inference",
        "twins",
        at("nearest_anchors", "neighbours", NEAREST),
        paper=("knn_tnnr", 1),
    )
    both = Measure("NN train+inf.", "neighbour_twin", item("rmse"), NEAREST, ("knn_tnnr", 2))
    k_nn = Measure("k-NN", "nearest", at("nearest", "neighbours", 4))
    base = twin("knn_tnnr")
    return Experiment(
        "knn_tnnr",
        "Twins of nearest neighbors",
        [Comparison(base, inference), Comparison(base, both), Comparison(k_nn, base)],
        remarks=[
            trainer_remark(setup),
            f"{NEAREST} neighbors for every set: nothing is chosen on test data; k-NN has 4",
        ],
    )


FEATURES = (1, 10, 100, 1000)
HIDDEN = (128, 128)
MEMBERS = [2**k for k in range(11)]


def _memory(setup: Setup) -> Experiment:
    """Put the experiment together; counts do not depend on the setup."""
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


def _multiplier(setup: Setup) -> Experiment:
    swept = [Measure(f"multiplier {m}", "multiplied_twin", item("rmse"), m) for m in MULTIPLIERS]
    base = twin()
    curves: Curves = {
        "all pairs": ([MULTIPLIERS[0]], [base]),
        "n partners": (MULTIPLIERS, swept),
    }
    return Experiment(
        "multiplier",
        "Training-set multiplier",
        [Comparison(swept[0], base)],
        [Sweep("Error against the training-set multiplier", "multiplier", curves)],
        remarks=[
            trainer_remark(setup),
            "multiplier 1 has two partners for each point, as in the code"
            if setup.protocol == "published"
            else "multiplier 1 has one partner for each point",
        ],
    )


def twins_of_neighbors() -> list[Measure]:
    """Measure twins trained and evaluated on neighbors, for each number of these."""
    return [Measure(f"{k}", "neighbour_twin", item("rmse"), k) for k in NEIGHBORS]


def _neighbors(setup: Setup) -> Experiment:
    curves: Curves = {
        "all anchors": ([1.0], [twin("knn_tnnr")]),
        "NN inference": (NEIGHBORS, _each("twins", "nearest_anchors", "neighbours", NEIGHBORS)),
        "NN training + inference": (NEIGHBORS, twins_of_neighbors()),
    }
    return Experiment(
        "neighbors",
        "Number of neighbors",
        sweeps=[Sweep("Error against the number of neighbors", "neighbors", curves)],
        remarks=[trainer_remark(setup)],
    )


def grid_remark(setup: Setup) -> str:
    """Say how many settings forests were chosen from."""
    if setup.effort == "quick":
        return "grid: small, 4 settings ranked by 10 trees; the forests have 100"
    settings = {"published": "54 settings, as published", "text": "405 settings, as in the text"}
    return f"grid: {settings[setup.protocol]}"


def rows_remark(setup: Setup) -> str:
    """Say which rows forests saw."""
    which = "the first 200 rows" if setup.protocol == "published" else "200 random rows"
    return f"100 points to train on, 100 to test, of {which}"


def _twin_rf(setup: Setup) -> Experiment:
    plain = Measure("forest", "forest", item("rmse"), paper=("twin_rf", 0))
    twinned = Measure("twinned forest", "twinned_forest", item("rmse"), paper=("twin_rf", 1))
    return Experiment(
        "twin_rf",
        "Twinned random forests",
        [Comparison(plain, twinned)],
        remarks=[grid_remark(setup), rows_remark(setup)],
    )


def _rf_ssl(setup: Setup) -> Experiment:
    supervised = Measure("supervised", "loop_forest", item("supervised"), paper=("rf_ssl", 0))
    with_loops = Measure(
        "semi-supervised",
        "loop_forest",
        at("semi_supervised", "loop_weights", 1.0),
        paper=("rf_ssl", 1),
    )
    # The tiny weight that replaces 0 is drawn at a tenth of the least.
    places = [max(weight, LOOP_WEIGHTS[1] / 10) for weight in LOOP_WEIGHTS]
    swept = _each("loop_forest", "semi_supervised", "loop_weights", LOOP_WEIGHTS)
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


TIMED_NEIGHBORS = (4, 32, 128)


def _timing(setup: Setup) -> Experiment:

    def seconds(result: dict[str, Any]) -> float:
        return float(result["training"] + result["predicting"])

    network = Measure("an ANN, s", "timed_network", seconds)
    twin = Measure("a twin, s", "timed_twin", seconds)
    near = [Measure(f"{k} neighbors, s", "timed_twin", seconds, k) for k in TIMED_NEIGHBORS]
    curves: Curves = {
        "an ANN": ([TIMED_NEIGHBORS[0]], [network]),
        "a twin": ([TIMED_NEIGHBORS[0]], [twin]),
        "a twin of neighbors": (TIMED_NEIGHBORS, near),
    }
    return Experiment(
        "timing",
        "Seconds of training and inference",
        [Comparison(network, twin), Comparison(twin, near[1])],
        [Sweep("Training and inference", "neighbors", curves, "seconds", True)],
        remarks=[
            trainer_remark(setup),
            "one network on one core, with no other cell running: training, a search for settings "
            "if there is one, and the predictions of all test points",
        ],
    )


KINDS = {"spread": "spread", "loop_violation": "loops", "asymmetry": "asymmetry"}


def _uncertainty(setup: Setup) -> Experiment:
    plain = Measure("plain mean", "unsure_twin", item("rmse"))
    weighted = [
        Measure(f"by {title}", "unsure_twin", item(kind, "weighted_rmse"))
        for kind, title in KINDS.items()
    ]
    ranks = [
        Measure(f"correlation of {title}", "unsure_twin", item(kind, "correlation"))
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


EXPERIMENTS: dict[str, Callable[[Setup], Experiment]] = {
    "ann_ensemble": _ann_ensemble,
    "tnnr_ensemble": _tnnr_ensemble,
    "multiplier": _multiplier,
    "knn_tnnr": _knn_tnnr,
    "neighbors": _neighbors,
    "knn": _knn,
    "memory": _memory,
    "rf_ssl": _rf_ssl,
    "timing": _timing,
    "twin_rf": _twin_rf,
    "uncertainty": _uncertainty,
    "check": _check,
}
