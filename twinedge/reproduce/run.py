"""From the words of the command to answers and their files: cells computed, tables told.

Whoever computes, this process alone writes: a cell is kept as soon as it comes back. A worker that
dies takes the cell it was at with it, which is then computed by another.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from twinedge.errors import InputError
from twinedge.placing import place_file
from twinedge.reproduce.cells import METHODS, Cell, CellStore, Results, Setup, compute, machine
from twinedge.reproduce.experiments import experiment
from twinedge.reproduce.tables import (
    Question,
    Sheet,
    compare,
    curve,
    findings,
    mean_of,
    sentence,
    sheets,
)


class Progress:
    """Counts cells and estimates the time left; says nothing by itself.

    Parameters
    ----------
    workers : int
        Cells computed at a time.
    """

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self._waiting: Counter[str] = Counter()
        self._seconds: dict[str, list[float]] = {}
        self.total = self.done = 0

    def start(self, cells: list[Cell], kept: int) -> None:
        """Begin with these to compute, so many being there already."""
        self._waiting = Counter(cell.method for cell in cells)
        self.total, self.done = len(cells), 0
        self.show(f"{len(cells)} cells to compute, {kept} kept from before")

    def finished(self, cell: Cell, seconds: float) -> None:
        """Count one that took so many seconds."""
        self._waiting[cell.method] -= 1
        self._seconds.setdefault(cell.method, []).append(seconds)
        self.done += 1
        left = f", about {in_words(self.left())} left" if self.done < self.total else ""
        self.show(f"{self.done}/{self.total} {cell}: {seconds:.1f} s{left}")

    def left(self) -> float:
        """Seconds until all are done, if cells of a method take alike."""
        known = {method: sum(took) / len(took) for method, took in self._seconds.items()}
        usual = sum(known.values()) / len(known) if known else 0.0
        work = sum(count * known.get(method, usual) for method, count in self._waiting.items())
        return work / max(1, min(self._workers, self.total - self.done))

    def show(self, line: str) -> None:
        """Say it."""


class Lines(Progress):
    """A line on standard error for each cell."""

    def show(self, line: str) -> None:
        """Print it."""
        print(line, file=sys.stderr, flush=True)


class Bar(Progress):
    """A bar on standard error."""

    def __init__(self, workers: int, bar: Any) -> None:
        super().__init__(workers)
        self._bar = bar
        self._task = bar.add_task("", total=None)

    def show(self, line: str) -> None:
        """Move the bar."""
        self._bar.update(self._task, description=line, completed=self.done, total=self.total)


@contextmanager
def progress_of(workers: int, *, quiet: bool) -> Iterator[Progress]:
    """Give what suits standard error."""
    if quiet:
        yield Progress(workers)
    elif not sys.stderr.isatty():
        yield Lines(workers)
    else:
        from rich import progress as rich
        from rich.console import Console

        columns = (rich.BarColumn(), rich.TextColumn("{task.description}"))
        with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            yield Bar(workers, bar)


def in_words(seconds: float) -> str:
    """Time as one would say it: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


Finished = tuple[Cell, dict[str, Any], float]
Pool = Callable[[list[Cell]], Iterator[Finished]]


def run(cells: Iterable[Cell], store: CellStore, pool: Pool, progress: Progress) -> Results:
    """Return what all of these cells come to; only those not in the store are computed.

    Parameters
    ----------
    cells : iterable of Cell
        In the order in which to compute them.
    store : CellStore
        Where finished cells are, and go.
    pool : function
        Computes cells in any order: ``local(jobs)`` or ``on_cluster(address)``.
    progress : Progress
        Is told about each.
    """
    results: Results = {}
    missing = []
    for cell in dict.fromkeys(cells):
        found = store.load(cell)
        if found is None:
            missing.append(cell)
        else:
            results[cell] = found
    progress.start(missing, kept=len(results))
    for cell, result, seconds in pool(missing) if missing else ():
        results[cell] = store.save(cell, result)
        progress.finished(cell, seconds)
    return results


def local(jobs: int) -> Pool:
    """Compute on so many cores of this machine, each in a process of its own.

    Cells whose seconds count come last, one at a time.
    """

    def compute_all(cells: list[Cell]) -> Iterator[Finished]:
        alone = [cell for cell in cells if METHODS[cell.method].alone]
        yield from compute_some([cell for cell in cells if not METHODS[cell.method].alone], jobs)
        yield from compute_some(alone, 1)

    def compute_some(cells: list[Cell], jobs: int) -> Iterator[Finished]:
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        waiting = dict.fromkeys(cells)
        while waiting:
            before = len(waiting)
            # One cell at a time: what is handed out together comes back together.
            pool = Parallel(jobs, backend="loky", return_as="generator_unordered", batch_size=1)
            try:
                for done in pool(delayed(_in_worker)(cell, os.getpid()) for cell in list(waiting)):
                    del waiting[done[0]]
                    yield done
            except TerminatedWorkerError as error:
                if len(waiting) == before:
                    raise InputError(
                        "the worker processes die: memory for fewer of them? Try a smaller --jobs"
                    ) from error

    return compute_all


def on_cluster(address: str) -> Pool:
    """Compute on the workers of a Dask cluster.

    Parameters
    ----------
    address : str
        Of its scheduler, as in ``tcp://10.0.0.5:8786``.
    """
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError as error:
        raise InputError(
            "--cluster needs dask.distributed, which is not installed: "
            "pip install 'twinedge[cluster]'"
        ) from error
    try:
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=_PATIENCE, set_as_default=False
        )
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"--cluster {address}: no scheduler of a Dask cluster answers there; "
            "expected an address like tcp://10.0.0.5:8786"
        ) from error

    def compute_all(cells: list[Cell]) -> Iterator[Finished]:
        with client:
            futures = client.map(timed, cells, pure=False)
            for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
                yield future.result()
                future.release()

    return compute_all


_PATIENCE = "20s"
_LOOK_EVERY = 0.5  # seconds


def _in_worker(cell: Cell, owner: int) -> Finished:
    """Compute a cell for another process, and do not outlive it."""
    if os.getppid() == owner:
        _leave_with(owner)
    return timed(cell)


@cache
def _leave_with(owner: int) -> None:
    """End this process soon after its parent: killed, that cannot tell its workers to stop."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def timed(cell: Cell) -> Finished:
    """Compute a cell; what comes back says which it is, how many seconds it took, and where."""
    start = time.perf_counter()
    result = {**compute(cell), "machine": machine()}
    return cell, result, time.perf_counter() - start


@dataclass(frozen=True)
class Answer:
    """What came out.

    Parameters
    ----------
    asked : Question
        What was asked.
    results : Results
        Cells of it, and maybe others.
    """

    asked: Question
    results: Results

    @property
    def sheets(self) -> list[Sheet]:
        """Tables to show."""
        return sheets(self.asked, self.results)

    @property
    def findings(self) -> list[str]:
        """What the tables say, in sentences."""
        return findings(self.asked, self.results)

    def record(self) -> dict[str, Any]:
        """Everything as one JSON object, the cells included."""
        asked, experiment = self.asked, self.asked.experiment
        return {
            "experiment": experiment.name,
            "title": experiment.title,
            "datasets": asked.datasets,
            "splits": asked.splits,
            **asdict(asked.setup),
            "remarks": experiment.remarks,
            "findings": self.findings,
            "comparisons": [
                {
                    "base": pair.base.title,
                    "other": pair.other.title,
                    "rows": [_row(row) for row in compare(asked, pair, self.results)],
                }
                for pair in experiment.comparisons
            ],
            "means": {
                one.title: {
                    name: mean_of(asked.values(one, name, self.results))._asdict()
                    for name in asked.datasets
                }
                for one in experiment.columns
            },
            "sweeps": [
                {
                    "title": sweep.title,
                    "curves": {
                        name: {
                            label: {"x": xs, "y": self._points(measures, name)}
                            for label, (xs, measures) in sweep.curves.items()
                        }
                        for name in asked.datasets
                    },
                }
                for sweep in experiment.sweeps
            ],
            "counts": asdict(experiment.counts) if experiment.counts else None,
            "cells": [
                {**cell.key, "result": self.results[cell]} for cell in dict.fromkeys(asked.cells())
            ],
        }

    def markdown(self) -> str:
        """Tables, remarks and findings as text for a page."""
        parts = [sentence("; ".join(self.asked.experiment.remarks)) + "."]
        parts += [sheet.markdown() for sheet in self.sheets]
        if self.findings:
            parts.append("\n".join(f"- {sentence(one)}." for one in self.findings))
        return "\n\n".join(parts) + "\n"

    def write_figure(self, path: Path) -> bool:
        """Draw the figure, if there is one to draw."""
        from twinedge.reproduce.panels import figure

        drawn = figure(self.asked, self.results)
        if drawn is not None:
            place_file(path, drawn)
        return drawn is not None

    def _points(self, measures: Any, dataset: str) -> list[dict[str, Any]]:
        return [one._asdict() for one in curve(self.asked, measures, dataset, self.results)]


def _row(row: Any) -> dict[str, Any]:
    return {
        name: value._asdict() if hasattr(value, "_asdict") else value
        for name, value in row._asdict().items()
    }


def answer_all(
    names: Sequence[str],
    datasets: list[str],
    splits: int,
    setup: Setup,
    folder: Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    quiet: bool = True,
) -> tuple[dict[str, Answer], list[Path]]:
    """Answer experiments by computing what is not in a folder yet, and write the answers there.

    Parameters
    ----------
    names : sequence of str
        Experiments.
    datasets : list of str
        Keys of data sets.
    splits : int
        How many of the paper's splits, from the first.
    setup : Setup
        How.
    folder : path
        Where cells are kept, and tables and figures go.
    jobs : int, optional
        Cells at a time on this machine; as many as there are cores by default.
    cluster : str, optional
        Address of a Dask scheduler to compute on instead.
    quiet : bool
        Say nothing on standard error.

    Returns
    -------
    dict of str to Answer, list of path
        The answers; and files of cells that were damaged, and so computed again.
    """
    questions = {name: Question(experiment(name, setup), datasets, splits, setup) for name in names}
    _need_matplotlib()
    store = CellStore(folder)
    jobs = jobs or _cores()
    pool = local(jobs) if cluster is None else on_cluster(cluster)
    cells = [cell for asked in questions.values() for cell in asked.cells()]
    with progress_of(jobs, quiet=quiet) as progress:
        results = run(cells, store, pool, progress)
    answers = {name: Answer(asked, results) for name, asked in questions.items()}
    for name, answer in answers.items():
        place_file(folder / f"{name}.json", json.dumps(answer.record(), indent=1) + "\n")
        place_file(folder / f"{name}.md", answer.markdown())
        answer.write_figure(folder / f"{name}.svg")
    return answers, store.damaged


def _need_matplotlib() -> None:
    """Refuse before hours of work what would fail after them."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise InputError(
            "figures need matplotlib, which is not installed: pip install 'twinedge[report]'"
        ) from error


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
