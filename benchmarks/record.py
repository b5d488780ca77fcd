"""The record of a benchmark: a file, a line on standard output, and lines of cells."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from machine import describe


def publish(path: Path, packages: tuple[str, ...], **content: Any) -> None:
    """Write results and machine atomically; print the same, but for single cells."""
    record = {"machine": describe(*packages), **content}
    beside = path.with_suffix(".partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(record, indent=1) + "\n")
    beside.replace(path)
    print(json.dumps({key: one for key, one in record.items() if key != "cells"}))


def lines_of(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and content of each cell in the files of a folder, one per line."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            with suppress(ValueError):  # truncated when a run was stopped
                cell = json.loads(line)
                yield cell.pop("cell"), cell


def read_cells(results: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Cells of the result file and of all files of lines in a folder, by name; the latest count."""
    found = json.loads(results.read_text())["cells"] if results.exists() else {}
    found.update(lines_of(folder))
    return {key: found[key] for key in sorted(found)}
