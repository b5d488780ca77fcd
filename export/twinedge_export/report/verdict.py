"""The verdict in plain sentences, for decision makers: first what to do, then why."""

from math import sqrt
from typing import Any

from twinedge.evaluation.verdict import NAMES, is_suspicious
from twinedge.evaluation.verdict import verdict as rule
from twinedge.scoring.scores import Coverage
from twinedge.wording import joined
from twinedge_export.report.document import (
    Fact,
    Light,
    ensemble,
    forest,
    milliseconds,
    number,
    percent,
    shape,
)
from twinedge_export.report.findings import Findings
from twinedge_export.report.reliability import Baseline

_CHANCE = 1.96  # standard deviations: 95 of 100 counts
_HELD = ("fits", "fits, slowly")


def verdict(found: Findings) -> Light:
    """Say what to do with the model, in one sentence; other models are judged as in ``check``."""
    against = _against_others(found)
    if against is not None:
        return against
    trust = found.usual and _held(found.usual, found)
    if trust == "fewer":
        return Light("limit", "Accurate, but its intervals hold less than they claim.")
    if not _boards(found.budget):
        return Light("limit", "Accurate, but no board is known to hold it.")
    better = [
        f"{one.rmse / found.judged.rmse:.1f} times better than {one.name}"
        for one in found.baselines
    ]
    if not better or not found.judged.rmse:
        return Light("go", "It does what it claims on these rows.")
    return Light("go", f"Worth using: {joined(better)}.")


def _against_others(found: Findings) -> Light | None:
    """Say what other models mean for this one; None if it is the one to use."""
    rivals = {one.kind: one.rival for one in found.baselines}
    if not rivals:
        return None
    if found.trees is not None:
        rivals["trees"] = found.trees.rival
    ruled = rule(found.judged.rmse, rivals, len(found.judged.y), found.budget["twin_bytes"])
    if ruled.rival == "mean" and ruled.outcome in ("behind", "as good"):
        than = "worse than" if ruled.outcome == "behind" else "no better than"
        return Light("stop", f"Do not use it: it is {than} predicting the mean.")
    if ruled.outcome == "undecided":
        return Light("limit", f"The rows are too few to tell it from {NAMES[ruled.rival]}.")
    if ruled.outcome == "behind" and ruled.rival == "linear":
        if is_suspicious("linear", rivals):
            return Light("stop", "A linear model is almost exact: does a column hold the target?")
        return Light("stop", "Use a linear model instead: it is more accurate, and simpler.")
    if ruled.outcome == "as good" and ruled.rival == "linear":
        return Light("limit", "A linear model is as accurate here, and simpler.")
    if ruled.outcome == "behind":
        return Light("limit", "Good, but trees of the same bytes are more accurate here.")
    return None


def reasons(found: Findings) -> tuple[str, ...]:
    """Say why: accuracy, intervals, memory, boards; one paragraph each."""
    return (_accuracy(found), _intervals(found), _memory(found), _where(found))


def facts(found: Findings) -> tuple[Fact, ...]:
    """Return the four numbers of the verdict."""
    judged, budget, usual = found.judged, found.budget, found.usual
    first = Fact("Typical error", f"{judged.rmse:.3g}", f"of {found.target}, on {judged.where}")
    if judged.r2 is not None:
        explained = f"{percent(judged.r2)} of the variance explained"
        told = f"{explained}; error {judged.rmse:.4g} on {judged.where}"
        first = Fact("R²", f"{judged.r2:.3f}", told)
    facts = [first]
    if usual is not None:
        wide = f"± {usual.mean_width / 2:.3g}"
        told = f"on average; {percent(usual.covered)} of the true values inside"
        facts.append(Fact(f"{percent(usual.claimed)} interval", wide, told))
    elif found.reliability is not None:
        covered = percent(found.reliability.at(0.9).covered)
        facts.append(Fact("Spread", f"{covered} covered", "where 90 % is claimed; no intervals"))
    held = len(_boards(budget))
    known = f"{held} of {len(budget['boards'])}"
    return (
        *facts,
        Fact("On the device", f"{budget['twin_bytes']:,} bytes", _compared(budget)),
        Fact("Boards that hold it", known, _brief(found)),
    )


def trust(usual: Coverage, found: Findings) -> str:
    """Judge a count of covered rows: "as claimed", or what is wrong with it."""
    return {
        "as": "as claimed",
        "fewer": "fewer than claimed: do not rely on them",
        "more": "more than claimed: they are wider than necessary",
    }[_held(usual, found)]


def rows_in_words(found: Findings) -> str:
    """Say which rows it was judged on, and how many."""
    judged, count = found.judged, len(found.judged.y)
    if count < found.rows:
        return f"{count:,} of {found.rows:,} {judged.where}"
    missing = " (the run has no test rows)" if judged.name == "validation" else ""
    one = f"{judged.name} row" if judged.name in ("test", "validation") else "row"
    of = "" if judged.name in ("test", "validation") else f" of {judged.name}"
    return f"{number(count, one)}{of}{missing}"


def _held(usual: Coverage, found: Findings) -> str:
    luck = _CHANCE * sqrt(usual.claimed * (1 - usual.claimed) / len(found.judged.y))
    beyond = usual.covered - usual.claimed
    return "as" if abs(beyond) <= luck else "more" if beyond > 0 else "fewer"


def _accuracy(found: Findings) -> str:
    judged = found.judged
    explains = "" if judged.r2 is None else f" and explains {percent(judged.r2)} of its variance"
    words = f"It predicts {found.target} with an error of {judged.rmse:.4g} (root mean square over "
    words += f"{rows_in_words(found)}){explains}."
    simple = [f"{one.name} has {one.rmse:.4g}{_stands(one)}" for one in found.baselines]
    if simple:
        said = joined(simple)
        words += f" {said[0].upper()}{said[1:]}."
    same = []
    if found.rivals:
        best = min(found.rivals, key=lambda one: one.rmse)
        same.append(f"{ensemble(best.members, best.hidden)} have {best.rmse:.4g}")
    if found.trees:
        trees = found.trees
        same.append(f"{forest(trees.family, trees.trees, trees.leaves)} have {trees.rmse:.4g}")
    return words + (f" In the same bytes, {joined(same)}." if same else "")


def _stands(one: Baseline) -> str:
    return {"as good": ", perhaps by chance", "better": ", which is better", "worse": ""}[
        one.than_the_twin
    ]


def _intervals(found: Findings) -> str:
    usual, worth = found.usual, found.reliability
    if usual is not None:
        inside = round(usual.covered * len(found.judged.y))
        return (
            f"Its intervals of {percent(usual.claimed)} hold the true value of {inside:,} of "
            f"{len(found.judged.y):,} rows ({percent(usual.covered)}), {trust(usual, found)}. They "
            f"reach {usual.mean_width / 2:.3g} to either side on average."
        )
    if worth is not None:
        return (
            "It has no intervals. Its spread, taken as an interval of 90 %, holds the true value "
            f"of {percent(worth.at(0.9).covered)} of the rows."
        )
    return "It has no intervals, and one anchor has no spread: nothing tells how sure it is."


def _memory(found: Findings) -> str:
    model, budget = found.model, found.budget
    twins = f"{number(model.twins, 'twin')} of {shape(model.hidden)}"
    them = number(model.members, "ordinary network")
    words = (
        f"It takes {budget['twin_bytes']:,} bytes, {twins} with {number(model.anchors, 'anchor')}"
    )
    rest = f"the ensemble it stands for, would take {budget['ann_bytes']:,}."
    return f"{words}; {them} of that shape, {rest}"


def _where(found: Findings) -> str:
    boards, held = found.budget["boards"], _boards(found.budget)
    if not found.budget["cores_measured"]:
        return "The runtime was not measured on any core, so no board can be said to hold it."
    words = f"{len(held)} of {len(boards)} boards hold it"
    pace = _pace(found)
    words += f", with {pace}." if pace else "."
    refused = [one["title"] for one in boards if one["verdict"] == "does not fit"]
    fewer = [one["title"] for one in boards if one["verdict"] == "fits with fewer anchors"]
    if fewer:
        words += f" With fewer anchors it fits {joined(fewer)}."
    if refused:
        words += f" It is too large for {joined(refused)}."
    return words


def _pace(found: Findings) -> str:
    """Say how long a query takes on the fastest and the slowest microcontroller that holds it."""
    held = [
        (one["milliseconds_estimated"], one["title"])
        for one in _boards(found.budget)
        if one["milliseconds_estimated"] and one["free_flash_bytes"] is not None
    ]
    if not held:
        return ""
    (fast, first), (slow, last) = min(held), max(held)
    if first == last:
        return f"a query in an estimated {milliseconds(fast)}"
    return (
        f"a query in an estimated {milliseconds(fast)} ({first}) to {milliseconds(slow)} ({last})"
    )


def _brief(found: Findings) -> str:
    """Say the same, shorter."""
    held = [
        one["milliseconds_estimated"]
        for one in _boards(found.budget)
        if one["milliseconds_estimated"] and one["free_flash_bytes"] is not None
    ]
    if not held:
        return "no time was measured"
    return f"a query takes {milliseconds(min(held))} to {milliseconds(max(held))}, estimated"


def _boards(budget: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in budget["boards"] if one["verdict"] in _HELD]


def _compared(budget: dict[str, Any]) -> str:
    ratio, them = budget["ratio"], number(budget["members"], "ordinary network")
    compared = f"{ratio:.1f} times smaller" if ratio > 1 else f"{1 / ratio:.1f} times larger"
    return f"{compared} than {them}"
