"""Work spread over processes, each with one thread, or over the workers of a Dask cluster."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from twinedge.dask_cluster import computed, connect

# What libraries count cores by; the last is joblib's, and TensorFlow gets a thread for each.
_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
ONE_CORE = dict.fromkeys(_COUNTS, "1")

_LOOK_EVERY = 0.5  # seconds


def leave_with(owner: int) -> None:
    """End this process soon after its parent, which cannot stop its workers if it is killed.

    Workers call it when they start.
    """

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def spread(
    work: Callable[[Any], Any], jobs: list[Any], workers: int, cluster: str | None = None
) -> Iterator[Any]:
    """Yield the results of the jobs as they finish; after an error, no other job starts.

    Parameters
    ----------
    work : function
        Of a module that workers can import.
    jobs : list
        What it takes, one after the other.
    workers : int
        Processes on this machine.
    cluster : str, optional
        Address of a Dask scheduler whose workers compute instead.
    """
    if not jobs:
        return
    if cluster is not None:
        yield from computed(connect(cluster), work, jobs)
        return
    os.environ.update(ONE_CORE)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, leave_with, (os.getpid(),)) as pool:
        try:
            for done in as_completed([pool.submit(work, job) for job in jobs]):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)
