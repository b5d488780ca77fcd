"""A fleet for people: sentences and a table for a terminal, and a page that needs nothing else."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any

from twinedge.fleet.device_checks import FALSE_ALARMS, FINDINGS
from twinedge.fleet.evaluation import Fleet
from twinedge.fleet.retraining import LEAST_DEVICES
from twinedge.wording import plural

HEADER = (
    *("device", "points", "rmse shipped", "rmse adapted", "mean error", "+-", "drift"),
    *("inside shipped", "inside adapted", "suspect", "damaged", "last", "findings"),
)
_FIRST_DATE = 1_000_000_000  # seconds since 1970; a smaller number may be a counter


def table_row(device: dict[str, Any]) -> list[str]:
    """Return what a table says of a device, under ``HEADER``."""
    return [
        device["device"],
        str(device["points"]),
        *(_number(device[name], ".4g") for name in ("rmse_shipped", "rmse_adapted")),
        *(_number(device[name], ".2f") for name in ("mean_in_scales", "standard_error", "drift")),
        *(_number(device[name], ".2f") for name in ("inside_shipped", "inside_adapted")),
        *(str(device[name]) for name in ("suspect", "damaged")),
        _time(device["last_time"]),
        ", ".join(device["findings"]) or "-",
    ]


def describe_totals(fleet: Fleet) -> str:
    """Say how many devices there are, and how many need a look."""
    totals = fleet.totals
    other = {"interval": "outside the interval", "glitch": "with glitches"}
    reasons = [f"{totals[name]} {other.get(name, name)}" for name in FINDINGS if totals[name]]
    why = f": {', '.join(reasons)}" if reasons else ""
    unused = totals["unused_files"]
    more = f" {plural(unused, 'file')} could not be used." if unused else ""
    need = "needs" if totals["need_a_look"] == 1 else "need"
    return (
        f"{plural(totals['devices'], 'device')}, {plural(totals['points'], 'point')}; "
        f"{totals['need_a_look']} {need} a look{why}.{more}"
    )


def describe_coverage(fleet: Fleet) -> str:
    """Say how many points are inside the interval."""
    totals = fleet.totals
    return (
        f"{_percent(totals['inside_shipped'])} of all points are inside the "
        f"{_percent(totals['coverage'])} interval as shipped, "
        f"{_percent(totals['inside_adapted'])} as adapted."
    )


def describe_retraining(fleet: Fleet) -> list[str]:
    """Say what retraining would bring."""
    gain = fleet.gain
    if gain is None:
        return [
            f"Points of {LEAST_DEVICES} devices are needed to estimate what retraining would bring."
        ]
    certain = "" if gain.worthwhile else ": not a certain gain"
    return [
        f"Retraining with all points would change rmse from {gain.rmse_shipped:.4g} to "
        f"{gain.rmse_retrained:.4g} on new devices, and from {gain.rmse_adapted:.4g} to "
        f"{gain.rmse_retrained_adapted:.4g} as adapted{certain}.",
        f"Of the squared error as shipped, {_percent(gain.shared)} is common to all devices (for "
        f"retraining), {_percent(gain.of_devices)} is particular to each device (for learning on "
        f"site), and {_percent(gain.rest)} is noise.",
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _time(seconds: int | None) -> str:
    if seconds is None or seconds < _FIRST_DATE:
        return "-" if seconds is None else str(seconds)
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")


_SECTIONS = {
    "worst": (
        "Worst first",
        f"Each check is meant to name {100 * FALSE_ALARMS:g} of 100 healthy devices or fewer; that "
        "of intervals names up to 3 of 100 that have dozens of points. Errors are measured minus "
        "predicted; as adapted means predicted from the other points of the same device. Mean "
        "errors and drifts are in scales: how far off the pack expects itself to be.",
    ),
    "off": (
        "Who is off",
        "By how far the mean error is from zero for certain: two standard errors are subtracted, "
        "so that a device with one point does not come first.",
    ),
    "drift": (
        "Who drifts",
        "By the rank correlation of errors and their order. The drift is the median error of the "
        "later half of the points minus that of the earlier half.",
    ),
    "interval": (
        "Where the interval does not hold",
        "By the chance of so few points inside, each predicted from the others, if the interval "
        "held what it promises.",
    ),
}
_METHOD = (
    "Ridge regression predicts the pack's errors from the features, always for devices that it has "
    "not seen. It stands in for the retrained network, which may find more. Points without weight "
    "are left out."
)
_SERIOUS = ("off", "drifting", "interval")
_TEXT_COLUMNS = {0, len(HEADER) - 1}


def fleet_page(fleet: Fleet, pack: str, top: int, style: str) -> str:
    """Write the page, in HTML.

    Parameters
    ----------
    fleet : Fleet
        What to show.
    pack : str
        Name of the pack.
    top : int
        How many devices each ranking has.
    style : str
        Style sheet of the report.
    """
    totals, title = fleet.totals, f"Fleet of {pack}"
    light = "limit" if totals["need_a_look"] else "go"
    facts = (
        ("Devices", f"{totals['devices']:,}", plural(totals["points"], "point")),
        ("Need a look", f"{totals['need_a_look']:,}", f"{totals['off']} off"),
        ("Drifting", f"{totals['drifting']:,}", f"{totals['glitch']} with glitches"),
        ("Interval fails", f"{totals['interval']:,}", "even as adapted"),
    )
    cards = "\n".join(
        f'<div><dt>{escape(label)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="note">{escape(note)}</dd></div>'
        for label, value, note in facts
    )
    sections = []
    for name, (heading, lead) in _SECTIONS.items():
        rows = [table_row(one) for one in fleet.ranked(name)[:top]]
        sections.append(_section(name, heading, [lead], _table(heading, HEADER, rows)))
    retraining = [*describe_retraining(fleet), _METHOD]
    sections.append(_section("retraining", "What retraining would bring", retraining))
    if fleet.unused:
        heading, rows = "Files that were not used", [[*one.values()] for one in fleet.unused]
        sections.append(_section("unused", heading, [], _table(heading, ("file", "why"), rows)))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{style}section {{ display: block; }}
</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
<h1>{escape(title)}</h1>
<p class="verdict"><span class="light {light}">{escape(describe_totals(fleet))}</span></p>
<dl class="facts">
{cards}
</dl>
<p>{escape(describe_coverage(fleet))}</p>
</header>
<main id="content">
{"".join(sections)}</main>
<footer><p class="note">Made by twinedge. This page is self-contained.</p></footer>
</body>
</html>
"""


def _section(name: str, title: str, paragraphs: Iterable[str], table: str = "") -> str:
    prose = "".join(f"<p>{escape(one)}</p>\n" for one in paragraphs)
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n'
        f'<h2 id="{name}-title">{escape(title)}</h2>\n{prose}{table}</section>\n'
    )


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; the first cell of a row names it, and findings get a light."""
    words = _TEXT_COLUMNS if header is HEADER else set(range(len(header)))

    def kind(column: int) -> str:
        return "words" if column in words else "quantity"

    heads = "".join(
        f'<th scope="col" class="{kind(column)}">{escape(name)}</th>'
        for column, name in enumerate(header)
    )
    lines = []
    for first, *others in rows:
        cells = [
            f'<td class="{kind(column)}">{_cell(word, header[column])}</td>'
            for column, word in enumerate(others, 1)
        ]
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{"".join(cells)}</tr>\n')
    return (
        f'<div class="scroll" role="region" aria-label="{escape(title)}" tabindex="0">\n'
        f"<table>\n<caption>{escape(title)}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{''.join(lines)}</tbody>\n</table>\n</div>\n"
    )


def _cell(word: str, column: str) -> str:
    if column != "findings" or word == "-":
        return escape(word)
    state = "stop" if any(name in word for name in _SERIOUS) else "limit"
    return f'<span class="light {state}">{escape(word)}</span>'
