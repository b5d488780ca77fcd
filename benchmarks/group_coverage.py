"""Do intervals cover what they claim in groups that the training never saw?

Three tables fall into groups: mixes of concrete (CS), shapes of buildings (EE), hulls of yachts
(YH). Each division holds out a fifth of the groups to test and a tenth to validate, as `train
--group` does; EE has one group to validate and YH two, so that training groups decide there. A
default training follows, and an export with 32 anchors. Coverage of the 90 % intervals is the share
of the test rows that they cover, by the float model and by the integers of the pack, and the mean
over divisions is shown. Beside it is the coverage of intervals that are calibrated on the
validation rows alone, and the error of the pack, relative to the float model with all anchors.

    python -m benchmarks.group_coverage --jobs 16
    python -m benchmarks.group_coverage --datasets yh --divisions 0,1 --effort quick
    python -m benchmarks.group_coverage --no-compute     # from existing cells
"""

import argparse
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.cells import Benchmark
from benchmarks.harness.groups import LEADING, divided
from benchmarks.harness.interval_scores import COVERAGE, score_intervals
from benchmarks.harness.record import Cells, Record
from benchmarks.harness.rows import ANCHORS
from twinedge import TwinRegressor, export, load, scoring
from twinedge.errors import InputError
from twinedge.run_folder import Run

DIVISIONS = 10
LOWEST, HIGHEST = 0.86, 0.94  # what a mean coverage may be


class Job(NamedTuple):
    """One cell to compute."""

    effort: str
    name: str
    division: int

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.effort}/{self.name}/{self.division}"


def compute(job: Job) -> dict[str, Any]:
    """Train, export and test one division."""
    warnings.simplefilter("ignore")
    table, group, rows = divided(job.name, job.division)
    train, validation, test = ((table.X[part], table.y[part]) for part in rows)
    model = TwinRegressor(effort=job.effort, random_state=0)
    model.fit(*train, validation=(*validation, group[rows.val]), groups=group[rows.train])
    names = table.feature_names, table.target_name
    run = Run(model, *names, validation, test, scores={"rmse_test": model.rmse(*test)})
    with TemporaryDirectory() as folder:
        done = export(run, folder, anchors=ANCHORS, formats=("twin",), tolerance=1.0)
        device = load(Path(folder) / "model.twin")
        found = {
            "groups": [len(np.unique(group[part])) for part in rows],
            "across": model.left_out_ is not None,
            "worth": model.calibration_.rows,
            "rmse": run.scores["rmse_test"],
            "rmse_pack": scoring.rmse(device.predict(test[0]), test[1]),
            "ratio_on_validation": done.files[0].score.ratio_to_float,
            "method": done.method,
            "float": scored(model, test),
            "pack": scored(device, test),
        }
    try:
        model.calibrate(*validation, chosen=True)
        found["validation_only"] = scored(model, test)
    except InputError:  # too few rows of one group
        found["validation_only"] = None
    return found


def scored(model: Any, test: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    """Score intervals of a model or a pack on test rows."""
    return score_intervals(*model.predict_interval(test[0], COVERAGE).astype(float).T, test[1])


def summarise(cells: Cells) -> dict[str, Any]:
    """Means over the available divisions of default trainings, set by set."""
    lines = []
    for name in LEADING:
        keys = (Job("normal", name, division).key for division in range(DIVISIONS))
        mine = [cells[key] for key in keys if key in cells]
        if not mine:
            continue
        known = [one["validation_only"] for one in mine if one["validation_only"]]
        covered = float(np.mean([one["float"]["coverage"] for one in mine]))
        line = {
            "dataset": name,
            "divisions": len(mine),
            "coverage": covered,
            "coverage_pack": float(np.mean([one["pack"]["coverage"] for one in mine])),
            "coverage_validation_only": float(np.mean([one["coverage"] for one in known])),
            "score": float(np.mean([one["float"]["score"] for one in mine])),
            "score_validation_only": float(np.mean([one["score"] for one in known])),
            "rmse_ratio_pack": float(
                np.mean([one["rmse_pack"] for one in mine]) / np.mean([one["rmse"] for one in mine])
            ),
            "within": LOWEST <= covered <= HIGHEST,
        }
        lines.append(line)
    return {"effort": "normal", "summary": lines}


def show(record: Record) -> None:
    """Print the table."""
    print(f"{'set':5}{'divisions':>10}{'coverage':>10}{'pack':>8}{'validation':>12}{'rmse':>8}")
    for line in record["summary"]:
        parts = (line["coverage_pack"], line["coverage_validation_only"], line["rmse_ratio_pack"])
        print(
            f"{line['dataset']:5}{line['divisions']:10d}{line['coverage']:10.3f}"
            f"{parts[0]:8.3f}{parts[1]:12.3f}{parts[2]:8.3f}"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--datasets", default=",".join(LEADING))
    parser.add_argument("--divisions", default=",".join(map(str, range(DIVISIONS))))
    parser.add_argument("--effort", default="normal", choices=("quick", "normal", "thorough"))


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, set by set."""
    return [
        Job(options.effort, name, int(division))
        for name in options.datasets.split(",")
        for division in options.divisions.split(",")
    ]


BENCHMARK = Benchmark(
    "group_coverage", __doc__, jobs, compute, summarise, show, add_options=add_options, cost=200
)

if __name__ == "__main__":
    BENCHMARK.main()
