"""What does a device lose: to fewer anchors, and to integers?

For each of the paper's sets (first split, default training): the test RMSE, relative to the float
model with all anchors, of the float model with 8 and 32 anchors chosen by "auto" and with 32 random
ones (mean of eight draws), and of each file of an export with 32 anchors, loaded back by the
runtime that will read it. "by itself" is the pack with each weight rounded to its nearest step, to
show what rounding with cancelling errors gains. Trained runs are kept and reused:

    python benchmarks/quantisation.py --runs runs/nine
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from record import command_line, publish
from trained import load_or_train

from twinedge import data, scoring
from twinedge.anchors import choose, rmse, select
from twinedge.run_folder import Run
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
DRAWS = 8
RESULTS = Path(__file__).parent / "results" / "quantisation.json"


def measure(name: str, run: Run) -> dict[str, Any]:
    """Test RMSE in units of the target, and how the files were made."""
    model, test = run.model, run.test
    given = model.anchor_X_, model.anchor_y_
    eight = choose(*given, 8, model=model, validation=run.validation)
    with TemporaryDirectory() as folder:
        made = export(run, Path(folder) / "out", anchors=32, formats=FILES)
    files = {file.kind: file for file in made.files if file.kind in FILES}
    draws = [rmse(model, test, select(*given, 32, "random", seed=seed)) for seed in range(DRAWS)]
    by_itself = evaluate(quantise(model, [made.rows], compensate=False), test[0]).mean
    return {
        "dataset": name,
        "activation": model.activation_,
        "float_all": made.evaluator.all_anchors_test.rmse,
        "float_8": rmse(model, test, eight.rows),
        "float_32": rmse(model, test, made.rows),
        "float_32_random": float(np.mean(draws)),
        "by_itself": scoring.rmse(by_itself, test[1]),
        **{kind: file.score.rmse_test for kind, file in files.items()},
        "anchors": {"8": eight.method, "32": made.method},
        "made": {kind: file.made for kind, file in files.items()},
        "bytes": {kind: file.bytes for kind, file in files.items()},
    }


def ratios(line: dict[str, Any]) -> dict[str, float]:
    """Each error, relative to the float model with all anchors."""
    return {key: line[key] / line["float_all"] for key in COLUMNS}


def main() -> None:
    """Print the table, and last one line of JSON."""
    parser = command_line(__doc__, RESULTS)
    parser.add_argument("--runs", type=Path, default=Path("runs/nine"), help="folder of runs")
    parser.add_argument("--datasets", default=",".join(data.names()))
    options = parser.parse_args()

    lines = []
    for name in options.datasets.split(","):
        lines.append(measure(name, load_or_train(options.runs, name)))
        print(json.dumps(lines[-1]), file=sys.stderr, flush=True)
    print("".join(f"{word:>11}" for word in ("set", "float, all", *COLUMNS.values())), " made")
    for line in lines:
        numbers = "".join(f"{value:11.4f}" for value in ratios(line).values())
        made = "; ".join(f"{kind} {how}" for kind, how in line["made"].items())
        print(f"{line['dataset']:>11}{line['float_all']:11.4g}{numbers}  {made}")
    found = [ratios(line) for line in lines]
    mean = {key: float(np.mean([each[key] for each in found])) for key in COLUMNS}
    worst = {key: max(each[key] for each in found) for key in COLUMNS}
    for word, each in (("mean", mean), ("worst", worst)):
        print(f"{word:>11}{'':11}" + "".join(f"{value:11.4f}" for value in each.values()))
    publish(
        options.results,
        ("tensorflow", "onnxruntime", "ai-edge-litert", "numpy"),
        sets=lines,
        mean_ratio=mean,
        worst_ratio=worst,
    )


if __name__ == "__main__":
    main()
