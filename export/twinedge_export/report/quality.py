"""Sections on how good a model is: anchors, errors, intervals or spread."""

from twinedge_export.report import figures
from twinedge_export.report.document import Part, Section, Table
from twinedge_export.report.findings import Findings
from twinedge_export.report.words import ensemble, forest, number, percent

_LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)  # told in the table
_THAN = {
    "better": "better than the twin by more than chance, so consider emlearn, which runs such "
    "trees on a microcontroller, if you need neither intervals nor learning on the device",
    "as good": "the difference to the twin may be chance",
    "worse": "worse than the twin by more than chance",
}


def anchors(found: Findings) -> Section:
    """How the error falls with the number of anchors."""
    curve, best = found.anchors, found.recommended
    within = f"within {100 * curve.tolerance:g} % of all {curve.training_points} training points"
    chosen = f"{number(best.k, 'anchor')}, chosen by {best.method}"
    lead = (
        f"Recommended: {chosen}, the fewest {within}."
        if best.within
        else f"No number of anchors that was tried is {within}; the most: {chosen}."
    )
    errors = {(one.method, one.k): one.rmse_val for one in curve.points}
    return Section(
        "anchors",
        "How many anchors",
        (lead, *(f"{remark[0].upper()}{remark[1:]}." for remark in found.export.remarks)),
        (figures.anchors(found),),
        (
            Table(
                "anchors",
                "Validation error by number of anchors",
                ("anchors", *(f"RMSE, {method}" for method in curve.methods)),
                tuple(
                    (k, *(errors.get((method, k)) for method in curve.methods))
                    for k in curve.counts
                ),
                folded=True,
            ),
        ),
        (
            f"Error of the float model on {number(curve.validation_points, 'validation row')}, in "
            f"units of {found.run.target_name}; the band is 1 % wide. The settings of the training "
            "were chosen on these rows, too, so compare the points with each other, not with "
            "another model. Choices that look at the rows are judged on rows they were not made "
            "on. twinedge anchors measures every way to choose, and recommends the same.",
        ),
    )


def accuracy(found: Findings) -> Section:
    """Error against bytes, beside ordinary ensembles."""
    judged, rivals, trees = found.judged, found.rivals, found.trees
    lead = [_size_line(found)]
    if rivals:
        best = min(rivals, key=lambda one: one.rmse)
        lead.append(
            "Of ordinary ensembles that take the same bytes the best is "
            f"{ensemble(best.members, best.hidden)}, with an error of {best.rmse:.4g}."
        )
    if trees:
        lead.append(
            f"{forest(trees.family, trees.trees, trees.leaves).capitalize()}, which fit the same "
            f"bytes, have an error of {trees.rmse:.4g}: {_THAN[trees.than_the_twin]}."
        )
    steps = found.run.model.steps_
    how = [
        f"Errors on {_rows(found)}. Packs are computed in the integers of the device; anchors of "
        "other numbers are chosen the same way and put into the same pack."
    ]
    if rivals:
        how.append(
            f"Ordinary networks were trained for this report, {found.ann_steps:,} steps each with "
            f"the activation of the twin and the best of five settings on the validation rows, as "
            f"wide as fits the bytes of the pack. The twin was trained {steps:,} steps after a "
            "longer search: --ann-steps gives them more. Their weights are not rounded, though "
            "their bytes are counted as if they were, which flatters them."
        )
    else:
        how.append("Ordinary networks were not trained: the report was made with --quick.")
    if trees:
        how.append(
            "Trees are chosen among a few usual settings on the validation rows. Their bytes are "
            "those of emlearn's tables: 8 a decision, 4 a leaf."
        )
    return Section(
        "accuracy",
        "Error and bytes",
        tuple(lead),
        (figures.accuracy(found),),
        (
            Table(
                "accuracy",
                "Error by bytes",
                ("model", "bytes on the device", f"{judged.name} RMSE"),
                tuple(
                    (f"twin, {number(one.anchors, 'anchor')}", one.bytes, one.rmse)
                    for one in found.sizes
                )
                + tuple((ensemble(one.members, one.hidden), one.bytes, one.rmse) for one in rivals)
                + tuple(
                    (forest(one.family, one.trees, one.leaves), one.bytes, one.rmse)
                    for one in ([trees] if trees else [])
                ),
                folded=True,
            ),
        ),
        tuple(how),
    )


def predictions(found: Findings) -> Section:
    """Predictions of the pack beside the truth."""
    judged = found.judged
    r2 = "" if judged.r2 is None else f", and explains {percent(judged.r2)} of the variance"
    largest = float(abs(judged.error).max())
    return Section(
        "predictions",
        "Predicted and true",
        (
            f"The pack errs by {judged.rmse:.4g} (root mean square){r2}. The largest error is "
            f"{largest:.4g}, the mean spread {float(judged.spread.mean()):.4g}.",
        ),
        (figures.predictions(found),),
        (
            Table(
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
                    for one in (judged, *([found.validation] if judged.name == "test" else []))
                ),
            ),
        ),
        (
            f"The pack as exported, evaluated on {_rows(found)} in the integers of the device. "
            f"Errors and spread are in units of {found.run.target_name}; the spread is the "
            "standard deviation of the anchors' estimates.",
        ),
    )


def intervals(found: Findings) -> Section:
    """Whether intervals cover what they claim; of a pack that has none, whether the spread does."""
    scores, usual, drawing = found.intervals, found.usual, figures.coverage(found)
    if scores is None or usual is None or drawing is None:
        return _spread(found)
    pack = found.pack.pack
    assert pack is not None
    assert pack.intervals is not None
    calibrated = number(pack.intervals.rows, "validation row")
    how = [
        "Intervals as the pack gives them, in the integers of the device. They were calibrated on "
        f"{calibrated}: how far off such rows are, in units of the scale, is how far an interval "
        f"reaches. The grey band is where 95 of 100 counts over {scores.rows} rows would fall if "
        "intervals covered what they claim. The interval score is the mean width plus "
        "2 / (1 - claimed) times what is missed: less is better. Widths, scores and the scale are "
        f"in units of {found.run.target_name}."
    ]
    if found.judged.name == "validation":
        how.append("These are the rows that intervals were calibrated on, which flatters them.")
    return Section(
        "intervals",
        "How far the intervals can be trusted",
        (
            f"Intervals that claim {percent(usual.claimed)} cover {percent(usual.covered)} of "
            f"{_rows(found)} and are {usual.mean_width:.4g} wide on average. The mean scale is "
            f"{scores.mean_scale:.4g}; its rank correlation with the error is "
            f"{scores.rank_correlation:.2f}, where 1 would rank all errors.",
        ),
        (drawing,),
        (
            Table(
                "intervals",
                "Coverage",
                ("claimed", "covered", "mean width", "interval score"),
                tuple(
                    (Part(one.claimed), Part(one.covered), one.mean_width, one.interval_score)
                    for one in scores.intervals
                ),
            ),
        ),
        tuple(how),
    )


def _spread(found: Findings) -> Section:
    worth, drawing = found.reliability, figures.coverage(found)
    if worth is None or drawing is None:
        return Section(
            "spread",
            "How far the spread can be trusted",
            ("One estimate has no spread: export at least two anchors to have one.",),
        )
    lead = [
        f"Intervals that claim 90 % cover {percent(worth.at(0.9).covered)} of {_rows(found)}. "
        f"The rank correlation of spread and error is {worth.correlation:.2f}; 1 would rank all "
        "errors."
    ]
    if worth.factor is not None:
        lead.append(
            f"Multiplied by {worth.factor:.3g}, a factor found on the validation rows, the spread "
            f"covers {percent(worth.at(0.9).scaled or 0)}. The pack gives the spread as it is."
        )
    return Section(
        "spread",
        "How far the spread can be trusted",
        tuple(lead),
        (drawing,),
        (
            Table(
                "spread",
                "Coverage",
                ("claimed", "covered", "covered with the factor"),
                tuple(
                    (Part(one.claimed), Part(one.covered), _part(one.scaled))
                    for one in map(worth.at, _LEVELS)
                ),
            ),
        ),
        (
            "An interval is the prediction plus and minus z spreads, z as for a normal "
            f"distribution. The grey band is where 95 of 100 counts over {worth.points} rows would "
            "fall if the spread covered what it claims. All estimates share one network, so their "
            "spread does not see the error they have in common. The factor makes the validation "
            "rows within one spread as many as claimed.",
        ),
    )


def _size_line(found: Findings) -> str:
    mine = next(one for one in found.sizes if one.anchors == found.model.anchors)
    judge = found.export.judge
    everything = judge.everyone_test if found.judged.name == "test" else judge.everyone
    line = f"The pack has an error of {mine.rmse:.4g} in {mine.bytes:,} bytes"
    if everything is not None:
        about = "" if everything.compared == everything.points else "about "
        line += "; the float model with all training points as anchors has "
        line += f"{about}{everything.rmse:.4g}"
    return f"{line}."


def _rows(found: Findings) -> str:
    name, count = found.judged.name, len(found.judged.y)
    if count < found.rows:
        return f"{count:,} of {found.rows:,} {name} rows"
    missing = " (the run has no test rows)" if name == "validation" else ""
    return f"{number(count, f'{name} row')}{missing}"


def _part(part: float | None) -> Part | None:
    return None if part is None else Part(part)
