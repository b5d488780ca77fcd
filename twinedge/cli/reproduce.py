"""``twinedge reproduce``: the paper's tables on this machine, or on many."""

from pathlib import Path
from typing import Any

from twinedge.cli import options
from twinedge.cli.options import one_of, some_of, whole
from twinedge.cli.output import note, print_json, print_table, print_text

DATASETS = ("bc", "bh", "cs", "ee", "rcl", "tf", "wn", "wsb", "yh")
ALL = ",".join(DATASETS)
SPLITS = 25


def _tables() -> tuple[str, ...]:
    from twinedge.reproduce.experiments import NAMES

    return NAMES


def _table(word: str) -> str:
    name: str = one_of(*_tables(), "all")(word)
    return name


@options.command(
    "reproduce",
    "reproduce tnnr_ensemble --datasets tf,yh,wsb --splits 2 --members 2",
    "reproduce twin_rf --effort normal --jobs 8",
    "reproduce all --cluster tcp://10.0.0.5:8786 -o runs/paper",
)
@options.argument("table", "TABLE", lambda: f"One of {', '.join(_tables())}, or all.", type=_table)
@options.value(
    "--datasets", "NAME,NAME", some_of(*DATASETS), default=ALL, text="Some of the paper's sets."
)
@options.value("--splits", "N", whole(1), default=5, text="How many of the 25 splits.")
@options.value(
    "--members", "N", whole(1), default=4, text="Networks in an ensemble; 32 in the paper."
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
@options.value("--jobs", "N", whole(1), text="Cells computed at a time; by default one per core.")
@options.option("--cluster", metavar="ADDRESS", text="Scheduler of a Dask cluster to compute on.")
@options.file_option(
    "--output", "-o", metavar="DIR", default=Path("runs/reproduction"), text="Folder of results."
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
    jobs: int | None,
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

    if splits > SPLITS:
        raise InputError(f"--splits {splits}: the paper has {SPLITS}")
    if cluster is not None and jobs is not None:
        raise InputError("--jobs is for this machine: a --cluster has its own workers")
    if trainer == "published" and steps != "auto":
        raise InputError("--steps is for our trainer: the published one stops by its own rule")
    from twinedge.reproduce.answers import answer_all
    from twinedge.reproduce.cells import Setup
    from twinedge.reproduce.claims import judged

    names = _tables() if table == "all" else (table,)
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
