"""``twinedge anchors``: how many anchors are enough."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli import options
from twinedge.cli.output import note, print_json, print_record, print_table, print_text
from twinedge.cli.values import Several, Whole

if TYPE_CHECKING:
    from twinedge.anchors.curves import Measurement, Point, Recommendation


@options.command(
    "anchors",
    "anchors runs/latest",
    "anchors runs/latest --methods xy,random --counts 4,8,16,32",
    "anchors runs/latest --plot anchors.svg --json",
)
@options.run_folder
@options.value(
    "--methods",
    "NAME,NAME",
    Several(click.Choice(options.METHODS), "xy,random"),
    text=f"How to choose them: some of {', '.join(options.METHODS)}.",
)
@options.value(
    "--counts",
    "N,N",
    Several(Whole(1), "4,8,16"),
    text="Numbers of anchors, of all twins together; by default 1,2,4,...",
)
@options.file_option("--plot", metavar="FILE.svg|FILE.png", text="Write the plot to a file.")
@options.seed
@options.as_json
@options.quiet
def anchors(
    run: Path,
    methods: Any,
    counts: Any,
    plot: Path | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show how the validation error falls with the number of anchors.

    Recommends the smallest number whose error is within 1 % of that of all training points, which
    'export --anchors fewest' uses and 'report' names. Errors are on validation rows, in units of
    the target; of several targets, they are means in standard deviations, and each anchor has all
    of them. auto picks a method by its error, and greedy picks points by theirs; since both look at
    validation rows, they choose on four fifths of them and are scored on the rest, five times over.
    Greedy and random points are for comparison, and not recommended.
    """
    from twinedge.anchors.curves import measure
    from twinedge.anchors.plot import check_drawing, draw, text_plot
    from twinedge.anchors.rows import describe_limit
    from twinedge.run_folder import load_run

    if plot is not None:
        check_drawing(plot)
    trained = load_run(run)
    found = measure(
        trained.model,
        trained.validation,
        counts=counts,
        methods=methods,
        seed=seed,
        verbose=not quiet,
    )
    twins = len(trained.model.weights_)
    for k in found.beyond:
        note(describe_limit(k, found.training_points, twins), quiet=quiet)
    if plot is not None:
        draw(found, plot, title=str(run), target=trained.target_name)
    about = {
        "run": str(run),
        "target": trained.target_name,
        "twins": twins,
        "training_points": found.training_points,
        "validation_points": found.validation_points,
        "seed": seed,
        "rmse_all": found.rmse_all,
        "plot": plot and str(plot),
    }
    if as_json:
        print_json({**about, **_result(found)})
        return
    print_record(about)
    print_text("")
    _print_errors(found)
    print_text("", *text_plot(found), "", _verdict(found))


def _result(found: "Measurement") -> dict[str, Any]:
    return {
        "tolerance": found.tolerance,
        "recommended": _point(found.recommended(), found),
        "smallest_of_each": {
            name: best and _point(best, found)
            for name in found.methods
            for best in [found.smallest(name)]
        },
        "auto_chooses": {str(k): method for k, method in found.winners.items()},
        "points": [_point(point, found) for point in found.points],
        "more_than_there_are": list(found.beyond),
    }


def _point(point: "Point | Recommendation", found: "Measurement") -> dict[str, Any]:
    ratio = point.rmse_val / found.rmse_all if found.rmse_all else None
    return {**point._asdict(), "ratio_to_all": ratio}


def _print_errors(found: "Measurement") -> None:
    """Print a row for each number of anchors and a column for each method."""
    errors = {(point.method, point.k): f"{point.rmse_val:.5g}" for point in found.points}
    rows = [[str(k), *(errors.get((m, k), "-") for m in found.methods)] for k in found.counts]
    print_table(("anchors", *found.methods), rows)
    enough = [found.smallest(method) for method in found.methods]
    words = [f"{m} {p.k}" for m, p in zip(found.methods, enough, strict=True) if p is not None]
    within = f"{100 * found.tolerance:g} %"
    print_text(f"Enough for {within}: {', '.join(words) or 'none of these'}.")


def _verdict(found: "Measurement") -> str:
    best = found.recommended()
    within = f"{100 * found.tolerance:g} % of all {found.training_points}"
    anchors = f"{best.k} anchor{'s' * (best.k != 1)}, chosen by {best.method}"
    if not best.within:
        return f"None of these is within {within}; the most is {anchors}. Try more with --counts."
    return f"Recommended: {anchors}, the fewest within {within}."
