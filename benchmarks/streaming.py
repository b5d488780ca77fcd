"""How many lines a second does ``twinedge predict model.twin -`` answer, and how soon each one?

Many lines at once, as from a log: all answers are compared with those of one call, and the memory
of the process is read after each tenth of them. Then lines one at a time, as from a sensor: each
waits for the answer to the one before. The model is an exported 128-128 twin with 6 features and 32
anchors. Time counts from the start of the process and includes Python's own start.

    python -m benchmarks.streaming
    python -m benchmarks.streaming --lines 5000 --results /tmp/try.json     # a quick try
"""

import os
import resource
import subprocess
import sys
import threading
import time
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.record import command_line, publish, results_of
from benchmarks.harness.trained import EXPORT, load_or_export
from twinedge.runtime.device import Device
from twinedge.runtime.loading import load

BLOCK = 1 << 16


def start(model: Path) -> subprocess.Popen[bytes]:
    """Start the command on this model."""
    command = [sys.executable, "-m", "twinedge", "predict", str(model), "-"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def resident(process: subprocess.Popen[bytes]) -> int:
    """Memory of a process in kB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def flood(model: Path, lines: list[bytes]) -> tuple[dict[str, Any], list[str]]:
    """Send all lines as fast as possible; return cost and answers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = start(model)
    assert process.stdin
    assert process.stdout

    def feed(pipe: Any) -> None:
        with pipe:
            for first in range(0, len(lines), 1000):
                pipe.write(b"".join(lines[first : first + 1000]))

    feeder = threading.Thread(target=feed, args=(process.stdin,))
    feeder.start()
    blocks, count, memory = [], 0, []
    while block := process.stdout.read(BLOCK):
        blocks.append(block)
        count += block.count(b"\n")
        if count >= (len(memory) + 1) * len(lines) // 10 and len(memory) < 9:
            memory.append(resident(process))
    seconds = time.perf_counter() - began
    feeder.join()
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "lines": len(lines),
        "lines_per_second": round(len(lines) / seconds),
        "seconds": round(seconds, 3),
        "processor_seconds": round(processor, 3),
        "resident_kb_by_tenth": memory,
    }, b"".join(blocks).decode().splitlines()


def one_by_one(model: Path, lines: list[bytes]) -> dict[str, Any]:
    """Send a line when the one before it has been answered; times in microseconds."""
    process = start(model)
    assert process.stdin
    assert process.stdout
    taken = []
    for line in lines:
        began = time.perf_counter()
        process.stdin.write(line)
        answer = process.stdout.read(BLOCK)
        taken.append(time.perf_counter() - began)
        assert answer.count(b"\n") == 1
    process.stdin.close()
    process.wait()
    process.stdout.close()
    rest = np.array(taken[1:]) * 1e6  # the first waits for Python to start
    return {
        "lines": len(rest),
        "median_us": round(float(np.median(rest)), 1),
        "99th_percentile_us": round(float(np.quantile(rest, 0.99)), 1),
        "largest_us": round(float(rest.max()), 1),
    }


def answers(device: Device, x: np.ndarray) -> list[str]:
    """Format the answers that the command must print."""
    found = device.predict_all(x)
    outside = ["|".join(compress(device.feature_names, row)) for row in found.outside]
    columns = [found.mean, found.spread, outside]
    if device.coverages:
        columns += [found.scale, found.low, found.high]
    rows = zip(*columns, strict=True)
    return [",".join(one if isinstance(one, str) else f"{one:.7g}" for one in row) for row in rows]


def words(many: dict[str, Any], single: dict[str, Any]) -> list[str]:
    """Summarise the measurement, as in docs/raspberry-pi.md."""
    memory = many["resident_kb_by_tenth"]
    each = many["processor_seconds"] / many["lines"] * 1e6
    return [
        f"{many['lines']:,} lines at once: {many['lines_per_second']:,} a second, each "
        f"{each:.0f} us of CPU time, all cores and Python's start included",
        f"memory after a tenth of them {memory[0] * 1.024e-3:.1f} MB, after nine tenths "
        f"{memory[-1] * 1.024e-3:.1f} MB",
        f"one at a time: median {single['median_us']:.0f} us, "
        f"99 of 100 within {single['99th_percentile_us']:.0f} us",
    ]


def main() -> None:
    """Measure, print, and last one line of JSON."""
    parser = command_line(__doc__, results_of("streaming"))
    parser.add_argument("--export", type=Path, default=EXPORT)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--single", type=int, default=5000, help="lines sent one at a time")
    options = parser.parse_args()

    model = load_or_export(options.export) / "model.twin"
    device = load(model)
    edges = [(one["min"], one["max"]) for one in device.info["features"]]
    x = np.random.default_rng(0).uniform(*np.transpose(edges), (options.lines, len(edges)))
    x = x.round(4).clip(*np.transpose(edges))
    lines = [",".join(map(repr, row)).encode() + b"\n" for row in x.tolist()]

    load_at_start = os.getloadavg()[0]
    many, found = flood(model, lines)
    if found != answers(device, x):
        raise SystemExit("the answers are not those of one call")
    single = one_by_one(model, lines[: options.single])
    print(*words(many, single), sep="\n")
    publish(
        options.results,
        ("numpy",),
        backend=device.info["backend"],
        kernel=device.info.get("kernel"),
        load_at_start=load_at_start,
        flood=many,
        one_by_one=single,
    )


if __name__ == "__main__":
    main()
