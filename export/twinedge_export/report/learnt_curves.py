"""The curves that a model learnt: of its columns, in front of the twins, and of the target."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twinedge import scoring
from twinedge.encoding.derived import Derived
from twinedge.pack import Pack, write_pack
from twinedge.pack.contents import Array
from twinedge.runtime.loading import load_pack_device
from twinedge.runtime.pack_device import PackDevice
from twinedge.wording import joined
from twinedge_export.report.document import (
    MUTED,
    TWIN,
    Check,
    Drawing,
    Grid,
    Section,
    number,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from twinedge_export.report.findings import Findings

_MOST_PANELS = 6
_STEPS = 33  # values of a column along its curve, besides its knots
_MOST_ROWS = 100  # that predictions along a curve are averaged over
_LITTLE = 0.01  # of the error: bends worth less count as worth nothing


class LearntCurve(NamedTuple):
    """The curve of one column.

    ``knots`` are in the user's units. ``worth`` is how much the error grows if the curve is
    straightened, in units of the target. Along ``values`` there are the mean predictions ``bent``,
    over rows that differ in all other columns, and ``straight``, with the straightened curve.
    """

    column: str
    knots: Array
    worth: float
    values: Array
    bent: Array
    straight: Array


def measure_curves(device: PackDevice, points: tuple[Array, Array]) -> tuple[LearntCurve, ...]:
    """Measure the curve of each numeric column that has one; those that matter most come first.

    Parameters
    ----------
    device : PackDevice
        Evaluates the pack.
    points : (X, y)
        Points to score on, whose other columns are those of the mean predictions.
    """
    pack, encoding, (X, y) = device.pack, device.encoding, points
    if pack.map is None:
        return ()
    error = scoring.rmse(device.predict(X), y)
    rows = X[:: -(-len(y) // _MOST_ROWS)]
    columns = {
        part.start: name
        for name, part, kind in zip(encoding.names, encoding.parts, encoding.kinds, strict=True)
        if isinstance(kind, Derived | None)
    }
    found = []
    for feature, place in pack.map.curves():
        if feature not in columns:  # one of several numbers that stand for a column
            continue
        gain, offset = float(pack.x_gain[feature]), float(pack.x_offset[feature])
        knots = pack.map.knots[place] / gain + offset
        values = np.union1d(knots, np.linspace(knots[0], knots[-1], _STEPS))
        with _loaded(straightened(pack, feature)) as other:
            bent, straight = (_average(one, rows, feature, values) for one in (device, other))
            worth = scoring.rmse(other.predict(X), y) - error
        found.append(LearntCurve(columns[feature], knots, worth, values, bent, straight))
    return tuple(sorted(found, key=lambda one: -one.worth))


def straightened(pack: Pack, feature: int) -> Pack:
    """Return a pack in which the curve of a feature is a straight line between its ends."""
    assert pack.map is not None
    place = next(one for number, one in pack.map.curves() if number == feature)
    inner = np.arange(place.start + 1, place.stop - 1)
    bins = pack.map.bins.copy()
    bins[feature] = 1
    knots, table = (np.delete(one, inner, axis=0) for one in (pack.map.knots, pack.map.table))
    return replace(pack, map=replace(pack.map, bins=bins, knots=knots, table=table))


@contextmanager
def _loaded(pack: Pack) -> Iterator[PackDevice]:
    """Load a pack that is no file."""
    with TemporaryDirectory() as room:
        path = Path(room) / "model.twin"
        path.write_bytes(write_pack(pack))
        yield load_pack_device(path)


def _average(device: PackDevice, rows: Array, feature: int, values: Array) -> Array:
    """Return the mean prediction over all rows at each value ``(n,)`` of a feature."""
    queries = np.tile(rows, (len(values), 1))
    queries[:, feature] = np.repeat(values, len(rows))
    means: Array = device.predict(queries).reshape(len(values), len(rows)).mean(axis=1)
    return means


def curves(found: "Findings") -> tuple[Section, ...]:
    """Return the section on curves in front of the twins, or nothing if there are none to show."""
    learnt, model = found.curves, found.pack.model
    if not learnt:
        return ()
    error = found.accuracy.predictions.rmse
    bent = [one for one in learnt if one.worth > _LITTLE * error]
    lead = [
        f"In front of the twins, {number(model.map_curves, 'feature')} of {model.features} went "
        f"through learnt curves: straight lines between {number(model.map_rows, 'knot')} in all."
    ]
    if bent:
        first = bent[0]
        lead.append(
            f"That of {first.column} matters most: if it were a straight line, the error would "
            f"grow by {first.worth:.3g}, to {error + first.worth:.3g}."
        )
    else:
        lead.append("No curve matters by itself on these rows.")
    idle = [one.column for one in learnt if one not in bent]
    if bent and idle:
        lead.append(f"The bends of {joined(idle)} hardly matter here.")
    hidden = model.map_curves - len(learnt)
    beside = f" {number(hidden, 'curve')} of numbers that stand for times are not shown." * (
        hidden > 0
    )
    return (
        Section(
            "learnt-curves",
            "Which curves it learnt",
            tuple(lead),
            (draw_curves(found),),
            (
                Grid.of(
                    "learnt-curves",
                    "What the bends of each curve are worth",
                    learnt,
                    {
                        "column": lambda one: one.column,
                        "knots": lambda one: len(one.knots),
                        "first knot": lambda one: float(one.knots[0]),
                        "last knot": lambda one: float(one.knots[-1]),
                        "error grows by, if straight": lambda one: one.worth,
                    },
                    folded=True,
                ),
            ),
            (
                "Computed with the pack. A solid line is the mean prediction over "
                f"{found.accuracy.predictions.where} as one column takes every value from its "
                "first knot to its last, and all others stay as they are; some of these "
                "combinations may never occur. The dashed line is the same with a straight line in "
                "place of this column's curve; so where the lines differ, the curve bends. Ticks "
                "at the bottom are the knots. Beyond the outermost knots, a curve stays what it is "
                "there, and only the straight part of a column's effect goes on." + beside,
            ),
            (Check(f"twinedge inspect {found.origin.file}", "the map among all other bytes"),),
        ),
    )


def draw_curves(found: "Findings") -> Drawing:
    """Draw mean predictions along the curves that matter most, bent and straightened."""
    shown = found.curves[:_MOST_PANELS]
    across = min(2, len(shown))
    down = -(-len(shown) // across)
    ends = [
        end for one in shown for line in (one.bent, one.straight) for end in (min(line), max(line))
    ]

    def draw(*panels: "Axes") -> None:
        room = 0.08 * (max(ends) - min(ends) or 1)
        for axes, one in zip(panels, shown, strict=False):
            axes.plot(one.values, one.straight, "--", color=MUTED, linewidth=1, label="straight")
            axes.plot(one.values, one.bent, color=TWIN, label="as learnt")
            at_bottom: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False}
            axes.plot(
                one.knots, np.zeros(len(one.knots)), "|", color=TWIN, markersize=7, **at_bottom
            )
            axes.set_ylim(min(ends) - room, max(ends) + room)
            axes.locator_params(axis="both", nbins=4)
            axes.set_title(plain(one.column), fontsize=10, loc="left")
        panels[0].legend(fontsize=8, loc="best", borderpad=0.2)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)

    listed = "; ".join(
        f"{one.column}, {number(len(one.knots), 'knot')}: {one.bent[0]:.4g} to {one.bent[-1]:.4g}, "
        f"at most {np.abs(one.bent - one.straight).max():.3g} off a straight curve"
        for one in shown
    )
    more = len(found.curves) - len(shown)
    rest = f" {number(more, 'curve')} more matter less." if more else ""
    return Drawing(
        "learnt-curves",
        f"{found.target} along its learnt curves".replace("\n", " "),
        f"Mean predictions along each column, as learnt and straightened. {listed}.{rest}",
        draw,
        (down, across),
        0.5 + 1.55 * down,
    )


_OF_TARGET = {
    "log": "the logarithm",
    "log1p": "the logarithm of one more than the value",
    "sqrt": "the square root",
}


def describe_target_curve(found: "Findings") -> str | None:
    """Say what a target curve makes of a prediction; None if the pack has none."""
    pack = found.pack.device.pack
    if pack.target_curve is None:
        return None
    about = pack.metadata.get("target_curve")
    kind = about.get("kind") if isinstance(about, dict) else None
    what = _OF_TARGET.get(str(kind), "a curve")
    return (
        f"The networks learnt {what} of {found.target}; a curve in the pack brings predictions "
        "back. So a prediction is a median: about as many true values lie above it as below. The "
        "mean of many true values lies a little higher, where errors are large. Intervals reach "
        "further up than down, and the spread is half the distance between the values one "
        "deviation to either side."
    )
