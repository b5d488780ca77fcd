"""How long does it take to survey a fleet?

Trains a network of the usual shape on a table of 8 features for a few steps, exports it, writes the
stores of ten thousand devices with about 20 points each, by the writer that devices use, and runs
``twinedge fleet`` on them in a process of its own, with two processes. Stores are of two
kinds: as a Raspberry Pi writes them, with room for a thousand points, and as a microcontroller
does, with two blocks of 4 KB. The least time counts, as everything else on a machine only adds to
it; seconds of all cores together tell how busy it was.

    python -m benchmarks.fleet
    python -m benchmarks.fleet --devices 1000
"""

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness.record import command_line, publish, results_of
from twinedge import export, fit_csv
from twinedge.runtime.adaptation import score_errors
from twinedge.runtime.journal import HEADS, Head, slot_of, slots_of
from twinedge.runtime.loading import load
from twinedge.runtime.reference import quantise
from twinedge.runtime.store import Points, owner_of, stamp_of

FEATURES, ROWS, STEPS = 8, 2000, 300
POINTS = 20  # on average
JOBS = 2
BLOCKS = {"raspberry_pi": 1091, "microcontroller": 73}  # slots of a block


def make_pack(room: Path) -> Path:
    """Train a twin on a smooth function with noise, and export it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (ROWS, FEATURES))
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 4] + 0.1 * rng.normal(size=ROWS)
    names = ",".join([*(f"x{k}" for k in range(1, FEATURES + 1)), "y"])
    table = room / "table.csv"
    np.savetxt(table, np.column_stack([x, y]), "%.6g", ",", header=names, comments="")
    run = fit_csv(table, target="y", run=room / "run", steps=STEPS, random_state=0)
    export(run, room / "out", anchors=32, formats=("twin",), tolerance=10.0)
    return room / "out" / "model.twin"


def write_stores(pack_file: Path, folder: Path, devices: int, slots: int) -> int:
    """Write stores; each device is off by a little. Returns how many points they have."""
    device, rng = load(pack_file), np.random.default_rng(1)
    pack, stamp = device.pack, stamp_of(pack_file.read_bytes())
    counts = rng.integers(POINTS // 2, POINTS + POINTS // 2 + 1, devices)
    x = rng.uniform(-1, 1, (counts.sum(), FEATURES)).astype(np.float32)
    mean, _, scale = device.evaluator.raw(quantise(pack, x)).astype(np.int64)
    off = np.repeat(0.6 * rng.normal(size=devices), counts) + 0.7 * rng.normal(size=len(x))
    targets = mean + np.rint(off * scale / 16).astype(np.int64)
    y = targets * float(pack.y_gain) + float(pack.y_offset)
    errors, scores = score_errors(mean, scale, targets)
    size = 16 + 4 * FEATURES
    schema = stamp if pack.schema is None else pack.schema
    start = 0
    for one, count in enumerate(counts.tolist()):
        rows = slice(start, start + count)
        start += count
        times = (1_700_000_000 + 3600 * np.arange(count)).astype(np.uint32)
        numbers = np.arange(count, dtype=np.uint32)
        points = Points(
            numbers, times, x[rows], y[rows].astype(np.float32), errors[rows], scores[rows]
        )
        owner = owner_of(schema, slot_of(size))
        head = Head(1, owner, stamp, slot_of(size), size, count, HEADS + count, count)
        copy = head.to_bytes()
        data = 2 * copy + b"\xff" * head.slot + slots_of(head, numbers, points.to_records())
        block = slots * head.slot
        (folder / f"device-{one:05}.store").write_bytes(data.ljust(2 * block, b"\xff"))
    return int(counts.sum())


def seconds(folder: Path, pack: Path, jobs: int) -> dict[str, float]:
    """Survey a folder of stores once: seconds on the clock, and of all cores."""
    words = [sys.executable, "-m", "twinedge", "fleet", folder, "--pack", pack, "--quiet"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([*words, "--jobs", str(jobs)], check=True, stdout=subprocess.DEVNULL)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cores = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(clock, 1), "core_seconds": round(cores, 1)}


def main() -> None:
    """Measure, and write the record."""
    parser = command_line(__doc__, results_of("fleet"))
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    found = {}
    with TemporaryDirectory() as room:
        pack = make_pack(Path(room))
        for kind, slots in BLOCKS.items():
            folder = Path(room) / kind
            folder.mkdir()
            points = write_stores(pack, folder, options.devices, slots)
            found[kind] = min(
                (seconds(folder, pack, JOBS) for _ in range(options.repeat)),
                key=lambda one: one["seconds"],
            )
            print(kind, found[kind], file=sys.stderr)
    publish(
        options.results,
        ("numpy",),
        jobs=JOBS,
        repeats=options.repeat,
        devices=options.devices,
        points=points,
        surveys=found,
    )


if __name__ == "__main__":
    main()
