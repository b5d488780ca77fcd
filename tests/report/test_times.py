"""The section on time, of a run whose rows were in that order."""

from dataclasses import replace

import pytest

from twinedge_export.report.times import times

RANGES = {
    "train": ["2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z"],
    "validation": ["2024-03-02T00:00:00Z", "2024-03-09T00:00:00Z"],
    "test": ["2024-03-10T00:00:00Z", "2024-03-30T00:00:00Z"],
}


def block(day, rmse):
    first, last = f"2024-03-{day}T00:00:00Z", f"2024-03-{day + 4}T00:00:00Z"
    return {"from": first, "until": last, "rows": 5, "rmse": rmse, "rmse_naive": 3.0}


@pytest.fixture(scope="module")
def timed(look, run):
    """Findings of a run in order of time, with these errors of its first and last block."""
    found = look(run)

    def make(first, last, naive=3.0):
        scores = {"by_time": [block(10, first), block(15, last)], "rmse_naive": naive}
        scores |= {"rmse_test": 2.0, "beats_naive": naive > 2.5}
        source = {**run.source, "time": "measured at", "time_ranges": RANGES}
        timed = replace(run, source=source, scores={**run.scores, **scores})
        return replace(found, run=timed)

    return make


def test_ranges_and_blocks_are_shown(timed):
    (section,) = times(timed(1.5, 1.6))
    ranges, blocks = section.tables
    assert ranges.rows[0] == ("training", *RANGES["train"])
    assert [row[0] for row in ranges.rows] == ["training", "validation", "test"]
    assert [row[3:] for row in blocks.rows] == [(1.5, 3.0), (1.6, 3.0)]
    assert "learnt from rows until 2024-03-01T00:00:00Z" in section.lead[0]
    assert "until 2024-03-30T00:00:00Z" in section.lead[0]
    assert section.checks[0].command.endswith("--time 'measured at'")


def test_errors_that_grow_are_named(timed):
    assert "it grows" not in " ".join(times(timed(1.5, 1.6))[0].lead)
    assert "1.5 in the oldest block of the test rows and 3 in the newest: it grows" in " ".join(
        times(timed(1.5, 3.0))[0].lead
    )


@pytest.mark.parametrize(
    ("naive", "says"),
    [
        (3.0, "would have had an error of 3."),
        (2.2, "an error of 2.2, not clearly more than the 2 of the model"),
        (1.0, "an error of 1, less than the 2 of the model"),
    ],
)
def test_the_last_known_value_is_compared(timed, naive, says):
    assert says in times(timed(1.5, 1.6, naive))[0].lead[-1]


def test_the_section_is_in_the_report_and_only_of_such_a_run(timed, look, run, write):
    assert "time" in [one.name for one in write(timed(1.5, 1.6)).sections]
    assert times(look(run)) == ()
