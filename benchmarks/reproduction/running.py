"""Compute missing cells, on the cores of this machine or on a cluster.

Only this process writes, whoever computes: a cell is kept as soon as it comes back. If a worker
dies, its cell is computed by another.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.harness.machine import machine
from benchmarks.harness.workers import ONE_CORE, leave_with
from benchmarks.reproduction.cells import METHODS, Cell, CellStore, Results, compute
from twinedge.dask_cluster import computed, connect
from twinedge.errors import Parameter, ParameterError
from twinedge.progress import Lines, Progress, progress_bar


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Progress]:
    """Yield the kind of progress that suits standard error: a bar, or a line for each cell."""
    if quiet or sys.stderr.isatty():
        with progress_bar(not quiet) as progress:
            yield progress
    else:
        yield Lines()


Finished = tuple[Cell, dict[str, Any], float]
Pool = Callable[[list[Cell]], Iterator[Finished]]


def run(cells: Iterable[Cell], store: CellStore, pool: Pool, progress: Progress) -> Results:
    """Return the results of all these cells; only those not in the store are computed.

    Parameters
    ----------
    cells : iterable of Cell
        In the order to compute them.
    store : CellStore
        Holds finished cells.
    pool : function
        Computes cells in any order: ``local(jobs)`` or ``on_cluster(address)``.
    progress : Progress
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
    progress.at(f"{len(missing)} cells to compute, {len(results)} kept from before", 0, 1)
    for done, (cell, result, seconds) in enumerate(pool(missing) if missing else (), 1):
        results[cell] = store.save(cell, result)
        progress.at(f"{cell}: {seconds:.1f} s", done, len(missing))
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
    pool = Parallel(
        jobs,
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,
        initializer=leave_with,
        initargs=(os.getpid(),),
    )
    yield from pool(delayed(timed)(cell) for cell in cells)


def _one_by_one(cells: list[Cell]) -> Iterator[Finished]:
    """Compute cells in a process that knows of one core only."""
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(
        1, initializer=leave_with, initargs=(os.getpid(),), env=ONE_CORE
    ) as pool:
        for cell in cells:
            yield pool.submit(timed, cell).result()


def on_cluster(address: str) -> Pool:
    """Compute on the workers of a Dask cluster.

    Parameters
    ----------
    address : str
        Address of its scheduler, as in ``tcp://10.0.0.5:8786``.
    """
    client = connect(address)
    return lambda cells: computed(client, timed, cells)


def timed(cell: Cell) -> Finished:
    """Compute a cell; returns the cell, its result with the machine's name, and the seconds."""
    start = time.perf_counter()
    result = {**compute(cell), "machine": machine()}
    return cell, result, time.perf_counter() - start
