"""What a notebook shows of a model: a small table of facts."""

from collections.abc import Mapping
from html import escape
from typing import Any


def facts_table(title: str, facts: Mapping[str, Any]) -> str:
    """Write facts as an HTML table; those that are None are left out.

    Examples
    --------
    >>> print(facts_table("Run", {"rows": 12, "error": None}))
    <table class="twinedge"><caption style="text-align:left">Run</caption>
    <tr><th scope="row" style="text-align:left">rows</th><td style="text-align:left">12</td></tr>
    </table>
    """
    left = 'style="text-align:left"'
    rows = [
        f'<tr><th scope="row" {left}>{escape(name)}</th><td {left}>{escape(shown(value))}</td></tr>'
        for name, value in facts.items()
        if value is not None
    ]
    head = f'<table class="twinedge"><caption {left}>{escape(title)}</caption>'
    return "\n".join([head, *rows, "</table>"])


def shown(value: Any) -> str:
    """Write a number in as many digits as a person reads."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def describe_networks(twins: int, hidden: tuple[int, ...], activation: str) -> str:
    """Describe the networks of a model.

    Examples
    --------
    >>> describe_networks(4, (56, 56), "relu")
    '4 twins of 56-56, relu'
    """
    noun = "twin" if twins == 1 else "twins"
    return f"{twins} {noun} of {'-'.join(map(str, hidden))}, {activation}"


def describe_intervals(coverages: Any, measured: Any = None) -> str | None:
    """Describe the intervals of a model, with the coverage of 90 % intervals if it was measured."""
    levels = sorted(float(one) for one in coverages)
    if not levels:
        return None
    words = "intervals of " + ", ".join(f"{100 * one:g} %" for one in levels)
    if isinstance(measured, float):
        words += f"; 90 % intervals held {100 * measured:.0f} % of the test rows"
    return words
