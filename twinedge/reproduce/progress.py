"""How far a table is: a bar for a person, a line per cell for a log, silence for a script."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twinedge.reproduce.cells import Cell


class Progress:
    """Counts cells and estimates the time left; says nothing by itself.

    Parameters
    ----------
    workers : int
        Cells computed at a time.
    """

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self._waiting: Counter[str] = Counter()
        self._seconds: dict[str, list[float]] = {}
        self.total = self.done = 0

    def start(self, cells: list[Cell], kept: int) -> None:
        """Begin with these to compute, so many being there already."""
        self._waiting = Counter(cell.method for cell in cells)
        self.total, self.done = len(cells), 0
        self.show(f"{len(cells)} cells to compute, {kept} kept from before")

    def finished(self, cell: Cell, seconds: float) -> None:
        """Count one that took so many seconds."""
        self._waiting[cell.method] -= 1
        self._seconds.setdefault(cell.method, []).append(seconds)
        self.done += 1
        left = f", about {in_words(self.left())} left" if self.done < self.total else ""
        self.show(f"{self.done}/{self.total} {cell}: {seconds:.1f} s{left}")

    def left(self) -> float:
        """Seconds until all are done, if cells of a method take alike."""
        known = {method: sum(took) / len(took) for method, took in self._seconds.items()}
        usual = sum(known.values()) / len(known) if known else 0.0
        work = sum(count * known.get(method, usual) for method, count in self._waiting.items())
        return work / max(1, min(self._workers, self.total - self.done))

    def show(self, line: str) -> None:
        """Say it."""


class Lines(Progress):
    """A line on standard error for each cell."""

    def show(self, line: str) -> None:
        """Print it."""
        print(line, file=sys.stderr, flush=True)


class Bar(Progress):
    """A bar on standard error."""

    def __init__(self, workers: int, bar: Any) -> None:
        super().__init__(workers)
        self._bar = bar
        self._task = bar.add_task("", total=None)

    def show(self, line: str) -> None:
        """Move the bar."""
        self._bar.update(self._task, description=line, completed=self.done, total=self.total)


@contextmanager
def progress_of(workers: int, *, quiet: bool) -> Iterator[Progress]:
    """Give what suits standard error."""
    if quiet:
        yield Progress(workers)
    elif not sys.stderr.isatty():
        yield Lines(workers)
    else:
        from rich import progress as rich
        from rich.console import Console

        columns = (rich.BarColumn(), rich.TextColumn("{task.description}"))
        with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            yield Bar(workers, bar)


def in_words(seconds: float) -> str:
    """Time as one would say it: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
