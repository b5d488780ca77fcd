"""How long does a newcomer wait: for the first prediction, and for the first emulated board?

First path, without TensorFlow: pip installs the wheel of a release, with numpy and click from the
package index and nothing from its cache, into a new environment; then the command predicts with a
pack. Second path, where everything is installed: from a table in a CSV file over training and
export to an image that an emulator runs, each by the command of docs/start.md. Both on two cores,
which a process and all that it starts are bound to. The network counts; `make dist` comes before,
and does not.

    make dist && python -m benchmarks.newcomer
    python -m benchmarks.newcomer --effort normal --results /tmp/try.json
"""

import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.harness.pages import ROOT, Tables, markdown
from benchmarks.harness.record import Record, command_line, publish, results_of
from twinedge import data

PACK = ROOT / "firmware_ref" / "test" / "corpus" / "small.twin"
CORES = 2
ROWS = 500
FIRST, BOARD = 30.0, 300.0  # seconds that the paths may take
SECTION = """
## How long this takes

On {cores} cores; what pip downloads for a prediction counts, and TensorFlow is there already
([newcomer.json](../benchmarks/results/newcomer.json)):

{table}

The first three steps are all that a device needs, and the last three all that a board does.
"""
WORDS = {
    "environment": "`python -m venv`",
    "install": "`pip install` of the wheel, with numpy and click",
    "predict": "`twinedge predict`, a pack and a CSV file",
    "train": "`twinedge train`, {rows} rows, `--effort {effort}`",
    "export": "`twinedge export --anchors 32 --formats c`",
    "board": "`twinedge firmware run` for the board {board}: compiled, emulated, compared",
}


def timed(folder: Path, *command: str | Path) -> float:
    """Run a command in a folder, and return its seconds; stop if it fails."""
    words = [str(word) for word in command]
    began = time.perf_counter()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stderr or done.stdout}")
    return seconds


def wheel_of(wheels: Path, folder: Path) -> Path:
    """Return the wheel that pip takes for this machine."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-index", "--no-deps")
    timed(folder, *pip, "--find-links", wheels.resolve(), "--dest", folder, "twinedge")
    (wheel,) = folder.glob("twinedge-*")
    return wheel


def predict_first(wheel: Path, folder: Path) -> dict[str, float]:
    """Return seconds of each step from nothing to a prediction."""
    began = time.perf_counter()
    venv.create(folder / "env", with_pip=True)
    made = time.perf_counter() - began
    programs = folder / "env" / "bin"
    (folder / "new.csv").write_text("x0,x1\n0.5,0.25\n")
    pip = (programs / "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check")
    return {
        "environment": made,
        "install": timed(folder, *pip, wheel),
        "predict": timed(folder, programs / "twinedge", "predict", PACK, "new.csv"),
    }


def reach_a_board(effort: str, board: str, folder: Path) -> dict[str, float]:
    """Return seconds of each step from a CSV file to an emulated board."""
    table = data.load("tf")
    for name, rows in (("measured", slice(ROWS)), ("new", slice(ROWS, ROWS + 4))):
        cells = np.column_stack([table.X, table.y])[rows]
        np.savetxt(folder / f"{name}.csv", cells, delimiter=",", header="x1,x2,y", comments="")
    twinedge = (sys.executable, "-m", "twinedge")
    train = ("train", "measured.csv", "--target", "y", "--effort", effort, "-o", "run")
    export = ("export", "run", "--anchors", "32", "--formats", "c")
    run = ("firmware", "run", "--board", board, "out/model.twin", "new.csv")
    return {
        "train": timed(folder, *twinedge, *train),
        "export": timed(folder, *twinedge, *export),
        "board": timed(folder, *twinedge, *run),
    }


def pages(record: Record) -> Tables:
    """Return the section of docs/start.md."""
    rows = [
        [WORDS[name].format(**record), f"{seconds:.1f}"]
        for path in ("first_prediction", "emulated_board")
        for name, seconds in record[path].items()
    ]
    table = markdown(["step", "seconds"], rows)
    return {"docs/start.md": {"newcomer": SECTION.format(cores=record["cores"], table=table)}}


def main() -> None:
    """Measure both paths, print their steps, and last one line of JSON."""
    parser = command_line(__doc__, results_of("newcomer"))
    parser.add_argument("--wheels", type=Path, default=ROOT / "dist", help="what make dist wrote")
    parser.add_argument("--effort", default="quick", help="of the training (default: quick)")
    parser.add_argument("--board", default="pico", help="emulated board (default: pico)")
    options = parser.parse_args()
    if not any(options.wheels.glob("*.whl")):
        parser.error(f"{options.wheels} has no wheels: run `make dist`, or name another --wheels")
    load = os.getloadavg()[0]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with TemporaryDirectory() as place:
        folders = [Path(place, name) for name in ("wheel", "first", "board")]
        for folder in folders:
            folder.mkdir()
        first = predict_first(wheel_of(options.wheels, folders[0]), folders[1])
        board = reach_a_board(options.effort, options.board, folders[2])
    content: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0)),
        "load_at_start": load,
        "rows": ROWS,
        "effort": options.effort,
        "board": options.board,
        "first_prediction": first,
        "emulated_board": board,
        "holds": {
            "installed and predicted within 30 s": first["install"] + first["predict"] < FIRST,
            "from a table to a board within five minutes": sum(board.values()) < BOARD,
        },
    }
    for name, seconds in (first | board).items():
        print(f"{name:12}{seconds:8.1f} s")
    publish(options.results, ("numpy", "tensorflow"), **content)


if __name__ == "__main__":
    main()
