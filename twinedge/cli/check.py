"""``twinedge check``: whether a twin suits the data, and what does better if not."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import note, print_json, print_table, print_text
from twinedge.cli.reading import read_source

if TYPE_CHECKING:
    from twinedge.learn.suitability import Rival, Suitability

NAMES = {
    "networks": "an ensemble of ordinary networks",
    "forest": "a random forest",
    "trees": "trees of a pack's size",
    "nearest": "k-nearest neighbors",
    "linear": "a linear model",
    "mean": "the mean of the targets",
}


@options.command(
    "check",
    "check data.csv --target strength",
    "check data.csv --target -1 --drop id --effort normal",
    "check --dataset wn --split 0 --json",
)
@options.reading
@options.dataset
@options.split("Which random split, as in train; its test rows are not used.")
@options.effort("quick", "How long each network is trained.")
@options.seed
@options.as_json
@options.quiet
def check(
    table: Path | None,
    dataset: str | None,
    split: int,
    effort: str,
    seed: int,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Tell whether a twin suits the data.

    Trains twins on more and more pairs, and the alternatives: an ensemble of ordinary networks, a
    random forest, trees that take no more bytes than a pack, k-nearest neighbors, a linear model.
    All are compared on points held out of the training and validation rows. Errors are in units of
    the target. A model that differs from the twin by no more than chance explains (a 90 % interval)
    is called neither better nor worse.
    """
    source = read_source(table, reading, dataset, split, quiet=quiet)
    for remark in source.remarks:
        note(remark, quiet=quiet)
    import numpy as np

    from twinedge.errors import plural
    from twinedge.learn.suitability import suitability

    rows = np.concatenate([source.rows.train, source.rows.val])
    found = suitability(*source.part(rows), effort=effort, seed=seed, verbose=not quiet)
    if as_json:
        print_json({"dataset": source.name, "split": split, **_result(found)})
        return
    lines = {
        **{f"a twin, {plural(m, 'partner')} a point": one for m, one in found.multipliers.items()},
        "a twin, all pairs": None,
        **{NAMES[name]: one for name, one in found.rivals.items()},
    }
    print_table(
        ("model", "RMSE", "to the twin", "by chance"),
        [[name, *_numbers(found.twin, one)] for name, one in lines.items()],
    )
    print_text("by chance: how far chance alone may move the ratio from 1 (90 % interval)", "")
    print_text(*_words(found))


def _numbers(twin: float, rival: "Rival | None") -> list[str]:
    """Error, its ratio to the twin's, and how far chance alone may move that from 1."""
    rmse, error = (twin, 0.0) if rival is None else (rival.rmse, rival.error)
    unit = twin or 1.0
    return [f"{rmse:.5g}", f"{rmse / unit:.3f}", f"{error / unit:.3f}"]


def _result(found: "Suitability") -> dict[str, Any]:
    return {
        "rows": found.rows,
        "rmse_twin": found.twin,
        "rmse_multipliers": {str(m): one.rmse for m, one in found.multipliers.items()},
        "error_multipliers": {str(m): one.error for m, one in found.multipliers.items()},
        "rmse_rivals": {name: one.rmse for name, one in found.rivals.items()},
        "error_rivals": {name: one.error for name, one in found.rivals.items()},
        "rises_with_pairs": found.rises_with_pairs,
        "suits": found.suits,
        "better": found.better,
        "reasons": found.reasons,
        "advice": found.advice,
    }


def _words(found: "Suitability") -> list[str]:
    """Sum up the findings in sentences."""
    against = [f"{reason[0].upper()}{reason[1:]}." for reason in found.reasons]
    names = ", ".join(NAMES[name] for name in found.better)
    better = [f"Better than the twin: {names}."] if names else []
    better += [found.advice] if found.advice else []
    if not found.suits:
        return ["Warning: a twin may be the wrong model for these data.", *against, *better]
    rises = ["Accuracy rises with the number of pairs."] * found.rises_with_pairs
    return ["A twin suits these data.", *rises, *against, *better]
