"""Work spread over processes, each with one thread: estimators train on one core by default."""

import json
import multiprocessing
import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

from twinedge.progress import Lines

# What libraries count cores by; the last is joblib's, and TensorFlow gets a thread for each.
_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
ONE_CORE = dict.fromkeys(_COUNTS, "1")


def write_cells(
    options: Namespace, compute: Callable[[Any], dict[str, Any]], jobs: list[Any]
) -> str:
    """Compute cells in ``options.jobs`` processes; returns the name of their file.

    It is a new one in the folder ``options.cells``, and has a line for each cell, written as soon
    as that is finished: a run can be stopped at any time.
    """
    options.cells.mkdir(parents=True, exist_ok=True)
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    progress = Lines()
    with (options.cells / name).open("a") as file:
        for done, cell in enumerate(spread(compute, jobs, options.jobs), 1):
            line = json.dumps(cell)
            print(line, file=file, flush=True)
            progress.at(line, done, len(jobs))
    return name


def spread(work: Callable[[Any], Any], jobs: list[Any], workers: int) -> Iterator[Any]:
    """Yield the results of the jobs as they finish."""
    os.environ.update(ONE_CORE)
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
