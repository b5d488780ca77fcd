"""What drives a prediction: the importance of each column, and how the prediction follows it."""

from typing import NamedTuple

import numpy as np

from twinedge import scoring
from twinedge.encoding.calendars import CYCLES, Calendar, waves
from twinedge.encoding.derived import Derived
from twinedge.pack.contents import Array
from twinedge.runtime.pack_device import PackDevice
from twinedge_export.report.interactive import column_range, usual_query

SHUFFLES = 5
_MOST_WORK = 40_000  # predictions
_POINTS = 33
_HOURS = 3  # between the points of a week
_OF_THE_WEEK = "hours since Monday, UTC"


class CurvePoint(NamedTuple):
    """A prediction at one value of a column, a number or level; low and high may be NaN."""

    value: float | str
    mean: float
    low: float
    high: float


class Importance(NamedTuple):
    """A column.

    ``worth`` is how much the error grows when its values are shuffled among the rows, ``error`` the
    standard deviation of that over several shuffles, both in units of the target. ``curve`` has
    predictions from a typical row as the column runs through its range; a time runs through a week,
    and ``unit`` says so.
    """

    column: str
    worth: float
    error: float
    curve: tuple[CurvePoint, ...]
    unit: str = ""


def importance(
    device: PackDevice, points: tuple[Array, Array], seed: int
) -> tuple[Importance, ...]:
    """Measure what each column is worth on these points, the largest first."""
    X, y = points
    encoding = device.encoding
    every = max(1, -(-len(y) * len(encoding.names) * SHUFFLES // _MOST_WORK))
    X, y = X[::every], y[::every]
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(y)) for _ in range(SHUFFLES)]
    least = scoring.rmse(device.predict(X), y)
    found = []
    for number, (name, part) in enumerate(zip(encoding.names, encoding.parts, strict=True)):
        rises = []
        for order in orders:
            shuffled = X.copy()
            shuffled[:, part] = X[order, part]
            rises.append(scoring.rmse(device.predict(shuffled), y) - least)
        worth, error = float(np.mean(rises)), float(np.std(rises))
        unit = _OF_THE_WEEK if isinstance(encoding.kinds[number], Calendar) else ""
        found.append(Importance(name, worth, error, _curve(device, number, points[0]), unit))
    return tuple(sorted(found, key=lambda one: -one.worth))


def _curve(device: PackDevice, column: int, rows: Array) -> tuple[CurvePoint, ...]:
    part, kind = device.encoding.parts[column], device.encoding.kinds[column]
    values: list[float | str]
    if isinstance(kind, Calendar):
        length, start = CYCLES["week"]
        monday = kind.middle - (kind.middle - start) % length
        hours = np.arange(0, length // 3600 + 1, _HOURS)
        values, cells = hours.astype(float).tolist(), waves(monday + 3600 * hours)
    elif isinstance(kind, Derived | None):
        span = column_range(device, part.start, rows)
        along = np.linspace(span.least, span.most, _POINTS)
        values, cells = along.tolist(), along[:, None]
    else:
        values, cells = list(kind.labels), np.eye(kind.width)
    queries = np.tile(usual_query(device, rows), (len(values), 1))
    queries[:, part] = cells
    found = device.predict_all(queries)
    nothing = np.full(len(values), np.nan)
    low, high = (nothing if end is None else end for end in (found.low, found.high))
    columns = values, found.mean.tolist(), low.tolist(), high.tolist()
    return tuple(CurvePoint(*one) for one in zip(*columns, strict=True))
