"""What benchmarks share around a measurement: options, the file of results, and lines of cells."""

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from machine import describe

from twinedge.atomic_files import write_file


def command_line(
    page: str | None, results: Path, cells: Path | None = None
) -> argparse.ArgumentParser:
    """Return a parser that shows the page of a script, with the options that most scripts have.

    ``cells`` is the folder of lines of a script that computes cells in several processes.
    """
    parser = argparse.ArgumentParser(
        description=page, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=results)
    if cells is not None:
        parser.add_argument("--jobs", type=int, default=1, help="processes")
        parser.add_argument("--cells", type=Path, default=cells, help="folder of lines of cells")
        parser.add_argument("--no-compute", action="store_true", help="use existing cells only")
    return parser


def write_record(path: Path, packages: tuple[str, ...], **content: Any) -> dict[str, Any]:
    """Write results and machine atomically, each cell on a line of its own; return the record.

    The machine is this one, unless all cells are those that the file had before: then it stays as
    it is, since nothing was measured here.
    """
    old = json.loads(path.read_text()) if "cells" in content and path.exists() else {}
    same = bool(old) and old["cells"] == json.loads(json.dumps(content["cells"]))
    record = {"machine": old["machine"] if same else describe(*packages), **content}
    text = json.dumps({key: one for key, one in record.items() if key != "cells"}, indent=1)
    if "cells" in content:
        cells = (f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in record["cells"].items())
        text = text.removesuffix("\n}") + ',\n "cells": {\n' + ",\n".join(cells) + "\n }\n}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text + "\n")
    return record


def publish(path: Path, packages: tuple[str, ...], **content: Any) -> None:
    """Write the record, and print it on one line, but for single cells."""
    record = write_record(path, packages, **content)
    print(json.dumps({key: one for key, one in record.items() if key != "cells"}))


def lines_of(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and content of each cell in the files of a folder, one per line."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            with suppress(ValueError):  # truncated when a run was stopped
                cell = json.loads(line)
                yield cell.pop("cell"), cell


def read_cells(results: Path, folder: Path) -> dict[str, Any]:
    """Cells of the result file and of all files of lines in a folder, by name; the latest count."""
    found = json.loads(results.read_text())["cells"] if results.exists() else {}
    found.update(lines_of(folder))
    return {key: found[key] for key in sorted(found)}
