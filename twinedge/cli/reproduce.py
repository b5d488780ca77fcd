"""``twinedge reproduce``: the paper's tables on this machine, or on many."""

from pathlib import Path
from typing import Annotated, Any

import typer

from twinedge.cli.options import Json, Quiet, choice, examples, value
from twinedge.cli.output import note, print_json, print_table, print_text
from twinedge.cli.words import one_of, some_of, whole

EXPERIMENTS = (
    "ann_ensemble",
    "tnnr_ensemble",
    "knn_tnnr",
    "twin_rf",
    "rf_ssl",
    "memory",
    "timing",
    "multiplier",
    "neighbors",
    "knn",
    "uncertainty",
    "check",
)
DATASETS = ("bc", "bh", "cs", "ee", "rcl", "tf", "wn", "wsb", "yh")
ALL = ",".join(DATASETS)
SPLITS = 25
EXAMPLES = examples(
    "reproduce tnnr_ensemble --datasets tf,yh,wsb --splits 2 --members 2",
    "reproduce twin_rf --effort normal --jobs 8",
    "reproduce all --cluster tcp://10.0.0.5:8786 -o runs/paper",
)


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="One of " + ", ".join(EXPERIMENTS) + ", or all.",
            parser=one_of(*EXPERIMENTS, "all"),
        ),
    ],
    datasets: Annotated[
        Any, value("Some of the paper's sets.", "NAME,NAME", some_of(*DATASETS))
    ] = ALL,
    splits: Annotated[int, value("How many of the 25 splits.", "N", whole(1))] = 5,
    members: Annotated[int, value("Networks in an ensemble; 32 in the paper.", "N", whole(1))] = 4,
    effort: Annotated[
        str,
        choice(
            "How long to search and train; forests search a small grid if quick.",
            "quick",
            "normal",
            "thorough",
        ),
    ] = "quick",
    steps: Annotated[
        Any,
        value("Steps of each last training; auto goes by --effort.", "auto|N", whole(1, "auto")),
    ] = "auto",
    trainer: Annotated[
        str,
        choice("Who trains networks: we, or the paper's recipe.", "twinedge", "published"),
    ] = "twinedge",
    protocol: Annotated[
        str, choice("Which to follow where the paper's code and text differ.", "published", "text")
    ] = "published",
    jobs: Annotated[
        Any, value("Cells computed at a time; by default one on each core.", "N", whole(1))
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster to compute on."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of results.")
    ] = Path("runs/reproduction"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute the paper's tables again, on this machine or on many.

    Shows each beside the paper's numbers. Every finished cell (a method on a split of a set) is
    kept in the folder, so the command may be stopped in any way and given again; cells that are
    there are not computed again. Writes the table as JSON and Markdown and its figure as SVG.
    Errors are in units of the target, with their standard errors.
    """
    from twinedge.errors import InputError

    if splits > SPLITS:
        raise InputError(f"--splits {splits}: the paper has {SPLITS}")
    if cluster is not None and jobs is not None:
        raise InputError("--jobs is for this machine: the workers of a --cluster are its own")
    if trainer == "published" and steps != "auto":
        raise InputError("--steps is for our trainer: the published one stops by its own rule")
    from twinedge.reproduce.answers import answer_all
    from twinedge.reproduce.cells import Setup
    from twinedge.reproduce.claims import judged

    names = EXPERIMENTS if table == "all" else (table,)
    setup = Setup(members, effort, trainer, protocol, steps)
    answers, damaged = answer_all(
        names, list(datasets), splits, setup, output, jobs=jobs, cluster=cluster, quiet=quiet
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
