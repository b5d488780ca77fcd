"""What drives a prediction: how much each column is worth, and how the prediction follows it."""

from typing import NamedTuple

import numpy as np

from twinedge import scoring
from twinedge.encoding.calendars import CYCLES, Calendar, waves
from twinedge.pack.contents import Array
from twinedge.runtime.pack_device import PackDevice
from twinedge_export.report.interactive import span_of, usual_query

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


class Driver(NamedTuple):
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


def drivers(device: PackDevice, points: tuple[Array, Array], seed: int) -> tuple[Driver, ...]:
    """Find what each column is worth on these points, the largest first."""
    X, y = points
    encoding = device.encoding
    every = max(1, -(-len(y) * len(encoding.names) * SHUFFLES // _MOST_WORK))
    X, y = X[::every], y[::every]
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(y)) for _ in range(SHUFFLES)]
    least = _rmse(device, X, y)
    found = []
    for name, part, kind in zip(encoding.names, encoding.parts, encoding.kinds, strict=True):
        rises = []
        for order in orders:
            dealt = X.copy()
            dealt[:, part] = X[order, part]
            rises.append(_rmse(device, dealt, y) - least)
        worth, error = float(np.mean(rises)), float(np.std(rises))
        unit = _OF_THE_WEEK if isinstance(kind, Calendar) else ""
        found.append(Driver(name, worth, error, _curve(device, name), unit))
    return tuple(sorted(found, key=lambda one: -one.worth))


def _rmse(device: PackDevice, X: Array, y: Array) -> float:
    return scoring.rmse(device.predict(X), y)


def _curve(device: PackDevice, column: str) -> tuple[CurvePoint, ...]:
    number = device.encoding.names.index(column)
    part, kind = device.encoding.parts[number], device.encoding.kinds[number]
    values: list[float | str]
    if isinstance(kind, Calendar):
        length, start = CYCLES["week"]
        monday = kind.middle - (kind.middle - start) % length
        hours = np.arange(0, length // 3600 + 1, _HOURS)
        values, cells = hours.astype(float).tolist(), waves(monday + 3600 * hours)
    elif kind is None:
        span = span_of(device.pack, part.start)
        along = np.linspace(span.least, span.most, _POINTS)
        values, cells = along.tolist(), along[:, None]
    else:
        values, cells = list(kind.labels), np.eye(kind.width)
    queries = np.tile(usual_query(device.pack), (len(values), 1))
    queries[:, part] = cells
    said = device.predict_all(queries)
    nothing = np.full(len(values), np.nan)
    low, high = (nothing if end is None else end for end in (said.low, said.high))
    ends = zip(said.mean.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(CurvePoint(value, *one) for value, one in zip(values, ends, strict=True))
