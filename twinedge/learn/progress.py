"""How a long training tells how far it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich import progress as rich
from rich.console import Console


class Progress(Protocol):
    """Receives what a training reports; called from one thread at a time."""

    def stage(self, title: str, steps: int | None = None) -> None:
        """Begin a stage that takes ``steps`` network steps, or nobody knows how long."""

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Report steps done, the mean loss of the latest and the best validation score so far."""


class Silent:
    """Says nothing."""

    def stage(self, title: str, steps: int | None = None) -> None:
        """Do nothing."""

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Do nothing."""


class Bar:
    """A bar on standard error with loss, validation score and time left."""

    def __init__(self, bar: rich.Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, state="")

    def stage(self, title: str, steps: int | None = None) -> None:
        """Start the bar again under a new title."""
        self._bar.reset(self._task, total=steps, description=title, state="")

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Move the bar."""
        state = f"loss {loss:.2g}  val {score:.4g}"
        self._bar.update(self._task, advance=steps, state=state)


@contextmanager
def progress_bar(shown: bool) -> Iterator[Progress]:
    """Give a bar on standard error, or silence."""
    if not shown:
        yield Silent()
        return
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[state]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar)
