"""The section on time: what was trained on and tested when, and whether errors grow."""

import shlex
from typing import Any

from twinedge_export.report.document import Chapter, Check, Grid
from twinedge_export.report.findings import Findings

_PARTS = {"train": "training", "validation": "validation", "test": "test"}
_GROWS = 1.25  # ratio of the errors of the last and the first block that is worth a sentence


def times(found: Findings) -> tuple[Chapter, ...]:
    """Return the section, or nothing if the rows of the run were not in order of time."""
    run = found.run
    blocks = [] if run is None else run.scores.get("by_time", [])
    if run is None or not blocks:
        return ()
    ranges = run.source["time_ranges"]
    rows = tuple((_PARTS[name], *ends) for name, ends in ranges.items())
    tables = [Grid("time-ranges", "Times of the rows", ("rows", "from", "until"), rows)]
    columns = "from", "until", "rows", "RMSE", "RMSE of the last known value"
    cells = tuple(tuple(one.values()) for one in blocks)
    tables.append(Grid("time-blocks", "Test errors along time", columns, cells))
    how = (
        "Scores of the float model, in consecutive blocks of the test rows. The last known value "
        "is the target of the row before, in order of time: a forecast that needs no model, but a "
        "measurement of the target just before each prediction.",
    )
    command = ["twinedge", "evaluate", found.place, found.table, "--time", run.source["time"]]
    check = Check(shlex.join(command), "the same for a table of later rows")
    return (
        Chapter(
            "time",
            "How errors change with time",
            _lead(run.scores, ranges, blocks),
            tables=tuple(tables),
            how=how,
            checks=(check,),
        ),
    )


def _lead(
    scores: dict[str, Any], ranges: dict[str, list[str]], blocks: list[dict[str, Any]]
) -> tuple[str, ...]:
    said = []
    if "test" in ranges:
        said.append(
            f"The model learnt from rows until {ranges['train'][1]} and was tested on later ones, "
            f"until {ranges['test'][1]}: its scores are for the future of what it learnt."
        )
    first, last = blocks[0]["rmse"], blocks[-1]["rmse"]
    words = f"The error was {first:.4g} in the oldest block of the test rows and {last:.4g} in the "
    if last > _GROWS * first:
        said.append(f"{words}newest: it grows, so train again before long, with newer rows.")
    else:
        said.append(f"{words}newest.")
    naive, ours = scores["rmse_naive"], scores["rmse_test"]
    if scores["beats_naive"]:
        said.append(f"Predicting the last known value would have had an error of {naive:.4g}.")
    else:
        than = "less" if naive < ours else "not clearly more"
        said.append(
            f"Predicting the last known value would have had an error of {naive:.4g}, {than} than "
            f"the {ours:.4g} of the model: where the target is measured all the time, that is the "
            "forecast to beat."
        )
    return tuple(said)
