"""``twinedge train``: fit a twin to a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli import options
from twinedge.cli.output import (
    format_value,
    note,
    print_blocks,
    print_folds,
    print_groups,
    print_json,
    print_record,
    print_table,
    print_text,
)
from twinedge.cli.reading import read_source
from twinedge.cli.values import Number, Several, Whole, WordOr
from twinedge.defaults import HIDDEN, HIDDEN_OF_ONE, NEIGHBORS, RUN, TWINS
from twinedge.progress import progress_bar

if TYPE_CHECKING:
    from twinedge.run_folder import Run

_OF_TARGET = (
    *("target", "rmse_val", "rmse_test", "r2_test", "rmse_mean", "rmse_linear", "rmse_trees"),
    *("coverage_test", "rmse_fold_mean", "rmse_left_out"),
)
_RECORDED_ONLY = ("options", "time_notation")
_TEACHERS = ("networks", "trees", "boosting", "gp")
_SMALL, _LARGE = (",".join(map(str, one)) for one in (HIDDEN, HIDDEN_OF_ONE))


@options.command(
    "train",
    "train data.csv --target strength",
    "train data.csv --target -1 --drop id --impute median -o runs/sensor",
    "train turbine.csv --target NOX,CO",
    "train data.csv --target strength --group batch --folds 5",
    "train data.csv --target strength --test measured_later.csv",
    "train base.csv points.csv --target strength --group device",
    "train log.csv --target power --time timestamp",
    "train log.csv --target power --time t --derive 'a@6, mean(b, 12)'",
    "train sales.csv --target price --target-curve auto",
    "train --dataset cs --split 0 --effort quick --jobs 2",
)
@options.reading
@options.group_column
@options.time_column
@options.weight_column
@options.dataset
@options.split("Which random split: 70 % training, 10 % validation, 20 % test.")
@options.value(
    "--folds",
    "N",
    Whole(2),
    text="Cross-validate: N models are each tested on rows that they did not see, the last is "
    "trained on all.",
)
@options.file_option(
    "--test", metavar="FILE", text="Test on this table; the other is for training and validation."
)
@options.folder_option(
    "--output", "-o", metavar="RUN", default=Path(RUN), text="Run folder to write."
)
@options.overwrite
@options.value(
    "--twins",
    "auto|N",
    WordOr(Whole(1), "auto"),
    default="auto",
    text=f"Networks in the model; auto is {TWINS}, or 1 with --hidden.",
)
@options.value(
    "--hidden",
    "auto|N,N",
    WordOr(Several(Whole(1), "128,128", distinct=False), "auto"),
    default="auto",
    text=f"Widths of the hidden layers; auto is {_SMALL}, and {_LARGE} with --twins 1.",
)
@options.choice(
    "--activation",
    *("auto", "relu", "silu"),
    default="auto",
    text="Activation of the hidden layers.",
)
@options.value(
    "--pairs",
    "all|neighbors|N",
    WordOr(Whole(1), "all", "neighbors"),
    default="all",
    text="Partners each point is trained with: all others, its neighbors, or N at random.",
)
@options.value(
    "--neighbors", "N", Whole(1), default=NEIGHBORS, text="How many, with --pairs neighbors."
)
@options.value(
    "--learning-rate", "auto|NUMBER", WordOr(Number(0), "auto"), default="auto", text="Step size."
)
@options.value(
    "--weight-decay",
    "auto|NUMBER",
    WordOr(Number(0), "auto"),
    default="auto",
    text="Decay of AdamW.",
)
@options.effort("normal", "How long to search and train.")
@options.steps("Steps of the last training; auto goes by --effort.")
@options.value(
    "--teachers",
    "auto|none|NAME,NAME",
    WordOr(Several(click.Choice(_TEACHERS), "networks,trees"), "auto", "none"),
    default="auto",
    text="Models that teach the networks: networks, trees, boosting, gp; or none. auto uses all, "
    "unless quick or with --steps.",
)
@options.input_map(
    "auto",
    "Learn a curve for each feature in front of the networks, of so many straight pieces at most; "
    "auto tries on folds whether that lowers the error, unless quick or with --hidden.",
)
@options.target_curve
@options.flag(
    "--intervals/--no-intervals", default=True, text="Learn how large an error to expect."
)
@options.jobs("Networks trained at a time; by default one per core.")
@options.seed
@options.flag("--resume", text="Continue a training that was stopped.")
@options.as_json
@options.quiet
def train(
    tables: tuple[Path, ...],
    dataset: str | None,
    split: int,
    output: Path,
    overwrite: bool,
    twins: int | str,
    hidden: tuple[int, ...] | str,
    activation: str,
    pairs: int | str,
    neighbors: int,
    learning_rate: float | str,
    weight_decay: float | str,
    effort: str,
    steps: int | str,
    teachers: list[str] | str,
    input_map: int | str,
    target_curve: str,
    intervals: bool,
    n_jobs: int | None,
    seed: int,
    resume: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Fit a twin to a table and write a run folder.

    Settings left at auto are chosen on the validation rows; errors are in units of the target.
    Ctrl-C stops early and keeps the best weights; the same command with --resume continues.
    An existing run is replaced if its files are unchanged. If the folder holds anything else,
    nothing is written unless you use --overwrite.

    Rows that belong together, with --group, are held out together: scores and intervals are then
    for groups that the model never saw, and it learns how far to trust points that a device
    measures itself.

    Several tables have the same columns, in any order, and their rows are joined. Columns of
    --group and --weight may be missing in some: rows are then groups of their own, and count 1.

    With --time, the model is trained on the oldest 70 % of the rows, chosen on the next 10 %, and
    tested on the newest 20 %: scores and intervals are then for the future. Beside them is the
    naive forecast, the last value that was measured before each test row.

    With --derive, rows are samples of a stream, and the model also learns from those before each
    row; --group then says which stream a row is of. No window reaches over a gap, into another
    stream, or over the split between training, validation and test; rows without a full window are
    left out. The device and 'predict' keep the windows themselves.

    With --folds, the table is divided into N parts, at random, by group or by time. Each is
    predicted by a model that was trained on the others: the test scores are of all rows. The
    model that is written is trained last, on all rows but those for validation.

    Rows may count more or less than others, with --weight: in training, in intervals, and in all
    errors that are printed.

    Several targets share one model: --target NOX,CO, or --target twice where a name has a comma.
    A cell of a target that was not measured may be empty. Scores are those of each target; if one
    of them would do more than 2 % better in a pack of its own, they say so.

    A target that jumps or bends sharply along a column is hard to follow for a small network. With
    --input-map, curves of the columns are learnt in front of it; layers are narrower then, so that
    a pack does not become larger.

    Errors of prices, counts or lifetimes grow with their size. With --target-curve, the logarithm
    (log; log1p if there are zeros) or the root (sqrt) is learnt. Predictions and intervals are in
    units of the target all the same; a prediction is then a median rather than a mean.
    """
    from twinedge.fitting import TrainSettings, fit_source

    settings = TrainSettings(
        twins=twins,
        hidden=hidden,
        activation=activation,
        pairs=pairs,
        neighbors=neighbors,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        effort=effort,
        steps=steps,
        teachers=teachers,
        input_map=input_map,
        target_curve=target_curve,
        intervals=intervals,
        impute=reading["impute"],
        n_jobs=n_jobs or -1,  # all cores
        random_state=seed,
        verbose=not quiet,
        run=output,
        resume=resume,
        overwrite=overwrite,
        report=lambda remark: note(remark, quiet=quiet),
    )
    with progress_bar(not quiet):
        source = read_source(tables, reading, dataset, split, quiet=quiet)
        done = fit_source(source, settings)
    result = {**summary(done), "run": str(output)}
    if as_json:
        print_json(result)
    elif "targets" in result:
        print_targets(result)
    else:
        verdict, blocks, ranges, groups, of_folds, choice = (
            result.pop(k, None)
            for k in ("verdict", "by_time", "time_ranges", "groups", "folds", "curve_choice")
        )
        print_record(with_reasons({**result, "input_map": describe_map(result["input_map"])}))
        if blocks:
            print_blocks(blocks)
        if of_folds:
            print_folds(of_folds)
        if groups:
            print_groups(groups)
        if ranges and "test" in ranges:
            print_text("", describe_order(ranges))
        if choice:
            print_text("", describe_curve(choice))
        if verdict:
            print_text("", verdict)
    if done.model.interrupted_:
        note(
            f"Stopped early; the best weights are in {output}. Continue with --resume.", quiet=quiet
        )
        raise click.exceptions.Exit(130)


def print_targets(result: dict[str, Any]) -> None:
    """Print what was trained for several targets, and the scores of each in a table."""
    targets = result.pop("targets")
    ranges = result.pop("time_ranges", None)
    print_record({**result, "input_map": describe_map(result["input_map"])})
    print_text("")
    heads = [key for key in _OF_TARGET if any(one.get(key) is not None for one in targets)]
    rows = [[format_value(one.get(key)) for key in heads] for one in targets]
    print_table([head.replace("_", " ") for head in heads], rows)
    if ranges and "test" in ranges:
        print_text("", describe_order(ranges))
    for one in targets:
        words = [f"{one['target']}: {one['verdict']}"] if one.get("verdict") else []
        words += [one["advice"]] if one.get("advice") else []
        if words:
            print_text("", *words)


def describe_order(ranges: dict[str, list[str]]) -> str:
    """Describe for which times the scores of a run are."""
    (_, past), *_, (_, future) = ranges.values()
    return (
        f"Trained on rows until {past}, tested on later ones until {future}: the test scores are "
        "for the future of what was learnt."
    )


def describe_map(pieces: int | str) -> str:
    """Describe the curves in front of the networks, or that there are none."""
    if pieces == "none":
        return "none"
    return f"curves of at most {pieces} pieces in front of the networks"


def describe_curve(choice: dict[str, Any]) -> str:
    """Describe how a target curve was chosen, or why none was considered."""
    skewed = f"the skewness of the target is {choice['skewness']:.2g}"
    if not choice["rmse"]:
        return f"No target curve was compared with none: {skewed}, and {choice['reason']}."
    errors = ", ".join(f"{kind} {error:.4g}" for kind, error in choice["rmse"].items())
    return (
        f"Target curve {choice['chosen']}: {skewed}, and on rows that networks did not see, short "
        f"trainings have an RMSE of {errors}."
    )


def with_reasons(result: dict[str, Any]) -> dict[str, Any]:
    """Add why the twin does not beat a rival whose error is larger."""
    narrow = [
        rival
        for rival in ("naive", "mean", "linear", "trees")
        if result.get(f"beats_{rival}") is False and result[f"rmse_{rival}"] > result["rmse_test"]
    ]
    reason = "no: the difference is within the error of the comparison"
    return result | {f"beats_{rival}": reason for rival in narrow}


def summary(run: "Run") -> dict[str, Any]:
    """Return what is printed about a run."""
    model = run.model
    return {
        **{key: value for key, value in run.source.items() if key not in _RECORDED_ONLY},
        "features": len(run.encoding.names),
        **({"derived": run.encoding.derivation} if run.encoding.derived else {}),
        "twins": len(model.weights_),
        "activation": model.activation_,
        "learning_rate": model.learning_rate_,
        "weight_decay": model.weight_decay_,
        "input_map": model.input_map_,
        "target_curve": model.target_curve_,
        **run.scores,
        "steps": model.steps_,
        "taught": model.teaching_ and model.teaching_["taught"],
        **({"curve_choice": model.curve_choice_} if model.curve_choice_ else {}),
        "interrupted": model.interrupted_,
    }
