"""Computing cells that are missing, on the cores of this machine or on a cluster.

Whoever computes, this process alone writes: a cell is kept as soon as it comes back. A worker that
dies takes the cell it was at with it, which is then computed by another.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from twinedge.errors import Parameter, ParameterError
from twinedge.progress import Lines, Progress, progress_bar, watched
from twinedge.reproduce.cells import METHODS, Cell, CellStore, Results, compute, machine


class CellProgress:
    """Counts cells and estimates the time left.

    Parameters
    ----------
    workers : int
        Cells computed at a time.
    shown : Progress
        Shows it.
    """

    def __init__(self, workers: int, shown: Progress) -> None:
        self._workers, self._shown = workers, shown
        self._waiting: Counter[str] = Counter()
        self._seconds: dict[str, list[float]] = {}
        self.total = self.done = 0

    def start(self, cells: list[Cell], kept: int) -> None:
        """Begin with these to compute, so many being there already."""
        self._waiting = Counter(cell.method for cell in cells)
        self.total, self.done = len(cells), 0
        self._show(f"{len(cells)} cells to compute, {kept} kept from before")

    def finished(self, cell: Cell, seconds: float) -> None:
        """Count one that took so many seconds."""
        self._waiting[cell.method] -= 1
        self._seconds.setdefault(cell.method, []).append(seconds)
        self.done += 1
        left = f", about {in_words(self.left())} left" if self.done < self.total else ""
        self._show(f"{cell}: {seconds:.1f} s{left}")

    def left(self) -> float:
        """Seconds until all are done, if cells of a method take alike."""
        known = {method: sum(took) / len(took) for method, took in self._seconds.items()}
        usual = sum(known.values()) / len(known) if known else 0.0
        work = sum(count * known.get(method, usual) for method, count in self._waiting.items())
        return work / max(1, min(self._workers, self.total - self.done))

    def _show(self, line: str) -> None:
        self._shown.at(line, self.done, self.total)


@contextmanager
def progress_of(workers: int, *, quiet: bool) -> Iterator[CellProgress]:
    """Give what suits standard error."""
    if quiet or watched():
        with progress_bar(not quiet, clock=False) as shown:
            yield CellProgress(workers, shown)
    else:
        yield CellProgress(workers, Lines())


def in_words(seconds: float) -> str:
    """Time as one would say it: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


Finished = tuple[Cell, dict[str, Any], float]
Pool = Callable[[list[Cell]], Iterator[Finished]]


def run(cells: Iterable[Cell], store: CellStore, pool: Pool, progress: CellProgress) -> Results:
    """Return what all of these cells come to; only those not in the store are computed.

    Parameters
    ----------
    cells : iterable of Cell
        In the order in which to compute them.
    store : CellStore
        Where finished cells are, and go.
    pool : function
        Computes cells in any order: ``local(jobs)`` or ``on_cluster(address)``.
    progress : CellProgress
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
                    raise ParameterError(
                        "the worker processes die: memory for fewer of them? Try a smaller ",
                        Parameter("jobs"),
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
        raise ParameterError(
            Parameter("cluster"),
            " needs dask.distributed, which is not installed: pip install 'twinedge[cluster]'",
        ) from error
    try:
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=_PATIENCE, set_as_default=False
        )
    except (OSError, ValueError, TypeError) as error:
        raise ParameterError(
            Parameter("cluster", address),
            ": no scheduler of a Dask cluster answers there; expected an address like "
            "tcp://10.0.0.5:8786",
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
