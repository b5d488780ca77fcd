"""A fleet as one page that needs nothing else: no scripts, no files, no network."""

from collections.abc import Iterable, Sequence
from html import escape

from twinedge.fleet.checks import FALSE_ALARMS
from twinedge.fleet.survey import Fleet
from twinedge.fleet.words import (
    HEADER,
    coverage_in_words,
    retraining_in_words,
    row_of,
    totals_in_words,
)
from twinedge.wording import plural

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
        "By how far the mean error is from zero for certain: two standard errors are taken off, "
        "so that one point does not top the list.",
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
_SERIOUS = ("off", "drifting", "interval")
_WORDS = {0, len(HEADER) - 1}  # columns of text


def page_of(fleet: Fleet, pack: str, top: int, style: str) -> str:
    """Write the page.

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
    light = "go" if not totals["need_a_look"] else "limit"
    facts = (
        ("Devices", f"{totals['devices']:,}", plural(totals["points"], "point")),
        ("Need a look", f"{totals['need_a_look']:,}", f"{totals['off']} off"),
        ("Drifting", f"{totals['drifting']:,}", f"{totals['glitch']} with glitches"),
        ("Interval fails", f"{totals['interval']:,}", "even as adapted"),
    )
    sections = [
        _section(name, *_SECTIONS[name], _table(title, fleet.ranked(name)[:top]))
        for name, (title, _) in _SECTIONS.items()
    ]
    sections.append(_prose("retraining", "What retraining would bring", _retraining(fleet)))
    if fleet.unused:
        rows = [(one["file"], one["why"]) for one in fleet.unused]
        listed = _grid("Files that were not used", ("file", "why"), rows)
        sections.append(_section("unused", "Files that were not used", "", listed))
    cards = "\n".join(
        f'<div><dt>{escape(label)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="note">{escape(note)}</dd></div>'
        for label, value, note in facts
    )
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
<p class="verdict"><span class="light {light}">{escape(totals_in_words(fleet))}</span></p>
<dl class="facts">
{cards}
</dl>
<p>{escape(coverage_in_words(fleet))}</p>
</header>
<main id="content">
{"".join(sections)}</main>
<footer><p class="note">Made by twinedge. This page is self-contained.</p></footer>
</body>
</html>
"""


def _retraining(fleet: Fleet) -> list[str]:
    method = (
        "Ridge regression predicts the pack's errors from the features; it is always asked about "
        "devices that it has not seen, and stands in for the retrained network, which may find "
        "more. Points without weight are left out."
    )
    return [*retraining_in_words(fleet)[1:], method]


def _section(name: str, title: str, lead: str, body: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n'
        f'<h2 id="{name}-title">{escape(title)}</h2>\n'
        f"<p>{escape(lead)}</p>\n{body}</section>\n"
    )


def _prose(name: str, title: str, lines: Iterable[str]) -> str:
    first, *rest = lines
    return _section(name, title, first, "".join(f"<p>{escape(one)}</p>\n" for one in rest))


def _table(title: str, devices: Sequence[dict[str, object]]) -> str:
    return _grid(title, HEADER, [row_of(one) for one in devices])


def _grid(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; the first cell of a row names it, and findings get a light."""
    words = _WORDS if header is HEADER else set(range(len(header)))

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
