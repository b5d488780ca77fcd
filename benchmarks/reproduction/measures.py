"""What a table or figure of the paper is made of: measures, compared in pairs or swept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.reproduction.cells import Cell, Setup

NEIGHBORS = (1, 2, 4, 8, 16, 32, 64, 128)
ANCHORS = (1, 2, 4, 8, 16, 32, 64)
MULTIPLIERS = (1, 2, 4, 8, 16, 32)
# The paper's weights of loops. Its code also adds loops at a weight of 0, as labels that correct
# nothing; a LoopRegressor does not, so a tiny weight takes its place.
LOOP_WEIGHTS = (1e-12, 0.001, 0.01, 0.1, 1 / 3, 1.0, 10 / 3, 10.0, 100 / 3)


def sizes(members: int) -> tuple[int, ...]:
    """Powers of two below the number of members, and that number.

    Examples
    --------
    >>> sizes(6)
    (1, 2, 4, 6)
    """
    return (*(2**k for k in range(members.bit_length()) if 2**k < members), members)


Read = Callable[[dict[str, Any]], float]


class Measure(NamedTuple):
    """One number of a cell.

    ``read`` takes it from the result of a cell of ``method``; ``number`` is the number of neighbors
    or the multiplier of that cell; ``paper`` is the table and column of the paper that has it.
    """

    title: str
    method: str
    read: Read
    number: int | None = None
    paper: tuple[str, int] | None = None


class Comparison(NamedTuple):
    """Two measures side by side: does the second do better than the first?"""

    base: Measure
    other: Measure


# For each curve, the places of its points on the x axis, and their measures.
Curves = dict[str, tuple[Sequence[float], list[Measure]]]


class Sweep(NamedTuple):
    """Curves of measures against a number: the panels of a figure, one for each data set.

    A curve with a single point is drawn as a level. ``ceiling`` is the top of a panel, in multiples
    of the highest level: curves far above would flatten the rest.
    """

    title: str
    x_title: str
    curves: Curves
    y_title: str = "test RMSE"
    logarithmic: bool = False
    ceiling: float | None = None


class Counts(NamedTuple):
    """Curves that are counted, not measured: ``rows[label]`` has a number for each ``x``."""

    title: str
    x_title: str
    y_title: str
    x: list[int]
    rows: dict[str, list[int]]


@dataclass(frozen=True)
class Experiment:
    """A table, its figure, and the cells they need.

    Parameters
    ----------
    name : str
        Its name on the command line.
    title : str
        Heading.
    comparisons : list of Comparison
        Parts of the table.
    sweeps : list of Sweep
        Parts of the figure.
    columns : list of Measure
        Columns of a table of means.
    counts : Counts, optional
        Curves that need no cell.
    remarks : list of str
        How it was obtained, and what differs from the paper.
    """

    name: str
    title: str
    comparisons: list[Comparison] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    columns: list[Measure] = field(default_factory=list)
    counts: Counts | None = None
    remarks: list[str] = field(default_factory=list)

    def measures(self) -> Iterator[Measure]:
        """All measures it contains."""
        for comparison in self.comparisons:
            yield from comparison
        yield from self.columns
        for sweep in self.sweeps:
            for _, measures in sweep.curves.values():
                yield from measures

    def cells(self, datasets: list[str], splits: int, setup: Setup) -> list[Cell]:
        """Cells to compute, the first split of every set before the second."""
        kinds = dict.fromkeys((one.method, one.number) for one in self.measures())
        return [
            Cell(method, dataset, split, setup, number)
            for split in range(splits)
            for method, number in kinds
            for dataset in datasets
        ]


def item(*path: Any) -> Read:
    """Read a value from the result of a cell by its keys and positions; None is NaN."""

    def read(result: Any) -> float:
        for key in path:
            result = result[key]
        return float("nan") if result is None else float(result)

    return read


def at(name: str, positions: str, number: float) -> Read:
    """Read the value of a list at the position where another list has this number."""
    return lambda result: item(name, result[positions].index(number))(result)


def trainer_remark(setup: Setup) -> str:
    """Say how the networks were trained."""
    if setup.trainer == "published":
        return "trainer: as published (Adadelta)"
    length = "" if setup.steps == "auto" else f", {setup.steps:,} steps"
    return f"trainer: twinedge {setup.effort}{length}"
