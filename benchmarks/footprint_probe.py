"""Measures what single predictions cost in its own environment; see ``footprint.py``.

    python footprint_probe.py EXPORT SUBJECT...

Prints one JSON object. Needs nothing but the subjects themselves.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

ROUNDS = 9
SETTLE = 2  # warm-up runs, so that files are cached


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
    with tempfile.TemporaryDirectory() as place:  # where no checkout shadows a wheel
        runs = [run(script, place) for _ in range(SETTLE + ROUNDS)][SETTLE:]
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


def main(folder: str, *subjects: str) -> None:
    """Measure these."""
    import twinedge

    names = list(twinedge.load(Path(folder, "model.twin")).feature_names)
    costs = {name: measure(SUBJECTS[name], Path(folder).resolve(), names) for name in subjects}
    versions = {SUBJECTS[name].package: metadata.version(SUBJECTS[name].package) for name in costs}
    print(json.dumps({"python": sys.version.split()[0], **versions, "costs": costs}))


if __name__ == "__main__":
    main(*sys.argv[1:])
