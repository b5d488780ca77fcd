"""Sections on how errors differ between groups, and how they change with time."""

import shlex
from typing import Any

import numpy as np

from twinedge.defaults import COVERAGE
from twinedge_export.report.document import Check, Grid, Section, number, percent
from twinedge_export.report.findings import Findings

_PREDICTED = {
    "test": "not seen by the model",
    "left out": "not seen by the networks that predicted it",
}
_PARTS = {"train": "training", "validation": "validation", "test": "test"}
_MANY = 20  # groups; a page shows more on demand only
_GROWS = 1.25  # ratio of the errors of the last and the first block that is worth a sentence


def groups(found: Findings) -> tuple[Section, ...]:
    """Return the section, or nothing if the rows of the run were not in groups."""
    run = found.origin.run
    scores = [] if run is None else run.scores.get("groups", [])
    if run is None or not scores:
        return ()
    worst, best = (pick(scores, key=lambda one: one["rmse"]) for pick in (max, min))
    tested = [one for one in scores if one["part"] == "test"]
    lead = [
        f"The error of a group that the model never saw was {best['rmse']:.4g} at best "
        f"({best['name']}) and {worst['rmse']:.4g} at worst ({worst['name']}), over "
        f"{number(len(scores), 'group')}. Expect the next one to be among these."
    ]
    if tested and all(one["coverage"] is not None for one in tested):
        rows = [one["rows"] for one in tested]
        covered = float(np.average([one["coverage"] for one in tested], weights=rows))
        lead.append(
            f"Intervals that claim {percent(COVERAGE)} cover {percent(covered)} of the rows of "
            f"{number(len(tested), 'test group')}."
        )
    how = [
        "Scores of the float model. The mean error is prediction minus target: where it is as "
        "large as the error, the whole group is off to one side, and a few points measured on "
        "site correct that."
    ]
    if len(tested) < len(scores):
        how.append(
            "There were too few validation groups to choose settings and calibrate intervals on. "
            "Each training group was therefore left out in turn, and predicted by a network that "
            "did not see it; such a network learnt from a little less than the final ones."
        )
    alone = sum(one["rows"] == 1 for one in scores)
    if alone:
        how.append(f"{number(alone, 'group')} of these had a single row.")
    grid = Grid.of(
        "groups",
        "Errors by group",
        sorted(scores, key=lambda one: -one["rmse"]),
        {
            "group": lambda one: str(one["name"]),
            "rows": lambda one: one["rows"],
            "RMSE": lambda one: one["rmse"],
            "mean error": lambda one: one["mean_error"],
            f"covered at {percent(COVERAGE)}": lambda one: one["coverage"],
            "predicted": lambda one: _PREDICTED[one["part"]],
        },
        folded=len(scores) > _MANY,
    )
    check = _evaluate(found, "--group", run.source.get("group") or "GROUP")
    return (
        Section(
            "groups",
            "How groups differ",
            tuple(lead),
            tables=(grid,),
            how=tuple(how),
            checks=(Check(check, "the same for the groups of another table"),),
        ),
    )


def times(found: Findings) -> tuple[Section, ...]:
    """Return the section, or nothing if the rows of the run were not in order of time."""
    run = found.origin.run
    blocks = [] if run is None else run.scores.get("by_time", [])
    if run is None or not blocks:
        return ()
    ranges = run.source["time_ranges"]
    rows = tuple((_PARTS[name], *ends) for name, ends in ranges.items())
    columns = "from", "until", "rows", "RMSE", "RMSE of the last known value"
    cells = tuple(tuple(one.values()) for one in blocks)
    check = _evaluate(found, "--time", run.source["time"])
    return (
        Section(
            "time",
            "How errors change with time",
            _time_lead(run.scores, ranges, blocks),
            tables=(
                Grid("time-ranges", "Times of the rows", ("rows", "from", "until"), rows),
                Grid("time-blocks", "Test errors along time", columns, cells),
            ),
            how=(
                "Scores of the float model, in consecutive blocks of the test rows. The last known "
                "value is the target of the row before, in order of time: a forecast that needs no "
                "model, but a measurement of the target just before each prediction.",
            ),
            checks=(Check(check, "the same for a table of later rows"),),
        ),
    )


def _time_lead(
    scores: dict[str, Any], ranges: dict[str, list[str]], blocks: list[dict[str, Any]]
) -> tuple[str, ...]:
    lead = []
    if "test" in ranges:
        lead.append(
            f"The model learnt from rows until {ranges['train'][1]} and was tested on later ones, "
            f"until {ranges['test'][1]}: its scores are for the future of what it learnt."
        )
    first, last = blocks[0]["rmse"], blocks[-1]["rmse"]
    grows = ": it grows, so train again before long, with newer rows" * (last > _GROWS * first)
    lead.append(
        f"The error was {first:.4g} in the oldest block of the test rows and {last:.4g} in the "
        f"newest{grows}."
    )
    naive, rmse = scores["rmse_naive"], scores["rmse_test"]
    than = "less" if naive < rmse else "not clearly more"
    words = f"Predicting the last known value would have had an error of {naive:.4g}"
    if not scores["beats_naive"]:
        words += (
            f", {than} than the {rmse:.4g} of the model: where the target is measured all the "
            "time, that is the forecast to beat"
        )
    return (*lead, f"{words}.")


def _evaluate(found: Findings, option: str, column: str) -> str:
    """Return the command that evaluates the run with a column of groups or times."""
    origin = found.origin
    return shlex.join(["twinedge", "evaluate", origin.place, origin.table, option, column])
