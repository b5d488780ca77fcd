"""A run that is killed again and again ends with the table of one that is not."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest


def cells_in(folder):
    return len(list((folder / "cells").glob("*.json")))


@pytest.mark.slow
@pytest.mark.parametrize("times", [3, 10])
def test_kills_at_random_moments_change_nothing(tmp_path, tiny_command, same_answer, times):
    rng = random.Random(0)
    kills, progress = 0, []
    while kills < times:
        run = subprocess.Popen(
            [*tiny_command, str(tmp_path), "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # From its first moments to well into the cells: some kills hit while it is loading, and
        # the later ones whenever a few more cells are done.
        goal = cells_in(tmp_path) + rng.randrange(0, 7)
        deadline = time.monotonic() + (rng.uniform(0, 1.5) if kills % 3 == 0 else 60)
        while time.monotonic() < deadline and run.poll() is None and cells_in(tmp_path) < goal + 1:
            time.sleep(rng.uniform(0, 0.02))
        assert run.poll() is None, "it ended before it could be killed"
        run.send_signal(signal.SIGKILL)
        run.wait()
        kills += 1
        progress.append(cells_in(tmp_path))
    assert progress == sorted(progress), "cells got lost"
    assert 0 < progress[-1] < 60, progress
    last = subprocess.run(
        [*tiny_command, str(tmp_path), "2"], capture_output=True, text=True, check=True
    )
    assert f"{60 - progress[-1]} cells to compute, {progress[-1]} kept from before" in last.stderr
    same_answer(tmp_path)


def test_a_second_run_computes_nothing(undisturbed, tiny_command):
    again = subprocess.run(
        [*tiny_command, str(undisturbed), "1"], capture_output=True, text=True, check=True
    )
    assert again.stderr == "0 cells to compute, 60 kept from before\n"


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_cell_alone(tmp_path, tiny_command, same_answer):
    run = subprocess.Popen(
        [*tiny_command, str(tmp_path), "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    killed = False
    while not killed:
        assert run.poll() is None, "it ended before a worker could be killed"
        workers = workers_of(run.pid)
        if workers and cells_in(tmp_path) >= 3:
            subprocess.run(["kill", "-KILL", str(workers[0])], check=True)
            killed = True
        time.sleep(0.01)
    _, err = run.communicate()
    assert run.returncode == 0, err
    same_answer(tmp_path)


def test_workers_do_not_outlive_a_run_that_is_killed(tmp_path, tiny_command):
    run = subprocess.Popen(
        [*tiny_command, str(tmp_path), "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
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
    found = []
    for child in children:
        command = Path(f"/proc/{child}/cmdline").read_bytes()
        if b"loky" in command and b"resource_tracker" not in command:
            found.append(int(child))
    return found
