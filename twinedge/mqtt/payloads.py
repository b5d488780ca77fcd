"""Payloads: queries and true values that devices and people publish.

A query is a JSON object with the model's columns by name, or an array of them in order; of a model
with one column, also the bare number. A true value is a bare number, which belongs to the last
query of its site, or an object: ``{"value": 6.1}``, with the columns of a query if it is for
another, and the ``time`` of its measurement if that is not now. With derived inputs it is always
that of the last sample. Of a model for several targets it
is an object with their names; those that were not measured may be left out.
"""

import json
from collections.abc import Sequence
from math import isfinite, nan
from typing import Any, NamedTuple

from twinedge.encoding.derived import Clock
from twinedge.errors import InputError
from twinedge.runtime.device import Device
from twinedge.runtime.sample_streams import read_time, time_now
from twinedge.runtime.store import LARGEST_TIME
from twinedge.runtime.stream_reader import Query, QueryError, QueryReader

MOST_BYTES = 1 << 16  # of a payload


class Sample(NamedTuple):
    """What a payload measured: a query, or what its inputs are derived from.

    ``kept`` is what the answer repeats. Of a model with derived inputs, ``seconds`` is its time,
    as the payload says it or now, and ``group`` the stream that it names, if it does.
    """

    query: Query
    kept: dict[str, Any]
    seconds: float | None = None
    is_dated: bool = False
    group: str = ""


class Truth(NamedTuple):
    """True values, one for each target; without ``query`` they belong to the last of the site.

    NaN was not measured. ``time`` is in seconds since 1970, or None.
    """

    values: tuple[float, ...]
    query: Query | None
    time: int | None


class PayloadReader:
    """Reads payloads for a device.

    Parameters
    ----------
    device : Device
        The model that predicts.
    keep : sequence of str
        Keys of a query that its answer repeats.
    """

    def __init__(self, device: Device, keep: Sequence[str] = ()) -> None:
        measured = device.encoding.measured
        self._reader = QueryReader(measured, device.fillable[: len(measured.inputs)])
        self._columns = frozenset(measured.names)
        derived = device.encoding.derived
        self._clock = derived[0].clock if derived else None
        self._targets, self._keep = device.target_names, tuple(keep)

    def query(self, payload: bytes) -> Sample:
        """Read a query, and what is beside it.

        Raises
        ------
        QueryError
            If it cannot be read.
        """
        value = _loaded(payload)
        kept = {}
        if isinstance(value, dict):
            kept = {key: value[key] for key in self._keep if key in value}
        elif not isinstance(value, list):
            if len(self._columns) > 1:
                raise QueryError("not a JSON object with the columns of the model")
            value = [value]
        sample = Sample(self._reader.from_json(value), kept)
        return sample if self._clock is None else self._dated(sample, value, self._clock)

    def _dated(self, sample: Sample, value: Any, clock: Clock) -> Sample:
        """Add when a sample was measured, and of which stream it is."""
        beside = value if isinstance(value, dict) else {}
        is_dated = clock.time in beside
        try:
            seconds = (
                read_time(beside[clock.time], clock.notation, clock.time)
                if is_dated
                else time_now(clock.notation)
            )
        except InputError as error:
            raise QueryError(str(error)) from None
        group = beside.get(clock.group, "") if clock.group is not None else ""
        if isinstance(group, dict | list):
            raise QueryError(f"{clock.group}: names no group")
        return sample._replace(seconds=seconds, is_dated=is_dated, group=str(group))

    def truth(self, payload: bytes) -> Truth:
        """Read a true value.

        Raises
        ------
        QueryError
            If it cannot be read.
        """
        value = _loaded(payload)
        alone = len(self._targets) == 1
        if not isinstance(value, dict):
            if not alone:
                raise QueryError("not a JSON object with the names of the targets")
            return Truth((_number("the true value", value),), None, None)
        names = ("value",) if alone and self._targets[0] not in value else self._targets
        measured = [value.get(name) for name in names]
        if all(one is None for one in measured):
            raise QueryError(f"it has no {' or '.join(('value',) * alone + self._targets)}")
        values = (
            nan if one is None else _number(name, one)
            for name, one in zip(names, measured, strict=True)
        )
        query = None
        if self._clock is None and self._columns & value.keys():
            query = self._reader.from_json(value)
        time = value.get("time") if "time" not in self._columns else None
        if time is not None:
            time = int(_number("time", time))
            if not 0 <= time <= LARGEST_TIME:
                raise QueryError("time: not in seconds since 1970")
        return Truth(tuple(values), query, time)


def _loaded(payload: bytes) -> Any:
    try:
        return json.loads(payload.decode())
    except UnicodeDecodeError:
        raise QueryError("not UTF-8") from None
    except (ValueError, RecursionError):
        raise QueryError("not JSON" if payload else "empty") from None


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise QueryError(f"{name}: {json.dumps(value)[:40]} is not a number")
    return float(value)


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False
