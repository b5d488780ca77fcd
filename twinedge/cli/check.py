"""``twinedge check``: which model suits the data, before one is trained."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import note, print_json, print_table, print_text
from twinedge.cli.reading import read_source
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.evaluation.suitability import Suitability


@options.command(
    "check",
    "check data.csv --target strength",
    "check data.csv --target -1 --drop id --effort normal",
    "check data.csv --target strength --group batch",
    "check --dataset wn --split 0 --json",
)
@options.reading
@options.group_column
@options.weight_column
@options.time_column
@options.dataset
@options.split("Which random split, as in train; its test rows are not used.")
@options.effort("quick", "How long networks are trained, as in train.")
@options.target_curve
@options.folder_option(
    "--output",
    "-o",
    metavar="RUN",
    text="Keep the networks beside this run folder: train with the same options and --resume "
    "continues with them.",
)
@options.jobs("Trainings at a time; by default one per core.")
@options.seed
@options.as_json
@options.quiet
def check(
    tables: tuple[Path, ...],
    dataset: str | None,
    split: int,
    effort: str,
    target_curve: str,
    output: Path | None,
    n_jobs: int | None,
    seed: int,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Tell which model suits the data.

    Trains the networks that train compares, and other models: boosted trees and a forest of any
    size, trees that take no more bytes than a pack, nearest neighbors, a linear model. All are
    compared on training rows that they did not see, in five folds; with --group, whole groups are
    held out, with --time, blocks of time. Errors are in units of the target. A model that differs
    from the twin by no more than chance explains (a 90 % interval) is called neither better nor
    worse. Each of several targets is learnt by itself, so that this takes as many times as long.
    """
    source = read_source(tables, reading, dataset, split, quiet=quiet)
    for remark in source.remarks:
        note(remark, quiet=quiet)
    from twinedge.evaluation.suitability import suitability
    from twinedge.fitting import check_curve
    from twinedge.run_folder import checkpoint_of

    check_curve(source, target_curve)
    if source.targets and output is not None:
        raise InputError("--output keeps the networks of one target, not of several; leave it out")
    each = [source.of_target(target) for target in range(len(source.target_names))]
    found = [
        suitability(
            one,
            effort=effort,
            seed=seed,
            target_curve=target_curve,
            n_jobs=n_jobs or -1,
            verbose=not quiet,
            checkpoint=None if output is None else checkpoint_of(output),
        )
        for one in each
    ]
    if as_json:
        results = [_result(one) for one in found]
        if source.targets:
            names = source.targets
            targets = [{"target": name, **one} for name, one in zip(names, results, strict=True)]
            results = [{"targets": targets}]
        print_json({"dataset": source.name, "split": split, "effort": effort, **results[0]})
        return
    for number, (one, suits) in enumerate(zip(each, found, strict=True)):
        if source.targets:
            print_text(*[""] * min(number, 1), f"{one.target_name}, by a twin of its own:")
        _print_table(suits)


def _print_table(found: "Suitability") -> None:
    """Print the errors of all models for a target, and which is the best."""
    from twinedge.evaluation.verdict import NAMES

    print_table(
        ("model", "RMSE", "to the twin", "by chance"),
        [
            ["a twin", *_numbers(found, found.twin)],
            *(
                [NAMES[name], *_numbers(found, one.rmse, one.error)]
                for name, one in sorted(found.rivals.items(), key=lambda item: item[1].rmse)
            ),
        ],
    )
    print_text("by chance: how far chance alone may move the ratio from 1 (90 % interval)", "")
    print_text(found.verdict.sentence, *found.beside)


def _numbers(found: "Suitability", rmse: float, error: float | None = None) -> list[str]:
    """Error, its ratio to the twin's, and how far chance alone may move that from 1."""
    unit = found.twin or 1.0
    return [f"{rmse:.5g}", f"{rmse / unit:.3f}", "" if error is None else f"{error / unit:.3f}"]


def _result(found: "Suitability") -> dict[str, Any]:
    verdict = found.verdict
    return {
        "rows": found.rows,
        "rmse_twin": found.twin,
        "rmse_rivals": {name: one.rmse for name, one in found.rivals.items()},
        "error_rivals": {name: one.error for name, one in found.rivals.items()},
        "better": found.better,
        "outcome": verdict.outcome,
        "best": verdict.best,
        "best_of_a_packs_size": found.small_verdict.best,
        "verdict": " ".join([verdict.sentence, *found.beside]),
    }
