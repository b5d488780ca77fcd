"""``twinedge reproduce``: the paper's tables on this machine, or on many."""

from pathlib import Path
from typing import Any

import click

from twinedge.cli import options
from twinedge.cli.options import DATASETS
from twinedge.cli.output import note, print_json, print_table, print_text
from twinedge.cli.values import Several, Whole

TABLES = (
    *("ann_ensemble", "tnnr_ensemble", "knn_tnnr", "twin_rf", "rf_ssl", "memory"),
    *("timing", "multiplier", "neighbors", "knn", "uncertainty", "check"),
)
SPLITS = 25


@options.command(
    "reproduce",
    "reproduce tnnr_ensemble --datasets tf,yh,wsb --splits 2 --members 2",
    "reproduce twin_rf --effort normal --jobs 8",
    "reproduce all --cluster tcp://10.0.0.5:8786 -o runs/paper",
)
@options.argument(
    "table",
    "TABLE",
    f"One of {', '.join(TABLES)}, or all.",
    type=click.Choice((*TABLES, "all")),
)
@options.value(
    "--datasets",
    "NAME,NAME",
    Several(click.Choice(DATASETS), "tf,yh"),
    default=",".join(DATASETS),
    text="Some of the paper's sets.",
)
@options.value("--splits", "N", Whole(1, SPLITS), default=5, text="How many of the 25 splits.")
@options.value(
    "--members", "N", Whole(1), default=4, text="Networks in an ensemble; 32 in the paper."
)
@options.effort("quick", "How long to search and train; forests search a small grid if quick.")
@options.steps("Steps of each last training; auto goes by --effort.")
@options.choice(
    "--trainer",
    *("twinedge", "published"),
    default="twinedge",
    text="How networks are trained: by twinedge, or by the paper's recipe.",
)
@options.choice(
    "--protocol",
    *("published", "text"),
    default="published",
    text="Which to follow where the paper's code and text differ.",
)
@options.jobs("Cells computed at a time; by default one per core.")
@options.option("--cluster", metavar="ADDRESS", text="Scheduler of a Dask cluster to compute on.")
@options.folder_option(
    "--output", "-o", default=Path("runs/reproduction"), text="Folder of results."
)
@options.as_json
@options.quiet
def reproduce(
    table: str,
    datasets: Any,
    splits: int,
    members: int,
    effort: str,
    steps: Any,
    trainer: str,
    protocol: str,
    n_jobs: int | None,
    cluster: str | None,
    output: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Recompute the paper's tables, on this machine or on many.

    Shows each beside the paper's numbers. Every finished cell (a method on a split of a set) is
    kept in the folder, so the command may be killed at any time and repeated; finished cells are
    not computed again. Writes the table as JSON and Markdown and its figure as SVG. Errors are in
    units of the target, with their standard errors.
    """
    from twinedge.errors import InputError

    if cluster is not None and n_jobs is not None:
        raise InputError("--jobs is for this machine: a --cluster has its own workers")
    if trainer == "published" and steps != "auto":
        raise InputError("--steps is for our trainer: the published one stops by its own rule")
    from benchmarks.reproduction.answers import answer_all
    from benchmarks.reproduction.cells import Setup
    from benchmarks.reproduction.claims import judged

    names = TABLES if table == "all" else (table,)
    setup = Setup(members, effort, trainer, protocol, steps)
    answers, damaged = answer_all(
        names, list(datasets), splits, setup, output, jobs=n_jobs, cluster=cluster, quiet=quiet
    )
    for path in damaged:
        note(f"{path} was damaged; its cell was computed again", quiet=quiet)
    if as_json:
        records = {name: one.record() for name, one in answers.items()}
        print_json(records if table == "all" else records[table])
        return
    for name, one in answers.items():
        print_text(f"{one.asked.experiment.title} ({'; '.join(one.asked.experiment.remarks)})", "")
        for sheet in one.sheets:
            print_text(f"{sheet.title}:")
            print_table(sheet.header, sheet.rows)
            print_text("")
        print_text(*one.findings)
        for claim, verdict in judged(one):
            print_text(f"{claim.part}: {claim.says} {verdict.word.capitalize()}: {verdict.seen}.")
        print_text(f"Written: {output / name}.json, .md and .svg", "")
