"""Recompute the paper's tables and figures, on this machine or on many.

Every finished cell (a method on a split of a set) is kept in the output folder, so a command may be
killed at any time and repeated: finished cells are not computed again. A table is printed beside
the paper's numbers and written as JSON and Markdown, its figure as SVG. Errors are in units of the
target, with their standard errors.

TABLE is a name, all of them, or page, which computes what docs/reproduction.md lacks and writes it
(some nine hours of one core in all). Cells of the page may be computed on several machines, as
tables with --trainer published (and tnnr_ensemble with --members 2), and copied into one folder.

Run it from the clone; workers of a Dask cluster need the clone on their PYTHONPATH.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.harness.machine import cores
from benchmarks.reproduction.cells import CellStore, Setup
from benchmarks.reproduction.experiments import EXPERIMENTS
from benchmarks.reproduction.measures import Experiment
from benchmarks.reproduction.results import Outcome
from benchmarks.reproduction.running import local, on_cluster, run, shown_progress
from twinedge import data
from twinedge.atomic_files import write_file
from twinedge.cli.output import print_table
from twinedge.cli.values import FOLDER, Several, Whole, WordOr
from twinedge.errors import InputError
from twinedge.extras import require


def reproduce(
    experiments: Sequence[Experiment],
    datasets: list[str],
    splits: int,
    setup: Setup,
    folder: Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    quiet: bool = True,
) -> tuple[list[Outcome], list[Path]]:
    """Compute what a folder lacks of some experiments, and write their tables there.

    Parameters
    ----------
    experiments : sequence of Experiment
        Tables and figures.
    datasets : list of str
        Keys of data sets.
    splits : int
        How many of the paper's splits, starting with the first.
    setup : Setup
        Settings of the experiments.
    folder : path
        Folder for cells, tables and figures.
    jobs : int, optional
        Cells computed at a time on this machine; by default one per core.
    cluster : str, optional
        Address of a Dask scheduler to compute on instead.
    quiet : bool
        Print nothing on standard error.

    Returns
    -------
    list of Outcome, list of path
        The outcomes; and files of damaged cells, which were computed again.
    """
    from benchmarks.reproduction.figures import figure
    from benchmarks.reproduction.sheets import markdown

    require("matplotlib")  # now, rather than fail after hours of work
    store = CellStore(folder)
    pool = local(jobs or cores()) if cluster is None else on_cluster(cluster)
    cells = [cell for one in experiments for cell in one.cells(datasets, splits, setup)]
    with shown_progress(quiet=quiet) as progress:
        results = run(cells, store, pool, progress)
    outcomes = [Outcome(one, datasets, splits, setup, results) for one in experiments]
    for outcome in outcomes:
        name = outcome.experiment.name
        write_file(folder / f"{name}.json", json.dumps(outcome.record(), indent=1) + "\n")
        write_file(folder / f"{name}.md", markdown(outcome))
        drawn = figure(outcome)
        if drawn is not None:
            write_file(folder / f"{name}.svg", drawn)
    return outcomes, store.damaged


def print_outcome(outcome: Outcome) -> None:
    """Print the tables of an experiment, and whether the paper's findings hold."""
    from benchmarks.reproduction.claims import verdicts
    from benchmarks.reproduction.sheets import findings, sheets

    print(f"{outcome.experiment.title} ({'; '.join(outcome.experiment.remarks)})\n")
    for sheet in sheets(outcome):
        print(f"{sheet.title}:")
        print_table(sheet.header, sheet.rows)
        print()
    print(*findings(outcome), sep="\n")
    for claim, verdict in verdicts(outcome):
        word = verdict.word.capitalize()
        print(f"{claim.part}: {claim.sentence} {word}: {verdict.observed}.")


def write_page(folder: Path, *, jobs: int | None, compute: bool, quiet: bool) -> None:
    """Compute what the page lacks, write it, and print the findings."""
    from benchmarks.reproduction import page

    store, kept = CellStore(folder), page.read_results()
    if compute:
        missing = [cell for cell in page.cells() if page.identity(cell) not in kept]
        with shown_progress(quiet=quiet) as progress:
            run(missing, store, local(jobs or cores()), progress)
    for one in page.write(page.merge(kept, store)):
        print(f"{one['part']}, {one['verdict']}: {one['finding']} Here: {one['seen']}.")


TABLES = (*EXPERIMENTS, "all", "page")
_EXAMPLES = """\b
Examples:
  python -m benchmarks.reproduction tnnr_ensemble --datasets tf,yh,wsb --splits 2 --members 2
  python -m benchmarks.reproduction twin_rf --effort normal --jobs 8
  python -m benchmarks.reproduction all --cluster tcp://10.0.0.5:8786 -o runs/paper
  python -m benchmarks.reproduction page --jobs 2
"""


@click.command(
    help=f"{__doc__}\nTables: {', '.join(TABLES)}.",
    epilog=_EXAMPLES,
    context_settings={"show_default": True},
)
@click.argument("table", metavar="TABLE", type=click.Choice(TABLES))
@click.option(
    "--datasets",
    type=Several(click.Choice(data.names()), "tf,yh"),
    default=",".join(data.names()),
    help="Some of the paper's sets.",
)
@click.option("--splits", type=click.IntRange(1, 25), default=5, help="How many of the 25 splits.")
@click.option(
    "--members", type=Whole(1), default=4, help="Networks in an ensemble; 32 in the paper."
)
@click.option(
    "--effort",
    type=click.Choice(("quick", "normal", "thorough")),
    default="quick",
    help="How long to search and train; forests search a small grid if quick.",
)
@click.option(
    "--steps",
    type=WordOr(Whole(1), "auto"),
    default="auto",
    help="Steps of each last training; auto goes by --effort.",
)
@click.option(
    "--trainer",
    type=click.Choice(("twinedge", "published")),
    default="twinedge",
    help="How networks are trained: by twinedge, or by the paper's recipe.",
)
@click.option(
    "--protocol",
    type=click.Choice(("published", "text")),
    default="published",
    help="Which to follow where the paper's code and text differ.",
)
@click.option("--jobs", type=Whole(1), help="Cells computed at a time; by default one per core.")
@click.option("--cluster", metavar="ADDRESS", help="Scheduler of a Dask cluster to compute on.")
@click.option(
    "--output", "-o", type=FOLDER, default=Path("runs/reproduction"), help="Folder of results."
)
@click.option("--no-compute", is_flag=True, help="Write the page from the cells that are there.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def main(
    table: str,
    datasets: tuple[str, ...],
    splits: int,
    jobs: int | None,
    cluster: str | None,
    output: Path,
    no_compute: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Run the command."""
    setup = Setup(**settings)
    if cluster is not None and jobs is not None:
        raise click.UsageError("--jobs is for this machine: a --cluster has its own workers")
    if setup.trainer == "published" and setup.steps != "auto":
        raise click.UsageError(
            "--steps is for our trainer: the published one stops by its own rule"
        )
    if table == "page" and setup != Setup():
        raise click.UsageError("the page has settings of its own")
    names = list(EXPERIMENTS) if table == "all" else [table]
    try:
        if table == "page":
            write_page(output, jobs=jobs, compute=not no_compute, quiet=quiet)
            return
        experiments = [EXPERIMENTS[name](setup) for name in names]
        outcomes, damaged = reproduce(
            *(experiments, list(datasets), splits, setup, output),
            jobs=jobs,
            cluster=cluster,
            quiet=quiet,
        )
    except InputError as error:
        raise click.UsageError(str(error)) from None
    for path in damaged:
        click.echo(f"{path} was damaged; its cell was computed again", err=True)
    for outcome in outcomes:
        print_outcome(outcome)
        print(f"Written: {output / outcome.experiment.name}.json, .md and .svg\n")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.reproduction")
