"""What does a fuzzer find in the C runtime in a hundred million executions?

Packs of all versions, sections and shapes are made and mutated by a fuzzer that knows their format
(firmware_ref/test/fuzz_make.h, fuzz_mutate.h), so that more than half of them are sound. Each is
opened in one go and in steps. Sound ones predict with the kernels of this processor, as they are
and prepared, which must all compute the same bits, within exactly as much memory as they ask for;
they are watched, and learn (fuzz_open.c). With ``--fuzzed targets``, these are packs of several
targets, each of which must be predicted as by itself (fuzz_targets.c); with ``--fuzzed stores``,
the bytes of a device's two blocks are mutated instead, on storage that may also fail or read
differently each time (fuzz_store.c); with ``--fuzzed slots``, the journal of two banks, and
releases on their way into them (fuzz_slots.c). All of the runtime is compiled by gcc with
AddressSanitizer and UndefinedBehaviorSanitizer. A finding is a process that failed; its output is
in firmware_ref/build/fuzz.

With ``--coverage`` nothing is checked: lines and branches of firmware_ref/src that all fuzzers
reach are counted instead, in fewer executions.

Results of several machines are kept side by side in one file. Where a command may not take long,
fuzz in parts with different seeds, and add them up:

    python -m benchmarks.fuzz --processes 2
    python -m benchmarks.fuzz --processes 2 --fuzzed targets
    python -m benchmarks.fuzz --processes 2 --fuzzed stores
    python -m benchmarks.fuzz --processes 2 --fuzzed slots
    python -m benchmarks.fuzz --processes 2 --coverage
    python -m benchmarks.fuzz --processes 16 --seed 1 --seconds 480 --part parts/1.json
    python -m benchmarks.fuzz --processes 16 --seed 2 --seconds 480 --part parts/2.json
    python -m benchmarks.fuzz --merge parts/*.json
    python -m benchmarks.fuzz --executions 20000 --results try.json    # a quick try
"""

import argparse
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import describe
from benchmarks.harness.record import command_line, publish
from twinedge.errors import InputError

FIRMWARE = Path(__file__).parents[1] / "firmware_ref"
RESULTS = Path(__file__).parent / "results" / "fuzz.json"
PAGE = Path(__file__).parents[1] / "docs" / "security.md"
FOLDER = FIRMWARE / "build" / "fuzz"
CORPORA = {
    "fuzz_open": "corpus",
    "fuzz_targets": "corpus_targets",
    "fuzz_store": "corpus_store",
    "fuzz_slots": "corpus_slots",
}
FUZZERS = {
    "packs": "fuzz_open",
    "targets": "fuzz_targets",
    "stores": "fuzz_store",
    "slots": "fuzz_slots",
}
SUBJECTS = (*FUZZERS, "coverage")
COVERED = 100_000  # executions of each fuzzer
APART = 2**32  # inputs between the processes of a seed; adjacent seeds of fuzz_alone share inputs


def build(fuzzer: str, processes: int) -> Path:
    """Build a fuzzer without libFuzzer by the Makefile."""
    program = FOLDER / f"{fuzzer}_alone"
    words = ("make", f"-j{processes}", "-C", FIRMWARE, f"BUILD={FOLDER}", "CC=gcc", program)
    subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL)
    return program


def command(program: Path, fuzzer: str, seed: int, executions: int, seconds: int) -> list[str]:
    """Return the command that fuzzes from the kept corpus."""
    files = sorted((FIRMWARE / "test" / CORPORA[fuzzer]).iterdir())
    return [str(word) for word in (program, seed, executions, seconds, *files)]


def run(jobs: list[list[str]]) -> tuple[list[int], float]:
    """Run the jobs in parallel; return their exit codes and the seconds they took.

    Each writes to its own files, ``seen-0`` and ``log-0`` for the first.
    """
    start = last = time.monotonic()
    processes = []
    for number, words in enumerate(jobs):
        seen, log = (FOLDER / f"{name}-{number}" for name in ("seen", "log"))
        with seen.open("w") as out, log.open("w") as errors:
            processes.append(subprocess.Popen(words, stdout=out, stderr=errors))
    while any(process.poll() is None for process in processes):
        time.sleep(0.2)
        if time.monotonic() - last > 60:
            last = time.monotonic()
            running = sum(process.poll() is None for process in processes)
            print(f"{last - start:.0f} s, {running} running", file=sys.stderr)
    return [process.returncode for process in processes], time.monotonic() - start


def add_up(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of all numbers by name, whatever their depth; the largest of ``largest``."""
    total: dict[str, Any] = {}
    for record in records:
        for name, value in record.items():
            if name == "largest":
                old = total.get(name, {})
                total[name] = {key: max(n, old.get(key, 0)) for key, n in value.items()}
            elif isinstance(value, dict):
                total[name] = add_up([total.get(name, {}), value])
            elif isinstance(value, list):
                total[name] = total.get(name, []) + value
            elif isinstance(value, int | float):
                total[name] = total.get(name, 0) + value
            else:
                total[name] = value
    return total


def read_counts(number: int) -> dict[str, Any]:
    """Read what a job counted; nothing if it failed."""
    text = (FOLDER / f"seen-{number}").read_text()
    if not text:
        return {}
    found = json.loads(text)
    header = (FIRMWARE / "include" / "twin.h").read_text()
    names = {int(n): name.lower() for name, n in re.findall(r"TWIN_ERROR_(\w+) = -(\d+)", header)}
    statuses = Counter({names.get(n, "ok"): times for n, times in enumerate(found.pop("statuses"))})
    counts = found.pop("counts")
    refused = {name: times for name, times in statuses.items() if name != "ok" and times}
    return {"sound": statuses["ok"], **found, **counts, "refused": refused}


def sources() -> str:
    """Return the start of a checksum of the runtime: parts of two versions must not be mixed."""
    total = sha256()
    for path in sorted([*FIRMWARE.glob("include/*.h"), *FIRMWARE.glob("src/**/*.[ch]")]):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def compiler() -> str:
    """Name and version of gcc."""
    words = ["gcc", "--version"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[0]


def fuzz(options: argparse.Namespace) -> dict[str, Any]:
    """Fuzz, and return the record of this machine."""
    fuzzer = FUZZERS[options.fuzzed]
    program = build(fuzzer, options.processes)
    share = -(-options.executions // options.processes)
    first = options.seed * APART * 256
    jobs = [
        command(program, fuzzer, first + APART * job, share, options.seconds)
        for job in range(options.processes)
    ]
    codes, seconds = run(jobs)
    for number, code in enumerate(codes):
        if code:
            log = (FOLDER / f"log-{number}").read_text(errors="replace")
            print(f"seed {jobs[number][1]}:\n{log[-3000:]}", file=sys.stderr)
    return {
        "fuzzer": "fuzz_alone.c",
        "compiler": compiler(),
        "sanitizers": "address, undefined",
        "seeds": [options.seed],
        "seconds": round(seconds),
        **add_up(read_counts(number) for number in range(len(jobs))),
        "findings": sum(code != 0 for code in codes),
    }


def count_coverage(options: argparse.Namespace) -> dict[str, Any]:
    """Return lines and branches that all fuzzers reach, in per cent, of each file and of all.

    Kernels that this processor cannot run do not count.
    """
    counters = FOLDER / "counters"
    shutil.rmtree(counters, ignore_errors=True)
    counters.mkdir(parents=True)
    words = ["gcc", "-std=c99", "-O0", "--coverage", "-DTWIN_COUNTED", f"-I{FIRMWARE / 'include'}"]
    runtime = sorted((FIRMWARE / "src").rglob("*.c"))
    drivers = [FIRMWARE / "test" / f"{name}.c" for name in (*CORPORA, "fuzz_alone")]
    objects = {path: counters / f"{path.stem}.o" for path in (*runtime, *drivers)}

    def compile_one(path: Path) -> None:
        subprocess.run([*words, "-c", str(path), "-o", str(objects[path])], check=True)

    with ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(compile_one, objects))
    for fuzzer, driver in zip(CORPORA, drivers, strict=False):
        program = counters / fuzzer
        parts = [objects[path] for path in (*runtime, driver, drivers[-1])]
        subprocess.run([*words, *map(str, parts), "-o", str(program)], check=True)
        words_of_it = command(program, fuzzer, options.seed, COVERED, 0)
        subprocess.run(words_of_it, check=True, stdout=subprocess.DEVNULL)

    read = runpy.run_path(str(FIRMWARE / "test" / "coverage.py"))
    able = {"", *Path("/proc/cpuinfo").read_text().split()}
    counted = read["read_counters"](counters)
    files = {name: one for name, one in counted.items() if read["RARE"].get(name, "") in able}
    core = [counts for name, counts in files.items() if "/" not in name]

    def shares(counts: Iterable[list[int]]) -> dict[str, float]:
        totals = [sum(column) for column in zip(*counts, strict=True)]
        pairs = {"lines": totals[:2], "branches": totals[2:]}
        return {name: round(read["percent"](*pair), 1) for name, pair in pairs.items()}

    return {
        "compiler": compiler(),
        "executions": dict.fromkeys(CORPORA, COVERED),
        "core": shares(core),
        "all": shares(files.values()),
        "files": {name: shares([counts]) for name, counts in sorted(files.items())},
    }


def merge(parts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add up parts of the same subject and machine; return records by subject and processor."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for part in parts:
        groups.setdefault((part["subject"], part["machine"]["processor"]), []).append(part)
    merged: dict[str, dict[str, Any]] = {subject: {} for subject in SUBJECTS}
    for (subject, processor), group in groups.items():
        last = max(group, key=lambda part: part["machine"]["date"])
        if subject == "coverage":
            merged[subject][processor] = last["found"] | {"machine": last["machine"]}
            continue
        if len({part["sources"] for part in group}) > 1:
            raise InputError("these parts are of different versions of the runtime")
        total = add_up(part["found"] for part in group)
        if len(set(total["seeds"])) < len(total["seeds"]):
            raise InputError(f"a seed counts once, but these are {total['seeds']}")
        speed = round(total["executions"] / max(total["seconds"], 1))
        about = {"machine": last["machine"], "sources": last["sources"]}
        merged[subject][processor] = about | total | {"executions_per_second": speed}
    return merged


def tables(results: dict[str, Any]) -> str:
    """Return the tables of the page: executions, and the share of the runtime that they reach."""

    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.0f} %"

    lines = [
        "| fuzzed | on | executions | sound | of these scaled | kernels | findings |",
        "|---|---|---:|---:|---:|---|---:|",
    ]
    for subject in FUZZERS:
        for processor, one in results[subject].items():
            cells = (
                *(subject, processor, f"{one['executions']:,}"),
                share(one["sound"], one["executions"]) if subject != "slots" else "-",  # many each
                share(one["scaled"], one["sound"]) if "scaled" in one else "-",
                *(", ".join(one.get("kernels", ())) or "-", str(one["findings"])),
            )
            lines.append(f"| {' | '.join(cells)} |")
    covered = results["coverage"]
    if covered:
        heads = f"| reached: lines, branches | {' | '.join(covered)} |"
        lines += ["", heads, "|---|" + "---:|" * len(covered)]
    names = {name: None for one in covered.values() for name in one["files"] if "/" not in name}
    for title in (*names, "core", "all") if covered else ():
        found = (one["files"].get(title) or one.get(title) for one in covered.values())
        cells = [f"{one['lines']} %, {one['branches']} %" if one else "" for one in found]
        name = {"core": "these files", "all": "with kernels"}.get(title, f"`{title}`")
        lines.append(f"| {' | '.join((name, *cells))} |")
    return "\n".join(lines)


def store(parts: list[dict[str, Any]], results: Path) -> int:
    """Merge parts, and let them replace what the results have of these subjects and machines.

    The page has the same numbers, unless the results are written elsewhere.
    """
    old = json.loads(results.read_text()) if results.exists() else {}
    new = merge(parts)
    all_of_them = {name: old.get(name, {}) | new[name] for name in SUBJECTS}
    publish(results, (), **all_of_them)
    if results == RESULTS:
        before, start, rest = PAGE.read_text().partition("<!-- fuzzing -->\n")
        end = rest[rest.index("<!-- /fuzzing -->") :]
        PAGE.write_text(f"{before}{start}{tables(all_of_them)}\n{end}")
    return 1 if any(part["found"].get("findings") for part in parts) else 0


def main() -> int:
    """Read the options, fuzz, publish; 1 if something was found."""
    parser = command_line(__doc__, RESULTS)
    parser.add_argument("--executions", type=int, default=10_000_000, help="default 10,000,000")
    parser.add_argument("--seconds", type=int, default=0, help="end earlier, after so many")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="in parallel")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fuzzed", choices=FUZZERS, default="packs", help="default packs")
    parser.add_argument("--coverage", action="store_true", help="count what is reached instead")
    parser.add_argument("--part", type=Path, help="write a part to this file, to merge it later")
    parser.add_argument("--merge", type=Path, nargs="+", help="add up these parts")
    options = parser.parse_args()
    if options.merge:
        try:
            return store([json.loads(path.read_text()) for path in options.merge], options.results)
        except (InputError, OSError, ValueError) as error:
            parser.error(str(error))

    FOLDER.mkdir(parents=True, exist_ok=True)
    found = count_coverage(options) if options.coverage else fuzz(options)
    subject = "coverage" if options.coverage else options.fuzzed
    machine = describe() | {"processes": options.processes}
    part = {"subject": subject, "machine": machine, "sources": sources(), "found": found}
    if not options.part:
        return store([part], options.results)
    options.part.parent.mkdir(parents=True, exist_ok=True)
    options.part.write_text(json.dumps(part) + "\n")
    print(json.dumps(part))
    return 1 if found.get("findings") else 0


if __name__ == "__main__":
    sys.exit(main())
