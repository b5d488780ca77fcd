"""Files of results: what was measured, on which machine, and by which version of the training."""

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import describe
from twinedge.atomic_files import write_file
from twinedge.training import VERSION

RESULTS = Path(__file__).parents[1] / "results"

Cells = dict[str, dict[str, Any]]
Record = dict[str, Any]


def results_of(name: str) -> Path:
    """Return the file of results of a benchmark."""
    return RESULTS / f"{name}.json"


def command_line(page: str | None, results: Path) -> argparse.ArgumentParser:
    """Return a parser that shows the page of a script, with the option that all scripts have."""
    parser = argparse.ArgumentParser(
        description=page, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=results, help="file of results")
    return parser


def read_record(path: Path) -> Record:
    """Read a file of results; empty if there is none."""
    found: Record = json.loads(path.read_text()) if path.exists() else {}
    return found


def write_record(path: Path, packages: tuple[str, ...], **content: Any) -> Record:
    """Write results and machine atomically, each cell on a line of its own; return the record.

    The machine is this one, unless all cells are those that the file had before: then it stays as
    it is, since nothing was measured here.
    """
    old = read_record(path)
    same = "cells" in old and old["cells"] == json.loads(json.dumps(content.get("cells")))
    record = {"machine": old["machine"] if same else describe(*packages), **content}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, _text(record) + "\n")
    return record


def _text(record: Record, indent: str = "") -> str:
    """Format a record: cells line by line, those that are unfinished last."""
    nested = {key: record[key] for key in ("cells", "unfinished") if key in record}
    plain = {key: one for key, one in record.items() if key not in nested}
    parts = [json.dumps(plain, indent=1)[1:-2].replace("\n", f"\n{indent}")] if plain else []
    for key, one in nested.items():
        if key == "unfinished":
            inside = _text(one, indent + " ")
        else:
            lines = (f"\n{indent}  {json.dumps(name)}: {json.dumps(one[name])}" for name in one)
            inside = "{" + ",".join(lines) + f"\n{indent} }}"
        parts.append(f"\n{indent} {json.dumps(key)}: {inside}")
    return "{" + ",".join(parts) + f"\n{indent}}}"


def publish(path: Path, packages: tuple[str, ...], **content: Any) -> None:
    """Write the record, and print it on one line, but for single cells."""
    print_record(write_record(path, packages, **content))


def print_record(record: Record) -> None:
    """Print a record on one line, but for single cells."""
    print(json.dumps({key: one for key, one in record.items() if key != "cells"}))


def published_cells(name: str) -> Cells:
    """Return the published cells of another benchmark, if they are of today's training."""
    record = read_record(results_of(name))
    return record["cells"] if record.get("training") == VERSION else {}


def lines_of(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and content of each cell in the files of a folder, one per line."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            with suppress(ValueError):  # truncated when a run was stopped
                cell = json.loads(line)
                yield cell.pop("cell"), cell
