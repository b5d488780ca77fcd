"""Work spread over processes, each with one thread: estimators train on one core by default."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

# The last is what joblib counts cores by, and TensorFlow gets a thread for each that it counts.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


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
    for _ in range(count):
        process = context.Process(target=_serve, args=(work, todo, done), daemon=True)
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


def _serve(work: Callable[[Any], Any], todo: Any, done: Any) -> None:
    try:
        while (job := todo.get()) is not None:
            done.put(work(job))
    except Exception as error:  # raised again by the reader
        done.put(error)
