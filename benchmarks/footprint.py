"""What does a prediction cost before it is made: disk, memory, time to start?

A separate process imports a runtime, loads a model and answers one query: twinedge as its wheel
installs it (the C runtime; with numpy alone; as a command), LiteRT, ONNX Runtime, tflite-runtime,
and TensorFlow through its own TFLite interpreter. Installed bytes are those of a package and its
dependencies, numpy included, without Python's caches; memory is the peak resident set. Medians of
nine runs, with files cached. Times count from the first import; CPU time includes Python's own
start. Measured here, and on the userland of Raspberry Pi OS, 64 and 32 bits
(``tools/pi-userland``), which needs root; an emulated one says little about time.

    python benchmarks/footprint.py
    python benchmarks/footprint.py --here      # no Pi
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from record import command_line, publish
from trained import EXPORT, load_or_export

HERE = Path(__file__).parent
TOOLS = HERE.parent / "tools"
RESULTS = HERE / "results" / "footprint.json"
PROBE = "footprint_probe.py"
OURS = ["numpy alone", "twinedge", "twinedge, numpy", "twinedge predict"]
PI = {
    "arm64/litert": [*OURS, "LiteRT", "ONNX Runtime"],
    "arm64/tflite-runtime": ["twinedge", "tflite-runtime"],
    "arm64/tensorflow": ["TensorFlow"],
    "armhf/tflite-runtime": [*OURS, "tflite-runtime"],
}
SETTINGS = os.environ | {"PYTHON": sys.executable}


def answer(*command: Any) -> str:
    """Last line that a command prints."""
    done = subprocess.run(command, env=SETTINGS, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


def measure_here(export: Path, place: Path) -> tuple[int, dict[str, Any]]:
    """Bytes of the wheel, and what things cost on this machine."""
    core = answer(TOOLS / "core-env", place / "core")
    (wheel,) = (place / "core" / "wheel").iterdir()
    ours = json.loads(answer(core, HERE / PROBE, export, *OURS))
    theirs = answer(sys.executable, HERE / PROBE, export, "LiteRT", "ONNX Runtime", "TensorFlow")
    return wheel.stat().st_size, {"wheel alone": ours, "all extras": json.loads(theirs)}


def measure_pi(export: Path, place: Path) -> dict[str, Any]:
    """Return what things cost on a Pi's system, by machine and environment."""
    job = place / "job"
    shutil.copytree(export, job / "export")
    shutil.copy(HERE / PROBE, job)
    costs = {}
    for where, subjects in PI.items():
        probe = ["python", PROBE, "export", *subjects]
        costs[where] = json.loads(answer(TOOLS / "pi-userland", *where.split("/"), job, *probe))
    return costs


def table(record: dict[str, Any]) -> list[str]:
    """Write the results as the Markdown table of docs/raspberry-pi.md."""
    rows = [
        "| system | runtime | installed MB | peak MB | import s | first answer s | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for where, environment in {**record["here"], **record["pi"]}.items():
        system = where if where in record["pi"] else "here"
        for name, one in environment["costs"].items():
            sizes = f"{one['installed_bytes'] / 1e6:.1f} | {one['peak_kb'] * 1024 / 1e6:.1f}"
            times = [one[f"{of}_seconds"] for of in ("import", "first_prediction", "processor")]
            seconds = " | ".join(f"{one:.2f}" for one in times)
            rows.append(f"| {system} | {name} | {sizes} | {seconds} |")
    return rows


def main() -> None:
    """Measure, print the table, and last one line of JSON."""
    parser = command_line(__doc__, RESULTS)
    parser.add_argument("--export", type=Path, default=EXPORT)
    parser.add_argument("--here", action="store_true", help="leave the Pi's system out")
    options = parser.parse_args()

    export = load_or_export(options.export)
    load = os.getloadavg()[0]
    with TemporaryDirectory() as place:
        wheel, here = measure_here(export, Path(place))
        pi = {} if options.here else measure_pi(export, Path(place))
    ours = here["wheel alone"]["costs"]["twinedge"]
    theirs = here["all extras"]["costs"]["TensorFlow"]
    holds = {
        "wheel below 1 MB": wheel < 1_000_000,
        "at most 60 MB": ours["peak_kb"] * 1024 <= 60_000_000,
        "a fifth of TensorFlow's memory": 5 * ours["peak_kb"] <= theirs["peak_kb"],
        "predicted within 0.3 s": ours["first_prediction_seconds"] < 0.3,
    }
    packages = ("numpy", "ai-edge-litert", "onnxruntime", "tensorflow")
    content = {
        "load_at_start": load,
        "wheel_bytes": wheel,
        "here": here,
        "pi_is_emulated": platform.machine() != "aarch64",
        "pi": pi,
        "holds": holds,
    }
    print(f"wheel: {wheel} bytes")
    print(*table(content), sep="\n")
    for what, true in holds.items():
        print(f"{what}: {'yes' if true else 'no'}")
    publish(options.results, packages, **content)


if __name__ == "__main__":
    main()
