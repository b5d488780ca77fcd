"""Shows on standard error how far long work has come.

Work reports to a ``Progress`` and does not know how it is shown: as a bar on a terminal, as a line
for each part elsewhere, or not at all.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich import progress as rich

_CLEARED = "\r\x1b[K"  # clears the line of a terminal


def watched(*, quiet: bool = False) -> bool:
    """Whether standard error is a terminal, and quiet was not asked for."""
    return sys.stderr.isatty() and not quiet


class Progress:
    """Receives what work reports, from one thread at a time, and shows nothing."""

    def stage(self, title: str, steps: int | None = None) -> None:
        """Begin a stage that takes ``steps`` network steps; None if that is unknown."""

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Report steps done, the mean loss of the latest and the best validation score so far."""

    def at(self, title: str, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` parts are done; the title names the latest."""


class Lines(Progress):
    """A line for each part."""

    def at(self, title: str, done: int, total: int) -> None:
        """Print a line; before the first part it has no number."""
        print(f"{done}/{total} {title}" if done else title, file=sys.stderr, flush=True)


class _Bar(Progress):
    """A bar with a title and the current state."""

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
    """Yield a temporary bar, or a silent progress; ``clock`` adds the time left."""
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
    """Show what is being done on a temporary line; yields a function that changes it."""
    if not watched(quiet=quiet):
        yield lambda message: None
        return
    _show(what)
    try:
        yield _show
    finally:
        print(_CLEARED, end="", file=sys.stderr, flush=True)


def _show(what: str) -> None:
    """Replace the temporary line; it is cut, since a wrapped line could not be cleared."""
    room = shutil.get_terminal_size().columns - 4
    print(f"{_CLEARED}{what[:room]} ...", end="", file=sys.stderr, flush=True)
