"""The record of a benchmark: a file of its own, and one line of JSON on standard output."""

import json
from pathlib import Path
from typing import Any

from machine import describe


def publish(path: Path, packages: tuple[str, ...], **content: Any) -> None:
    """Write what was measured, whole or not at all, with the machine; print the same."""
    record = {"machine": describe(*packages), **content}
    beside = path.with_suffix(".partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(record, indent=1) + "\n")
    beside.replace(path)
    print(json.dumps(record))
