"""Work spread over processes, each on a core of its own: estimators train on one by default."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def spread(work: Callable[[Any], Any], jobs: list[Any], workers: int) -> Iterator[Any]:
    """Yield the results of the jobs as they finish."""
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    context = multiprocessing.get_context("spawn")
    todo, done = context.Queue(), context.Queue()
    for job in jobs:
        todo.put(job)
    count = min(workers, len(jobs))
    for _ in range(count):
        todo.put(None)
    processes = []
    cores = sorted(os.sched_getaffinity(0))
    for number in range(count):
        core = cores[number % len(cores)]
        process = context.Process(target=_serve, args=(work, todo, done, core), daemon=True)
        process.start()
        processes.append(process)
    for _ in jobs:
        found = done.get()
        if isinstance(found, Exception):
            for process in processes:
                process.terminate()
            raise found
        yield found
    for process in processes:
        process.join()


def _serve(work: Callable[[Any], Any], todo: Any, done: Any, core: int) -> None:
    os.sched_setaffinity(0, {core})  # before TensorFlow starts a thread for every core it sees
    try:
        while (job := todo.get()) is not None:
            done.put(work(job))
    except Exception as error:  # raised again by the reader
        done.put(error)
