"""Find the entry of the troubleshooting page that explains an error message.

The page is the only place that knows which messages have an entry. Below a heading, a quoted line
is a message of that entry, with ``...`` for what differs from case to case.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PAGE = "troubleshooting.md"
# In the installed package, and in a checkout.
_FOLDERS = (Path(__file__).parent / "docs", Path(__file__).parents[1] / "docs")
_ANYTHING = "..."


class Entry(NamedTuple):
    """A message that the page explains: ``anchor`` is where, ``message`` its words."""

    anchor: str
    message: str

    def matches(self, message: str) -> bool:
        """Whether an error message is an instance of this one."""
        parts = map(re.escape, self.message.split(_ANYTHING))
        return re.search(".*".join(parts), message) is not None


def page() -> Path | None:
    """Return the page; None if it is not installed."""
    found = (folder / _PAGE for folder in _FOLDERS)
    return next((path for path in found if path.is_file()), None)


@cache
def entries(path: Path) -> tuple[Entry, ...]:
    """Return the messages that the page explains."""
    found, anchor = [], ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("#"):
            anchor = _anchor(line)
        elif line.startswith("> "):
            found.append(Entry(anchor, line[2:].strip()))
    return tuple(found)


def address_of(message: str) -> str | None:
    """Return where an error message is explained; None if it is not.

    Of several entries, the one that quotes the most words of the message is meant.
    """
    path = page()
    if path is None:
        return None
    fitting = [one for one in entries(path) if one.matches(message)]
    if not fitting:
        return None
    best = max(fitting, key=lambda one: len(one.message))
    return f"{path}#{best.anchor}"


def _anchor(heading: str) -> str:
    """Return the address of a heading within its page, as hosts of Markdown pages make it."""
    words = heading.lstrip("#").strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
