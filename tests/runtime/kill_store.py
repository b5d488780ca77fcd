"""Repeatedly kill programs that learn and forget, and check what their store holds.

    python kill_store.py FOLDER PACK KILLS SEED

Children are forked, so that each starts at once. A child reports each call that has returned, and
its seed determines what the next one does: so it is known what the store has to hold. It is killed
at a random moment of the next call. Data given to the kernel survives the kill of a program, so
nothing has to reach the disk, which saves time.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from twinedge.pack import read_pack
from twinedge.runtime.adapting import Points
from twinedge.runtime.store import Store

MOST = 30
os.fsync = lambda file: None


def calls(seed):
    """Endless calls of a child: learn some points, or forget some numbers."""
    rng = random.Random(str(seed))
    while True:
        if rng.random() < 0.8:
            yield "add", [rng.randrange(2**29) for _ in range(rng.choice([1, 1, 1, 1, 2, 5]))]
        else:
            yield "forget", sorted(rng.randrange(2 * MOST) for _ in range(2))


def after(held, call):
    """A list of (number, target) after a call."""
    name, numbers = call
    if name == "forget":
        return [one for one in held if not numbers[0] <= one[0] <= numbers[1]]
    if len(held) > MOST:
        return []
    first = held[-1][0] + 1 if held else 0
    return held + [(first + k, target) for k, target in enumerate(numbers)]


def points_of(targets):
    count = len(targets)
    return Points(
        np.zeros(count, np.uint32),
        np.full((count, 3), 7, np.int16),
        np.array(targets, np.int32),
        np.zeros(count, np.int16),
        np.zeros(count, np.uint16),
    )


def held_by(store):
    return list(zip(store.points.numbers.tolist(), store.points.targets.tolist(), strict=True))


def child(path, pack, data, seed, told):
    store = Store(path, pack, data)
    for name, numbers in calls(seed):
        if name == "forget":
            store.forget(*numbers)
        elif len(store) > MOST:
            store.forget(0, 2**32 - 1)
        else:
            store.add(points_of(numbers))
        os.write(told, b".")


def main(folder, pack_path, kills, seed):
    data = Path(pack_path).read_bytes()
    pack, rng = read_pack(data), random.Random(str(seed))
    confirmed = under_way = torn = 0
    held, usual = [], 0.001  # seconds of a call
    path = folder / "site.store"
    for number in range(kills):
        if number % 25 == 0:
            path.unlink(missing_ok=True)
            held = []
        listen, tell = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                child(path, pack, data, [seed, number], tell)
            finally:
                os._exit(1)
        os.close(tell)
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
        while told := os.read(listen, 1 << 16):
            done += len(told)
        os.close(listen)
        todo = calls([seed, number])
        for _ in range(done):
            held = after(held, next(todo))
        more = after(held, next(todo))
        store = Store(path, pack, data)
        found = held_by(store)
        assert found in (held, more), (number, done, found, held, more)
        confirmed += done
        under_way += found != held
        torn += store.lost
        held = found
    print(confirmed, under_way, torn)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
