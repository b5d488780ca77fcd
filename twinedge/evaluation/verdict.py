"""Which of several models is the best: one rule for ``check``, for a training and for a report.

The best of all is named, whatever else is better than the twin. A model that differs from it by
less than chance explains is as good, unless it may be much better: then more rows are needed, and
the sentence says how many. Needs only the standard library.
"""

from math import ceil, inf, log10
from typing import NamedTuple

from twinedge.wording import plural


class Rival(NamedTuple):
    """Another model on the same points; all in units of the target.

    Parameters
    ----------
    rmse : float
        Its error.
    behind : float
        How much larger that is than the error of the model it is compared with.
    error : float
        How far chance alone may move that difference; infinite for a single point.
    """

    rmse: float
    behind: float
    error: float

    @property
    def better(self) -> bool:
        """Whether it is better by more than the error of the comparison."""
        return self.behind < -self.error

    @property
    def worse(self) -> bool:
        """Whether it is worse by more than the error of the comparison."""
        return self.behind > self.error

    @property
    def than_the_twin(self) -> str:
        """How it compares: "better", "worse" or "as good"."""
        return "better" if self.better else "worse" if self.worse else "as good"


# What other models are called; the simplest first.
NAMES = {
    "mean": "the mean of the targets",
    "naive": "the last known value",
    "linear": "a linear model",
    "nearest": "nearest neighbors",
    "trees": "trees of a pack's size",
    "forest": "a forest of any size",
    "boosting": "boosted trees of any size",
}
LARGE = ("forest", "boosting")  # too large for a small device
_PLURAL = ("nearest", "trees", "boosting")
_INSTEAD = {
    "naive": "the target changes too slowly for these columns to say more",
    "linear": "it is smaller, and easier to explain",
    "nearest": "they need no training, but room for the rows",
    "trees": "emlearn runs such trees on a microcontroller, without intervals and without learning "
    "on the device",
    "forest": "use it where there is room for megabytes",
    "boosting": "use them where there is room for megabytes",
}
_EXACT = 0.01  # of the error of the mean: a linear model below this is suspicious
FEWEST = 13  # rows: the true RMSE may be 1.5 times the one on fewer (90 % interval)
# If another model may be better than the twin by more than this share of its error, the two cannot
# be called equally good; benchmarks/advice.py shows how often that happens, and how often rightly.
_MATTERS = 0.15


class Verdict(NamedTuple):
    """Which model is the best.

    Parameters
    ----------
    outcome : {"best", "as good", "behind", "undecided"}
        How the twin stands: clearly the best; as good as a simpler model, or better by so little
        that it may be chance; clearly behind another; or there are too few rows to tell.
    best : str or None
        The best model, "twin" or one of ``NAMES``; "twin" if another is only as good; None if
        undecided.
    rival : str
        The model that the twin is compared with in the sentence.
    sentence : str
        The same for the user, with what would decide if it is undecided.
    """

    outcome: str
    best: str | None
    rival: str
    sentence: str


def verdict(
    twin: float, rivals: dict[str, Rival], rows: int, room: int, kind: str = "row"
) -> Verdict:
    """Say which model is the best, of all that were compared.

    Parameters
    ----------
    twin : float
        Error of the twin, in units of the target.
    rivals : dict of str to Rival
        The others, by their names in ``NAMES``; at least "mean".
    rows : int
        How many points they were compared on.
    room : int
        Bytes of the pack.
    kind : str
        What these points are called.
    """
    best = min(rivals, key=lambda name: rivals[name].rmse)
    if any(one.better for one in rivals.values()):
        return Verdict("behind", best, best, _behind(twin, rivals, best, room))
    close = [name for name in NAMES if name in rivals and not rivals[name].worse]
    if not close:
        return Verdict("best", "twin", best, _ahead(twin, rivals, best, room))
    nearest = max(close, key=lambda name: rivals[name].error - rivals[name].behind)
    may_be_better = rivals[nearest].error - rivals[nearest].behind
    if rows < FEWEST or may_be_better > _MATTERS * twin:
        words = _undecided(twin, rivals[nearest], _called(nearest, room), plural(rows, kind), rows)
        return Verdict("undecided", None, nearest, words)
    simplest = close[0]
    best = "mean" if simplest == "mean" else "twin"
    return Verdict("as good", best, simplest, _as_good(twin, rivals[simplest], simplest, room))


def _as_good(twin: float, rival: Rival, name: str, room: int) -> str:
    against = f"(RMSE {rival.rmse:.4g} against {twin:.4g} of the twin)"
    if name == "mean":
        return (
            f"The twin is no better than predicting the mean of the training rows {against}: these "
            "columns seem to say nothing about the target."
        )
    words = f"{_capital(_called(name, room))} {_do(name)} as well {against}"
    words += ", within the error of the comparison"
    return words + ("." if name in LARGE else f": {_INSTEAD[name]}.")


def _behind(twin: float, rivals: dict[str, Rival], name: str, room: int) -> str:
    rmse = rivals[name].rmse
    if name == "mean":
        return (
            "The twin is worse than predicting the mean of the training rows (RMSE "
            f"{twin:.4g} against {rmse:.4g}): what it learnt does not carry over to new rows."
        )
    words = f"{_capital(_called(name, room))} {_do(name)} better (RMSE {rmse:.4g} against "
    words += f"{twin:.4g} of the twin)"
    if is_suspicious(name, rivals):
        return f"{words}, almost exactly: is one of the columns computed from the target?"
    return f"{words}: {_INSTEAD[name]}."


def is_suspicious(name: str, rivals: dict[str, Rival]) -> bool:
    """Whether a linear model is so good that a column may be computed from the target."""
    return name == "linear" and rivals[name].rmse < _EXACT * rivals["mean"].rmse


def _ahead(twin: float, rivals: dict[str, Rival], name: str, room: int) -> str:
    follow = "come" if name in _PLURAL else "comes"
    return (
        f"The twin is the best of these models (RMSE {twin:.4g}); next {follow} "
        f"{_called(name, room)} ({rivals[name].rmse:.4g})."
    )


def _undecided(twin: float, rival: Rival, name: str, counted: str, rows: int) -> str:
    words = f"Undecided: {counted} cannot tell the twin from {name} (RMSE {twin:.4g} and "
    words += f"{rival.rmse:.4g}, which may differ by {rival.error:.2g} by chance)"
    # As many as show that one of them is better, or that the other is not much better.
    enough = max(abs(rival.behind), _MATTERS * twin + rival.behind)
    if not enough or rival.error == inf:
        return f"{words}; more rows would decide."
    return f"{words}; about {_rounded(rows * (rival.error / enough) ** 2)} would decide."


def _rounded(number: float) -> str:
    """Return a number of rows with two digits."""
    size = 10 ** max(0, int(log10(max(number, 1))) - 1)
    return f"{ceil(number / size) * size:,}"


def _called(name: str, room: int) -> str:
    return f"trees in the same {room:,} bytes" if name == "trees" else NAMES[name]


def _do(name: str) -> str:
    return "do" if name in _PLURAL else "does"


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
