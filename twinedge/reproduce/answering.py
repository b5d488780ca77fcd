"""From the words of the command to answers and their files."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from twinedge.errors import InputError
from twinedge.reproduce.answer import Answer
from twinedge.reproduce.cells import Setup
from twinedge.reproduce.experiments import experiment
from twinedge.reproduce.progress import progress_of
from twinedge.reproduce.run import cluster as cluster_pool
from twinedge.reproduce.run import local, run
from twinedge.reproduce.store import Store, write_whole
from twinedge.reproduce.tables import Question


def answer_all(
    names: Sequence[str],
    datasets: list[str],
    splits: int,
    setup: Setup,
    folder: Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    quiet: bool = True,
) -> tuple[dict[str, Answer], list[Path]]:
    """Answer experiments by computing what is not in a folder yet, and write the answers there.

    Parameters
    ----------
    names : sequence of str
        Experiments.
    datasets : list of str
        Keys of data sets.
    splits : int
        How many of the paper's splits, from the first.
    setup : Setup
        How.
    folder : path
        Where cells are kept, and tables and figures go.
    jobs : int, optional
        Cells at a time on this machine; as many as there are cores by default.
    cluster : str, optional
        Address of a Dask scheduler to compute on instead.
    quiet : bool
        Say nothing on standard error.

    Returns
    -------
    dict of str to Answer, list of path
        The answers; and files of cells that were damaged, and so computed again.
    """
    questions = {name: Question(experiment(name, setup), datasets, splits, setup) for name in names}
    _need_matplotlib()
    store = Store(folder)
    jobs = jobs or _cores()
    pool = local(jobs) if cluster is None else cluster_pool(cluster)
    cells = [cell for asked in questions.values() for cell in asked.cells()]
    with progress_of(jobs, quiet=quiet) as progress:
        results = run(cells, store, pool, progress)
    answers = {name: Answer(asked, results) for name, asked in questions.items()}
    for name, answer in answers.items():
        write_whole(folder / f"{name}.json", json.dumps(answer.record(), indent=1) + "\n")
        write_whole(folder / f"{name}.md", answer.markdown())
        answer.write_figure(folder / f"{name}.svg")
    return answers, store.damaged


def _need_matplotlib() -> None:
    """Refuse before hours of work what would fail after them."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise InputError(
            "figures need matplotlib, which is not installed: pip install 'twinedge[report]'"
        ) from error


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
