"""What the paper found, and whether it holds here: decided from cells, never written by hand.

A finding is about each set, or about a number of sets. It *holds* if it shows on all of them, or on
as large a share of them as in the paper; it holds *partly* if it shows on more than half, and
otherwise it does not hold. A set counts by its mean over the splits, however small the difference;
a set that differs from the paper is listed with its number. There is no verdict if results are
missing for more than half of the sets that a finding is about.
"""

import math
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from benchmarks.reproduction.measures import Comparison
from benchmarks.reproduction.paper_tables import ORDER, printed
from benchmarks.reproduction.results import Outcome, Row, gain
from benchmarks.reproduction.sheets import percent

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds partly", "does not hold", "not measured"
UNSUITED = ("bc", "wn")  # sets that twins do not suit, according to the paper
_CLOSE = 2.0  # standard errors


class Verdict(NamedTuple):
    """Whether a finding holds, and what is observed here."""

    word: str
    observed: str


class Observed(NamedTuple):
    """Whether a finding shows on a set, and the number behind it."""

    shows: bool
    number: str


class Claim(NamedTuple):
    """A finding of the paper: a sentence, and the table or figure that shows it."""

    part: str
    sentence: str


Check = Callable[[Outcome], Verdict]


def verdicts(outcome: Outcome) -> list[tuple[Claim, Verdict]]:
    """Check all findings that an experiment covers."""
    return [
        (Claim(part, sentence), check(outcome))
        for part, findings in CLAIMS[outcome.experiment.name].items()
        for sentence, check in findings.items()
    ]


def everywhere(
    observed: dict[str, Observed], expected: Collection[str] = ORDER, of: Collection[str] = ORDER
) -> Verdict:
    """Check a finding that should show on the ``expected`` sets and on no others of ``of``."""
    observed = {name: one for name, one in observed.items() if name in of}
    wrong = {name: one for name, one in observed.items() if one.shows != (name in expected)}
    right = len(observed) - len(wrong)
    word = HOLDS if not wrong else PARTLY if 2 * right > len(observed) else FAILS
    counted = f"as in the paper on {right} of {len(observed)} sets"
    return _if_enough(len(observed), len(of), word, counted + _listed("different on", wrong))


def on_many(observed: dict[str, Observed], theirs: int) -> Verdict:
    """Check a finding that shows on ``theirs`` of the nine sets in the paper, any of them."""
    missed = {name: one for name, one in observed.items() if not one.shows}
    count = len(observed) - len(missed)
    enough = count * len(ORDER) >= theirs * len(observed)
    word = HOLDS if enough else PARTLY if 2 * count > len(observed) else FAILS
    counted = f"on {count} of {len(observed)} sets, in the paper on {theirs} of {len(ORDER)}"
    return _if_enough(len(observed), len(ORDER), word, counted + _listed("not on", missed))


def overall(words: Iterable[str]) -> str:
    """Sum up the verdicts on the findings of a table or figure in one."""
    known = {word for word in words if word != UNKNOWN}
    return known.pop() if len(known) == 1 else PARTLY if known else UNKNOWN


def _if_enough(count: int, of: int, word: str, observed: str) -> Verdict:
    """Withhold a verdict if most of the sets are missing."""
    if not count:
        return Verdict(UNKNOWN, "no set was computed")
    return Verdict(word, observed) if 2 * count >= of else Verdict(UNKNOWN, f"so far {observed}")


def _listed(how: str, observed: dict[str, Observed]) -> str:
    sets = ", ".join(f"{name.upper()} ({one.number})" for name, one in observed.items())
    return f"; {how} {sets}" if observed else ""


Look = Callable[[Outcome], dict[str, Observed]]
CurveMeans = dict[str, dict[float, float]]


def _everywhere(
    look: Look, expected: Collection[str] = ORDER, of: Collection[str] = ORDER
) -> Check:
    return lambda outcome: everywhere(look(outcome), expected, of)


def _many(look: Look, theirs: int) -> Check:
    return lambda outcome: on_many(look(outcome), theirs)


def _but(*sets: str) -> list[str]:
    return [name for name in ORDER if name not in sets]


def _gain(pair: int, *, above: float = -math.inf, below: float = math.inf) -> Look:
    """Find where the second of a comparison saves a share of the first's error in this range."""

    def look(outcome: Outcome) -> dict[str, Observed]:
        rows = outcome.compare(outcome.experiment.comparisons[pair])
        return {row.dataset: Observed(above < row.gain < below, _surely(row)) for row in rows}

    return look


def _better(pair: int, by: float = 0.0) -> Look:
    return _gain(pair, above=by)


def _surely(row: Row) -> str:
    sure = "" if row.surely is None else f", {abs(row.surely):.1f} s.e."
    return f"{percent(row.gain)}{sure}"


def _as_printed(side: str) -> Check:
    """Check whether the errors of one side of the first comparison match the paper's."""

    def check(outcome: Outcome) -> Verdict:
        observed = {}
        for row in outcome.compare(outcome.experiment.comparisons[0]):
            ours, theirs = getattr(row, side), getattr(row, f"paper_{side}")
            slack = _CLOSE * math.hypot(ours.standard_error or 0.0, theirs.standard_error)
            close = abs(ours.mean - theirs.mean) <= slack
            observed[row.dataset] = Observed(close, f"{ours.mean:.4g} against {theirs.mean:.4g}")
        return everywhere(observed)

    return check


def _curves(outcome: Outcome, dataset: str) -> CurveMeans:
    """Means of each curve of the figure, by place on the x axis; a level has a single place."""
    (sweep,) = outcome.experiment.sweeps
    found = {}
    for label, (places, measures) in sweep.curves.items():
        means = [point.mean for point in outcome.curve(measures, dataset)]
        found[label] = dict(zip(places, means, strict=True))
    return found


def _on_curves(look: Callable[[CurveMeans], tuple[bool, str]]) -> Look:
    """Look at the curves of each set."""
    return lambda outcome: {
        name: Observed(*look(_curves(outcome, name))) for name in outcome.datasets
    }


def _level(curves: CurveMeans, label: str) -> float:
    (value,) = curves[label].values()
    return value


def _combined(outcome: Outcome) -> Verdict:
    """Compare the gain from anchors and twins together with that from ordinary networks."""
    anchors, twins, _ = outcome.experiment.comparisons
    observed, theirs = {}, 0
    for name in ORDER:
        one, many = (printed("ann_ensemble", column, name)[0] for column in (0, 1))
        first, last = (printed("tnnr_ensemble", column, name)[0] for column in (0, 2))
        theirs += gain(first, last) > gain(one, many)
    for row in outcome.compare(Comparison(anchors.base, twins.other)):
        networks = _curves(outcome, row.dataset)["n ANNs"]
        rival = gain(networks[min(networks)], networks[max(networks)])
        both = f"{percent(row.gain)} against {percent(rival)}"
        observed[row.dataset] = Observed(row.gain > rival, both)
    return on_many(observed, theirs)


def _too_few_members(outcome: Outcome) -> Verdict:
    return Verdict(UNKNOWN, f"ensembles here have {outcome.setup.members}")


def _retrained(curves: CurveMeans) -> tuple[bool, str]:
    one, many = curves["one twin, n anchors"], curves["n twins, one anchor each"]
    saved = {size: gain(one[size], many[size]) for size in many if size > 1 and size in one}
    return all(part > 0 for part in saved.values()), ", ".join(
        f"{percent(part)} with {size:g}" for size, part in saved.items()
    )


def _all_twins_best(curves: CurveMeans) -> tuple[bool, str]:
    size = max(curves["n ANNs"])
    at_size = {
        label: points[size] if len(points) > 1 else _level(curves, label)
        for label, points in curves.items()
    }
    best = min(at_size, key=lambda label: at_size[label])
    return best == "n twins, all anchors", f"best: {best}"


def _few_pairs_enough(outcome: Outcome) -> Verdict:
    def look(curves: CurveMeans) -> tuple[bool, str]:
        ratio = curves["n partners"][16] / _level(curves, "all pairs")
        return ratio <= 1.05, percent(ratio - 1)

    helped = [name for name, one in _better(0)(outcome).items() if one.shows]
    verdict = everywhere(_on_curves(look)(outcome), of=helped)
    enough = 2 * len(outcome.datasets) >= len(ORDER)
    return verdict if enough else Verdict(UNKNOWN, f"so far {verdict.observed}")


_NEAR, _NEAR_BOTH = "NN inference", "NN training + inference"


def _one_is_too_few(curves: CurveMeans) -> tuple[bool, str]:
    whole = _level(curves, "all anchors")
    ratios = [curves[label][1] / whole - 1 for label in (_NEAR, _NEAR_BOTH)]
    return min(ratios) > 0, " and ".join(map(percent, ratios))


def _all_pairs_for_one(curves: CurveMeans) -> tuple[bool, str]:
    ratio = curves[_NEAR_BOTH][1] / curves[_NEAR][1] - 1
    return ratio > 0, percent(ratio)


def _comes_near(curves: CurveMeans) -> tuple[bool, str]:
    whole = _level(curves, "all anchors")
    off = [[curves[label][k] / whole - 1 for k in (1, 128)] for label in (_NEAR, _NEAR_BOTH)]
    ranges = " and ".join(f"{percent(one)} to {percent(many)}" for one, many in off)
    return all(abs(many) < abs(one) for one, many in off), ranges


def _sweet_spot(curves: CurveMeans) -> tuple[bool, str]:
    saved = gain(_level(curves, "all anchors"), min(curves[_NEAR_BOTH][k] for k in (16, 32, 64)))
    return saved > 0, percent(saved)


def _beats_k_nn(curves: CurveMeans) -> tuple[bool, str]:
    saved = gain(min(curves["k-NN"].values()), min(curves["twins of neighbors"].values()))
    return saved > 0, percent(saved)


def _more_than_k_nn(curves: CurveMeans) -> tuple[bool, str]:
    best = [
        min(curves[one], key=lambda k: curves[one][k]) for one in ("twins of neighbors", "k-NN")
    ]
    return best[0] > best[1], f"{best[0]:g} and {best[1]:g}"


def _best_near_one(curves: CurveMeans) -> tuple[bool, str]:
    loops = curves["with loops"]
    best = min(loops, key=lambda weight: loops[weight])
    return 0.3 <= best <= 3.4, f"best at {best:.2g}"


def _fewer_parameters(outcome: Outcome) -> Verdict:
    counts = outcome.experiment.counts
    assert counts is not None
    labels = list(counts.rows)
    pairs = list(zip(labels[::2], labels[1::2], strict=True))
    times = {
        (twin, size): counts.rows[networks][place] / counts.rows[twin][place]
        for networks, twin in pairs
        for place, size in enumerate(counts.x)
        if size > 1
    }
    with_32 = "; ".join(f"{times[twin, 32]:.0f} times fewer for {twin[6:]}" for _, twin in pairs)
    good = sum(one > 1 for one in times.values())
    word = HOLDS if good == len(times) else PARTLY if 2 * good > len(times) else FAILS
    return Verdict(word, f"for {good} of {len(times)} sizes from two members; with 32, {with_32}")


def _not_consistent(outcome: Outcome) -> Verdict:
    """Check whether weighting anchors clearly helps on no more than half of the sets."""
    lines, most, count = [], 0, len(outcome.datasets)
    for pair in outcome.experiment.comparisons:
        sure = [row.surely or 0.0 for row in outcome.compare(pair)]
        better, worse = sum(one > _CLOSE for one in sure), sum(one < -_CLOSE for one in sure)
        lines.append(f"{pair.other.title}: better on {better}, worse on {worse}")
        most = max(most, better)
    observed = f"of {count} sets, by more than two s.e., {'; '.join(lines)}"
    return _if_enough(count, len(ORDER), FAILS if 2 * most > count else HOLDS, observed)


def _warned(outcome: Outcome) -> dict[str, Observed]:
    column = outcome.experiment.columns[0]
    shares = {name: outcome.mean(column, name).mean for name in outcome.datasets}
    return {
        name: Observed(one > 0.5, f"{100 * one:.0f} % of splits") for name, one in shares.items()
    }


# By experiment and part of the paper: its findings, and how each is checked.
CLAIMS: dict[str, dict[str, dict[str, Check]]] = {
    "ann_ensemble": {
        "Table 1": {
            "Several ANNs are better than one on all nine sets.": _everywhere(_better(0)),
            "The errors of "
            "one ANN match the printed ones, within two standard errors.": _as_printed("base"),
        },
    },
    "tnnr_ensemble": {
        "Table 2": {
            "All anchors are better than one on all nine sets.": _everywhere(_better(0)),
            "Several twins are better than one on all nine sets.": _everywhere(_better(1)),
            "Anchors and several twins together save a "
            "larger share of the error than several ANNs, on eight sets.": _combined,
            "The errors of one twin with all "
            "anchors match the printed ones, within two standard errors.": _as_printed("other"),
        },
        "Figure 2": {
            "One twin is better than one ANN on all sets except BC.": _everywhere(
                _better(2), _but("bc")
            ),
            "Twins with one anchor each "
            "are better than one twin with as many anchors.": _everywhere(_on_curves(_retrained)),
            "Of all ensembles, several twins with all anchors are best on seven sets; "
            "on BC and WN the ANNs are.": _everywhere(_on_curves(_all_twins_best), _but(*UNSUITED)),
            "More than 32 "
            "twins do as well with one anchor each as with all anchors.": _too_few_members,
        },
    },
    "multiplier": {
        "Figure 3": {
            "All pairs are better than one partner for each point, "
            "except on BC and WN, where they are worse.": _everywhere(_better(0), _but(*UNSUITED)),
            "If more pairs help, 8 to 16 partners "
            "are enough (error at 16 within 5 % of that with all pairs).": _few_pairs_enough,
        },
    },
    "knn_tnnr": {
        "Table 3": {
            "Nearest neighbors as anchors are better than all on all nine sets.": _everywhere(
                _better(0)
            ),
            "Training on neighbors as well is better than the plain twin on seven sets.": _many(
                _better(1), 7
            ),
            "It saves more than a tenth of the error on RCL, TF and YH.": _everywhere(
                _better(1, by=0.1), ("rcl", "tf", "yh"), ("rcl", "tf", "yh")
            ),
        },
    },
    "neighbors": {
        "Figure 4": {
            "With one neighbor, twins of either training "
            "are worse than with all anchors on seven sets.": _many(_on_curves(_one_is_too_few), 7),
            "With one neighbor, training on all pairs "
            "is better than on neighbors on seven sets.": _many(_on_curves(_all_pairs_for_one), 7),
            "With many neighbors both come "
            "near the plain twin (nearer at 128 than at 1).": _everywhere(_on_curves(_comes_near)),
            "Somewhere from 16 to 64 neighbors, training on them is better than the plain twin on "
            "seven sets (the "
            "best is picked on test points, as in the figure).": _many(_on_curves(_sweet_spot), 7),
        },
    },
    "knn": {
        "Figure 5": {
            "Twins of neighbors are better than k-NN, except on BC and WN, each at its best "
            "number (picked on test "
            "points, as in the figure).": _everywhere(_on_curves(_beats_k_nn), _but(*UNSUITED)),
            "The best number of anchors is larger "
            "than the best number of neighbors of k-NN.": _everywhere(_on_curves(_more_than_k_nn)),
        },
    },
    "memory": {
        "Figure 6": {
            "A twin and "
            "its anchors have fewer parameters than an ensemble of ANNs.": _fewer_parameters,
        },
    },
    "rf_ssl": {
        "Table 4": {
            "Loops through the "
            "test points, at weight 1, lower the error on all nine sets.": _everywhere(_better(0)),
            "They save little: less than 1 % of the error, except on EE.": _many(
                _gain(0, below=0.01), 8
            ),
        },
        "Figure 7": {
            "Loops of weight 1 lower the error on six sets.": _many(_better(0), 6),
            "The best weight is about 1 (from 1/3 "
            "to 10/3, picked on test points) on those six.": _many(_on_curves(_best_near_one), 6),
        },
    },
    "timing": {
        "Figure 8": {
            "An ANN takes less time than a twin.": _everywhere(_gain(0, below=0)),
            "Training on neighbors "
            "takes a little less time than on all pairs, on most sets.": _many(_better(1), 5),
        },
    },
    "twin_rf": {
        "Table 6": {
            "Twinned forests save more than 30 % of the error "
            "on TF and WSB, and on no other set.": _everywhere(_better(0, by=0.3), ("tf", "wsb")),
            "They are better on BH, CS, RCL and YH.": _everywhere(
                _better(0), ("bh", "cs", "rcl", "yh"), ("bh", "cs", "rcl", "yh")
            ),
            "They are level or slightly worse on BC, EE and WN (gain below 2 %).": _everywhere(
                _gain(0, below=0.02), ("bc", "ee", "wn"), ("bc", "ee", "wn")
            ),
            "The errors of "
            "forests match the printed ones, within two standard errors.": _as_printed("base"),
            "So do those of twinned forests.": _as_printed("other"),
        },
    },
    "uncertainty": {
        "Text": {
            "Weighting anchors "
            "by their certainty does not consistently lower the error.": _not_consistent,
        },
    },
    "check": {
        "Text": {
            "Trying few pairs shows where a twin "
            "does not suit: that test warns only on BC and WN.": _everywhere(_warned, UNSUITED),
        },
    },
}
