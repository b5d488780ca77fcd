"""What does a prediction cost before it is made: disk, memory, time to start?

A separate process imports a runtime, loads a model and answers one query: twinedge as its wheel
installs it (the C runtime; with numpy alone; as a command), LiteRT, ONNX Runtime, tflite-runtime,
and TensorFlow through its own TFLite interpreter. Installed bytes are those of a package and its
dependencies, numpy included, without Python's caches; memory is the peak resident set. Medians of
nine runs, with files cached. Times count from the first import; CPU time includes Python's own
start. Measured here, and on the userland of Raspberry Pi OS, 64 and 32 bits
(``tools/pi-userland``), which needs root; an emulated one says little about time.

    python -m benchmarks.footprint
    python -m benchmarks.footprint --here      # no Pi

Each environment runs this file itself, as ``footprint.py --probe EXPORT SUBJECT...``, which needs
nothing but the subjects and prints one JSON object.
"""

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

HERE = Path(__file__).parent
TOOLS = HERE.parent / "tools"
PROBE = __file__, "--probe"
RESULTS = HERE / "results" / "footprint.json"
OURS = ["numpy alone", "twinedge", "twinedge, numpy", "twinedge predict"]
PI = {
    "arm64/litert": [*OURS, "LiteRT", "ONNX Runtime"],
    "arm64/tflite-runtime": ["twinedge", "tflite-runtime"],
    "arm64/tensorflow": ["TensorFlow"],
    "armhf/tflite-runtime": [*OURS, "tflite-runtime"],
}
SETTINGS = os.environ | {"PYTHON": sys.executable}
ROUNDS = 9
WARM_UP = 2  # warm-up runs, so that files are cached


class Subject(NamedTuple):
    """What is installed for it, and the two parts of a script: imports, and one prediction."""

    package: str
    imports: str
    predict: str


PACK = "twinedge.load(folder + '/model.twin', '{}').predict([[1.0] * features])"
INTERPRETER = """
given = interpreter.get_input_details()[0]
interpreter.allocate_tensors()
interpreter.set_tensor(given["index"], numpy.zeros(given["shape"], given["dtype"]))
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""
SUBJECTS = {
    "numpy alone": Subject("numpy", "import numpy", "numpy.zeros(1)"),
    "twinedge": Subject("twinedge", "import twinedge", PACK.format("auto")),
    "twinedge, numpy": Subject("twinedge", "import twinedge", PACK.format("numpy")),
    "twinedge predict": Subject(
        "twinedge",
        "import sys; from twinedge.cli import main",
        """
open("query.csv", "w").write(",".join(names) + "\\n" + ",".join(["1"] * features) + "\\n")
sys.stdout = open("/dev/null", "w")
try: main(["predict", folder + "/model.twin", "query.csv"])
except SystemExit as stop: assert not stop.code
sys.stdout = sys.__stdout__
""",
    ),
    "LiteRT": Subject(
        "ai-edge-litert",
        "import numpy; from ai_edge_litert.interpreter import Interpreter",
        "interpreter = Interpreter(folder + '/model.tflite')" + INTERPRETER,
    ),
    "tflite-runtime": Subject(
        "tflite-runtime",
        "import numpy; from tflite_runtime.interpreter import Interpreter",
        "interpreter = Interpreter(folder + '/model.tflite')" + INTERPRETER,
    ),
    "ONNX Runtime": Subject(
        "onnxruntime",
        "import numpy, onnxruntime",
        "session = onnxruntime.InferenceSession(folder + '/model.onnx')\n"
        "session.run(None, {'x': numpy.ones((1, features), numpy.float32)})",
    ),
    "TensorFlow": Subject(
        "tensorflow",
        "import numpy, tensorflow",
        "interpreter = tensorflow.lite.Interpreter(folder + '/model.tflite')" + INTERPRETER,
    ),
}

SCRIPT = """
import time
folder, names = {folder!r}, {names!r}
features = len(names)
start = time.perf_counter()
{imports}
imported = time.perf_counter()
{predict}
done = time.perf_counter()
peak = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]
print()
print(imported - start, done - start, time.process_time(), peak)
"""


def measure(subject: Subject, folder: Path, names: list[str]) -> dict[str, object]:
    """Run it several times, each in its own process; return medians."""
    script = SCRIPT.format(
        folder=str(folder), names=names, imports=subject.imports, predict=subject.predict
    )
    with TemporaryDirectory() as place:  # where no checkout shadows a wheel
        runs = [run(script, place) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    imported, first, processor, peak = map(statistics.median, zip(*runs, strict=True))
    return {
        "installed_bytes": sum(size(one) for one in needed(subject.package)),
        "import_seconds": round(imported, 4),
        "first_prediction_seconds": round(first, 4),
        "processor_seconds": round(processor, 4),
        "peak_kb": round(peak),
    }


def run(script: str, place: str) -> list[float]:
    """Run a script in its own process; return the numbers it prints."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def needed(package: str) -> set[str]:
    """Return the package and its installed dependencies, without extras."""
    found, waiting = set(), [package]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system or Python
            continue
        if name not in found:
            found.add(name)
            plain = [one for one in requires if "extra ==" not in one]
            waiting += [re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in plain]
    return found


def size(package: str) -> int:
    """Return the bytes of the files of a package, without Python's caches."""
    distribution = metadata.distribution(package)
    files = distribution.files
    if files is None:  # Debian packages have no list
        folder = Path(str(distribution.locate_file(package)))
        paths = [path for path in folder.rglob("*") if path.is_file()]
    else:
        paths = [Path(str(one.locate())) for one in files]
    return sum(path.stat().st_size for path in paths if path.exists() and path.suffix != ".pyc")


def probe(folder: str, *subjects: str) -> None:
    """Measure these in the present environment."""
    import twinedge

    names = list(twinedge.load(Path(folder, "model.twin")).feature_names)
    costs = {name: measure(SUBJECTS[name], Path(folder).resolve(), names) for name in subjects}
    versions = {SUBJECTS[name].package: metadata.version(SUBJECTS[name].package) for name in costs}
    print(json.dumps({"python": sys.version.split()[0], **versions, "costs": costs}))


def answer(*command: Any) -> str:
    """Last line that a command prints."""
    done = subprocess.run(command, env=SETTINGS, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


def measure_here(export: Path, place: Path) -> tuple[int, dict[str, Any]]:
    """Bytes of the wheel, and what things cost on this machine."""
    core = answer(TOOLS / "core-env", place / "core")
    (wheel,) = (place / "core" / "wheel").iterdir()
    ours = answer(core, *PROBE, export, *OURS)
    theirs = answer(sys.executable, *PROBE, export, "LiteRT", "ONNX Runtime", "TensorFlow")
    return wheel.stat().st_size, {
        "wheel alone": json.loads(ours),
        "all extras": json.loads(theirs),
    }


def measure_pi(export: Path, place: Path) -> dict[str, Any]:
    """Return what things cost on a Pi's system, by machine and environment."""
    job = place / "job"
    shutil.copytree(export, job / "export")
    shutil.copy(__file__, job)
    costs = {}
    for where, subjects in PI.items():
        words = ["python", Path(__file__).name, "--probe", "export", *subjects]
        costs[where] = json.loads(answer(TOOLS / "pi-userland", *where.split("/"), job, *words))
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
    from benchmarks.harness.record import command_line, publish  # not there where this file probes
    from benchmarks.harness.trained import EXPORT, load_or_export

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
    if sys.argv[1:2] == ["--probe"]:
        probe(*sys.argv[2:])
    else:
        main()
