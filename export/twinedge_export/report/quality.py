"""Sections on how good a model is, and how it comes to its predictions."""

import shlex

import numpy as np

from twinedge.wording import joined
from twinedge_export.report import figures
from twinedge_export.report.document import Cell, Check, Grid, Section, Share, number, percent
from twinedge_export.report.findings import Findings
from twinedge_export.report.importance import SHUFFLES
from twinedge_export.report.interactive import anchor_targets
from twinedge_export.report.learnt_curves import describe_target_curve
from twinedge_export.report.reliability import SizeBand, by_size
from twinedge_export.report.verdict import describe_rows, trust

_LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)  # coverages of a spread, shown in the table
_SHOWN = 9  # points of a curve shown in the table
_LITTLE = 0.02  # of the error: a column worth less counts as worth nothing
_THAN = {
    "better": "better than the twin by more than chance, so consider emlearn, which runs such "
    "trees on a microcontroller, if you need neither intervals nor learning on the device",
    "as good": "the difference from the twin may be chance",
    "worse": "worse than the twin by more than chance",
}


def accuracy(found: Findings) -> Section:
    """Compare predictions with the truth, and with other models."""
    predictions, validation = found.accuracy.predictions, found.accuracy.validation
    networks, trees = found.comparison.networks, found.comparison.trees
    errors = np.sort(abs(predictions.error))
    lead = [
        f"Half of the rows are off by less than {errors[len(errors) // 2]:.4g}, the worst by "
        f"{errors[-1]:.4g}. {_bias(found)}"
    ]
    if networks:
        best = min(networks, key=lambda one: one.rmse)
        lead.append(
            f"The best ordinary ensemble of the same bytes is {best.name}, with an error of "
            f"{best.rmse:.4g}."
        )
    if trees:
        lead.append(
            f"{trees.name.capitalize()}, which fit the same bytes, have an error of "
            f"{trees.rmse:.4g}: {_THAN[trees.rival.than_the_twin]}."
        )
    curve = describe_target_curve(found)
    lead += [] if curve is None else [curve]
    scored = [predictions]
    if validation is not None and predictions.name != "validation":
        scored.append(validation)
    others: list[tuple[Cell, ...]] = [
        (one.name, None, one.rmse) for one in found.accuracy.baselines
    ]
    others += [(one.name, one.bytes, one.rmse) for one in networks]
    others += [(trees.name, trees.bytes, trees.rmse)] if trees else []
    return Section(
        "accuracy",
        "How accurate it is",
        tuple(lead),
        (figures.predictions(found), figures.beside(found)),
        (
            Grid.of(
                "predictions",
                "Errors of the pack",
                scored,
                {
                    "points": lambda one: one.name,
                    "rows": lambda one: len(one.y),
                    "RMSE": lambda one: one.rmse,
                    "mean error": lambda one: float(one.error.mean()),
                    "largest error": lambda one: float(abs(one.error).max()),
                    "mean spread": lambda one: float(one.spread.mean()),
                },
            ),
            Grid(
                "rivals",
                "Errors of other models on the same rows",
                ("model", "bytes on the device", "RMSE"),
                tuple(others),
                folded=True,
            ),
        ),
        _how_accurate(found),
        _checks(found, "errors"),
    )


def _bias(found: Findings) -> str:
    """Describe whether predictions are too high or too low on the whole."""
    predictions = found.accuracy.predictions
    mean = float(predictions.error.mean())
    if abs(mean) < 0.1 * predictions.rmse:
        return "On the whole predictions are neither too high nor too low."
    return f"On average predictions are too {'high' if mean > 0 else 'low'} by {abs(mean):.3g}."


def _how_accurate(found: Findings) -> tuple[str, ...]:
    run = found.origin.run
    how = [
        f"The pack as exported, evaluated on {describe_rows(found)} in the integers of the device. "
        f"Errors and spread are in units of {found.target}; the spread is the standard deviation "
        "of the anchors' estimates."
    ]
    if run is None:
        return (
            *how,
            "The mean and the linear model were fitted to these rows, each row predicted by a fit "
            "to all others; rows that the twin learnt from would flatter it.",
        )
    how.append("The mean and the linear model (ridge) were fitted to the training rows.")
    if found.comparison.networks:
        how.append(
            f"Ordinary networks were trained for this report, {found.comparison.ann_steps:,} steps "
            "each with the activation of the twin and the best of five settings on the validation "
            f"rows, as wide as fits the bytes of the pack. The twin was trained "
            f"{run.model.steps_:,} steps after a longer search; a report can give them more. Their "
            "weights are not rounded, though their bytes are counted as if they were, which "
            "flatters them."
        )
    else:
        how.append("Ordinary networks were not trained: a quick report leaves them out.")
    if found.comparison.trees:
        how.append(
            "Trees are chosen from a few usual settings on the validation rows. Their bytes are "
            "those of emlearn's tables: 8 per decision, 4 per leaf."
        )
    return tuple(how)


def _checks(found: Findings, what: str) -> tuple[Check, ...]:
    """List commands that write the pack, if the report made it, and that print its scores."""
    origin = found.origin
    command = shlex.join(["twinedge", "evaluate", origin.file, origin.table])
    if not origin.made_by:
        return (Check(command, f"{what} on the same rows"),)
    written = Check(origin.made_by, "writes the pack, and prints its error")
    return (written, Check(command, f"{what} on your own rows"))


def intervals(found: Findings) -> Section:
    """Compare claimed and actual coverage of intervals, or of the spread without them."""
    scores, usual, drawing = found.intervals, found.usual, figures.coverage(found)
    if scores is None or usual is None or drawing is None:
        return _spread(found)
    pack, predictions = found.pack.device.pack, found.accuracy.predictions
    assert pack.intervals is not None
    parts = by_size(predictions, usual.claimed)
    lead = [
        f"Intervals that claim {percent(usual.claimed)} cover {percent(usual.covered)} of "
        f"{describe_rows(found)}, {trust(usual, found)}. They are {usual.mean_width:.4g} wide on "
        f"average; the rank correlation of width and error is {scores.rank_correlation:.2f}, where "
        "1 would rank all errors."
    ]
    drawings = [drawing]
    if len(parts) > 1:
        worst = min(parts, key=lambda one: one.covered or 0)
        lead.append(
            f"They hold least often where {found.target} lies between {worst.least:.4g} and "
            f"{worst.most:.4g}: {percent(worst.covered or 0)} of {worst.rows} rows."
        )
        drawings.append(figures.sizes(found, parts))
    how = [
        "Intervals as computed by the pack, in the integers of the device. They were calibrated on "
        f"{number(pack.intervals.rows, 'row')} that the training did not see: the errors there, "
        "in units of the scale, set the width of an interval. The grey band is where 95 of "
        f"100 counts over {scores.rows} rows would fall if intervals covered what they claim. The "
        "interval score is the mean width plus 2 / (1 - claimed) times the mean miss: lower is "
        f"better. Widths, scores and errors are in units of {found.target}."
    ]
    if predictions.name == "validation":
        how.append("These are the rows that intervals were calibrated on, which flatters them.")
    levels = Grid.of(
        "intervals",
        "Coverage by level",
        scores.intervals,
        {
            "claimed": lambda one: Share(one.claimed),
            "covered": lambda one: Share(one.covered),
            "mean width": lambda one: one.mean_width,
            "interval score": lambda one: one.interval_score,
        },
    )
    return Section(
        "intervals",
        "What an interval is worth",
        tuple(lead),
        tuple(drawings),
        (levels, _by_size(found, parts)),
        tuple(how),
        _checks(found, "coverage, width and score"),
    )


def _spread(found: Findings) -> Section:
    spread, drawing = found.reliability, figures.coverage(found)
    if spread is None or drawing is None:
        return Section(
            "spread",
            "What the spread is worth",
            ("One estimate has no spread: export at least two anchors to have one.",),
        )
    lead = [
        f"Intervals of the spread that claim 90 % cover {percent(spread.at(0.9).covered)} of "
        f"{describe_rows(found)}. The rank correlation of spread and error is "
        f"{spread.correlation:.2f}; 1 would rank all errors correctly."
    ]
    if spread.factor is not None:
        lead.append(
            f"Multiplied by {spread.factor:.3g}, a factor found on the validation rows, the spread "
            f"covers {percent(spread.at(0.9).scaled or 0)}. The pack returns the spread without it."
        )
    levels = Grid.of(
        "spread",
        "Coverage by level",
        map(spread.at, _LEVELS),
        {
            "claimed": lambda one: Share(one.claimed),
            "covered": lambda one: Share(one.covered),
            "covered with the factor": lambda one: (
                None if one.scaled is None else Share(one.scaled)
            ),
        },
    )
    return Section(
        "spread",
        "What the spread is worth",
        tuple(lead),
        (drawing,),
        (levels, _by_size(found, by_size(found.accuracy.predictions, None))),
        (
            "An interval is the prediction plus and minus z spreads, z as for a normal "
            f"distribution. The grey band is where 95 of 100 counts over {spread.points} rows "
            "would fall if the spread covered what it claims. All estimates share one network, so "
            "their spread misses the error they have in common. The factor is chosen so that as "
            "many validation rows lie within one spread as claimed.",
        ),
        _checks(found, "errors and spread"),
    )


def _by_size(found: Findings, parts: tuple[SizeBand, ...]) -> Grid:
    columns = {
        f"true {found.target}": lambda one: f"{one.least:.4g} to {one.most:.4g}",
        "rows": lambda one: one.rows,
        "RMSE": lambda one: one.rmse,
        "mean error": lambda one: one.mean_error,
    }
    if parts[0].covered is not None:
        columns["covered"] = lambda one: Share(one.covered or 0)
        columns["mean width"] = lambda one: one.mean_width
    return Grid.of("sizes", "By size of the target", parts, columns, folded=len(parts) > 1)


def importance(found: Findings) -> Section:
    """Show what each column is worth, and how the prediction depends on it."""
    first, *rest = found.importance
    predictions = found.accuracy.predictions
    # Behind a map, a pack holds no features of its anchors.
    middle = "anchors" if found.pack.device.pack.map is None else predictions.where
    lead = [
        f"{first.column} matters most: with its values shuffled, the error grows by "
        f"{first.worth:.3g}, to {predictions.rmse + first.worth:.3g}."
        if first.worth > 0
        else "No column matters by itself on these rows."
    ]
    idle = [one.column for one in rest if one.worth < _LITTLE * predictions.rmse]
    if idle:
        verb = "matters" if len(idle) == 1 else "matter"
        lead.append(f"{_capital(joined(idle))} hardly {verb} here.")
    return Section(
        "drivers",
        "What drives the prediction",
        tuple(lead),
        (figures.importance(found), figures.curves(found)),
        (
            Grid.of(
                "importance",
                "What each column is worth",
                found.importance,
                {
                    "column": lambda one: one.column,
                    "error grows by": lambda one: one.worth,
                    "give or take": lambda one: one.error,
                },
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
            f"values are shuffled among the {predictions.where}, {SHUFFLES} times; columns with "
            "the same information share their worth. Curves start from a typical row, "
            f"the middle of the {middle}, and change one column; the band is the interval of the "
            "pack.",
        ),
        (Check(f"twinedge predict {found.origin.file} rows.csv", "the prediction of any row"),),
    )


def _curve_rows(found: Findings) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for one in found.importance:
        every = max(1, (len(one.curve) - 1) // (_SHOWN - 1)) if len(one.curve) > _SHOWN else 1
        for point in one.curve[::every]:
            value = point.value if isinstance(point.value, str) else f"{point.value:.6g}"
            ends = (None if np.isnan(end) else end for end in point[2:])
            rows.append((f"{one.column} = {value} {one.unit}".rstrip(), point.mean, *ends))
    return rows


def predictor(found: Findings) -> Section:
    """Let a reader predict."""
    return Section(
        "try",
        "Try it",
        (
            "Set the values, and see what a device would predict: the page holds the pack, and the "
            "C runtime that runs on boards, compiled for browsers. The bits are the same.",
        ),
        checks=(
            Check(
                f"twinedge predict {found.origin.file} query.csv",
                "the same prediction, with the two lines below as query.csv",
            ),
        ),
        panel="try",
    )


def anchors(found: Findings) -> Section:
    """Show how the error falls with the number of anchors."""
    curve, best = found.comparison.curve, found.comparison.recommended
    command = shlex.join(["twinedge", "anchors", found.origin.place])
    done = found.origin.export
    remarks = () if done is None else done.remarks
    remarked = tuple(f"{_capital(remark).rstrip('.')}." for remark in remarks)
    if curve is None or best is None:
        checks = (Check(command, "how many are enough"),) if found.origin.run else ()
        lead = (_anchors_of_pack(found), *remarked)
        return Section("anchors", "How many anchors", lead, checks=checks)
    within = f"within {100 * curve.tolerance:g} % of all {curve.training_points} training points"
    chosen = f"{number(best.k, 'anchor')}, chosen by {best.method}"
    recommended = f"Recommended: {chosen}, the fewest {within}."
    if not best.within:
        recommended = f"No number of anchors tried is {within}; the most was {chosen}."
    errors = {(one.method, one.k): one.rmse_val for one in curve.points}
    predictions = found.accuracy.predictions
    return Section(
        "anchors",
        "How many anchors",
        (recommended, _describe_size(found), *remarked),
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
            Grid.of(
                "accuracy",
                "Error by bytes",
                found.comparison.sizes,
                {
                    "model": lambda one: f"twin, {number(one.anchors, 'anchor')}",
                    "bytes on the device": lambda one: one.bytes,
                    f"{predictions.name} RMSE": lambda one: one.rmse,
                },
                folded=True,
            ),
        ),
        (
            "Anchors are the training points in the pack: each makes one estimate. On the left, "
            f"the float model on {number(curve.validation_points, 'validation row')}, in units of "
            f"{found.target}; the band is 1 % wide. The training settings were chosen on "
            "these rows, too, so compare the points with each other, not with other models. "
            "Methods that look at the rows are scored on rows they did not see. On the right, "
            f"packs in the integers of the device on {predictions.where}.",
        ),
        (Check(command, "every way to choose, and the same recommendation"),),
    )


def _anchors_of_pack(found: Findings) -> str:
    pack, done = found.pack.device.pack, found.origin.export
    each = list(dict.fromkeys(pack.counts.tolist()))
    shares = "" if len(pack.twins) == 1 else f" ({' or '.join(map(str, each))} for each twin)"
    near = "" if not pack.neighbors else f", of which the {pack.neighbors} nearest predict"
    targets = anchor_targets(pack)
    missing = "Finding the best number takes the training rows, which a pack does not hold."
    if done is not None:
        missing = f"They were chosen by {done.method}. Other numbers of anchors were not measured: "
        missing += "a quick report leaves them out."
    return (
        f"The pack holds {number(len(targets), 'anchor')}{shares}{near}, training points with a "
        f"{found.target} of {float(np.min(targets)):.4g} to {float(np.max(targets)):.4g}. {missing}"
    )


def _describe_size(found: Findings) -> str:
    assert found.origin.export is not None
    model, evaluator = found.pack.model, found.origin.export.evaluator
    mine = next(one for one in found.comparison.sizes if one.anchors == model.anchors)
    tested, held = evaluator.all_anchors_test, evaluator.all_anchors
    known = {"test": tested, "validation": held}.get(found.accuracy.predictions.name)
    line = f"The pack has an error of {mine.rmse:.4g} in {mine.bytes:,} bytes"
    if known is not None:
        about = "" if known.is_exact else "about "
        line += "; the float model with all training points as anchors has "
        line += f"{about}{known.rmse:.4g}"
    return f"{line}."


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
