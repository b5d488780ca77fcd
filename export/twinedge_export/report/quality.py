"""Sections on how good a model is, and how it comes to its predictions."""

import shlex

import numpy as np

from twinedge.wording import joined
from twinedge_export.report import figures
from twinedge_export.report.document import (
    Cell,
    Chapter,
    Check,
    Grid,
    Share,
    ensemble,
    forest,
    number,
    percent,
)
from twinedge_export.report.drivers import SHUFFLES
from twinedge_export.report.findings import Findings
from twinedge_export.report.reliability import SizeBand as Sized
from twinedge_export.report.reliability import by_size
from twinedge_export.report.verdict import rows_in_words, trust

_LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)  # coverages of a spread, shown in the table
_THAN = {
    "better": "better than the twin by more than chance, so consider emlearn, which runs such "
    "trees on a microcontroller, if you need neither intervals nor learning on the device",
    "as good": "the difference from the twin may be chance",
    "worse": "worse than the twin by more than chance",
}


def accuracy(found: Findings) -> Chapter:
    """Compare predictions with the truth, and with other models."""
    judged, rivals, trees = found.judged, found.rivals, found.trees
    largest = float(abs(judged.error).max())
    lead = [
        f"Half of the rows are off by less than {_median(found):.4g}, the worst by {largest:.4g}. "
        f"{_leaning(found)}"
    ]
    if rivals:
        best = min(rivals, key=lambda one: one.rmse)
        lead.append(
            "The best ordinary ensemble of the same bytes is "
            f"{ensemble(best.members, best.hidden)}, with an error of {best.rmse:.4g}."
        )
    if trees:
        lead.append(
            f"{forest(trees.family, trees.trees, trees.leaves).capitalize()}, which fit the same "
            f"bytes, have an error of {trees.rmse:.4g}: {_THAN[trees.than_the_twin]}."
        )
    return Chapter(
        "accuracy",
        "How accurate it is",
        tuple(lead),
        (figures.predictions(found), figures.beside(found)),
        (
            Grid(
                "predictions",
                "Errors of the pack",
                ("points", "rows", "RMSE", "mean error", "largest error", "mean spread"),
                tuple(
                    (
                        one.name,
                        len(one.y),
                        one.rmse,
                        float(one.error.mean()),
                        float(abs(one.error).max()),
                        float(one.spread.mean()),
                    )
                    for one in (judged, found.validation)
                    if one is not None and (one is judged or judged.name != "validation")
                ),
            ),
            Grid(
                "rivals",
                "Errors of other models on the same rows",
                ("model", "bytes on the device", "RMSE"),
                tuple((one.name, None, one.rmse) for one in found.baselines)
                + tuple((ensemble(one.members, one.hidden), one.bytes, one.rmse) for one in rivals)
                + tuple(
                    (forest(one.family, one.trees, one.leaves), one.bytes, one.rmse)
                    for one in ([trees] if trees else [])
                ),
                folded=True,
            ),
        ),
        tuple(_how_accurate(found)),
        _checks(found, "errors"),
    )


def intervals(found: Findings) -> Chapter:
    """Compare claimed and actual coverage of intervals, or of the spread without them."""
    scores, usual, drawing = found.intervals, found.usual, figures.coverage(found)
    if scores is None or usual is None or drawing is None:
        return _spread(found)
    pack = found.device.pack
    assert pack.intervals is not None
    parts = by_size(found.judged, usual.claimed)
    how = [
        "Intervals as computed by the pack, in the integers of the device. They were calibrated on "
        f"{number(pack.intervals.rows, 'row')} that the training did not see: the errors there, "
        "in units of the scale, set the width of an interval. The grey band is where 95 of "
        f"100 counts over {scores.rows} rows would fall if intervals covered what they claim. The "
        "interval score is the mean width plus 2 / (1 - claimed) times the mean miss: lower is "
        f"better. Widths, scores and errors are in units of {found.target}."
    ]
    if found.judged.name == "validation":
        how.append("These are the rows that intervals were calibrated on, which flatters them.")
    ranks = f"{scores.rank_correlation:.2f}"
    return Chapter(
        "intervals",
        "What an interval is worth",
        (
            f"Intervals that claim {percent(usual.claimed)} cover {percent(usual.covered)} of "
            f"{rows_in_words(found)}, {trust(usual, found)}. They are {usual.mean_width:.4g} wide "
            f"on average; the rank correlation of width and error is {ranks}, where 1 would rank "
            "all errors.",
            *_failing(parts, found),
        ),
        (drawing, *([figures.sizes(found, parts)] if len(parts) > 1 else [])),
        (
            Grid(
                "intervals",
                "Coverage by level",
                ("claimed", "covered", "mean width", "interval score"),
                tuple(
                    (Share(one.claimed), Share(one.covered), one.mean_width, one.interval_score)
                    for one in scores.intervals
                ),
            ),
            _sized(found, parts),
        ),
        tuple(how),
        _checks(found, "coverage, width and score"),
    )


def _spread(found: Findings) -> Chapter:
    worth, drawing = found.reliability, figures.coverage(found)
    if worth is None or drawing is None:
        return Chapter(
            "spread",
            "What the spread is worth",
            ("One estimate has no spread: export at least two anchors to have one.",),
        )
    lead = [
        f"Intervals of the spread that claim 90 % cover {percent(worth.at(0.9).covered)} of "
        f"{rows_in_words(found)}. The rank correlation of spread and error is "
        f"{worth.correlation:.2f}; 1 would rank all errors correctly."
    ]
    if worth.factor is not None:
        lead.append(
            f"Multiplied by {worth.factor:.3g}, a factor found on the validation rows, the spread "
            f"covers {percent(worth.at(0.9).scaled or 0)}. The pack returns the spread without it."
        )
    parts = by_size(found.judged, None)
    return Chapter(
        "spread",
        "What the spread is worth",
        tuple(lead),
        (drawing,),
        (
            Grid(
                "spread",
                "Coverage by level",
                ("claimed", "covered", "covered with the factor"),
                tuple(
                    (Share(one.claimed), Share(one.covered), _part(one.scaled))
                    for one in map(worth.at, _LEVELS)
                ),
            ),
            _sized(found, parts),
        ),
        (
            "An interval is the prediction plus and minus z spreads, z as for a normal "
            f"distribution. The grey band is where 95 of 100 counts over {worth.points} rows would "
            "fall if the spread covered what it claims. All estimates share one network, so their "
            "spread misses the error they have in common. The factor is chosen so that as many "
            "validation rows lie within one spread as claimed.",
        ),
        _checks(found, "errors and spread"),
    )


def _sized(found: Findings, parts: tuple[Sized, ...]) -> Grid:
    rows: list[tuple[Cell, ...]] = [
        (
            f"{one.least:.4g} to {one.most:.4g}",
            one.rows,
            one.rmse,
            one.mean_error,
            *(() if one.covered is None else (Share(one.covered), one.mean_width)),
        )
        for one in parts
    ]
    more = () if parts[0].covered is None else ("covered", "mean width")
    columns = (f"true {found.target}", "rows", "RMSE", "mean error", *more)
    return Grid("sizes", "By size of the target", columns, tuple(rows), folded=len(parts) > 1)


def _failing(parts: tuple[Sized, ...], found: Findings) -> tuple[str, ...]:
    """Say for which targets the fewest intervals hold."""
    if len(parts) < 2:
        return ()
    worst = min(parts, key=lambda one: one.covered or 0)
    return (
        f"They hold least often where {found.target} lies between {worst.least:.4g} and "
        f"{worst.most:.4g}: {percent(worst.covered or 0)} of {worst.rows} rows.",
    )


def _median(found: Findings) -> float:
    ordered = sorted(abs(found.judged.error).tolist())
    return float(ordered[len(ordered) // 2])


def _leaning(found: Findings) -> str:
    """Say whether predictions are too high or too low on the whole."""
    mean = float(found.judged.error.mean())
    if abs(mean) < 0.1 * found.judged.rmse:
        return "On the whole predictions are neither too high nor too low."
    return f"On average predictions are too {'high' if mean > 0 else 'low'} by {abs(mean):.3g}."


def _how_accurate(found: Findings) -> list[str]:
    run, rivals, trees = found.run, found.rivals, found.trees
    how = [
        f"The pack as exported, evaluated on {rows_in_words(found)} in the integers of the device. "
        f"Errors and spread are in units of {found.target}; the spread is the standard deviation "
        "of the anchors' estimates."
    ]
    if run is None:
        how.append(
            "The mean and the linear model were fitted to these rows, each row judged by a fit to "
            "all others; rows that the twin learnt from would flatter it."
        )
        return how
    how.append("The mean and the linear model (ridge) were fitted to the training rows.")
    if rivals:
        how.append(
            f"Ordinary networks were trained for this report, {found.ann_steps:,} steps each with "
            f"the activation of the twin and the best of five settings on the validation rows, as "
            f"wide as fits the bytes of the pack. The twin was trained {run.model.steps_:,} steps "
            "after a longer search; a report can give them more. Their weights are not rounded, "
            "though their bytes are counted as if they were, which flatters them."
        )
    else:
        how.append("Ordinary networks were not trained: a quick report leaves them out.")
    if trees:
        how.append(
            "Trees are chosen from a few usual settings on the validation rows. Their bytes are "
            "those of emlearn's tables: 8 per decision, 4 per leaf."
        )
    return how


def _checks(found: Findings, what: str) -> tuple[Check, ...]:
    mine = "on the same rows" if not found.made_by else "on your own rows"
    again = Check(shlex.join(["twinedge", "evaluate", found.file, found.table]), f"{what} {mine}")
    if not found.made_by:
        return (again,)
    return (Check(found.made_by, "writes the pack, and prints its error"), again)


def _part(part: float | None) -> Share | None:
    return None if part is None else Share(part)


_TOLD = 9  # points of a curve shown in the table
_LITTLE = 0.02  # of the error: a column worth less counts as worth nothing


def drivers(found: Findings) -> Chapter:
    """Say what each column is worth, and how the prediction depends on it."""
    first, *rest = found.drivers
    error = found.judged.rmse
    lead = f"{first.column} matters most: with its values shuffled, the error grows by "
    lead += f"{first.worth:.3g}, to {error + first.worth:.3g}."
    if first.worth <= 0:
        lead = "No column matters by itself on these rows."
    idle = [one.column for one in rest if one.worth < _LITTLE * error]
    said = [lead]
    if idle:
        verb = "matters" if len(idle) == 1 else "matter"
        said.append(f"{_capital(joined(idle))} hardly {verb} here.")
    return Chapter(
        "drivers",
        "What drives the prediction",
        tuple(said),
        (figures.importance(found), figures.curves(found)),
        (
            Grid(
                "importance",
                "What each column is worth",
                ("column", "error grows by", "give or take"),
                tuple((one.column, one.worth, one.error) for one in found.drivers),
                folded=True,
            ),
            Grid(
                "curves",
                "Predictions from a typical row, one column at a time",
                ("column and value", "prediction", "low", "high"),
                tuple(_curve_rows(found)),
                folded=True,
            ),
        ),
        (
            "Computed with the pack. The worth of a column is how much the error grows when its "
            f"values are shuffled among the {found.judged.where}, {SHUFFLES} times; columns with "
            "the same information share their worth. Curves start from a typical row, "
            "the middle of the anchors, and change one column; the band is the interval of the "
            "pack.",
        ),
        (Check(f"twinedge predict {found.file} rows.csv", "the prediction of any row"),),
    )


def trial(found: Findings) -> Chapter:
    """Let a reader ask for predictions."""
    return Chapter(
        "try",
        "Try it",
        (
            "Set the values, and see what a device would answer: the page holds the pack, and the "
            "C runtime that runs on boards, compiled for browsers. The bits are the same.",
        ),
        checks=(
            Check(
                f"twinedge predict {found.file} query.csv",
                "the same prediction, with the two lines below as query.csv",
            ),
        ),
        panel="try",
    )


def anchors(found: Findings) -> Chapter:
    """Show how the error falls with the number of anchors."""
    curve, best = found.anchors, found.recommended
    if curve is None or best is None:
        return _anchors_alone(found)
    within = f"within {100 * curve.tolerance:g} % of all {curve.training_points} training points"
    chosen = f"{number(best.k, 'anchor')}, chosen by {best.method}"
    lead = [
        f"Recommended: {chosen}, the fewest {within}."
        if best.within
        else f"No number of anchors tried is {within}; the most was {chosen}.",
        _size_line(found),
    ]
    errors = {(one.method, one.k): one.rmse_val for one in curve.points}
    return Chapter(
        "anchors",
        "How many anchors",
        (*lead, *_remarks(found)),
        (figures.anchors(found), figures.accuracy(found)),
        (
            Grid(
                "anchors",
                "Validation error by number of anchors",
                ("anchors", *(f"RMSE, {method}" for method in curve.methods)),
                tuple(
                    (k, *(errors.get((method, k)) for method in curve.methods))
                    for k in curve.counts
                ),
                folded=True,
            ),
            Grid(
                "accuracy",
                "Error by bytes",
                ("model", "bytes on the device", f"{found.judged.name} RMSE"),
                tuple(
                    (f"twin, {number(one.anchors, 'anchor')}", one.bytes, one.rmse)
                    for one in found.sizes
                ),
                folded=True,
            ),
        ),
        (
            "Anchors are the training points in the pack: each makes one estimate. On the left, "
            f"the float model on {number(curve.validation_points, 'validation row')}, in units of "
            f"{found.target}; the band is 1 % wide. The training settings were chosen on "
            "these rows, too, so compare the points with each other, not with other models. "
            "Methods that look at the rows are judged on rows they did not see. On the right, "
            f"packs in the integers of the device on {found.judged.where}.",
        ),
        (Check(_anchors_command(found), "every way to choose, and the same recommendation"),),
    )


def _anchors_alone(found: Findings) -> Chapter:
    pack = found.device.pack
    each = list(dict.fromkeys(pack.counts.tolist()))
    dealt = "" if len(pack.twins) == 1 else f" ({' or '.join(map(str, each))} for each twin)"
    near = "" if not pack.neighbors else f", of which the {pack.neighbors} nearest predict"
    targets = pack.targets * float(pack.y_gain) + float(pack.y_offset)
    missing = "Finding the best number takes the training rows, which a pack does not hold."
    if found.export is not None:
        missing = f"They were chosen by {found.export.method}. Other numbers of anchors were not "
        missing += "measured: a quick report leaves them out."
    return Chapter(
        "anchors",
        "How many anchors",
        (
            f"The pack holds {number(len(targets), 'anchor')}{dealt}{near}, "
            f"training points with a {found.target} of {float(np.min(targets)):.4g} to "
            f"{float(np.max(targets)):.4g}. {missing}",
            *_remarks(found),
        ),
        checks=(Check(_anchors_command(found), "how many are enough"),) if found.run else (),
    )


def _anchors_command(found: Findings) -> str:
    return shlex.join(["twinedge", "anchors", found.place])


def _remarks(found: Findings) -> tuple[str, ...]:
    remarks = () if found.export is None else found.export.remarks
    return tuple(f"{_capital(remark).rstrip('.')}." for remark in remarks)


def _size_line(found: Findings) -> str:
    assert found.export is not None
    mine = next(one for one in found.sizes if one.anchors == found.model.anchors)
    evaluator = found.export.evaluator
    tested, held = evaluator.all_anchors_test, evaluator.all_anchors
    everything = {"test": tested, "validation": held}.get(found.judged.name)
    line = f"The pack has an error of {mine.rmse:.4g} in {mine.bytes:,} bytes"
    if everything is not None:
        about = "" if everything.is_exact else "about "
        line += "; the float model with all training points as anchors has "
        line += f"{about}{everything.rmse:.4g}"
    return f"{line}."


def _curve_rows(found: Findings) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for one in found.drivers:
        every = max(1, (len(one.curve) - 1) // (_TOLD - 1)) if len(one.curve) > _TOLD else 1
        for point in one.curve[::every]:
            value = point.value if isinstance(point.value, str) else f"{point.value:.6g}"
            ends = (None if np.isnan(end) else end for end in point[2:])
            value = f"{value} {one.unit}".rstrip()
            rows.append((f"{one.column} = {value}", point.mean, *ends))
    return rows


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
