"""How far long work has come, on standard error: the one place that shows it.

Work reports to a ``Progress`` and does not know what becomes of it: a bar where somebody watches, a
line for each part where nobody does, or nothing.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich import progress as rich

_CLEARED = "\r\x1b[K"  # the line of a terminal


def watched(*, quiet: bool = False) -> bool:
    """Whether somebody watches standard error, and did not ask for quiet."""
    return sys.stderr.isatty() and not quiet


class Progress:
    """Takes what work reports, from one thread at a time, and shows nothing of it."""

    def stage(self, title: str, steps: int | None = None) -> None:
        """Begin a stage that takes ``steps`` network steps, or nobody knows how long."""

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Report steps done, the mean loss of the latest and the best validation score so far."""

    def at(self, title: str, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` parts are done, and which this is."""


class Lines(Progress):
    """A line for each part."""

    def at(self, title: str, done: int, total: int) -> None:
        """Print it; what comes before the first part has no number."""
        print(f"{done}/{total} {title}" if done else title, file=sys.stderr, flush=True)


class _Bar(Progress):
    """A bar with a title and how things stand."""

    def __init__(self, bar: "rich.Progress") -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, state="")

    def stage(self, title: str, steps: int | None = None) -> None:
        self._bar.reset(self._task, total=steps, description=title, state="")

    def advance(self, steps: int, loss: float, score: float) -> None:
        state = f"loss {loss:.2g}  val {score:.4g}"
        self._bar.update(self._task, advance=steps, state=state)

    def at(self, title: str, done: int, total: int) -> None:
        state = f"{done}/{total}"
        self._bar.update(self._task, description=title, completed=done, total=total, state=state)


@contextmanager
def progress_bar(shown: bool, *, clock: bool = True) -> Iterator[Progress]:
    """Give a bar that goes away again, or silence; the clock tells the time left."""
    if not shown:
        yield Progress()
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[state]}"),
        *([rich.TimeRemainingColumn()] if clock else []),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar)


@contextmanager
def saying(what: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is being done, on a line that goes away again; yields what changes it."""
    if not watched(quiet=quiet):
        yield lambda message: None
        return
    _show(what)
    try:
        yield _show
    finally:
        print(_CLEARED, end="", file=sys.stderr, flush=True)


def _show(what: str) -> None:
    """Put a line in place of the one before; one that would wrap could not be cleared."""
    room = shutil.get_terminal_size().columns - 4
    print(f"{_CLEARED}{what[:room]} ...", end="", file=sys.stderr, flush=True)
