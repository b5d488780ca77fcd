"""What does a device lose: to fewer anchors, and to integers?

For each of the paper's sets (first split, default training): the test RMSE, relative to the float
model with all anchors, of the float model with 8 and 32 anchors chosen by "auto" and with 32 random
ones (mean of eight draws), and of each file of an export with 32 anchors, loaded back by the
runtime that will read it. "by itself" is the pack with each weight rounded to its nearest step, to
show what rounding with cancelling errors gains.

    python -m benchmarks.quantisation --jobs 2
    python -m benchmarks.quantisation --datasets tf
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.cells import Benchmark
from benchmarks.harness.record import Cells, Record
from benchmarks.harness.rows import ANCHORS
from benchmarks.harness.trained import RUNS, trained
from twinedge import data, scoring
from twinedge.anchors import choose, rmse, select
from twinedge.anchors.rows import per_twin
from twinedge.runtime.reference import evaluate
from twinedge_export import export
from twinedge_export.quantise import quantise

FILES = ("twin", "tflite", "onnx")
COLUMNS = {
    "float_8": "8 auto",
    "float_32": "32 auto",
    "float_32_random": "32 random",
    "by_itself": "by itself",
    **{name: name for name in FILES},
}
FEW, DRAWS = 8, 8


class Job(NamedTuple):
    """One cell to compute."""

    name: str
    runs: Path = RUNS

    @property
    def key(self) -> str:
        """Name of the cell."""
        return self.name


def compute(job: Job) -> dict[str, Any]:
    """Test RMSE in units of the target, and how the files were made."""
    run = trained(job.runs, job.name, 0)
    model, test, twins = run.model, run.test, len(run.model.weights_)
    given, known = (model.anchor_X_, model.anchor_y_), {"model": model, "twins": twins}
    few = choose(*given, FEW, validation=run.validation, **known)
    with TemporaryDirectory() as folder:
        made = export(run, Path(folder) / "out", anchors=ANCHORS, formats=FILES)
    files = {file.kind: file for file in made.files if file.kind in FILES}
    draws = [
        rmse(model, test, select(*given, ANCHORS, "random", seed=seed, **known))
        for seed in range(DRAWS)
    ]
    by_itself = evaluate(quantise(model, per_twin(made.rows, twins), compensate=False), test[0])
    return {
        "dataset": job.name,
        "activation": model.activation_,
        "float_all": made.evaluator.all_anchors_test.rmse,
        "float_8": rmse(model, test, few.rows),
        "float_32": rmse(model, test, made.rows),
        "float_32_random": float(np.mean(draws)),
        "by_itself": scoring.rmse(by_itself.mean, test[1]),
        **{kind: file.score.rmse_test for kind, file in files.items()},
        "anchors": {"8": few.method, "32": made.method},
        "made": {kind: file.made for kind, file in files.items()},
        "bytes": {kind: file.bytes for kind, file in files.items()},
    }


def ratios(line: dict[str, Any]) -> dict[str, float]:
    """Each error, relative to the float model with all anchors."""
    return {key: line[key] / line["float_all"] for key in COLUMNS}


def summarise(cells: Cells) -> dict[str, Any]:
    """List the sets, and the mean and the worst ratio over them."""
    lines = [cells[name] for name in data.names() if name in cells]
    found = [ratios(line) for line in lines]
    return {
        "sets": lines,
        "mean_ratio": {key: float(np.mean([one[key] for one in found])) for key in COLUMNS},
        "worst_ratio": {key: max(one[key] for one in found) for key in COLUMNS},
    }


def show(record: Record) -> None:
    """Print the table."""
    print("".join(f"{word:>11}" for word in ("set", "float, all", *COLUMNS.values())), " made")
    for line in record["sets"]:
        numbers = "".join(f"{value:11.4f}" for value in ratios(line).values())
        made = "; ".join(f"{kind} {how}" for kind, how in line["made"].items())
        print(f"{line['dataset']:>11}{line['float_all']:11.4g}{numbers}  {made}")
    for word in ("mean", "worst"):
        numbers = "".join(f"{value:11.4f}" for value in record[f"{word}_ratio"].values())
        print(f"{word:>11}{'':11}{numbers}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--runs", type=Path, default=RUNS, help="where trained runs are kept")


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells."""
    return [Job(name, options.runs) for name in options.datasets.split(",")]


BENCHMARK = Benchmark(
    "quantisation",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    packages=("tensorflow", "onnxruntime", "ai-edge-litert", "numpy"),
    add_options=add_options,
    cost=200,
)

if __name__ == "__main__":
    BENCHMARK.main()
