"""What the paper found, and whether it holds here: decided from cells, never written by hand.

A finding is about each set, or about a number of sets. It *holds* if it shows on all of them, or on
as large a share of them as in the paper; it holds *partly* if on more than half, and otherwise it
does not hold. A set counts by its mean over the splits, however small the difference; a set that
differs from the paper is listed with its number. A finding is not judged if results are missing for
more than half of the sets it is about.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.reproduction.answers import Answer
from benchmarks.reproduction.experiment import Comparison, Measure
from benchmarks.reproduction.tables import ORDER, Row, compare, curve, gain, mean_of, printed

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds partly", "does not hold", "not measured"
UNSUITED = ("bc", "wn")  # sets that twins do not suit, according to the paper
_CLOSE = 2.0  # standard errors
_LEVEL = 0.02  # a smaller gain does not count


class Ruling(NamedTuple):
    """Whether a finding holds, and what was seen."""

    word: str
    seen: str


class Seen(NamedTuple):
    """Whether a finding shows on a set, and the number behind it."""

    shows: bool
    number: str


@dataclass(frozen=True)
class Claim:
    """A finding of the paper.

    Parameters
    ----------
    part : str
        Table or figure that shows it.
    says : str
        The finding, in a sentence.
    judge : function
        Returns the verdict on an answered experiment.
    """

    part: str
    says: str
    judge: Callable[[Answer], Ruling]


def everywhere(
    seen: dict[str, Seen], expected: Collection[str] = ORDER, of: Collection[str] = ORDER
) -> Ruling:
    """Judge a finding that should show on the ``expected`` sets and on no others of ``of``."""
    seen = {name: one for name, one in seen.items() if name in of}
    wrong = {name: one for name, one in seen.items() if one.shows != (name in expected)}
    right = len(seen) - len(wrong)
    word = HOLDS if not wrong else PARTLY if 2 * right > len(seen) else FAILS
    told = f"as in the paper on {right} of {len(seen)} sets{_listed('otherwise on', wrong)}"
    return _if_enough(len(seen), len(of), Ruling(word, told))


def on_many(seen: dict[str, Seen], theirs: int) -> Ruling:
    """Judge a finding that shows on ``theirs`` of the nine sets in the paper, any of them."""
    missed = {name: one for name, one in seen.items() if not one.shows}
    count = len(seen) - len(missed)
    enough = count * len(ORDER) >= theirs * len(seen)
    word = HOLDS if enough else PARTLY if 2 * count > len(seen) else FAILS
    told = f"on {count} of {len(seen)} sets, in the paper on {theirs} of {len(ORDER)}"
    told += _listed("not on", missed)
    return _if_enough(len(seen), len(ORDER), Ruling(word, told))


def overall(words: Iterable[str]) -> str:
    """Sum up the verdicts on the findings of a table or figure in one."""
    known = {word for word in words if word != UNKNOWN}
    return known.pop() if len(known) == 1 else PARTLY if known else UNKNOWN


def _if_enough(count: int, of: int, verdict: Ruling) -> Ruling:
    """Withhold a verdict if most of the sets are missing."""
    if not count:
        return Ruling(UNKNOWN, "no set was computed")
    return verdict if 2 * count >= of else Ruling(UNKNOWN, f"so far {verdict.seen}")


def _listed(how: str, seen: dict[str, Seen]) -> str:
    sets = ", ".join(f"{name.upper()} ({one.number})" for name, one in seen.items())
    return f"; {how} {sets}" if seen else ""


def _rows(answer: Answer, pair: int | Comparison) -> list[Row]:
    if isinstance(pair, int):
        pair = answer.asked.experiment.comparisons[pair]
    return compare(answer.asked, pair, answer.results)


def _percent(part: float) -> str:
    return f"{100 * part:+.1f} %"


def _told(row: Row) -> str:
    sure = "" if row.surely is None else f", {abs(row.surely):.1f} s.e."
    return f"{_percent(row.gain)}{sure}"


def _better(pair: int, more_than: float = 0.0) -> Callable[[Answer], dict[str, Seen]]:
    """Find where the second of a comparison saves more than this share of the first's error."""

    def look(answer: Answer) -> dict[str, Seen]:
        rows = _rows(answer, pair)
        return {row.dataset: Seen(row.gain > more_than, _told(row)) for row in rows}

    return look


def _worse(pair: int) -> Callable[[Answer], dict[str, Seen]]:
    """Find where the second of a comparison has the larger number."""
    return lambda answer: {
        row.dataset: Seen(row.gain < 0, _told(row)) for row in _rows(answer, pair)
    }


def _as_printed(measure: Callable[[Answer], Measure]) -> Callable[[Answer], Ruling]:
    """Judge whether errors match the paper's, within two standard errors."""

    def judge(answer: Answer) -> Ruling:
        one = measure(answer)
        assert one.paper is not None
        seen = {}
        for name in answer.asked.datasets:
            ours = mean_of(answer.asked.values(one, name, answer.results))
            mean, error = printed(*one.paper, name)
            slack = _CLOSE * math.hypot(ours.standard_error or 0.0, error)
            told = f"{ours.mean:.4g} against {mean:.4g}"
            seen[name] = Seen(abs(ours.mean - mean) <= slack, told)
        return everywhere(seen)

    return judge


def _base(pair: int) -> Callable[[Answer], Measure]:
    return lambda answer: answer.asked.experiment.comparisons[pair].base


def _other(pair: int) -> Callable[[Answer], Measure]:
    return lambda answer: answer.asked.experiment.comparisons[pair].other


def _curves(answer: Answer, dataset: str) -> dict[str, dict[float, float]]:
    """Means of each curve of the figure, by place on the x axis; a level has a single place."""
    (sweep,) = answer.asked.experiment.sweeps
    found = {}
    for label, (places, measures) in sweep.curves.items():
        means = [point.mean for point in curve(answer.asked, measures, dataset, answer.results)]
        found[label] = dict(zip(places, means, strict=True))
    return found


def _on_curves(
    look: Callable[[dict[str, dict[float, float]]], tuple[bool, str]],
) -> Callable[[Answer], dict[str, Seen]]:
    """Look at the curves of each set."""
    return lambda answer: {
        name: Seen(*look(_curves(answer, name))) for name in answer.asked.datasets
    }


def _level(curves: dict[str, dict[float, float]], label: str) -> float:
    (value,) = curves[label].values()
    return value


def _combined(answer: Answer) -> Ruling:
    """Compare the gain from anchors and twins together with that from ordinary networks."""
    anchors, twins, _ = answer.asked.experiment.comparisons
    seen, theirs = {}, 0
    for name in ORDER:
        one, many = (printed("ann_ensemble", column, name)[0] for column in (0, 1))
        first, last = (printed("tnnr_ensemble", column, name)[0] for column in (0, 2))
        theirs += gain(first, last) > gain(one, many)
    for row in _rows(answer, Comparison(anchors.base, twins.other)):
        networks = _curves(answer, row.dataset)["n ANNs"]
        rival = gain(networks[min(networks)], networks[max(networks)])
        told = f"{_percent(row.gain)} against {_percent(rival)}"
        seen[row.dataset] = Seen(row.gain > rival, told)
    return on_many(seen, theirs)


def _retrained(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    one, many = curves["one twin, n anchors"], curves["n twins, one anchor each"]
    saved = {size: gain(one[size], many[size]) for size in many if size > 1 and size in one}
    return all(part > 0 for part in saved.values()), ", ".join(
        f"{_percent(part)} with {size:g}" for size, part in saved.items()
    )


def _all_twins_best(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    size = max(curves["n ANNs"])
    at_size = {
        label: points[size] if len(points) > 1 else _level(curves, label)
        for label, points in curves.items()
    }
    best = min(at_size, key=lambda label: at_size[label])
    return best == "n twins, all anchors", f"best: {best}"


def _soon_enough(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    ratio = curves["n partners"][16] / _level(curves, "all pairs")
    return ratio <= 1.05, _percent(ratio - 1)


def _few_pairs_enough(answer: Answer) -> Ruling:
    helped = [name for name, one in _better(0)(answer).items() if one.shows]
    verdict = everywhere(_on_curves(_soon_enough)(answer), of=helped)
    enough = 2 * len(answer.asked.datasets) >= len(ORDER)
    return verdict if enough else Ruling(UNKNOWN, f"so far {verdict.seen}")


_NEAR, _NEAR_BOTH = "NN inference", "NN training + inference"


def _one_is_too_few(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    whole = _level(curves, "all anchors")
    ratios = [curves[label][1] / whole - 1 for label in (_NEAR, _NEAR_BOTH)]
    return min(ratios) > 0, " and ".join(map(_percent, ratios))


def _all_pairs_for_one(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    ratio = curves[_NEAR_BOTH][1] / curves[_NEAR][1] - 1
    return ratio > 0, _percent(ratio)


def _comes_near(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    whole = _level(curves, "all anchors")
    off = [[curves[label][k] / whole - 1 for k in (1, 128)] for label in (_NEAR, _NEAR_BOTH)]
    told = " and ".join(f"{_percent(one)} to {_percent(many)}" for one, many in off)
    return all(abs(many) < abs(one) for one, many in off), told


def _sweet_spot(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    saved = gain(_level(curves, "all anchors"), min(curves[_NEAR_BOTH][k] for k in (16, 32, 64)))
    return saved > 0, _percent(saved)


def _beats_k_nn(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    saved = gain(min(curves["k-NN"].values()), min(curves["twins of neighbors"].values()))
    return saved > 0, _percent(saved)


def _more_than_k_nn(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    best = [
        min(curves[one], key=lambda k: curves[one][k]) for one in ("twins of neighbors", "k-NN")
    ]
    return best[0] > best[1], f"{best[0]:g} and {best[1]:g}"


def _fewer_parameters(answer: Answer) -> Ruling:
    counts = answer.asked.experiment.counts
    assert counts is not None
    labels = list(counts.rows)
    pairs = list(zip(labels[::2], labels[1::2], strict=True))
    times = {
        (twin, size): counts.rows[networks][place] / counts.rows[twin][place]
        for networks, twin in pairs
        for place, size in enumerate(counts.x)
        if size > 1
    }
    told = "; ".join(f"{times[twin, 32]:.0f} times fewer for {twin[6:]}" for _, twin in pairs)
    good = sum(one > 1 for one in times.values())
    word = HOLDS if good == len(times) else PARTLY if 2 * good > len(times) else FAILS
    return Ruling(word, f"for {good} of {len(times)} sizes from two members; with 32, {told}")


def _small(answer: Answer) -> dict[str, Seen]:
    return {row.dataset: Seen(row.gain < 0.01, _told(row)) for row in _rows(answer, 0)}


def _best_near_one(curves: dict[str, dict[float, float]]) -> tuple[bool, str]:
    loops = curves["with loops"]
    best = min(loops, key=lambda weight: loops[weight])
    return 0.3 <= best <= 3.4, f"best at {best:.2g}"


def _no_gain(answer: Answer) -> dict[str, Seen]:
    return {row.dataset: Seen(row.gain < _LEVEL, _told(row)) for row in _rows(answer, 0)}


def _only(
    look: Callable[[Answer], dict[str, Seen]], sets: Collection[str]
) -> Callable[[Answer], Ruling]:
    """Judge a finding about some sets by these sets alone."""
    return lambda answer: everywhere(look(answer), sets, sets)


def _on(
    look: Callable[[Answer], dict[str, Seen]], expected: Collection[str] = ORDER
) -> Callable[[Answer], Ruling]:
    return lambda answer: everywhere(look(answer), expected)


def _many(look: Callable[[Answer], dict[str, Seen]], theirs: int) -> Callable[[Answer], Ruling]:
    return lambda answer: on_many(look(answer), theirs)


def _not_consistent(answer: Answer) -> Ruling:
    """Judge whether weighting anchors clearly helps on no more than half of the sets."""
    told, most, count = [], 0, len(answer.asked.datasets)
    for pair in answer.asked.experiment.comparisons:
        sure = [row.surely or 0.0 for row in _rows(answer, pair)]
        better, worse = sum(one > _CLOSE for one in sure), sum(one < -_CLOSE for one in sure)
        told.append(f"{pair.other.title}: better on {better}, worse on {worse}")
        most = max(most, better)
    word = FAILS if 2 * most > count else HOLDS
    verdict = Ruling(word, f"of {count} sets, by more than two s.e., {'; '.join(told)}")
    return _if_enough(count, len(ORDER), verdict)


def _warned(answer: Answer) -> dict[str, Seen]:
    column = answer.asked.experiment.columns[0]
    shares = {
        name: float(answer.asked.values(column, name, answer.results).mean())
        for name in answer.asked.datasets
    }
    return {name: Seen(one > 0.5, f"{100 * one:.0f} % of splits") for name, one in shares.items()}


def _but(*sets: str) -> list[str]:
    return [name for name in ORDER if name not in sets]


CLAIMS: dict[str, list[Claim]] = {
    "ann_ensemble": [
        Claim("Table 1", "Several ANNs are better than one on all nine sets.", _on(_better(0))),
        Claim(
            "Table 1",
            "The errors of one ANN match the printed ones, within two standard errors.",
            _as_printed(_base(0)),
        ),
    ],
    "tnnr_ensemble": [
        Claim("Table 2", "All anchors are better than one on all nine sets.", _on(_better(0))),
        Claim("Table 2", "Several twins are better than one on all nine sets.", _on(_better(1))),
        Claim(
            "Table 2",
            "Anchors and several twins together save a larger share of the error than several "
            "ANNs, on eight sets.",
            _combined,
        ),
        Claim(
            "Table 2",
            "The errors of one twin with all anchors match the printed ones, within two standard "
            "errors.",
            _as_printed(_other(0)),
        ),
        Claim(
            "Figure 2",
            "One twin is better than one ANN on all sets except BC.",
            _on(_better(2), _but("bc")),
        ),
        Claim(
            "Figure 2",
            "Twins with one anchor each are better than one twin with as many anchors.",
            _on(_on_curves(_retrained)),
        ),
        Claim(
            "Figure 2",
            "Of all ensembles, several twins with all anchors are best on seven sets; on BC "
            "and WN the ANNs are.",
            _on(_on_curves(_all_twins_best), _but(*UNSUITED)),
        ),
        Claim(
            "Figure 2",
            "More than 32 twins do as well with one anchor each as with all anchors.",
            lambda answer: Ruling(UNKNOWN, f"ensembles here have {answer.asked.setup.members}"),
        ),
    ],
    "multiplier": [
        Claim(
            "Figure 3",
            "All pairs are better than one partner for each point, except on BC and WN, where "
            "they are worse.",
            _on(_better(0), _but(*UNSUITED)),
        ),
        Claim(
            "Figure 3",
            "If more pairs help, 8 to 16 partners are enough (error at 16 within 5 % of that "
            "with all pairs).",
            _few_pairs_enough,
        ),
    ],
    "knn_tnnr": [
        Claim(
            "Table 3",
            "Nearest neighbors as anchors are better than all on all nine sets.",
            _on(_better(0)),
        ),
        Claim(
            "Table 3",
            "Training on neighbors as well is better than the plain twin on seven sets.",
            _many(_better(1), 7),
        ),
        Claim(
            "Table 3",
            "It saves more than a tenth of the error on RCL, TF and YH.",
            _only(_better(1, 0.1), ("rcl", "tf", "yh")),
        ),
    ],
    "neighbors": [
        Claim(
            "Figure 4",
            "With one neighbor, twins of either training are worse than with all anchors on "
            "seven sets.",
            _many(_on_curves(_one_is_too_few), 7),
        ),
        Claim(
            "Figure 4",
            "With one neighbor, training on all pairs is better than on neighbors on seven sets.",
            _many(_on_curves(_all_pairs_for_one), 7),
        ),
        Claim(
            "Figure 4",
            "With many neighbors both come near the plain twin (nearer at 128 than at 1).",
            _on(_on_curves(_comes_near)),
        ),
        Claim(
            "Figure 4",
            "Somewhere from 16 to 64 neighbors, training on them is better than the plain twin "
            "on seven sets (the best is picked on test points, as in the figure).",
            _many(_on_curves(_sweet_spot), 7),
        ),
    ],
    "knn": [
        Claim(
            "Figure 5",
            "Twins of neighbors are better than k-NN, except on BC and WN, each at its best number "
            "(picked on test points, as in the figure).",
            _on(_on_curves(_beats_k_nn), _but(*UNSUITED)),
        ),
        Claim(
            "Figure 5",
            "The best number of anchors is larger than the best number of neighbors of k-NN.",
            _on(_on_curves(_more_than_k_nn)),
        ),
    ],
    "memory": [
        Claim(
            "Figure 6",
            "A twin and its anchors have fewer parameters than an ensemble of ANNs.",
            _fewer_parameters,
        ),
    ],
    "rf_ssl": [
        Claim(
            "Table 4",
            "Loops through the test points, at weight 1, lower the error on all nine sets.",
            _on(_better(0)),
        ),
        Claim(
            "Table 4",
            "They save little: less than 1 % of the error, except on EE.",
            _many(_small, 8),
        ),
        Claim(
            "Figure 7",
            "Loops of weight 1 lower the error on six sets.",
            _many(_better(0), 6),
        ),
        Claim(
            "Figure 7",
            "The best weight is about 1 (from 1/3 to 10/3, picked on test points) on those six.",
            _many(_on_curves(_best_near_one), 6),
        ),
    ],
    "timing": [
        Claim("Figure 8", "An ANN takes less time than a twin.", _on(_worse(0))),
        Claim(
            "Figure 8",
            "Training on neighbors takes a little less time than on all pairs, on most sets.",
            _many(_better(1), 5),
        ),
    ],
    "twin_rf": [
        Claim(
            "Table 6",
            "Twinned forests save more than 30 % of the error on TF and WSB, and on no other set.",
            _on(_better(0, 0.3), ("tf", "wsb")),
        ),
        Claim(
            "Table 6",
            "They are better on BH, CS, RCL and YH.",
            _only(_better(0), ("bh", "cs", "rcl", "yh")),
        ),
        Claim(
            "Table 6",
            "They are level or slightly worse on BC, EE and WN (gain below 2 %).",
            _only(_no_gain, ("bc", "ee", "wn")),
        ),
        Claim(
            "Table 6",
            "The errors of forests match the printed ones, within two standard errors.",
            _as_printed(_base(0)),
        ),
        Claim(
            "Table 6",
            "So do those of twinned forests.",
            _as_printed(_other(0)),
        ),
    ],
    "uncertainty": [
        Claim(
            "Text",
            "Weighting anchors by their certainty does not consistently lower the error.",
            _not_consistent,
        ),
    ],
    "check": [
        Claim(
            "Text",
            "Trying few pairs shows where a twin does not suit: that test warns only on BC and WN.",
            _on(_warned, UNSUITED),
        ),
    ],
}


def judged(answer: Answer) -> list[tuple[Claim, Ruling]]:
    """Judge all findings that an answered experiment covers."""
    return [(claim, claim.judge(answer)) for claim in CLAIMS[answer.asked.experiment.name]]
