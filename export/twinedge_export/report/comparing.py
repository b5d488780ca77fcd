"""Several models side by side: accuracy, intervals, bytes and boards on one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from twinedge.errors import InputError
from twinedge.scoring.scores import Coverage
from twinedge.wording import format_range, joined
from twinedge_export.report.costs import made
from twinedge_export.report.document import (
    ANN,
    GRID,
    LIGHTS,
    MUTED,
    OTHER,
    TWIN,
    Cell,
    Chapter,
    Check,
    Document,
    Drawing,
    Fact,
    Grid,
    Light,
    Share,
    amount,
    beside_point,
    number,
    percent,
    plain,
    shape,
)
from twinedge_export.report.findings import Findings
from twinedge_export.report.reliability import compared
from twinedge_export.report.verdict import rows_in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = (("o", TWIN), ("s", ANN), ("D", OTHER), ("^", MUTED))
_HELD = ("fits", "fits, slowly")


def comparison(every: Sequence[Findings], command: str) -> Document:
    """Put the findings of several models into words.

    Raises
    ------
    InputError
        If they predict different things.
    """
    targets = list(dict.fromkeys(one.target for one in every))
    if len(targets) > 1:
        first, other = every[0], next(one for one in every if one.target != targets[0])
        raise InputError(
            f"{first.place} predicts {first.target!r} and {other.place} {other.target!r}: only "
            "models of one target can be compared"
        )
    names = labels([one.place for one in every])
    models = sorted(zip(names, every, strict=True), key=lambda one: one[1].judged.rmse)
    return Document(
        f"{number(len(models), 'model')} of {targets[0]} compared",
        _verdict(models),
        tuple(_lead(models)),
        tuple(_facts(models)),
        (
            _accuracy(models),
            _intervals(models),
            _memory(models),
            _boards(models),
            _origin(models, command),
        ),
    )


def labels(places: Sequence[str]) -> list[str]:
    """Shorten each path to the part that distinguishes it."""
    paths = [Path(one).resolve() for one in places]
    paths = [one.parent if one.name == "model.twin" else one for one in paths]
    for depth in range(1, max(len(one.parts) for one in paths) + 1):
        found = ["/".join(one.parts[-depth:]) for one in paths]
        if len(set(found)) == len(found):
            return found
    return list(places)


Named = tuple[str, Findings]


def _same_rows(models: Sequence[Named]) -> bool:
    first = models[0][1].judged.y
    return all(np.array_equal(first, one.judged.y) for _, one in models)


def _than(best: Findings, other: Findings) -> str:
    """Compare another model with the best on the same rows: "worse", if by more than chance."""
    return compared(best.judged.error, other.judged.error).than_the_twin


def _verdict(models: Sequence[Named]) -> Light:
    (name, best), *others = models
    if not _same_rows(models):
        return Light("limit", f"{name} has the least error, but the rows judged on differ.")
    close = [other for other, one in others if _than(best, one) != "worse"]
    if not close:
        return Light("go", f"{name} is the most accurate, by more than chance.")
    smallest = min([models[0], *((n, o) for n, o in others if n in close)], key=_bytes_of)[0]
    beside = f"{name} has the least error, though {joined(close)} may be as good"
    if smallest != name:
        return Light("go", f"{beside}; {smallest} is the smallest of these.")
    return Light("go", f"{beside}, and {'is' if len(close) == 1 else 'are'} no smaller.")


def _lead(models: Sequence[Named]) -> list[str]:
    errors = joined([f"{one.judged.rmse:.4g} of {name}" for name, one in models])
    lead = [f"Errors (root mean square): {errors}."]
    rows = list(dict.fromkeys(rows_in_words(one) for _, one in models))
    same = _same_rows(models)
    lead.append(
        f"All were judged on the same {rows[0]}."
        if same
        else f"They were judged on different rows ({joined(rows)}), so compare with care, or "
        "make the report on one table for all."
    )
    return lead


def _facts(models: Sequence[Named]) -> list[Fact]:
    name, best = models[0]
    smallest = min(models, key=_bytes_of)
    widest = max(models, key=lambda one: _held(one[1]))
    facts = [Fact("Most accurate", name, f"error {best.judged.rmse:.4g}")]
    scored = [(usual.interval_score, name) for name, usual in _usual(models)]
    if scored:
        score, sharp = min(scored)
        facts.append(Fact("Best intervals", sharp, f"interval score {score:.4g}, lower is better"))
    size = smallest[1].budget["twin_bytes"]
    held = f"{_held(widest[1])} of {len(widest[1].budget['boards'])} boards"
    return [
        *facts,
        Fact("Smallest", smallest[0], f"{size:,} bytes"),
        Fact("Most boards", widest[0], held),
    ]


def _accuracy(models: Sequence[Named]) -> Chapter:
    best, same = models[0][1], _same_rows(models)
    rows: list[tuple[Cell, ...]] = []
    for name, one in models:
        judged = one.judged
        word = "-" if one is best else _than(best, one) if same else "other rows"
        simple = {base.name: base.rmse for base in one.baselines}
        rows.append(
            (
                name,
                judged.rmse,
                None if judged.r2 is None else Share(judged.r2),
                float(judged.error.mean()),
                float(abs(judged.error).max()),
                simple.get("a linear model"),
                word,
                rows_in_words(one),
            )
        )
    columns = ("model", "RMSE", "variance explained", "mean error", "largest error")
    return Chapter(
        "accuracy",
        "How accurate they are",
        (f"Sorted by error of {best.target}, smallest first.",),
        (_errors_drawn(models), _bytes_drawn(models)),
        (
            Grid(
                "accuracy",
                "Errors",
                (*columns, "linear model", "beside the best", "judged on"),
                tuple(rows),
            ),
        ),
        (
            "Packs as exported, in the integers of the device. A model is worse than the best "
            "if the squared errors, row by row, differ by more than chance (90 % confidence).",
        ),
        tuple(
            Check(f"twinedge evaluate {one.file} {one.table}", f"errors of {name}")
            for name, one in models
            if not one.made_by
        ),
    )


def _intervals(models: Sequence[Named]) -> Chapter:
    rows = tuple(
        (name, Share(one.claimed), Share(one.covered), one.mean_width, one.interval_score)
        for name, one in _usual(models)
    )
    without = [name for name, one in models if one.usual is None]
    lead = ["The best intervals are narrow and still hold what they claim: the score covers both."]
    if without:
        lead.append(f"{joined(without)} {'has' if len(without) == 1 else 'have'} none.")
    columns = ("model", "claimed", "covered", "mean width", "interval score")
    return Chapter(
        "intervals",
        "What their intervals are worth",
        tuple(lead),
        (_coverage_drawn(models),) if rows else (),
        (Grid("intervals", "Intervals", columns, rows),) if rows else (),
        ("The score is the mean width plus 2 / (1 - claimed) times the mean miss.",),
    )


def _memory(models: Sequence[Named]) -> Chapter:
    return Chapter(
        "memory",
        "What they take",
        (),
        (),
        (
            Grid(
                "memory",
                "Shapes and bytes",
                ("model", "bytes", "twins", "hidden", "anchors", "weights", "multiply-adds"),
                tuple(
                    (
                        name,
                        one.budget["twin_bytes"],
                        one.model.twins,
                        shape(one.model.hidden),
                        one.model.anchors,
                        one.model.weights,
                        one.model.multiply_adds,
                    )
                    for name, one in models
                ),
            ),
        ),
        ("Bytes on a device, without names and row numbers.",),
        tuple(
            Check(f"twinedge budget {one.file}", f"bytes and boards of {name}")
            for name, one in models
            if not one.made_by
        ),
    )


def _boards(models: Sequence[Named]) -> Chapter:
    rows: list[tuple[Cell, ...]] = []
    for verdicts in zip(*(one.budget["boards"] for _, one in models), strict=True):
        cells: list[Cell] = [verdicts[0]["title"]]
        for one in verdicts:
            time = format_range(one["milliseconds_estimated"])
            words = one["verdict"] + (f", {time} ms" if time else "")
            cells.append(Light(LIGHTS[one["verdict"]], words))
        rows.append(tuple(cells))
    return Chapter(
        "boards",
        "Boards that hold them",
        ("With the estimated time of a query.",),
        (),
        (Grid("boards", "Boards", ("board", *(name for name, _ in models)), tuple(rows)),),
    )


def _origin(models: Sequence[Named], command: str) -> Chapter:
    first = next((one for _, one in models if one.run is not None), models[0][1])
    rows: list[tuple[Cell, ...]] = [
        *((f"model {name}", one.place) for name, one in models),
        *made(first, command),
    ]
    table = Grid("origin", "This report", ("what", "value"), tuple(rows))
    return Chapter(
        "origin", "How it was made", (), (), (table,), checks=(Check(command, "this page"),)
    )


def _errors_drawn(models: Sequence[Named]) -> Drawing:
    bars = [(name, one.judged.rmse) for name, one in models]

    def draw(axes: "Axes") -> None:
        names, values = zip(*bars, strict=True)
        drawn = axes.barh([plain(name) for name in names], values, color=TWIN, height=0.6)
        axes.bar_label(drawn, [f"{value:.4g}" for value in values], padding=4, fontsize=9)
        axes.set_xlim(0, 1.18 * max(values) or 1)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"error (RMSE) of {plain(models[0][1].target)}")

    told = ", ".join(f"{name} {value:.4g}" for name, value in bars)
    height = max(2.0, 0.8 + 0.4 * len(bars))
    return Drawing("errors", "Errors", f"Smallest error first: {told}.", draw, height=height)


def _bytes_drawn(models: Sequence[Named]) -> Drawing:
    points = [(name, one.budget["twin_bytes"], one.judged.rmse) for name, one in models]

    def draw(axes: "Axes") -> None:
        middle = (min(x for _, x, _ in points) + max(x for _, x, _ in points)) / 2
        for (name, x, y), (mark, colour) in zip(points, _marks(len(points)), strict=True):
            axes.plot(x, y, mark, color=colour, markersize=8)
            side, offset = ("right", -8) if x > middle else ("left", 8)
            beside_point(axes, plain(name), (x, y), (offset, 0), va="center", ha=side)
        axes.margins(0.2, 0.25)
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel("bytes on the device")
        axes.set_ylabel(f"RMSE of {plain(models[0][1].target)}")

    told = "; ".join(f"{name}: {x:,} bytes, error {y:.4g}" for name, x, y in points)
    return Drawing("bytes", "Error against bytes", f"{told}. Lower left is better.", draw)


def _coverage_drawn(models: Sequence[Named]) -> Drawing:
    usual = _usual(models)

    def draw(axes: "Axes") -> None:
        claimed = usual[0][1].claimed
        rows = min(len(one.judged.y) for _, one in models)
        luck = 1.96 * np.sqrt(claimed * (1 - claimed) / rows)
        axes.axhspan(claimed - luck, min(1.0, claimed + luck), color=GRID, linewidth=0)
        axes.axhline(claimed, color=MUTED, linewidth=1)
        for (name, one), (mark, colour) in zip(usual, _marks(len(usual)), strict=True):
            at = (one.mean_width, one.covered)
            axes.plot(*at, mark, color=colour, markersize=8)
            beside_point(axes, plain(name), at, (8, 4))
        axes.margins(0.25, 0.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.set_xlabel("mean width: lower is better")
        axes.set_ylabel("true values inside")

    told = "; ".join(
        f"{name}: {percent(one.covered)} inside, {one.mean_width:.4g} wide" for name, one in usual
    )
    title = f"Intervals of {percent(usual[0][1].claimed)}: held against width"
    return Drawing("coverage", title, f"{told}. The band is the range of chance.", draw)


def _marks(count: int) -> list[tuple[str, str]]:
    return [_MARKS[k % len(_MARKS)] for k in range(count)]


def _usual(models: Sequence[Named]) -> list[tuple[str, Coverage]]:
    return [(name, one.usual) for name, one in models if one.usual is not None]


def _bytes_of(model: Named) -> int:
    return int(model[1].budget["twin_bytes"])


def _held(found: Findings) -> int:
    return sum(one["verdict"] in _HELD for one in found.budget["boards"])
