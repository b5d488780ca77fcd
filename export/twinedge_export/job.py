"""What is to be exported: a model, the anchors that travel with it, and how it will be judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from twinedge.errors import InputError
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge_export.judge import Judge, Predict, Score


class File(NamedTuple):
    """One file of an export, or the folder of the C project.

    ``kind`` is the key it has in ``--json``, ``made`` how its numbers are stored.
    """

    kind: str
    path: Path
    bytes: int
    made: str
    score: Score


class Level(NamedTuple):
    """One way to make a file; ``made`` says which in a few words."""

    made: str
    make: Callable[[], bytes]


@dataclass(frozen=True)
class Job:
    """An export on its way.

    Parameters
    ----------
    model : TwinRegressor
        Fitted; what is rounded.
    rows : tuple of array
        Training rows that are the anchors of each twin.
    neighbors : int
        How many nearest anchors of each twin predict, 0 for all.
    judge : Judge
        The float model as a yardstick.
    tolerance : float
        By which part rounding may raise the validation error.
    folder : path
        Where the files go.
    metadata : dict
        Names and scores that travel with the files.
    say : function
        Tells a person what is being done.
    fill_values : array of shape (f,), optional
        What stands for missing features.
    intervals : bool
        Whether files are to have intervals.
    pack : Pack, optional
        What the ``.twin`` file holds, once it is written.
    """

    model: TwinRegressor
    rows: tuple[Array, ...]
    neighbors: int
    judge: Judge
    tolerance: float
    folder: Path
    metadata: dict[str, Any]
    say: Callable[[str], None]
    fill_values: Array | None = None
    intervals: bool = True
    pack: Pack | None = None

    def climb(
        self, kind: str, name: str, levels: Sequence[Level], load: Callable[[Path], Predict]
    ) -> File:
        """Write the first level that costs no more than the tolerance, judged as it is loaded back.

        Parameters
        ----------
        kind, name : str
            Of the file.
        levels : sequence of Level
            From the smallest file to the most exact.
        load : function
            From a path to a function that predicts, by the runtime that will read the file.

        Raises
        ------
        InputError
            Where every level costs more; it names the file and what it cost.
        """
        path = self.folder / name
        costs = []
        for level in levels:
            self.say(f"{name}: {level.made}")
            path.write_bytes(level.make())
            score = self.judge.score(load(path))
            if score.cost <= self.tolerance:
                return File(kind, path, path.stat().st_size, level.made, score)
            costs.append(f"{100 * score.cost:.1f} % ({level.made})")
        path.unlink()
        raise InputError(
            f"{name}: rounding raises the validation error by {', '.join(costs)}, more than "
            f"--tolerance {self.tolerance:g} allows"
        )
