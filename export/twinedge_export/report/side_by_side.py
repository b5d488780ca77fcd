"""Several models side by side: accuracy, intervals, bytes and boards on one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    Check,
    Document,
    Drawing,
    Fact,
    Grid,
    Light,
    Section,
    Share,
    amount,
    beside_point,
    number,
    percent,
    plain,
    shape,
)
from twinedge_export.report.figures import CHANCE, error_bars
from twinedge_export.report.findings import Findings
from twinedge_export.report.reliability import Predictions, compare_errors
from twinedge_export.report.verdict import boards_that_hold, describe_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = (("o", TWIN), ("s", ANN), ("D", OTHER), ("^", MUTED))
Named = tuple[str, Findings]


def side_by_side(every: Sequence[Findings], command: str) -> Document:
    """Put the findings of several models into words.

    Raises
    ------
    InputError
        If they predict different things.
    """
    first = every[0]
    for one in every:
        if one.target != first.target:
            raise InputError(
                f"{first.origin.place} predicts {first.target!r} and {one.origin.place} "
                f"{one.target!r}: only models of one target can be compared"
            )
    names = short_names([one.origin.place for one in every])
    models = sorted(zip(names, every, strict=True), key=lambda one: _predictions(one).rmse)
    return Document(
        f"{number(len(models), 'model')} of {first.target} compared",
        _verdict(models),
        _lead(models),
        _facts(models),
        (
            _accuracy(models),
            _intervals(models),
            _memory(models),
            _boards(models),
            _origin(models, command),
        ),
    )


def short_names(places: Sequence[str]) -> list[str]:
    """Shorten each path to the part that distinguishes it."""
    paths = [Path(one).resolve() for one in places]
    paths = [one.parent if one.name == "model.twin" else one for one in paths]
    for depth in range(1, max(len(one.parts) for one in paths) + 1):
        found = ["/".join(one.parts[-depth:]) for one in paths]
        if len(set(found)) == len(found):
            return found
    return list(places)


def _predictions(model: Named) -> Predictions:
    return model[1].accuracy.predictions


def _budget(model: Named) -> dict[str, Any]:
    return model[1].costs.budget


def _usual(models: Sequence[Named]) -> list[tuple[str, Coverage]]:
    """Names of the models that have intervals, and the usual intervals of each."""
    return [(name, one.usual) for name, one in models if one.usual is not None]


def _same_rows(models: Sequence[Named]) -> bool:
    first = _predictions(models[0]).y
    return all(np.array_equal(first, _predictions(one).y) for one in models)


def _than(best: Named, other: Named) -> str:
    """Compare another model with the best on the same rows: "worse", if by more than chance."""
    rival = compare_errors(_predictions(best).error, _predictions(other).error)
    return rival.than_the_twin


def _verdict(models: Sequence[Named]) -> Light:
    best, *others = models
    name = best[0]
    if not _same_rows(models):
        return Light("limit", f"{name} has the least error, but on different rows.")
    close = [one for one in others if _than(best, one) != "worse"]
    if not close:
        return Light("go", f"{name} is the most accurate, by more than chance.")
    smallest = min([best, *close], key=lambda one: int(_budget(one)["twin_bytes"]))[0]
    beside = f"{name} has the least error, though {joined(one for one, _ in close)} may be as good"
    if smallest != name:
        return Light("go", f"{beside}; {smallest} is the smallest of these.")
    return Light("go", f"{beside}, and {'is' if len(close) == 1 else 'are'} no smaller.")


def _lead(models: Sequence[Named]) -> tuple[str, ...]:
    errors = joined(f"{_predictions(one).rmse:.4g} of {one[0]}" for one in models)
    rows = list(dict.fromkeys(describe_rows(one) for _, one in models))
    scored = f"All were scored on the same {rows[0]}."
    if not _same_rows(models):
        scored = f"They were scored on different rows ({joined(rows)}), so compare with care, or "
        scored += "make the report on one table for all."
    return f"Errors (root mean square): {errors}.", scored


def _facts(models: Sequence[Named]) -> tuple[Fact, ...]:
    best = models[0]
    smallest = min(models, key=lambda one: int(_budget(one)["twin_bytes"]))
    widest = max(models, key=lambda one: len(boards_that_hold(_budget(one))))
    held = f"{len(boards_that_hold(_budget(widest)))} of {len(_budget(widest)['boards'])} boards"
    facts = [Fact("Most accurate", best[0], f"error {_predictions(best).rmse:.4g}")]
    scored = [(usual.interval_score, name) for name, usual in _usual(models)]
    if scored:
        score, sharp = min(scored)
        facts.append(Fact("Best intervals", sharp, f"interval score {score:.4g}, lower is better"))
    size = f"{_budget(smallest)['twin_bytes']:,} bytes"
    return (*facts, Fact("Smallest", smallest[0], size), Fact("Most boards", widest[0], held))


def _checks(models: Sequence[Named], command: str, what: str) -> tuple[Check, ...]:
    """Commands that check the packs that were given; ``command`` has places for file and table."""
    return tuple(
        Check(command.format(file=one.origin.file, table=one.origin.table), f"{what} of {name}")
        for name, one in models
        if not one.origin.made_by
    )


def _accuracy(models: Sequence[Named]) -> Section:
    best, same = models[0], _same_rows(models)

    def linear(model: Named) -> float | None:
        simple = {one.kind: one.rmse for one in model[1].accuracy.baselines}
        return simple.get("linear")

    def explained(model: Named) -> Share | None:
        r2 = _predictions(model).r2
        return None if r2 is None else Share(r2)

    def beside(model: Named) -> str:
        if model is best:
            return "-"
        return _than(best, model) if same else "other rows"

    table = Grid.of(
        "accuracy",
        "Errors",
        models,
        {
            "model": lambda one: one[0],
            "RMSE": lambda one: _predictions(one).rmse,
            "variance explained": explained,
            "mean error": lambda one: float(_predictions(one).error.mean()),
            "largest error": lambda one: float(abs(_predictions(one).error).max()),
            "linear model": linear,
            "beside the best": beside,
            "scored on": lambda one: describe_rows(one[1]),
        },
    )
    target = best[1].target
    rows = [(name, one.accuracy.predictions.rmse, TWIN) for name, one in models]
    height = max(2.0, 0.8 + 0.4 * len(rows))
    return Section(
        "accuracy",
        "How accurate they are",
        (f"Sorted by error of {target}, smallest first.",),
        (error_bars("errors", "Errors", rows, target, height), _draw_bytes(models)),
        (table,),
        (
            "Packs as exported, in the integers of the device. A model is worse than the best "
            "if the squared errors, row by row, differ by more than chance (90 % confidence).",
        ),
        _checks(models, "twinedge evaluate {file} {table}", "errors"),
    )


def _intervals(models: Sequence[Named]) -> Section:
    usual = _usual(models)
    without = [name for name, one in models if one.usual is None]
    lead = ["The best intervals are narrow and still hold what they claim: the score covers both."]
    if without:
        lead.append(f"{joined(without)} {'has' if len(without) == 1 else 'have'} none.")
    table = Grid.of(
        "intervals",
        "Intervals",
        usual,
        {
            "model": lambda one: one[0],
            "claimed": lambda one: Share(one[1].claimed),
            "covered": lambda one: Share(one[1].covered),
            "mean width": lambda one: one[1].mean_width,
            "interval score": lambda one: one[1].interval_score,
        },
    )
    return Section(
        "intervals",
        "What their intervals are worth",
        tuple(lead),
        (_draw_coverage(models),) if usual else (),
        (table,) if usual else (),
        ("The score is the mean width plus 2 / (1 - claimed) times the mean miss.",),
    )


def _memory(models: Sequence[Named]) -> Section:
    table = Grid.of(
        "memory",
        "Shapes and bytes",
        models,
        {
            "model": lambda one: one[0],
            "bytes": lambda one: _budget(one)["twin_bytes"],
            "twins": lambda one: one[1].pack.model.twins,
            "hidden": lambda one: shape(one[1].pack.model.hidden),
            "anchors": lambda one: one[1].pack.model.anchors,
            "weights": lambda one: one[1].pack.model.weights,
            "multiply-adds": lambda one: one[1].pack.model.multiply_adds,
        },
    )
    return Section(
        "memory",
        "What they take",
        (),
        tables=(table,),
        how=("Bytes on a device, without names and row numbers.",),
        checks=_checks(models, "twinedge budget {file}", "bytes and boards"),
    )


def _boards(models: Sequence[Named]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for verdicts in zip(*(_budget(one)["boards"] for one in models), strict=True):
        cells: list[Cell] = [verdicts[0]["title"]]
        for one in verdicts:
            time = format_range(one["milliseconds_estimated"])
            words = one["verdict"] + (f", {time} ms" if time else "")
            cells.append(Light(LIGHTS[one["verdict"]], words))
        rows.append(tuple(cells))
    table = Grid("boards", "Boards", ("board", *(name for name, _ in models)), tuple(rows))
    lead = ("With the estimated time of a query.",)
    return Section("boards", "Boards that hold them", lead, tables=(table,))


def _origin(models: Sequence[Named], command: str) -> Section:
    first = next((one for _, one in models if one.origin.run is not None), models[0][1])
    rows = [(f"model {name}", one.origin.place) for name, one in models]
    table = Grid("origin", "This report", ("what", "value"), (*rows, *made(first, command)))
    checks = (Check(command, "this page"),)
    return Section("origin", "How it was made", (), tables=(table,), checks=checks)


def _draw_bytes(models: Sequence[Named]) -> Drawing:
    points = [(one[0], _budget(one)["twin_bytes"], _predictions(one).rmse) for one in models]

    def draw(axes: "Axes") -> None:
        middle = (min(x for _, x, _ in points) + max(x for _, x, _ in points)) / 2
        for k, (name, x, y) in enumerate(points):
            mark, colour = _MARKS[k % len(_MARKS)]
            axes.plot(x, y, mark, color=colour, markersize=8)
            side, offset = ("right", -8) if x > middle else ("left", 8)
            beside_point(axes, plain(name), (x, y), (offset, 0), va="center", ha=side)
        axes.margins(0.2, 0.25)
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        axes.locator_params(axis="x", nbins=5)
        axes.set(xlabel="bytes on the device", ylabel=f"RMSE of {plain(models[0][1].target)}")

    listed = "; ".join(f"{name}: {x:,} bytes, error {y:.4g}" for name, x, y in points)
    return Drawing("bytes", "Error against bytes", f"{listed}. Lower left is better.", draw)


def _draw_coverage(models: Sequence[Named]) -> Drawing:
    usual = _usual(models)
    claimed = usual[0][1].claimed

    def draw(axes: "Axes") -> None:
        rows = min(len(_predictions(one).y) for one in models)
        luck = CHANCE * np.sqrt(claimed * (1 - claimed) / rows)
        axes.axhspan(claimed - luck, min(1.0, claimed + luck), color=GRID, linewidth=0)
        axes.axhline(claimed, color=MUTED, linewidth=1)
        for k, (name, one) in enumerate(usual):
            mark, colour = _MARKS[k % len(_MARKS)]
            at = (one.mean_width, one.covered)
            axes.plot(*at, mark, color=colour, markersize=8)
            beside_point(axes, plain(name), at, (8, 4))
        axes.margins(0.25, 0.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.set(xlabel="mean width: lower is better", ylabel="true values inside")

    listed = "; ".join(
        f"{name}: {percent(one.covered)} inside, {one.mean_width:.4g} wide" for name, one in usual
    )
    title = f"Intervals of {percent(claimed)}: held against width"
    return Drawing("coverage", title, f"{listed}. The band is the range of chance.", draw)
