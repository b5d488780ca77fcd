"""A fleet in words and numbers for people: the same on a terminal and on a page."""

from datetime import datetime, timezone
from typing import Any

from twinedge.fleet.retraining import LEAST_DEVICES
from twinedge.fleet.survey import Fleet
from twinedge.wording import plural

HEADER = (
    *("device", "points", "rmse shipped", "rmse adapted", "mean error", "+-", "drift"),
    *("inside shipped", "inside adapted", "doubted", "damaged", "last", "findings"),
)
_FIRST_DATE = 1_000_000_000  # seconds since 1970; a smaller number may be a counter


def row_of(device: dict[str, Any]) -> list[str]:
    """Return what a table says of a device, under ``HEADER``."""
    return [
        device["device"],
        str(device["points"]),
        *(_number(device[name]) for name in ("rmse_shipped", "rmse_adapted")),
        *(_scales(device[name]) for name in ("mean_in_scales", "standard_error", "drift")),
        *(f"{device[name]:.2f}" for name in ("inside_shipped", "inside_adapted")),
        *(str(device[name]) for name in ("doubted", "damaged")),
        _time(device["last_time"]),
        ", ".join(device["findings"]) or "-",
    ]


def totals_in_words(fleet: Fleet) -> str:
    """Say how many devices there are, and how many need a look."""
    totals = fleet.totals
    reasons = [
        f"{totals[name]} {words}"
        for name, words in (
            ("off", "off"),
            ("drifting", "drifting"),
            ("interval", "outside the interval"),
            ("glitch", "with glitches"),
            ("damaged", "damaged"),
        )
        if totals[name]
    ]
    why = f": {', '.join(reasons)}" if reasons else ""
    unused = totals["unused_files"]
    more = f" {plural(unused, 'file')} could not be used." if unused else ""
    need = "needs" if totals["need_a_look"] == 1 else "need"
    return (
        f"{plural(totals['devices'], 'device')}, {plural(totals['points'], 'point')}; "
        f"{totals['need_a_look']} {need} a look{why}.{more}"
    )


def coverage_in_words(fleet: Fleet) -> str:
    """Say how many points are inside the interval."""
    totals = fleet.totals
    return (
        f"{_percent(totals['inside_shipped'])} of all points are inside the "
        f"{_percent(totals['coverage'])} interval as shipped, "
        f"{_percent(totals['inside_adapted'])} as adapted."
    )


def retraining_in_words(fleet: Fleet) -> list[str]:
    """Say how good intervals are, and what retraining would bring."""
    gain = fleet.gain
    if gain is None:
        few = f"What retraining would bring takes points of {LEAST_DEVICES} devices to say."
        return [coverage_in_words(fleet), few]
    verdict = (
        "Retraining with all points would bring"
        if gain.worthwhile
        else "Retraining would bring nothing for certain: estimated are"
    )
    return [
        coverage_in_words(fleet),
        f"{verdict} rmse {gain.rmse_shipped:.4g} to {gain.rmse_retrained:.4g} on new devices, and "
        f"{gain.rmse_adapted:.4g} to {gain.rmse_retrained_adapted:.4g} as adapted.",
        f"Of the squared error as shipped, {_percent(gain.shared)} is common to all devices (for "
        f"retraining), {_percent(gain.of_devices)} each device has for itself (for learning on "
        f"site), and {_percent(gain.rest)} is noise.",
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _scales(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _time(seconds: int | None) -> str:
    if seconds is None or seconds < _FIRST_DATE:
        return "-" if seconds is None else str(seconds)
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
