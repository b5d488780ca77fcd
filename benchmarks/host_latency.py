"""How long does a prediction take on this machine: C runtime, LiteRT, ONNX Runtime?

One 128-128 twin and four 56-56 twins, with relu and with silu; 8 features, 32 anchors, both orders
of each pair, trained on a smooth function with noise; exported as packs and as the ensemble files
of every level. One query: a row of floats in, a number in the user's units out, through Python, one
thread. All in one process, ten calls of each in turn; medians. The pack answers through
``device.predict``. The others are called directly, on a ready tensor, which is less than a user has
to do; ``ratio_bare`` compares them with a direct call of ours. Of these, the fastest counts whose
error on fresh points is at most 2 % above that of the float model. A batch is 1,000 queries in one
call, in CPU time. The C runtime saves some work where relu yields zero, so there are 1,000
different queries, drawn like the training points.

They are compared with a C program, host_latency.c, built as docs/cmake.md says: the runtime
installed by CMake without options, and found from another folder. Its counterpart is the time of
the Python extension less its Python part, which is a call without queries.

Training needs TensorFlow, measuring does not: files are kept in a folder, which may come from
another machine.

    python -m benchmarks.host_latency
    python -m benchmarks.host_latency --rounds 50 --steps 300    # a quick try
    python -m benchmarks.host_latency --make                     # only the files
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.harness.record import command_line, publish
from twinedge import scoring
from twinedge.runtime.loading import load
from twinedge.runtime.native import NativeDevice

HERE = Path(__file__).parent
RESULTS = HERE / "results" / f"host_latency-{platform.machine().replace('_', '-')}.json"
FILES = Path("runs/host_latency")
PROJECT = """
cmake_minimum_required(VERSION 3.13)
project(host_latency C)
find_package(twinedge REQUIRED)
add_executable(host_latency {source})
target_link_libraries(host_latency PRIVATE twinedge::twinedge)
"""
FEATURES, ANCHORS, POINTS, BATCH = 8, 32, 600, 1000
SHAPES = {"one-128-128": (1, (128, 128)), "four-56-56": (4, (56, 56))}
ACTIVATIONS = "relu", "silu"
MODELS = [f"{shape}-{activation}" for shape in SHAPES for activation in ACTIVATIONS]
BATCH_ROUNDS, IN_TURN = 15, 10
FAITHFUL = 1.02  # times the error of the float model

Key = tuple[str, str]  # model and file
Call = Callable[[int], object]  # answers query n of the batch, or the whole batch


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and their targets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FEATURES))
    y = np.sin(2 * x[:, 0] * x[:, 1]) + np.abs(x[:, 2]) + x[:, 3:6].prod(axis=1) + x[:, 6] / 2
    return x.astype(np.float32), y + 0.1 * rng.normal(size=count)


def make(folder: Path, name: str, steps: int) -> None:
    """Train a model and export it; record the errors of all files."""
    from twinedge import TwinRegressor
    from twinedge.pack import write_pack
    from twinedge_export import onnx_file, tflite_file
    from twinedge_export.quantise import quantise

    shape, activation = name.rsplit("-", 1)
    twins, hidden = SHAPES[shape]
    model = TwinRegressor(
        twins=twins,
        hidden=hidden,
        activation=activation,
        learning_rate=0.01,
        weight_decay=0.03,
        steps=steps,
        random_state=0,
    )
    model.fit(*points(POINTS, seed=0))
    drawn = np.random.default_rng(1).permutation(len(model.anchor_X_))[:ANCHORS]
    rows = list(drawn.reshape(twins, -1))
    content = {".twin": write_pack(quantise(model, rows))}
    for level in tflite_file.LEVELS:
        content[f" {level}.tflite"] = tflite_file.tflite_model(model, rows, level=level)
    for level in onnx_file.LEVELS:
        content[f" {level}.onnx"] = onnx_file.onnx_model(model, rows, level=level)
    x, y = points(BATCH, seed=2)

    def error(found: np.ndarray) -> float:
        return scoring.rmse(found, y)

    folder.mkdir(parents=True, exist_ok=True)
    errors = {}
    for suffix, data in content.items():
        path = folder / f"{name}{suffix}"
        path.write_bytes(data)
        errors[suffix.strip()] = error(load(path).predict(x))
    floats = errors["float32.onnx"]
    record = {"steps": steps, "rmse": floats, "files": errors}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1))


def litert(content: bytes, x: np.ndarray, alone: bool) -> Call:
    """Call LiteRT; the time excludes conversion to int8 inputs."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, num_threads=1)
    (given,) = interpreter.get_input_details()
    interpreter.resize_tensor_input(given["index"], (1 if alone else len(x), FEATURES))
    interpreter.allocate_tensors()
    if given["dtype"] is np.int8:
        x = np.clip(np.rint(x * 127 / np.abs(x).max(axis=0)), -128, 127).astype(np.int8)
    rows = [x[row : row + 1].copy() for row in range(len(x))] if alone else [x]
    outputs = {one["name"]: one["index"] for one in interpreter.get_output_details()}
    mean = next(index for name, index in outputs.items() if "mean" in name)

    def call(number: int) -> object:
        interpreter.set_tensor(given["index"], rows[number % len(rows)])
        interpreter.invoke()
        return interpreter.get_tensor(mean)

    return call


def onnx(content: bytes, x: np.ndarray, alone: bool) -> Call:
    """Call ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    rows = [x[row : row + 1].copy() for row in range(len(x))] if alone else [x]
    return lambda number: session.run(["mean"], {"x": rows[number % len(rows)]})[0]


def program(folder: Path) -> Path:
    """Install the runtime, and build a program that finds it, each by CMake without options."""
    place = folder / "place"
    (folder / "CMakeLists.txt").write_text(PROJECT.format(source=HERE / "host_latency.c"))
    for command in (
        ["cmake", "-S", HERE.parent / "firmware_ref", "-B", folder / "runtime"],
        ["cmake", "--build", folder / "runtime"],
        ["cmake", "--install", folder / "runtime", "--prefix", place],
        ["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={place}"],
        ["cmake", "--build", folder / "build"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return folder / "build" / "host_latency"


def run_program(content: bytes, x: np.ndarray, rounds: int) -> tuple[str, float, float]:
    """Kernel, microseconds per query, and the sum of all predictions of the C program."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        built = program(folder)
        (folder / "pack").write_bytes(content)
        (folder / "queries").write_bytes(x.astype("<f4").tobytes())
        command = [built, folder / "pack", folder / "queries", str(rounds)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    kernel, nanoseconds, total = done.stdout.split()
    return kernel, float(nanoseconds) / 1000, float(total)


def medians(
    calls: dict[Key, Call], rounds: int, in_turn: int, clock: Callable[[], float]
) -> dict[Key, float]:
    """Median time of a call in microseconds; ``in_turn`` calls of each, then the next."""
    times: dict[Key, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call(0)
    for number in range(rounds):
        for name, call in calls.items():
            for turn in range(in_turn):
                start = clock()
                call(number * in_turn + turn)
                times[name].append(clock() - start)
    return {name: float(np.median(taken)) * 1e6 for name, taken in times.items()}


def calls_of(folder: Path, name: str) -> tuple[dict[str, Call], dict[str, Call]]:
    """Ways to call the files of a model, for one query and for a batch."""
    x, _ = points(BATCH, seed=2)
    device = load(folder / f"{name}.twin", backend="native")
    assert isinstance(device, NativeDevice)
    alone = [x[row : row + 1].copy() for row in range(len(x))]
    out, none = np.empty(1, np.float32), np.empty((0, FEATURES), np.float32)
    bare = device._native.model.predict
    one: dict[str, Call] = {
        "native": lambda number: device.predict(alone[number % BATCH]),
        "native, bare call": lambda number: bare(alone[number % BATCH], out, None, -1),
        "native, no query": lambda number: bare(none, out[:0], None, -1),
    }
    batch: dict[str, Call] = {"native": lambda number: device.predict(x)}
    for file in made(folder, name)["files"]:
        if not file.startswith("."):
            content = (folder / f"{name} {file}").read_bytes()
            runtime = litert if file.endswith(".tflite") else onnx
            one[file] = runtime(content, x, alone=True)
            batch[file] = runtime(content, x, alone=False)
    return one, batch


def made(folder: Path, name: str) -> dict[str, Any]:
    """Read what was written down when a model was made."""
    record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return record


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """Time all files of all models in turn, since a processor's clock drifts with its load."""
    one: dict[Key, Call] = {}
    batch: dict[Key, Call] = {}
    for name in MODELS:
        for calls, of_model in zip((one, batch), calls_of(folder, name), strict=True):
            calls |= {(name, file): call for file, call in of_model.items()}
    single = medians(one, rounds, IN_TURN, time.perf_counter)
    many = medians(batch, BATCH_ROUNDS, 1, time.process_time)
    return {
        name: compare(
            folder,
            name,
            {file: taken for (model, file), taken in single.items() if model == name},
            {file: taken / BATCH for (model, file), taken in many.items() if model == name},
        )
        for name in MODELS
    }


def compare(
    folder: Path, name: str, single: dict[str, float], many: dict[str, float]
) -> dict[str, Any]:
    """Compare the pack of a model with its other files, by microseconds of a query."""
    record = made(folder, name)
    faithful = [f for f in record["files"] if record["files"][f] <= FAITHFUL * record["rmse"]]
    rivals = [file for file in faithful if file in single]
    fastest = {
        "one": min(rivals, key=single.__getitem__),
        "batch": min(rivals, key=many.__getitem__),
    }
    for file in single:
        of_batch = f"{many[file]:10.1f} us of a batch" if file in many else ""
        mark = " *" if file in fastest.values() else ""
        print(f"{name:20}{file:26}{single[file]:10.1f} us{of_batch}{mark}")
    return {
        "kernel": load(folder / f"{name}.twin", backend="native").info["kernel"],
        "steps": record["steps"],
        "rmse": record["rmse"],
        "rmse_of_files": record["files"],
        "one_query_us": {file: round(taken, 2) for file, taken in single.items()},
        "batch_us_per_query": {file: round(taken, 2) for file, taken in many.items()},
        "fastest_faithful": fastest,
        "ratio": round(single["native"] / single[fastest["one"]], 3),
        "ratio_bare": round(single["native, bare call"] / single[fastest["one"]], 3),
        "ratio_batch": round(many["native"] / many[fastest["batch"]], 3),
        "python_us": round(single["native"] - single["native, bare call"], 2),
    }


def measure_program(folder: Path, rounds: int, found: dict[str, Any]) -> dict[str, Any]:
    """Time a C program on the first model, and compare it with the time through Python."""
    path = folder / f"{MODELS[0]}.twin"
    x, _ = points(BATCH, seed=2)
    times = rounds // 5 + 1  # long enough for the clock of the processor to reach its speed
    kernel, taken, total = run_program(path.read_bytes(), x, times)
    device = load(path, backend="native")
    expected = np.concatenate([device.predict(x), device.spread(x)]).astype(np.float64).sum()
    assert np.isclose(total, times * expected), "the program predicts something else"
    single = found[MODELS[0]]["one_query_us"]
    native = single["native, bare call"] - single["native, no query"]
    print(f"{'C program':46}{taken:10.1f} us, native without Python {native:.1f} us")
    return {
        "program_kernel": kernel,
        "program_us": round(taken, 2),
        "native_without_python_us": round(native, 2),
        "ratio_program": round(taken / native, 3),
    }


def main() -> None:
    """Train missing models, measure, and print one line of JSON last."""
    parser = command_line(__doc__, RESULTS)
    parser.add_argument("--rounds", type=int, default=500, help="of single queries (default 500)")
    parser.add_argument("--steps", type=int, default=8000, help="of training (default 8000)")
    parser.add_argument("--files", type=Path, default=FILES, help="where models are kept")
    parser.add_argument("--make", action="store_true", help="train only")
    options = parser.parse_args()

    for name in MODELS:
        there = (options.files / f"{name}.json").exists()
        if not there or made(options.files, name)["steps"] != options.steps:
            make(options.files, name, options.steps)
    if options.make:
        return
    load_average = round(os.getloadavg()[0], 1)
    found = measure(options.files, options.rounds)
    silu = {
        shape: round(
            found[f"{shape}-silu"]["one_query_us"]["native"]
            / found[f"{shape}-relu"]["one_query_us"]["native"],
            3,
        )
        for shape in SHAPES
    }
    publish(
        options.results,
        ("numpy", "ai-edge-litert", "onnxruntime"),
        load=load_average,
        rounds=options.rounds,
        models=found,
        silu_to_relu=silu,
        **measure_program(options.files, options.rounds, found),
    )


if __name__ == "__main__":
    main()
