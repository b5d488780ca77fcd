"""Work spread over processes, each with one thread: estimators train on one core by default."""

import json
import multiprocessing
import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
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
    as that is finished: a run can be stopped at any time. With ``--no-compute`` it is empty.
    """
    jobs = [] if options.no_compute else jobs
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
    """Yield the results of the jobs as they finish; after an error, no other job starts."""
    os.environ.update(ONE_CORE)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            for done in as_completed([pool.submit(work, job) for job in jobs]):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)
