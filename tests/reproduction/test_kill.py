"""A run that is killed again and again ends with the table of one that is not.

So does one on a Dask cluster, with a real scheduler and two workers, one of them killed.
"""

import os
import random
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def cells_in(folder):
    return len(list((folder / "cells").glob("*.json")))


def finish(run):
    _, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    return err


@pytest.mark.parametrize("times", [3, 10])
def test_kills_at_random_moments_change_nothing(tmp_path, tiny_table, same_table, times):
    rng = random.Random(0)
    progress = []
    for kills in range(times):
        run = tiny_table(tmp_path)
        # From its first moments to well into the cells: some kills hit while it is loading, and
        # the later ones whenever a few more cells are done.
        goal = cells_in(tmp_path) + rng.randrange(0, 7)
        deadline = time.monotonic() + (rng.uniform(0, 1.5) if kills % 3 == 0 else 60)
        while time.monotonic() < deadline and run.poll() is None and cells_in(tmp_path) < goal + 1:
            time.sleep(rng.uniform(0, 0.02))
        assert run.poll() is None, "it ended before it could be killed"
        run.kill()
        run.communicate()
        progress.append(cells_in(tmp_path))
    assert progress == sorted(progress), "cells got lost"
    assert 0 < progress[-1] < 60, progress
    counted = f"{60 - progress[-1]} cells to compute, {progress[-1]} kept from before"
    assert counted in finish(tiny_table(tmp_path))
    same_table(tmp_path)


def test_a_second_run_computes_nothing(undisturbed, tiny_table):
    assert finish(tiny_table(undisturbed, "1")) == "0 cells to compute, 60 kept from before\n"


def test_a_worker_that_is_killed_costs_its_cell_alone(tmp_path, tiny_table, same_table):
    run = tiny_table(tmp_path)
    killed = False
    while not killed:
        assert run.poll() is None, "it ended before a worker could be killed"
        workers = workers_of(run.pid)
        if workers and cells_in(tmp_path) >= 3:
            subprocess.run(["kill", "-KILL", str(workers[0])], check=True)
            killed = True
        time.sleep(0.01)
    finish(run)
    same_table(tmp_path)


def test_workers_do_not_outlive_a_run_that_is_killed(tmp_path, tiny_table):
    run = tiny_table(tmp_path)
    while cells_in(tmp_path) < 1:
        assert run.poll() is None
        time.sleep(0.01)
    workers = workers_of(run.pid)
    run.kill()
    run.wait()
    assert workers
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def workers_of(pid):
    """Processes that compute cells for this one."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return [
        child
        for child, command in commands.items()
        if b"loky" in command and b"resource_tracker" not in command
    ]


@contextmanager
def process(*command, **options):
    started = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        **options,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def scheduler():
    """Run a scheduler on a port of its choice; yield its address."""
    command = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")
    with process(*command, "--no-dashboard", stderr=subprocess.PIPE, text=True) as started:
        for line in started.stderr:
            found = re.search(r"tcp://127\.0\.0\.1:\d+", line)
            if found:
                yield found[0]
                return
        pytest.fail("no scheduler")


def worker(address, folder):
    command = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny")
    more = ("--no-dashboard", "--local-directory", str(folder))
    return process(*command, *more, stderr=subprocess.DEVNULL)


def test_a_killed_worker_costs_its_cell_and_nothing_else(tmp_path, tiny_table, same_table):
    table = tmp_path / "table"
    with (
        scheduler() as address,
        worker(address, tmp_path / "a") as first,
        worker(address, tmp_path / "b") as second,
    ):
        run = tiny_table(table, address)
        while cells_in(table) < 5:
            assert run.poll() is None, run.communicate()[1]
            time.sleep(0.005)
        first.kill()
        at_the_kill = cells_in(table)
        _, err = run.communicate(timeout=300)
        assert run.returncode == 0, err
        assert second.poll() is None
    assert at_the_kill < 60, "it was over before the worker could be killed"
    same_table(table)
