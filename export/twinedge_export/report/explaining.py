"""Sections on how a model comes to its predictions: what drives them, to be tried, and anchors."""

import shlex

import numpy as np

from twinedge_export.report import figures
from twinedge_export.report.document import Cell, Check, Section, Table
from twinedge_export.report.drivers import SHUFFLES
from twinedge_export.report.findings import Findings
from twinedge_export.report.words import listed, number

_TOLD = 9  # points of a curve in the table
_LITTLE = 0.02  # of the error: a column that is worth less is worth nothing


def drivers(found: Findings) -> Section:
    """Say what each column is worth, and how the prediction follows it."""
    first, *rest = found.drivers
    error = found.judged.rmse
    lead = f"{first.column} matters most: with its values shuffled the error grows by "
    lead += f"{first.worth:.3g}, to {error + first.worth:.3g}."
    if first.worth <= 0:
        lead = "No column matters by itself on these rows."
    idle = [one.column for one in rest if one.worth < _LITTLE * error]
    said = [lead]
    if idle:
        verb = "matters" if len(idle) == 1 else "matter"
        said.append(f"{_capital(listed(idle))} hardly {verb} here.")
    return Section(
        "drivers",
        "What drives the prediction",
        tuple(said),
        (figures.importance(found), figures.curves(found)),
        (
            Table(
                "importance",
                "What each column is worth",
                ("column", "error grows by", "give or take"),
                tuple((one.column, one.worth, one.error) for one in found.drivers),
                folded=True,
            ),
            Table(
                "curves",
                "Predictions from a usual row, one column at a time",
                ("column and value", "prediction", "low", "high"),
                tuple(_curve_rows(found)),
                folded=True,
            ),
        ),
        (
            "Computed with the pack. What a column is worth: its values are dealt out among the "
            f"{found.judged.where} at random, {SHUFFLES} times, and the error grows by so much; "
            "columns that tell the same share what they are worth. Curves start from a usual row, "
            "the middle of the anchors, and change one column; the band is the interval of the "
            "pack.",
        ),
        (Check(f"twinedge predict {found.file} rows.csv", "the prediction of any row"),),
    )


def trial(found: Findings) -> Section:
    """Let a reader ask for predictions."""
    return Section(
        "try",
        "Try it",
        (
            "Set the values, and see what a device would answer: the page holds the pack, and the "
            "C runtime that runs on boards, compiled for browsers. It gives the same bits.",
        ),
        checks=(
            Check(
                f"twinedge predict {found.file} query.csv",
                "the same prediction, with the two lines below as query.csv",
            ),
        ),
        panel="try",
    )


def anchors(found: Findings) -> Section:
    """How the error falls with the number of anchors."""
    curve, best = found.anchors, found.recommended
    if curve is None or best is None:
        return _anchors_alone(found)
    within = f"within {100 * curve.tolerance:g} % of all {curve.training_points} training points"
    chosen = f"{number(best.k, 'anchor')}, chosen by {best.method}"
    lead = [
        f"Recommended: {chosen}, the fewest {within}."
        if best.within
        else f"No number of anchors that was tried is {within}; the most: {chosen}.",
        _size_line(found),
    ]
    errors = {(one.method, one.k): one.rmse_val for one in curve.points}
    return Section(
        "anchors",
        "How many anchors",
        (*lead, *_remarks(found)),
        (figures.anchors(found), figures.accuracy(found)),
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
            Table(
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
            "Anchors are the training points that travel: each gives one estimate. On the left, "
            f"the float model on {number(curve.validation_points, 'validation row')}, in units of "
            f"{found.target}; the band is 1 % wide. The settings of the training were chosen on "
            "these rows, too, so compare the points with each other, not with another model. "
            "Choices that look at the rows are judged on rows they were not made on. On the right, "
            f"packs in the integers of the device on {found.judged.where}.",
        ),
        (Check(_anchors_command(found), "every way to choose, and the same recommendation"),),
    )


def _anchors_alone(found: Findings) -> Section:
    pack = found.device.pack
    each = list(dict.fromkeys(pack.counts.tolist()))
    dealt = "" if len(pack.twins) == 1 else f" ({' or '.join(map(str, each))} for each twin)"
    near = "" if not pack.neighbors else f", of which the {pack.neighbors} nearest predict"
    targets = pack.targets * float(pack.y_gain) + float(pack.y_offset)
    missing = "Whether more or fewer would do takes the training rows, which a pack does not hold."
    if found.export is not None:
        missing = f"They were chosen by {found.export.method}. Other numbers of anchors were not "
        missing += "measured: the report was made with --quick."
    return Section(
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
    judge = found.export.judge
    everything = {"test": judge.everyone_test, "validation": judge.everyone}.get(found.judged.name)
    line = f"The pack has an error of {mine.rmse:.4g} in {mine.bytes:,} bytes"
    if everything is not None:
        about = "" if everything.compared == everything.points else "about "
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
            rows.append((f"{one.column} = {value}", point.mean, *ends))
    return rows


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
