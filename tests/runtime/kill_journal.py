"""Repeatedly kill programs that add and forget records, and check what their journal holds.

    python kill_journal.py FOLDER KILLS SEED

Children are forked, so that each starts at once. A child reports each call that has returned, and
its seed determines what the next one does: so it is known what the journal has to hold. It is
killed at a random moment of the next call. Data given to the kernel survives the kill of a program,
so nothing has to reach the disk, which saves time. Kills go on beyond KILLS, up to twenty times as
many, until one came after a change was written and before it was reported: how often that happens
depends on the machine.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from twinedge.runtime.journal_file import Journal

MOST, SIZE = 30, 24
os.fsync = lambda file: None


def calls(seed):
    """Endless calls of a child: add some records, or forget some numbers."""
    rng = random.Random(str(seed))
    while True:
        if rng.random() < 0.8:
            yield "add", [rng.randrange(2**29) for _ in range(rng.choice([1, 1, 1, 1, 2, 5]))]
        else:
            yield "forget", sorted(rng.randrange(2 * MOST) for _ in range(2))


def after(held, following, call):
    """A list of (number, value), and the next number, after a call."""
    name, values = call
    if name == "forget":
        return [one for one in held if not values[0] <= one[0] % (2 * MOST) <= values[1]], following
    if len(held) > MOST:
        return [], following
    return held + [(following + k, one) for k, one in enumerate(values)], following + len(values)


def records_of(values):
    records = np.full((len(values), SIZE), 7, np.uint8)
    records[:, :4] = np.array(values, "<u4")[:, None].view(np.uint8)
    return records


def held_by(journal):
    numbers, records = journal.content.numbers, journal.content.records
    values = np.ascontiguousarray(records[:, :4]).view("<u4").reshape(-1)
    return list(zip(numbers.tolist(), values.tolist(), strict=True)), journal.content.following


def opened(path):
    journal = Journal(path)
    if not journal.content.head.generation:
        journal.lay_out(99, SIZE, MOST + 40)
    return journal


def child(path, seed, report):
    journal = opened(path)
    for name, values in calls(seed):
        journal.lock()
        numbers = journal.content.numbers % (2 * MOST)
        if name == "forget":
            journal.keep((numbers < values[0]) | (numbers > values[1]))
        elif len(journal) > MOST:
            journal.keep(np.zeros(len(journal), bool))
        else:
            journal.add(records_of(values))
        os.write(report, b".")


def main(folder, kills, seed):
    rng = random.Random(str(seed))
    confirmed = under_way = 0
    state, usual = ([], 0), 0.001  # what it holds; seconds of a call
    path = folder / "site.store"
    for number in range(20 * kills):
        if number >= kills and under_way:
            break
        if number % 25 == 0:
            path.unlink(missing_ok=True)
            state = [], 0
        listen, report = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                child(path, [seed, number], report)
            finally:
                os._exit(1)
        os.close(report)
        done, wanted, start = 0, rng.choice([0, 1, 1, 2, 3, 5]), time.perf_counter()
        while done < wanted:
            assert os.read(listen, 1), "the child ended before"
            done += 1
            if done > 1:
                usual += 0.1 * (time.perf_counter() - start - usual)
            start = time.perf_counter()
        time.sleep(rng.random() * (usual if wanted else 0.01))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the child ended before"
        while dots := os.read(listen, 1 << 16):
            done += len(dots)
        os.close(listen)
        todo = calls([seed, number])
        for _ in range(done):
            state = after(*state, next(todo))
        more = after(*state, next(todo))
        found = held_by(opened(path))
        assert found in (state, more), (number, done, found, state, more)
        confirmed += done
        under_way += found != state
        state = found
    print(confirmed, under_way)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
