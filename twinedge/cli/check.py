"""``twinedge check``: whether a twin suits the data, and what does better if not."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

from twinedge.cli.options import (
    DataFile,
    DataSet,
    Drop,
    Impute,
    Json,
    Quiet,
    Seed,
    Target,
    choice,
    examples,
    value,
)
from twinedge.cli.output import note, print_json, print_table, print_text
from twinedge.cli.source import read_source
from twinedge.cli.words import whole

if TYPE_CHECKING:
    from twinedge.learn.suitability import Suitability

EXAMPLES = examples(
    "check data.csv --target strength",
    "check data.csv --target -1 --drop id --effort normal",
    "check --dataset wn --split 0 --json",
)
NAMES = {
    "nearest": "k-nearest neighbours",
    "networks": "an ensemble of ordinary networks",
    "forest": "a random forest",
}


def check(
    table: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    impute: Impute = None,
    dataset: DataSet = None,
    split: Annotated[
        int,
        value("Which random split, as in train: its test rows are not looked at.", "N", whole(0)),
    ] = 0,
    effort: Annotated[
        str, choice("How long each network is trained.", "quick", "normal", "thorough")
    ] = "quick",
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell whether a twin suits the data.

    Trains twins on more and more pairs, and what one would use instead: k-nearest neighbours, an
    ensemble of ordinary networks, a random forest. All are compared on points held out of the
    training and validation rows. Errors are in units of the target.
    """
    source = read_source(table, target, drop or [], impute, dataset, split)
    for remark in source.remarks:
        note(remark, quiet=quiet)
    import numpy as np

    from twinedge.learn.suitability import suitability

    rows = np.concatenate([source.rows.train, source.rows.val])
    shown = sys.stderr.isatty() and not quiet

    def progress(done: int, total: int) -> None:
        if shown:
            end = "\n" if done == total else ""
            print(f"\r{done} of {total} models judged", end=end, file=sys.stderr, flush=True)

    found = suitability(*source.part(rows), effort=effort, random_state=seed, progress=progress)
    if as_json:
        print_json({"dataset": source.name, "split": split, **_result(found)})
        return
    errors = {
        **{f"a twin, {m} partners a point": rmse for m, rmse in found.multipliers.items()},
        "a twin, all pairs": found.twin,
        **{NAMES[name]: rmse for name, rmse in found.rivals.items()},
    }
    print_table(
        ("model", "RMSE", "to the twin"),
        [[name, f"{rmse:.5g}", f"{rmse / found.twin:.3f}"] for name, rmse in errors.items()],
    )
    print_text("", *_words(found))


def _result(found: "Suitability") -> dict[str, Any]:
    return {
        "rows": found.rows,
        "rmse_twin": found.twin,
        "rmse_multipliers": {str(m): rmse for m, rmse in found.multipliers.items()},
        "rmse_rivals": found.rivals,
        "rises_with_pairs": found.rises_with_pairs,
        "suits": found.suits,
        "better": found.better,
        "reasons": found.reasons,
    }


def _words(found: "Suitability") -> list[str]:
    """Say it plainly."""
    against = [f"{reason[0].upper()}{reason[1:]}." for reason in found.reasons]
    best = [] if found.better is None else [f"What did best: {NAMES[found.better]}."]
    if not found.suits:
        return ["Warning: a twin may be the wrong model for these data.", *against, *best]
    rises = ["Accuracy rises with the number of pairs."] * found.rises_with_pairs
    return ["A twin suits these data.", *rises, *against, *best]
