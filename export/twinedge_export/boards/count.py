"""Counting instructions where the emulator can only write down what it does: in Linux programs.

It lists the instructions of each straight piece of code once, and its start whenever it is
executed. Two images differ by one query, and so do their counts.
"""

import os
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge_export.boards.build import Workshop
from twinedge_export.boards.link_map import runtime_ranges


def count_query(workshop: Workshop, content: bytes, query: Array, seconds: float) -> int:
    """Count the instructions of the runtime for one query ``(1, f)``.

    Raises
    ------
    InputError
        Where the emulator does not come to an end in so many seconds.
    """
    once, twice = (
        _executed(workshop, content, query.repeat(times, axis=0), seconds) for times in (1, 2)
    )
    return twice - once


def _executed(workshop: Workshop, content: bytes, queries: Array, seconds: float) -> int:
    board, image = workshop.board, workshop.image(content, queries)
    ranges = runtime_ranges(image.path.with_suffix(".map").read_text("utf-8", "replace"))
    emulator = board.command(board.run, image=image.path)
    pipe = workshop.folder / "executed"
    command = [
        *(emulator[0], "-d", "in_asm,exec,nochain", "-D", str(pipe)),
        *("-dfilter", ",".join(f"{start:#x}+{size:#x}" for start, size in ranges)),
        *emulator[1:],
    ]
    os.mkfifo(pipe)
    try:
        with ThreadPoolExecutor(1) as reader:
            count = reader.submit(_count, pipe)
            subprocess.run(command, check=True, capture_output=True, timeout=seconds)
            return count.result()
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{board.name}: the emulation did not end in {seconds:.0f} s") from error
    finally:
        pipe.unlink()


def _count(pipe: Path) -> int:
    """Add up the lengths of the pieces executed."""
    lengths: Counter[bytes] = Counter()
    executed: Counter[bytes] = Counter()
    start = b""
    with pipe.open("rb") as stream:
        for line in stream:
            if line.startswith(b"Trace"):
                executed[line.split(b"/", 2)[1].lstrip(b"0")] += 1
            elif line.startswith(b"IN:"):
                start = b""
            elif line.startswith(b"0x"):
                start = start or line.partition(b":")[0][2:].lstrip(b"0")
                lengths[start] += 1
    return sum(lengths[piece] * times for piece, times in executed.items())
