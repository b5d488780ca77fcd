"""The verdict in plain sentences, for decision makers: first what to do, then why."""

from math import sqrt
from typing import Any

from twinedge.budget.fits import describe_unmeasured
from twinedge.evaluation.verdict import NAMES, is_suspicious
from twinedge.evaluation.verdict import verdict as rule
from twinedge.scoring.scores import Coverage
from twinedge.wording import joined
from twinedge_export.report.document import Fact, Light, milliseconds, number, percent, shape
from twinedge_export.report.findings import Findings

_CHANCE = 1.96  # standard deviations: 95 of 100 counts
_STANDS = {"as good": ", perhaps by chance", "better": ", which is better", "worse": ""}
_TRUST = {
    "as": "as claimed",
    "fewer": "fewer than claimed: do not rely on them",
    "more": "more than claimed: they are wider than necessary",
}


def verdict(found: Findings) -> Light:
    """Describe in one sentence what to do with the model, compared as in ``twinedge check``."""
    against = _against_others(found)
    if against is not None:
        return against
    if found.usual and _held(found.usual, found) == "fewer":
        return Light("limit", "Accurate, but its intervals hold less than they claim.")
    if not boards_that_hold(found.costs.budget):
        return Light("limit", "Accurate, but no board is known to hold it.")
    rmse = found.accuracy.predictions.rmse
    if not found.accuracy.baselines or not rmse:
        return Light("go", "It does what it claims on these rows.")
    better = [
        f"{one.rmse / rmse:.1f} times better than {one.name}" for one in found.accuracy.baselines
    ]
    return Light("go", f"Worth using: {joined(better)}.")


def _against_others(found: Findings) -> Light | None:
    """Describe what other models mean for this one; None if it is the one to use."""
    rivals = {one.kind: one.rival for one in found.accuracy.baselines}
    if not rivals:
        return None
    if found.comparison.trees is not None:
        rivals["trees"] = found.comparison.trees.rival
    predictions, size = found.accuracy.predictions, found.costs.budget["twin_bytes"]
    ruled = rule(predictions.rmse, rivals, len(predictions.y), size)
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
    """Give the reasons: accuracy, intervals, memory, boards; one paragraph each."""
    return (_accuracy(found), _intervals(found), _memory(found), _boards(found))


def facts(found: Findings) -> tuple[Fact, ...]:
    """Return the four numbers of the verdict."""
    predictions, budget, usual = found.accuracy.predictions, found.costs.budget, found.usual
    rmse, r2, where = predictions.rmse, predictions.r2, predictions.where
    facts = [Fact("Typical error", f"{rmse:.3g}", f"of {found.target}, on {where}")]
    if r2 is not None:
        note = f"{percent(r2)} of the variance explained; error {rmse:.4g} on {where}"
        facts = [Fact("R²", f"{r2:.3f}", note)]
    if usual is not None:
        note = f"on average; {percent(usual.covered)} of the true values inside"
        wide = f"± {usual.mean_width / 2:.3g}"
        if found.pack.model.target_bins:
            wide = f"{usual.mean_width:.3g} wide"
        facts.append(Fact(f"{percent(usual.claimed)} interval", wide, note))
    elif found.reliability is not None:
        covered = percent(found.reliability.at(0.9).covered)
        facts.append(Fact("Spread", f"{covered} covered", "where 90 % is claimed; no intervals"))
    ratio, networks = budget["ratio"], number(budget["members"], "ordinary network")
    smaller = f"{ratio:.1f} times smaller" if ratio > 1 else f"{1 / ratio:.1f} times larger"
    size = f"{budget['twin_bytes']:,} bytes"
    held = f"{len(boards_that_hold(budget))} of {len(budget['boards'])}"
    times = [time for time, _ in _times(budget)]
    note = "no time was measured"
    if times:
        note = f"a query takes {milliseconds(min(times))} to {milliseconds(max(times))}, estimated"
    return (
        *facts,
        Fact("On the device", size, f"{smaller} than {networks}"),
        Fact("Boards that hold it", held, note),
    )


def trust(usual: Coverage, found: Findings) -> str:
    """Describe a count of covered rows: "as claimed", or what is wrong with it."""
    return _TRUST[_held(usual, found)]


def describe_rows(found: Findings) -> str:
    """Describe which rows it was scored on, and how many."""
    predictions = found.accuracy.predictions
    name, count = predictions.name, len(predictions.y)
    if count < found.accuracy.rows:
        return f"{count:,} of {found.accuracy.rows:,} {predictions.where}"
    if name not in ("test", "validation"):
        return f"{number(count, 'row')} of {name}"
    missing = " (the run has no test rows)" if name == "validation" else ""
    return f"{number(count, f'{name} row')}{missing}"


def _held(usual: Coverage, found: Findings) -> str:
    rows = len(found.accuracy.predictions.y)
    luck = _CHANCE * sqrt(usual.claimed * (1 - usual.claimed) / rows)
    beyond = usual.covered - usual.claimed
    return "as" if abs(beyond) <= luck else "more" if beyond > 0 else "fewer"


def _accuracy(found: Findings) -> str:
    predictions = found.accuracy.predictions
    words = f"It predicts {found.target} with an error of {predictions.rmse:.4g} (root mean square "
    words += f"over {describe_rows(found)})"
    if predictions.r2 is not None:
        words += f" and explains {percent(predictions.r2)} of its variance"
    words += "."
    simple = [
        f"{one.name} has {one.rmse:.4g}{_STANDS[one.rival.than_the_twin]}"
        for one in found.accuracy.baselines
    ]
    if simple:
        listed = joined(simple)
        words += f" {listed[0].upper()}{listed[1:]}."
    same = [f"{one.name} have {one.rmse:.4g}" for one in found.comparison.best]
    return words + (f" In the same bytes, {joined(same)}." if same else "")


def _intervals(found: Findings) -> str:
    usual, spread, rows = found.usual, found.reliability, len(found.accuracy.predictions.y)
    if usual is not None:
        return (
            f"Its intervals of {percent(usual.claimed)} hold the true value of "
            f"{round(usual.covered * rows):,} of {rows:,} rows ({percent(usual.covered)}), "
            f"{trust(usual, found)}. {_reach(usual, found)} on average."
        )
    if spread is not None:
        return (
            "It has no intervals. Its spread, used as an interval of 90 %, holds the true value "
            f"of {percent(spread.at(0.9).covered)} of the rows."
        )
    return "It has no intervals, and one anchor has no spread: nothing tells how sure it is."


def _reach(usual: Coverage, found: Findings) -> str:
    """Describe how wide intervals are; with a target curve, their sides differ."""
    if found.pack.model.target_bins:
        return f"They are {usual.mean_width:.3g} wide"
    return f"They reach {usual.mean_width / 2:.3g} to either side"


def _memory(found: Findings) -> str:
    model, budget = found.pack.model, found.costs.budget
    return (
        f"It takes {budget['twin_bytes']:,} bytes, {number(model.twins, 'twin')} of "
        f"{shape(model.hidden)} with {number(model.anchors, 'anchor')}; "
        f"{number(model.members, 'ordinary network')} of that shape, the ensemble it stands for, "
        f"would take {budget['ann_bytes']:,}."
    )


def _boards(found: Findings) -> str:
    budget = found.costs.budget
    if not budget["cores_measured"]:
        return "The runtime was not measured on any core, so no board is known to hold it."
    words = f"{len(boards_that_hold(budget))} of {len(budget['boards'])} boards hold it"
    times = _times(budget)
    if times:
        (fast, first), (slow, last) = min(times), max(times)
        words += f", with a query in an estimated {milliseconds(fast)}"
        if first != last:
            words += f" ({first}) to {milliseconds(slow)} ({last})"
    words += "."
    for verdict, text in (
        ("fits with fewer anchors", "With fewer anchors it fits"),
        ("does not fit", "It is too large for"),
    ):
        titles = [one["title"] for one in budget["boards"] if one["verdict"] == verdict]
        words += f" {text} {joined(titles)}." if titles else ""
    return " ".join([words, *describe_unmeasured(budget)])


def boards_that_hold(budget: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the boards that hold the whole model, slow ones included."""
    return [one for one in budget["boards"] if one["verdict"] in ("fits", "fits, slowly")]


def _times(budget: dict[str, Any]) -> list[tuple[list[float], str]]:
    """Time of a query, and title, of each microcontroller that holds it."""
    return [
        (one["milliseconds_estimated"], one["title"])
        for one in boards_that_hold(budget)
        if one["milliseconds_estimated"] and one["free_flash_bytes"] is not None
    ]
