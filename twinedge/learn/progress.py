"""How a long training tells how far it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Receives what a training reports; called from one thread at a time."""

    def stage(self, title: str, steps: int) -> None:
        """Begin a stage that takes ``steps`` network steps."""

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Report steps done, the mean loss of the latest and the best validation score so far."""


class Silent:
    """Says nothing."""

    def stage(self, title: str, steps: int) -> None:
        """Do nothing."""

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Do nothing."""


class Bar:
    """A bar on standard error with loss, validation score and time left."""

    def __init__(self, bar: "object") -> None:
        from rich.progress import Progress as RichProgress

        assert isinstance(bar, RichProgress)
        self._bar = bar
        self._task = bar.add_task("", total=None, state="")

    def stage(self, title: str, steps: int) -> None:
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
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar)
