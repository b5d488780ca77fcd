"""The style that all figures share."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# On one machine, the same numbers give the same bytes.
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "twinedge",  # ids by content, not at random
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextmanager
def styled(more: dict[Any, Any]) -> Iterator["type[Figure]"]:
    """Yield matplotlib's ``Figure`` in this style, with ``more`` settings."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it logs its font cache
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**STYLE, **more}):
        yield Figure
