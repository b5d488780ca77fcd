"""Shows on standard error how far a command has come, and how much longer it will take.

Work is made of stages, and a stage may be made of stages itself: a report exports a model and
trains others. Each level plans its own stages and how long they may take, and nobody needs to know
more: what is shown is the share of the whole. On a terminal that is a bar, elsewhere a line now and
then.

Work reports to the ``Progress`` that it finds around it, and does not know how that is shown.
"""

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar

from twinedge.wording import format_duration

INTERVAL = 15.0  # seconds between two lines
_REFRESH = 0.1  # seconds between two pictures of a bar
_WIDTH = 30  # characters of a bar
_CLEARED = "\r\x1b[K"  # clears the line of a terminal
_EARLY = 0.005  # a smaller share says nothing about the time left


class Progress:
    """How far some work has come.

    Stages follow each other, unless they are begun with ``part``. A stage that was not planned has
    a title, but no share in the work.
    """

    def __init__(self) -> None:
        self._expected: dict[str, float] = {}  # seconds, by stage
        self._done: dict[str, float] = {}  # share, by stage that was begun
        self._parts: dict[str, Progress] = {}  # stages that report by themselves
        self._stage = self._title = self._state = self._fixed = ""
        self._steps, self._taken = 0, 0

    def plan(self, stages: Mapping[str, float]) -> None:
        """Plan the next stages, and how many seconds each may take.

        Only the ratios of these numbers matter. They replace what was expected, but for stages that
        have begun.
        """
        begun = {title: one for title, one in self._expected.items() if title in self._done}
        later = {title: one for title, one in stages.items() if title not in begun}
        self._expected = begun | later

    def stage(
        self,
        title: str,
        steps: int | None = None,
        *,
        of: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Begin a stage, and so end the one before.

        Parameters
        ----------
        title : str
            What is done. Stages planned before this one count as done.
        steps : int, optional
            How many steps it takes; None if that is unknown.
        of : int, optional
            How many it would take if none had been done earlier, as for what was expected.
        seconds : float, optional
            How long it may take, if it was not planned.
        """
        if self._stage != title:
            self._done[self._stage] = 1.0
        if seconds is not None and title not in self._expected:
            later = {one: self._expected[one] for one in self._expected if one not in self._done}
            self.plan({title: seconds, **later})
        if title in self._expected:
            for earlier in self._expected:
                if earlier == title:
                    break
                self._done[earlier] = 1.0
            if of:
                self._expected[title] *= (steps or 0) / of
        self._done.setdefault(title, 0.0)
        self._stage = self._title = title
        self._state, self._steps, self._taken = "", steps or 0, 0

    def advance(self, steps: int, loss: float, score: float) -> None:
        """Report steps done, the mean loss of the latest and the best validation score so far."""
        self._taken += steps
        if self._steps:
            self._done[self._stage] = min(1.0, self._taken / self._steps)
        self._state = f"loss {loss:.2g}  val {score:.4g}"

    def at(self, title: str, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` parts of the stage are done; the title names one."""
        self._done[self._stage] = done / total if total else 1.0
        self._title = f"{self._stage}, {title}" if self._stage else title
        self._state = f"{done}/{total}"

    @contextmanager
    def part(self, title: str, *, opaque: bool = False) -> Iterator["Progress"]:
        """Begin a stage that plans by itself; others may run beside it, in other threads.

        Work inside finds the progress that is yielded around it. Unless the stage was planned, it
        is expected to take as long as it plans. An ``opaque`` one is shown by its own title rather
        than by those of the stages in it.
        """
        inner = Progress()
        inner._fixed = title if opaque else ""
        self._parts[title], self._done[title], self._title = inner, 0.0, title
        before = _around.set(inner)
        try:
            yield inner
        finally:
            _around.reset(before)
            self._expected.setdefault(title, inner.expected)
            self._done[title] = 1.0
            del self._parts[title]

    @property
    def expected(self) -> float:
        """Seconds that all stages may take."""
        return sum(weight for weight, _ in self._weighed())

    @property
    def share(self) -> float:
        """Share of the work that is done, from 0 to 1."""
        weighed = self._weighed()
        total = sum(weight for weight, _ in weighed)
        if not total:  # nothing was planned: there is one stage
            return self._done.get(self._stage, 0.0)
        return sum(weight * share for weight, share in weighed) / total

    @property
    def title(self) -> str:
        """What is being done."""
        if self._fixed:
            return self._fixed
        inner = [part.title for part in list(self._parts.values())]
        return next((title for title in reversed(inner) if title), self._title)

    @property
    def state(self) -> str:
        """How that is going; may be empty."""
        inner = [part.state for part in list(self._parts.values())]
        return next((state for state in reversed(inner) if state), self._state)

    def _weighed(self) -> list[tuple[float, float]]:
        """Return expected seconds and share of each stage."""
        parts, done = dict(self._parts), dict(self._done)
        found = [
            (expected, parts[title].share if title in parts else done.get(title, 0.0))
            for title, expected in list(self._expected.items())
        ]
        more = [part for title, part in parts.items() if title not in self._expected]
        return [*found, *((part.expected, part.share) for part in more)]


class Lines(Progress):
    """A line for each part, at once."""

    def at(self, title: str, done: int, total: int) -> None:
        """Print a line; before the first part it has no number."""
        print(f"{done}/{total} {title}" if done else title, file=sys.stderr, flush=True)


_around: ContextVar[Progress | None] = ContextVar("progress", default=None)
_bars: list[Progress] = []  # on the terminal: one, or none


@contextmanager
def progress_bar(shown: bool) -> Iterator[Progress]:
    """Yield the progress of the work around this; otherwise one that is shown, or a silent one.

    Parameters
    ----------
    shown : bool
        Whether to show it, or to report it to the work around; what is silent stays so.
    """
    around = _around.get()
    if shown and around is not None:
        yield around
        return
    progress = Progress()
    before = _around.set(progress)
    try:
        with _shown(progress) if shown else nullcontext():
            yield progress
    finally:
        _around.reset(before)


@contextmanager
def _shown(progress: Progress) -> Iterator[None]:
    """Show progress from a thread of its own, so that work need not report to be seen."""
    terminal, start, stop = sys.stderr.isatty(), time.monotonic(), threading.Event()
    pause = _REFRESH if terminal else INTERVAL

    def show() -> None:
        while not stop.wait(pause):
            left = _left(progress.share, time.monotonic() - start)
            text = _bar(progress, left) if terminal else f"{_line(progress, left)}\n"
            with suppress(OSError, ValueError):  # standard error may be closed
                print(text, end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    if terminal:
        _bars.append(progress)
    try:
        yield
    finally:
        stop.set()
        thread.join()
        clear()
        if terminal:
            _bars.remove(progress)


def clear() -> None:
    """Clear the bar, if there is one, to print something else; it comes back by itself."""
    if _bars:
        with suppress(OSError, ValueError):
            print(_CLEARED, end="", file=sys.stderr, flush=True)


def _line(progress: Progress, left: str) -> str:
    words = f"{progress.title or 'working'}: {_percent(progress.share)} done"
    return f"{words}, {left}" if left else words


def _bar(progress: Progress, left: str) -> str:
    """Write a line over the last one; it is cut, since a wrapped line could not be cleared."""
    full = round(_WIDTH * progress.share)
    parts = [progress.title, f"[{'#' * full}{'.' * (_WIDTH - full)}]", _percent(progress.share)]
    text = "  ".join(filter(None, [*parts, left, progress.state]))
    return _CLEARED + text[: shutil.get_terminal_size().columns - 1]


def _percent(share: float) -> str:
    return f"{int(100 * share)} %"  # never 100 before the end


def _left(share: float, elapsed: float) -> str:
    """Estimate how long the rest will take; empty if it is too early."""
    return f"about {format_duration(elapsed / share - elapsed)} left" if share > _EARLY else ""
