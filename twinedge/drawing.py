"""How figures are drawn: what those of all pages have in common."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The same numbers give the same bytes on one machine.
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "twinedge",  # ids by content, not at random
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextmanager
def styled(more: dict[Any, Any]) -> Iterator["type[Figure]"]:
    """Give what makes figures in this style, and with more of it; without a word on the way."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells about its font cache
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**STYLE, **more}):
        yield Figure
