"""Compute missing cells, on the cores of this machine or on a cluster.

Only this process writes, whoever computes: a cell is kept as soon as it comes back. If a worker
dies, its cell is computed by another.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from benchmarks.reproduction.cells import METHODS, Cell, CellStore, Results, compute, machine
from twinedge.cluster import computed, connect
from twinedge.errors import Parameter, ParameterError
from twinedge.progress import Lines, Progress, on_terminal, progress_bar
from twinedge.wording import format_duration

# What libraries count cores by; the last is joblib's, and TensorFlow gets a thread for each.
_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
ONE_CORE = dict.fromkeys(_COUNTS, "1")


class CellProgress:
    """Counts cells and estimates the time left.

    Parameters
    ----------
    workers : int
        Number of cells computed at a time.
    shown : Progress
        Shows it.
    """

    def __init__(self, workers: int, shown: Progress) -> None:
        self._workers, self._shown = workers, shown
        self._waiting: Counter[str] = Counter()
        self._seconds: dict[str, list[float]] = {}
        self.total = self.done = 0

    def start(self, cells: list[Cell], kept: int) -> None:
        """Start with these cells to compute, and ``kept`` cells already there."""
        self._waiting = Counter(cell.method for cell in cells)
        self.total, self.done = len(cells), 0
        self._show(f"{len(cells)} cells to compute, {kept} kept from before")

    def finished(self, cell: Cell, seconds: float) -> None:
        """Count a finished cell."""
        self._waiting[cell.method] -= 1
        self._seconds.setdefault(cell.method, []).append(seconds)
        self.done += 1
        left = f", about {format_duration(self.left())} left" if self.done < self.total else ""
        self._show(f"{cell}: {seconds:.1f} s{left}")

    def left(self) -> float:
        """Seconds until all are done, if cells of one method take equally long."""
        known = {method: sum(took) / len(took) for method, took in self._seconds.items()}
        usual = sum(known.values()) / len(known) if known else 0.0
        work = sum(count * known.get(method, usual) for method, count in self._waiting.items())
        return work / max(1, min(self._workers, self.total - self.done))

    def _show(self, line: str) -> None:
        self._shown.at(line, self.done, self.total)


@contextmanager
def progress_of(workers: int, *, quiet: bool) -> Iterator[CellProgress]:
    """Yield the kind of progress that suits standard error."""
    if quiet or on_terminal():
        with progress_bar(not quiet, clock=False) as shown:
            yield CellProgress(workers, shown)
    else:
        yield CellProgress(workers, Lines())


Finished = tuple[Cell, dict[str, Any], float]
Pool = Callable[[list[Cell]], Iterator[Finished]]


def run(cells: Iterable[Cell], store: CellStore, pool: Pool, progress: CellProgress) -> Results:
    """Return the results of all these cells; only those not in the store are computed.

    Parameters
    ----------
    cells : iterable of Cell
        In the order to compute them.
    store : CellStore
        Holds finished cells.
    pool : function
        Computes cells in any order: ``local(jobs)`` or ``on_cluster(address)``.
    progress : CellProgress
        Counts each finished cell.
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
    """Compute on ``jobs`` cores of this machine, each in its own process.

    Timed cells come last, one at a time, on one core.
    """

    def compute_all(cells: list[Cell]) -> Iterator[Finished]:
        alone = [cell for cell in cells if METHODS[cell.method].alone]
        others = [cell for cell in cells if not METHODS[cell.method].alone]
        yield from _until_done(lambda left: _side_by_side(left, jobs), others)
        yield from _until_done(_one_by_one, alone)

    return compute_all


def _until_done(pool: Pool, cells: list[Cell]) -> Iterator[Finished]:
    """Compute cells; if a worker dies, go on with those that are left."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = dict.fromkeys(cells)
    while waiting:
        before = len(waiting)
        try:
            for done in pool(list(waiting)):
                del waiting[done[0]]
                yield done
        except TerminatedWorkerError as error:
            if len(waiting) == before:
                raise ParameterError(
                    "the worker processes die, perhaps for lack of memory: try a smaller ",
                    Parameter("jobs"),
                ) from error


def _side_by_side(cells: list[Cell], jobs: int) -> Iterator[Finished]:
    from joblib import Parallel, delayed

    # One cell at a time: cells handed out together come back together.
    pool = Parallel(jobs, backend="loky", return_as="generator_unordered", batch_size=1)
    yield from pool(delayed(_in_worker)(cell, os.getpid()) for cell in cells)


def _one_by_one(cells: list[Cell]) -> Iterator[Finished]:
    """Compute cells in a process that knows of one core only."""
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(1, env=ONE_CORE) as pool:
        for cell in cells:
            yield pool.submit(_in_worker, cell, os.getpid()).result()


def on_cluster(address: str) -> Pool:
    """Compute on the workers of a Dask cluster.

    Parameters
    ----------
    address : str
        Address of its scheduler, as in ``tcp://10.0.0.5:8786``.
    """
    client = connect(address)
    return lambda cells: computed(client, timed, cells)


_LOOK_EVERY = 0.5  # seconds


def _in_worker(cell: Cell, owner: int) -> Finished:
    """Compute a cell for another process, without outliving it."""
    if os.getppid() == owner:
        _leave_with(owner)
    return timed(cell)


@cache
def _leave_with(owner: int) -> None:
    """End this process soon after its parent, which cannot stop its workers if it is killed."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def timed(cell: Cell) -> Finished:
    """Compute a cell; returns the cell, its result with the machine's name, and the seconds."""
    start = time.perf_counter()
    result = {**compute(cell), "machine": machine()}
    return cell, result, time.perf_counter() - start
