"""The section on groups: how errors differ between machines, batches or sites."""

import shlex
from typing import Any

import numpy as np

from twinedge.defaults import COVERAGE
from twinedge_export.report.document import Cell, Chapter, Check, Grid, number, percent
from twinedge_export.report.findings import Findings

_PARTS = {
    "test": "not seen by the model",
    "left out": "not seen by the networks that predicted it",
}


_MANY = 20  # groups; a page shows more on demand only


def groups(found: Findings) -> tuple[Chapter, ...]:
    """Return the section, or nothing if the rows of the run were not in groups."""
    scores = [] if found.run is None else found.run.scores.get("groups", [])
    if found.run is None or not scores:
        return ()
    worst, best = (pick(scores, key=lambda one: one["rmse"]) for pick in (max, min))
    tested = [one for one in scores if one["part"] == "test"]
    lead = [
        f"The error of a group that the model never saw was {best['rmse']:.4g} at best "
        f"({best['name']}) and {worst['rmse']:.4g} at worst ({worst['name']}), over "
        f"{number(len(scores), 'group')}. Expect the next one to be among these."
    ]
    if tested and all(one["coverage"] is not None for one in tested):
        covered = np.average([one["coverage"] for one in tested], weights=_rows(tested))
        lead.append(
            f"Intervals that claim {percent(COVERAGE)} cover {percent(float(covered))} of the rows "
            f"of {number(len(tested), 'test group')}."
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
    columns = "group", "rows", "RMSE", "mean error", f"covered at {percent(COVERAGE)}", "predicted"
    rows = tuple(map(_row, sorted(scores, key=lambda one: -one["rmse"])))
    grid = Grid("groups", "Errors by group", columns, rows, folded=len(rows) > _MANY)
    command = ["twinedge", "evaluate", found.place, found.table, "--group", _column(found.run)]
    check = Check(shlex.join(command), "the same for the groups of another table")
    return (
        Chapter(
            "groups", "How groups differ", tuple(lead), (), (grid,), tuple(how), checks=(check,)
        ),
    )


def _rows(scores: list[dict[str, Any]]) -> list[int]:
    return [one["rows"] for one in scores]


def _row(one: dict[str, Any]) -> tuple[Cell, ...]:
    numbers = one["rows"], one["rmse"], one["mean_error"], one["coverage"]
    return (str(one["name"]), *numbers, _PARTS[one["part"]])


def _column(run: Any) -> str:
    return str(run.source.get("group") or "GROUP")
