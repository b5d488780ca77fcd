"""How long does a prediction take on this machine: C runtime, LiteRT, ONNX Runtime?

One network, 8 features, 128-128 relu, 32 anchors, both orders of each pair, trained on a smooth
function with noise; exported as a pack and as the ensemble files of every level. One query: a row
of floats in, a number in the user's units out, through Python, one thread. All in one process, ten
calls of each in turn; medians. The pack answers through ``device.predict``. The others are called
bare, on a tensor that is ready, which is less than a user has to do, and the fastest file of each
counts (LiteRT: with int8 layers). A batch is 1,000 queries in one call, in time of the processor.
What relu makes zero is spared some work in the C runtime, so there are 1,000 different queries,
drawn as the training points were.

Beside them stands a C program, host_latency.c, built as docs/packaging.md says: the runtime
installed by CMake with no option, and found from another folder. It is compared with what the
Python extension takes less its Python part, which is a call with no query.

    python benchmarks/host_latency.py
    python benchmarks/host_latency.py --rounds 50 --steps 300    # a try-out
"""

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from record import publish

from twinedge import TwinRegressor
from twinedge.pack import write_pack
from twinedge.runtime.native import NativeDevice, open_file
from twinedge_export import onnx_file, tflite
from twinedge_export.quantise import quantise

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "host_latency.json"
PROJECT = """
cmake_minimum_required(VERSION 3.13)
project(host_latency C)
find_package(twinedge REQUIRED)
add_executable(host_latency {source})
target_link_libraries(host_latency PRIVATE twinedge::twinedge)
"""
FEATURES, HIDDEN, ANCHORS, POINTS, BATCH = 8, (128, 128), 32, 600, 1000
LITERT = [level for level in tflite.LEVELS if level.startswith("int8")]
BATCH_ROUNDS, IN_TURN = 15, 10

Ask = Callable[[int], object]  # answers query number n of the batch, or all of it


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and their targets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FEATURES))
    y = np.sin(2 * x[:, 0] * x[:, 1]) + np.abs(x[:, 2]) + x[:, 3:6].prod(axis=1) + x[:, 6] / 2
    return x.astype(np.float32), y + 0.1 * rng.normal(size=count)


def train(steps: int) -> TwinRegressor:
    """Train the network that everybody evaluates."""
    model = TwinRegressor(
        hidden=HIDDEN,
        activation="relu",
        learning_rate=0.01,
        weight_decay=0.03,
        steps=steps,
        random_state=0,
    )
    return model.fit(*points(POINTS, seed=0))


def native(content: bytes) -> NativeDevice:
    """Open a pack as a user does."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.twin"
        path.write_bytes(content)
        device = open_file(path)
    assert isinstance(device, NativeDevice)
    return device


def litert(content: bytes, x: np.ndarray, alone: bool) -> Ask:
    """Ask LiteRT; what its int8 input would be is left out of the time."""
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

    def ask(number: int) -> object:
        interpreter.set_tensor(given["index"], rows[number % len(rows)])
        interpreter.invoke()
        return interpreter.get_tensor(mean)

    return ask


def onnx(content: bytes, x: np.ndarray, alone: bool) -> Ask:
    """Ask ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    rows = [x[row : row + 1].copy() for row in range(len(x))] if alone else [x]
    return lambda number: session.run(["mean"], {"x": rows[number % len(rows)]})[0]


def program(folder: Path) -> Path:
    """Install the runtime, and build a program that finds it, each by CMake with no option."""
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


def ask_program(content: bytes, x: np.ndarray, rounds: int) -> tuple[str, float, float]:
    """Kernel, microseconds of a query, and the sum of all predictions of a program in C."""
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
    asks: dict[str, Ask], rounds: int, in_turn: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Median time of a call in microseconds; so many calls of each, then those of the next."""
    times: dict[str, list[float]] = {name: [] for name in asks}
    for ask in asks.values():
        ask(0)
    for number in range(rounds):
        for name, ask in asks.items():
            for turn in range(in_turn):
                start = clock()
                ask(number * in_turn + turn)
                times[name].append(clock() - start)
    return {name: float(np.median(taken)) * 1e6 for name, taken in times.items()}


def main() -> None:
    """Train, export, measure, and print one line of JSON last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=500, help="of single queries (default 500)")
    parser.add_argument("--steps", type=int, default=8000, help="of training (default 8000)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()

    model = train(options.steps)
    rows = [np.random.default_rng(1).permutation(len(model.anchor_X_))[:ANCHORS]]
    x, _ = points(BATCH, seed=2)
    content = write_pack(quantise(model, rows))
    device = native(content)
    alone = [x[row : row + 1].copy() for row in range(len(x))]
    out, none = np.empty(1, np.float32), np.empty((0, FEATURES), np.float32)
    bare = device._native.model.predict
    one: dict[str, Ask] = {
        "native": lambda number: device.predict(alone[number % BATCH]),
        "native, bare call": lambda number: bare(alone[number % BATCH], out, None, -1),
        "native, no query": lambda number: bare(none, out[:0], None, -1),
    }
    batch: dict[str, Ask] = {"native": lambda number: device.predict(x)}
    for level in LITERT:
        file = tflite.tflite_model(model, rows, level=level)
        one[f"litert {level}"] = litert(file, x, alone=True)
        batch[f"litert {level}"] = litert(file, x, alone=False)
    for level in onnx_file.LEVELS:
        file = onnx_file.onnx_model(model, rows, level=level)
        one[f"onnx {level}"] = onnx(file, x, alone=True)
        batch[f"onnx {level}"] = onnx(file, x, alone=False)

    single = medians(one, options.rounds, IN_TURN, time.perf_counter)
    many = medians(batch, BATCH_ROUNDS, 1, time.process_time)
    for name in single:
        of_batch = f"{many[name] / BATCH:10.1f} us of a batch" if name in many else ""
        print(f"{name:24}{single[name]:10.1f} us{of_batch}")

    times = options.rounds // 50 + 1
    program_kernel, program_us, total = ask_program(content, x, times)
    expected = np.concatenate([device.predict(x), device.spread(x)]).astype(np.float64).sum()
    assert np.isclose(total, times * expected), "the program predicts otherwise"
    native_us = single["native, bare call"] - single["native, no query"]
    print(f"{'C program':24}{program_us:10.1f} us, native without Python {native_us:.1f} us")

    def best(times: dict[str, float], *kinds: str) -> float:
        return min(taken for name, taken in times.items() if name.startswith(kinds))

    litert_us, onnx_us = best(single, "litert"), best(single, "onnx")
    publish(
        options.results,
        ("numpy", "ai-edge-litert", "onnxruntime"),
        kernel=device.info["kernel"],
        load=round(os.getloadavg()[0], 1),
        rounds=options.rounds,
        steps=options.steps,
        one_query_us={name: round(taken, 2) for name, taken in single.items()},
        batch_us_per_query={name: round(taken / BATCH, 2) for name, taken in many.items()},
        native_us=round(single["native"], 2),
        program_kernel=program_kernel,
        program_us=round(program_us, 2),
        native_without_python_us=round(native_us, 2),
        ratio_program=round(program_us / native_us, 3),
        litert_us=round(litert_us, 2),
        onnx_us=round(onnx_us, 2),
        ratio_litert=round(single["native"] / litert_us, 3),
        ratio_onnx=round(single["native"] / onnx_us, 3),
        batch_ratio=round(many["native"] / best(many, "litert", "onnx"), 3),
    )


if __name__ == "__main__":
    main()
