"""Compute again what a change of the training makes void, from short to long.

Each file of results that depends on the training names the version it is of: ``VERSION`` of
twinedge/training/__init__.py when it was measured. Those of another version are computed again,
cell by cell, and finished cells are kept: stop this at any time, and repeat it to go on. Results
that are timed run alone, on this machine.

    python -m benchmarks --list                      # what would run, and about how long
    python -m benchmarks --jobs 16
    python -m benchmarks accuracy intervals          # some of them, and what they need
    python -m benchmarks --cluster tcp://10.0.0.5:8786
    python -m benchmarks --pages                     # only write the results into the pages
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from benchmarks import newcomer
from benchmarks.harness.cells import Benchmark
from benchmarks.harness.machine import cores
from benchmarks.harness.pages import write_tables, write_versions
from benchmarks.harness.record import RESULTS, read_record, results_of
from twinedge.training import VERSION
from twinedge.wording import format_duration

TRAINED = (
    "accuracy",
    "adaptation",
    "advice",
    "anchors",
    "choices",
    "group_coverage",
    "intervals",
    "public",
    "quantisation",
    "rivals",
    "streams",
    "tables",
    "targets",
    "time_order",
    "train_speed",
)
# They measure code, and models of a given shape: what training makes of these does not matter.
OTHERS = (
    *("device", "fleet", "footprint", "fuzz", "host_latency", "newcomer", "serve", "streaming"),
)
REPRODUCTION = "reproduction"
OWN_COST = 40.0  # seconds of a cell of the reproduction that our own trainer computes


@dataclass(frozen=True)
class Plan:
    """What a benchmark has, and what it lacks.

    Parameters
    ----------
    name : str
        Of the benchmark.
    version : int or None
        Version of the training that its results are of; None if there are none.
    missing, cells : int
        Number of cells of today's training that are missing, and of all.
    seconds : float
        About how long the missing ones take on one core.
    needs : tuple of str
        Benchmarks that come first.
    alone : bool
        Whether its cells run one after the other.
    """

    name: str
    version: int | None
    missing: int
    cells: int
    seconds: float
    needs: tuple[str, ...] = ()
    alone: bool = False

    @property
    def is_due(self) -> bool:
        """Whether there is something to compute or to publish."""
        return self.missing > 0 or self.version != VERSION

    def wall(self, jobs: int) -> float:
        """About how long it takes with so many processes."""
        return self.seconds if self.alone else self.seconds / max(1, min(jobs, self.missing))


def benchmark(name: str) -> Benchmark:
    """Import a benchmark that is made of cells."""
    found: Benchmark = import_module(f"benchmarks.{name}").BENCHMARK
    return found


def plan(name: str) -> Plan:
    """Look at what a benchmark has."""
    if name == REPRODUCTION:
        from benchmarks.reproduction import page

        kept, ours = page.read_results(), [cell for cell in page.cells() if cell.is_ours]
        lacking = sum(page.identity(cell) not in kept for cell in ours)
        return Plan(name, page.version_of(kept), lacking, len(ours), lacking * OWN_COST)
    found = benchmark(name)
    options = found.parser().parse_args([])
    missing = found.missing(options)
    return Plan(
        name,
        read_record(options.results).get("training"),
        len(missing),
        len(found.jobs(options)),
        found.expected(options, missing),
        found.needs,
        found.alone,
    )


def ordered(plans: Iterable[Plan]) -> list[Plan]:
    """Sort by time, but what others need comes before them."""
    by_name = {one.name: one for one in plans}

    def rank(one: Plan) -> tuple[float, int]:
        """Return the time of the longest of it and what it needs, and how far it is from that."""
        before = [rank(by_name[name]) for name in one.needs if name in by_name]
        seconds, depth = max(before, default=(0.0, -1))
        return (one.seconds, 0) if one.seconds > seconds else (seconds, depth + 1)

    return sorted(by_name.values(), key=rank)


def with_needs(names: Iterable[str]) -> list[str]:
    """Add what benchmarks need."""
    found: dict[str, None] = {}
    for name in names:
        if name != REPRODUCTION:
            found |= dict.fromkeys(with_needs(benchmark(name).needs))
        found[name] = None
    return list(found)


def show(plans: list[Plan], jobs: int) -> None:
    """Print what would run, in this order, and what would not."""
    print(f"Training version {VERSION}, {jobs} at a time\n")
    print(f"{'result':16}{'version':>8}{'missing':>9}{'cells':>8}  about")
    for one in plans:
        about = format_duration(one.wall(jobs)) if one.missing else "-"
        word = about if one.is_due else "up to date"
        version = "-" if one.version is None else one.version
        print(f"{one.name:16}{version:>8}{one.missing:9d}{one.cells:8d}  {word}")
    total, core = sum(one.wall(jobs) for one in plans), sum(one.seconds for one in plans)
    print(f"\nIn all about {format_duration(total)}, {format_duration(core)} of one core")
    print(f"Not of the training, to run by hand: {', '.join(OTHERS)}")


def command(one: Plan, options: argparse.Namespace) -> list[str]:
    """Return the command that computes what a benchmark lacks."""
    words = [sys.executable, "-m", f"benchmarks.{one.name}"]
    if one.name == REPRODUCTION:
        words += ["page"]
    if one.name == "public":
        words += ["--data", str(options.data)]
    if one.alone:
        return words
    if options.cluster is not None and one.name != REPRODUCTION:
        return [*words, "--cluster", options.cluster]
    return [*words, "--jobs", str(options.jobs)]


def write_pages() -> None:
    """Write the tables and versions of all results into the pages."""
    for name in TRAINED:
        if record := read_record(results_of(name)):
            write_tables(benchmark(name).pages(record))
    if record := read_record(results_of("newcomer")):
        write_tables(newcomer.pages(record))
    for path in write_versions():
        print(f"{path.relative_to(RESULTS.parents[1])}: versions are up to date now")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = (*TRAINED, REPRODUCTION)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--list", action="store_true", help="show what would run, and how long")
    parser.add_argument("--pages", action="store_true", help="write results into pages, no more")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one a core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="scheduler of a Dask cluster")
    parser.add_argument("--data", type=Path, help="folder of the public splits; none: without them")
    options = parser.parse_args(arguments)
    strange = [name for name in options.names if name not in known]
    if strange:
        parser.error(f"no such benchmark: {', '.join(strange)}; there are {', '.join(known)}")
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs} is not a positive number")
    if options.pages:
        write_pages()
        return 0
    plans = ordered(map(plan, with_needs(options.names or known)))
    if options.list:
        show(plans, options.jobs)
        return 0
    failed = []
    for one in plans:
        if not one.is_due:
            continue
        if one.name == "public" and options.data is None:
            print("public is left out: it needs --data FOLDER", file=sys.stderr)
            continue
        print(f"\n== {one.name}, about {format_duration(one.wall(options.jobs))}", flush=True)
        if subprocess.run(command(one, options), check=False).returncode:
            failed.append(one.name)
    write_pages()
    if failed:
        print(f"failed: {', '.join(failed)}; what they finished is kept", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
