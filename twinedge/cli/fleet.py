"""``twinedge fleet``: which devices are off, which drift, and whether to train again."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from twinedge.cli import options
from twinedge.cli.output import note, print_json, print_table, print_text
from twinedge.cli.values import ModelPath, Whole
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.fleet.evaluation import Fleet

_SHOWN = 20  # devices of a table, unless more are requested
_LISTED = 10  # files that are of no use


@options.command(
    "fleet",
    "fleet stores --pack out/model.twin",
    "fleet 'dumps/*.bin' --pack out/model.twin --by drift --top 5",
    "fleet stores --pack out/model.twin -o fleet.html",
    "fleet stores --pack out/model.twin --cluster tcp://10.0.0.5:8786",
)
@options.argument(
    "stores",
    "STORES...",
    "Stores of devices, or dumps of microcontrollers: files, folders of them, or patterns.",
    nargs=-1,
)
@options.value(
    "--pack",
    "MODEL.twin",
    ModelPath("pack"),
    required=True,
    text="Pack of the devices, or a newer one.",
)
@options.option("--target", metavar="NAME", text="Which of several targets to rank by.")
@options.value("--top", "N", Whole(0), default=_SHOWN, text="How many devices to show.")
@options.choice(
    "--by",
    *("worst", "off", "drift", "interval"),
    default="worst",
    text="Which devices to show first.",
)
@options.file_option("--output", "-o", metavar="FILE.html", text="Also write a page.")
@options.jobs("Processes that read stores; by default one per core.")
@options.option("--cluster", metavar="ADDRESS", text="Scheduler of a Dask cluster to compute on.")
@options.as_json
@options.quiet
def fleet(
    stores: tuple[Path, ...],
    pack: Path,
    target: str | None,
    top: int,
    by: str,
    output: Path | None,
    n_jobs: int | None,
    cluster: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Rank the devices that have learnt with a pack, the worst first.

    Errors are measured minus predicted. As adapted means predicted from the other points of the
    same device. Mean errors and drifts are in scales: how far off the pack expects itself to be.
    A device is named for what is unlikely on a healthy one (about 1 % for each check):

    \b
    off        the mean error is too large
    drifting   later errors are above earlier ones, or below
    interval   too few points are inside the interval, even as adapted
    glitch     single points are absurd; they have no weight
    damaged    parts of the store cannot be read

    What retraining would bring is estimated by leaving devices out. Files that are of no use are
    listed, and do not stop the rest.
    """  # noqa: D301 - click wants the character itself
    from twinedge.atomic_files import check_file, write_file
    from twinedge.fleet.evaluation import evaluate_fleet

    if cluster is not None and n_jobs is not None:
        raise InputError("--jobs is for this machine: a --cluster has its own workers")
    if output is not None:
        check_file(output)
    found = evaluate_fleet(
        stores, pack, target=target, jobs=n_jobs, cluster=cluster, verbose=not quiet
    )
    if output is not None:
        from twinedge.fleet.report import fleet_page

        style = files("twinedge_export") / "report" / "templates" / "style.css"
        write_file(output, fleet_page(found, str(pack), top, style.read_text("utf-8")))
    if as_json:
        print_json({**found.record(), "ranking": found.ranked(by)})
        return
    _print(found, by, top, quiet)
    if output is not None:
        print_text("", f"Written: {output}")


def _print(found: "Fleet", by: str, top: int, quiet: bool) -> None:
    from twinedge.fleet.report import (
        HEADER,
        describe_coverage,
        describe_retraining,
        describe_totals,
        table_row,
    )

    for one in found.unused[:_LISTED]:
        note(f"{one['file']} {one['why']}", quiet=quiet)
    if len(found.unused) > _LISTED:
        note(f"and {len(found.unused) - _LISTED} more files are of no use", quiet=quiet)
    rows = [table_row(one) for one in found.ranked(by)[:top]]
    if rows:
        print_table(HEADER, rows)
        print_text("")
    print_text(describe_totals(found), describe_coverage(found), *describe_retraining(found))
