"""Benchmarks made of cells: independent pieces of work, such as one split of one table.

Every finished cell is a line in a file of the folder ``--cells``, so that a run can be stopped and
resumed at any time, and lines of other machines can be added. A line names the version of the
training that it is of; those of other versions do not count. The file of results has one version:
while cells of the next are missing, it keeps the old summary with the old cells, and those that are
finished beside them as ``unfinished``.
"""

import argparse
import json
import os
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any, Protocol

from benchmarks.harness.machine import processor
from benchmarks.harness.pages import Tables, write_tables, write_versions
from benchmarks.harness.record import (
    Cells,
    Record,
    command_line,
    lines_of,
    print_record,
    read_record,
    results_of,
    write_record,
)
from benchmarks.harness.workers import spread
from twinedge.errors import InputError
from twinedge.progress import Lines
from twinedge.training import VERSION

PACKAGES = ("tensorflow", "scikit-learn", "numpy")


class Job(Protocol):
    """One cell to compute; it can be pickled."""

    @property
    def key(self) -> str:
        """Name of the cell: everything that decides it, but for the version of the training."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark made of cells.

    Parameters
    ----------
    name : str
        That of its module, of its file of results, and of its folder of cells in ``runs``.
    page : str or None
        What ``--help`` shows.
    jobs : function
        From options to all the cells that they ask for; the default options ask for everything.
    compute : function
        From a job to the content of its cell. It runs on one core.
    summarise : function
        From all cells of today's training to what else the file of results holds.
    show : function
        Prints the record as a table.
    packages : tuple of str
        Packages whose versions are recorded.
    add_options : function, optional
        Adds the script's own options to the command line.
    needs : tuple of str
        Benchmarks whose published cells are summarised, too: they come first.
    given : function, optional
        Cells that those benchmarks have computed already, by their names here.
    trained : function, optional
        Whether the cell of this key depends on the training; all of them by default.
    valid : function, optional
        From key, content and options to whether a cell still counts, version aside.
    pages : function, optional
        From the record to the tables that pages show of it.
    cost : float
        About how many seconds of one core a cell takes, where none is stored to tell.
    alone : bool
        Whether cells are timed, so that they run one after the other, on this machine.
    """

    name: str
    page: str | None
    jobs: Callable[[Namespace], Sequence[Job]]
    compute: Callable[[Any], dict[str, Any]]
    summarise: Callable[[Cells], dict[str, Any]]
    show: Callable[[Record], None]
    packages: tuple[str, ...] = PACKAGES
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    needs: tuple[str, ...] = ()
    given: Callable[[], Cells] = dict
    trained: Callable[[str], bool] = lambda key: True
    valid: Callable[[str, dict[str, Any], Namespace], bool] = lambda key, cell, options: True
    pages: Callable[[Record], Tables] = lambda record: {}
    cost: float = 60.0
    alone: bool = False

    def parser(self) -> argparse.ArgumentParser:
        """Return the command line: the options of all such benchmarks, and its own."""
        parser = command_line(self.page, results_of(self.name))
        parser.prog = f"python -m benchmarks.{self.name}"
        if not self.alone:
            parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
            parser.add_argument("--cluster", metavar="ADDRESS", help="scheduler of a Dask cluster")
        folder = Path("runs") / self.name
        parser.add_argument("--cells", type=Path, default=folder, help="folder of lines of cells")
        parser.add_argument("--no-compute", action="store_true", help="use existing cells only")
        parser.add_argument(
            "--partial", action="store_true", help="publish this version though cells are missing"
        )
        self.add_options(parser)
        return parser

    def known(self, options: Namespace) -> Cells:
        """Return the cells of today's training, by key: of the results, of all lines, and given."""
        record = read_record(options.results)
        stored = (
            (part["training"], key, cell)
            for part in (record, record.get("unfinished", {}))
            for key, cell in part.get("cells", {}).items()
        )
        lines = ((cell.pop("training", None), key, cell) for key, cell in lines_of(options.cells))
        found = {
            key: cell
            for version, key, cell in chain(stored, lines)
            if version == VERSION or not self.trained(key)
        }
        found = {key: one for key, one in found.items() if self.valid(key, one, options)}
        return dict(sorted((found | self.given()).items()))

    def missing(self, options: Namespace) -> list[Job]:
        """List the cells that the options ask for and that are not known, in their order."""
        known = self.known(options)
        return [job for job in self.jobs(options) if job.key not in known]

    def expected(self, options: Namespace, jobs: Sequence[Job]) -> float:
        """Return about how many seconds of one core these cells will take.

        A cell takes as long as it did before, or as those of its kind did: the first part of a key.
        """
        taken: dict[str, list[float]] = {}
        for key, cell in read_record(options.results).get("cells", {}).items():
            if "seconds" in cell:
                for name in (key, key.split("/")[0]):
                    taken.setdefault(name, []).append(cell["seconds"])
        known = (taken.get(job.key) or taken.get(job.key.split("/")[0]) for job in jobs)
        return sum(mean(one) if one else self.cost for one in known)

    def is_complete(self, cells: Cells) -> bool:
        """Whether all cells are there, and those of other benchmarks that they are compared with.

        The default options ask for all.
        """
        current = (read_record(results_of(one)).get("training") == VERSION for one in self.needs)
        everything = self.jobs(self.parser().parse_args([]))
        return all(job.key in cells for job in everything) and all(current)

    def write_cells(self, options: Namespace, jobs: Sequence[Job]) -> Path:
        """Compute cells, and write each as soon as it is finished, to a new file of the folder."""
        options.cells.mkdir(parents=True, exist_ok=True)
        path = Path(options.cells / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl")
        work, progress = partial(timed, self.compute), Lines()
        finished = (
            map(work, jobs)
            if self.alone
            else spread(work, list(jobs), options.jobs, options.cluster)
        )
        with path.open("a") as file:
            for done, cell in enumerate(finished, 1):
                line = json.dumps(cell)
                print(line, file=file, flush=True)
                progress.at(line, done, len(jobs))
        return path

    def record(self, options: Namespace, cells: Cells) -> Record:
        """Write the file of results, and return what is in it.

        The results of another version stay until all cells are there, unless ``--partial`` says
        that they shall not.
        """
        old = read_record(options.results)
        replaces = bool(old) and old["training"] != VERSION
        if replaces and not options.partial and not self.is_complete(cells):
            mine = {key: cell for key, cell in cells.items() if self.trained(key)}
            content = {key: one for key, one in old.items() if key not in ("machine", "unfinished")}
            if mine:
                content["unfinished"] = {"training": VERSION, "cells": mine}
            return write_record(options.results, self.packages, **content)
        if not cells:
            raise InputError("there is no cell yet: run it without --no-compute")
        content = {"training": VERSION, **self.summarise(cells), "cells": cells}
        return write_record(options.results, self.packages, **content)

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Fill in the missing cells, print the table, and last one line of JSON."""
        parser = self.parser()
        options = parser.parse_args(arguments)
        try:
            missing = self.missing(options)
            if missing and not options.no_compute:
                self.write_cells(options, missing)
            record = self.record(options, self.known(options))
        except InputError as error:
            parser.exit(2, f"{parser.prog}: error: {error}\n")
        if options.results == results_of(self.name):
            write_tables(self.pages(record))
            write_versions()
        self.show(record)
        unfinished = record.pop("unfinished", None)
        if unfinished is not None:
            count, version = len(unfinished["cells"]), record["training"]
            record["unfinished"] = {"training": unfinished["training"], "cells": count}
            print(f"Above is version {version} of the training: cells of {VERSION} are missing.")
        print_record(record)

    def main(self) -> None:
        """Run as a script: by its importable name, under which workers find its functions."""
        import_module(f"benchmarks.{self.name}").BENCHMARK.run()


def timed(compute: Callable[[Any], dict[str, Any]], job: Job) -> dict[str, Any]:
    """Compute a cell: its name, version and content, how long it took and on which processor."""
    start = time.perf_counter()
    found = compute(job)
    seconds = round(time.perf_counter() - start, 1)
    about = {"seconds": seconds, "processor": processor()}
    return {"cell": job.key, "training": VERSION, **found, **about}
