"""The sections on groups and on time, of runs whose rows were in groups or in order of time."""

from dataclasses import replace

import pytest

from twinedge_export.report.groups_and_time import groups, times

RANGES = {
    "train": ["2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z"],
    "validation": ["2024-03-02T00:00:00Z", "2024-03-09T00:00:00Z"],
    "test": ["2024-03-10T00:00:00Z", "2024-03-30T00:00:00Z"],
}


def changed(found, source, scores):
    """The same findings, of a run with other scores."""
    run = found.origin.run
    run = replace(run, source={**run.source, **source}, scores={**run.scores, **scores})
    return replace(found, origin=replace(found.origin, run=run))


def block(day, rmse):
    first, last = f"2024-03-{day}T00:00:00Z", f"2024-03-{day + 4}T00:00:00Z"
    return {"from": first, "until": last, "rows": 5, "rmse": rmse, "rmse_naive": 3.0}


@pytest.fixture
def timed(quick):
    """Findings of a run in order of time, with these errors of its first and last block."""

    def make(first, last, naive=3.0):
        scores = {"by_time": [block(10, first), block(15, last)], "rmse_naive": naive}
        scores |= {"rmse_test": 2.0, "beats_naive": naive > 2.5}
        return changed(quick, {"time": "measured at", "time_ranges": RANGES}, scores)

    return make


def test_times_and_blocks_are_shown(timed, quick, write):
    (section,) = times(timed(1.5, 1.6))
    ranges, blocks = section.tables
    assert ranges.rows[0] == ("training", *RANGES["train"])
    assert [row[0] for row in ranges.rows] == ["training", "validation", "test"]
    assert [row[3:] for row in blocks.rows] == [(1.5, 3.0), (1.6, 3.0)]
    assert "learnt from rows until 2024-03-01T00:00:00Z" in section.lead[0]
    assert "until 2024-03-30T00:00:00Z" in section.lead[0]
    assert section.checks[0].command.endswith("--time 'measured at'")
    assert "time" in [one.name for one in write(timed(1.5, 1.6)).sections]
    assert times(quick) == groups(quick) == ()


@pytest.mark.parametrize(
    ("last", "naive", "line", "says"),
    [
        (1.6, 3.0, 1, "1.6 in the newest."),
        (3.0, 3.0, 1, "1.5 in the oldest block of the test rows and 3 in the newest: it grows"),
        (1.6, 3.0, 2, "would have had an error of 3."),
        (1.6, 2.2, 2, "an error of 2.2, not clearly more than the 2 of the model"),
        (1.6, 1.0, 2, "an error of 1, less than the 2 of the model"),
    ],
)
def test_errors_that_grow_and_the_last_known_value(timed, last, naive, line, says):
    assert says in times(timed(1.5, last, naive))[0].lead[line]


def test_groups_are_listed_the_worst_first(quick):
    def group(name, rmse, part, rows=5):
        return {"name": name, "rows": rows, "rmse": rmse, "mean_error": 0.1, "part": part} | {
            "coverage": 0.8 if part == "test" else None
        }

    scores = [group("a", 1.0, "left out"), group("b", 3.0, "test"), group(7, 2.0, "left out", 1)]
    (section,) = groups(changed(quick, {"group": "machine"}, {"groups": scores}))
    assert [row[0] for row in section.tables[0].rows] == ["b", "7", "a"]
    assert "1 at best (a) and 3 at worst (b), over 3 groups" in section.lead[0]
    assert section.lead[1] == "Intervals that claim 90 % cover 80 % of the rows of 1 test group."
    assert "left out in turn" in section.how[1]
    assert section.how[2] == "1 group of these had a single row."
    assert section.checks[0].command.endswith("--group machine")
