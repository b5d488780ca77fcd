"""Processes that benchmarks spread their cells over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.harness.workers import spread

PATIENCE = 30  # seconds
OWNER = (
    "import time; from benchmarks.harness.workers import spread\n"
    "list(spread(time.sleep, [600.0], 1))"
)


def test_results_come_as_they_are_finished():
    assert sorted(spread(abs, [-1, 2, -3], 2)) == [1, 2, 3]
    assert list(spread(abs, [], 2)) == []


def children(pid):
    """Processes that a process has started, and that are still there."""
    found = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]
    return [one for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def has_ended(pid):
    """Whether a process is gone, or a zombie that nobody has asked about."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM])
def test_workers_leave_with_the_process_that_started_them(stop):
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=Path(__file__).parents[2])
    try:
        (worker,) = wait_for(lambda: children(owner.pid))
        time.sleep(1)  # let it begin its job
        os.kill(owner.pid, stop)
    finally:
        owner.kill()
        owner.wait()
    wait_for(lambda: has_ended(worker))
