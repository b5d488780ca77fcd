"""What does a fuzzer find in the C runtime in ten million executions?

Packs are mutated by a fuzzer that knows their format, so that about half of them are valid
(firmware_ref/test/fuzz_mutate.h). Each is opened in one go and in steps; valid ones are evaluated
by every kernel of this processor, and all must compute the same bits, within exactly as much memory
as they ask for (fuzz_open.c), under AddressSanitizer and UndefinedBehaviorSanitizer. A finding is a
process that failed; its input is in firmware_ref/build/fuzz.

With ``--stores``, the bytes of a device's two blocks are mutated instead, and opened as a store on
storage that may also fail or read differently each time (fuzz_store.c): predictions, learning and
forgetting stay within their memory, and what was confirmed is there when it is opened again.

Uses clang's libFuzzer, or fuzz_alone.c and gcc. Results of several machines are kept side by side
in one file. Coverage is that of another 100,000 executions, without libFuzzer, from the packs that
were found: lines and branches of firmware_ref/src that this machine compiles; those of stores are
counted apart.

    python benchmarks/fuzz.py --jobs 2
    python benchmarks/fuzz.py --alone --jobs 16
    python benchmarks/fuzz.py --stores --jobs 2
    python benchmarks/fuzz.py --executions 20000    # a quick try
"""

import argparse
import json
import re
import runpy
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from machine import describe
from record import publish

FIRMWARE = Path(__file__).parents[1] / "firmware_ref"
RESULTS = Path(__file__).parent / "results" / "fuzz.json"
FOLDER = FIRMWARE / "build" / "fuzz"
CORPUS = FOLDER / "corpus"
COVERED = 100_000  # executions
STORE = ("twin_journal", "twin_store")  # files that only stores need


def build(name: str, compiler: str) -> Path:
    """Build one of the fuzzers by the Makefile."""
    program = FOLDER / name
    variables = (f"BUILD={FOLDER}", f"CC={compiler}")
    subprocess.run(
        ["make", "-C", FIRMWARE, *variables, program], check=True, stdout=subprocess.DEVNULL
    )
    return program


def commands(options: argparse.Namespace) -> list[list[Any]]:
    """Return the command of each job; together they execute as often as requested, or more."""
    share = -(-options.executions // options.jobs)
    if options.alone:
        program, files = build(f"{options.fuzzer}_alone", "gcc"), sorted(CORPUS.iterdir())
        # Adjacent seeds share inputs.
        return [[program, options.seed + share * job, share, *files] for job in range(options.jobs)]
    limits = (f"-runs={share}", "-max_len=8192", "-timeout=10", "-reload=1")
    return [
        [
            *(build(options.fuzzer, "clang"), f"-seed={options.seed + job}", *limits),
            *(f"-artifact_prefix={FOLDER}/finding-", CORPUS),
        ]
        for job in range(options.jobs)
    ]


def run(jobs: list[list[Any]]) -> tuple[list[int], float]:
    """Run the jobs in parallel; return their exit codes and the seconds they took.

    Each writes to its own files, ``seen-0`` and ``log-0`` for the first.
    """
    start = last = time.monotonic()
    processes = []
    for number, command in enumerate(jobs):
        seen, log = (FOLDER / f"{name}-{number}" for name in ("seen", "log"))
        words = [str(word) for word in command]
        with seen.open("w") as out, log.open("w") as errors:
            processes.append(subprocess.Popen(words, stdout=out, stderr=errors))
    while any(process.poll() is None for process in processes):
        time.sleep(0.2)
        if time.monotonic() - last > 60:
            last = time.monotonic()
            running = sum(process.poll() is None for process in processes)
            print(f"{last - start:.0f} s, {running} running {progress()}", file=sys.stderr)
    return [process.returncode for process in processes], time.monotonic() - start


def progress() -> str:
    """Progress in libFuzzer's own words."""
    tails = (path.read_text(errors="replace")[-2000:] for path in sorted(FOLDER.glob("log-*")))
    found = (re.findall(r"^#\d+", tail, re.MULTILINE) for tail in tails)
    return " ".join(numbers[-1] for numbers in found if numbers)


def add_up(count: int) -> dict[str, Any]:
    """Return the sum of what the jobs saw; a failed job adds nothing."""
    texts = ((FOLDER / f"seen-{number}").read_text() for number in range(count))
    seen = [json.loads(text) for text in texts if text]
    header = (FIRMWARE / "include" / "twin.h").read_text()
    names = {int(n): name.lower() for name, n in re.findall(r"TWIN_ERROR_(\w+) = -(\d+)", header)}
    sums: dict[str, Counter[str]] = {"verdicts": Counter(), "kernels": Counter(), "rest": Counter()}
    for one in seen:
        verdicts = {names.get(n, "ok"): times for n, times in enumerate(one.pop("verdicts"))}
        sums["verdicts"].update(verdicts)
        sums["kernels"].update(one.pop("kernels", {}))
        sums["rest"].update(one)
    rest = dict(sums["rest"])
    found = {
        "executions": rest.pop("inputs", 0),
        "sound": sums["verdicts"].pop("ok", 0),
        "refused": {name: times for name, times in sums["verdicts"].items() if times},
    }
    if "mended" in rest:
        found["sound_once_values_were_put_right"] = rest.pop("mended")
        found["packs_evaluated_by_kernel"] = dict(sums["kernels"])
    return found | rest


def coverage(fuzzer: str, seed: int) -> dict[str, float]:
    """Lines and branches that the fuzzer reaches of what it is for, in per cent."""
    read = runpy.run_path(str(FIRMWARE / "test" / "coverage.py"))
    drivers = (FIRMWARE / "test" / f"{name}.c" for name in (fuzzer, "fuzz_alone"))
    sources = [*sorted((FIRMWARE / "src").rglob("*.c")), *drivers]
    options = ("-std=c99", "-O0", "--coverage", "-DTWIN_COUNTED", f"-I{FIRMWARE / 'include'}")
    counters = FOLDER / "counters"
    counters.mkdir()
    program = FOLDER / "fuzz_counted"
    compiling = [
        "gcc",
        *options,
        "-dumpdir",
        f"{counters}/",
        *map(str, sources),
        "-o",
        str(program),
    ]
    subprocess.run(compiling, check=True)
    command = [program, str(seed), str(COVERED), *sorted(CORPUS.iterdir())]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    counts = read["read_counters"](counters)
    reached = [
        one
        for name, one in counts.items()
        if (Path(name).stem in STORE) == (fuzzer == "fuzz_store")
    ]
    totals = [sum(column) for column in zip(*reached, strict=True)]
    shares = {"lines": totals[:2], "branches": totals[2:]}
    return {name: round(read["percent"](*pair), 1) for name, pair in shares.items()}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fuzz, and return the record of this machine."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    kept = "corpus_store" if options.stores else "corpus"
    shutil.copytree(FIRMWARE / "test" / kept, CORPUS)
    jobs = commands(options)
    codes, seconds = run(jobs)
    seen = add_up(len(jobs))
    compiler = "gcc" if options.alone else "clang"
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
    return {
        "machine": describe(),
        "fuzzer": "fuzz_alone.c" if options.alone else "libFuzzer",
        "compiler": version.stdout.splitlines()[0],
        "sanitizers": "address, undefined",
        "jobs": options.jobs,
        "seconds": round(seconds),
        "executions_per_second": round(seen["executions"] / seconds),
        **seen,
        "corpus": len(list(CORPUS.iterdir())),
        "coverage_per_cent": coverage(options.fuzzer, options.seed) if not any(codes) else None,
        "findings": sum(code != 0 for code in codes),
    }


def main() -> int:
    """Read the options, fuzz, publish; 1 if something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--executions", type=int, default=10_000_000, help="default 10,000,000")
    parser.add_argument("--jobs", type=int, default=1, help="processes in parallel (default 1)")
    parser.add_argument("--stores", action="store_true", help="fuzz stores instead of packs")
    parser.add_argument("--alone", action="store_true", help="gcc, without libFuzzer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.fuzzer = "fuzz_store" if options.stores else "fuzz_open"

    found = measure(options)
    for name in ("executions", "seconds", "sound", "refused", "findings"):
        print(f"{name:28}{found[name]}")
    old = json.loads(options.results.read_text()) if options.results.exists() else {}
    runs = {name: old.get(name, {}) for name in ("runs", "stores")}
    runs["stores" if options.stores else "runs"][found["machine"]["processor"]] = found
    publish(options.results, (), **runs)
    return 1 if found["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
