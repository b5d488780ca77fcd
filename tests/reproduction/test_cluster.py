"""The same table on a Dask cluster: a real scheduler, two worker processes, one of them killed."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


def cells_in(folder):
    return len(list((folder / "cells").glob("*.json")))


@pytest.mark.slow
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


def test_no_scheduler_is_one_line(monkeypatch, complaint):
    from benchmarks.reproduction import running
    from twinedge import cluster

    monkeypatch.setattr(cluster, "_PATIENCE", "1s")
    message = complaint(running.on_cluster, "tcp://127.0.0.1:9")
    assert "cluster='tcp://127.0.0.1:9': no Dask scheduler" in message
    assert "nonsense" in complaint(running.on_cluster, "nonsense://nowhere")
