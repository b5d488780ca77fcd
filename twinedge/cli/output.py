"""How results leave a command: a readable table, or one JSON object and nothing else."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def print_json(result: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    print(json.dumps(result, allow_nan=False))


def print_table(rows: Iterable[Sequence[str]], header: Sequence[str] | None = None) -> None:
    """Print rows in aligned columns; the first column to the left, numbers to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD if header else None, show_header=header is not None)
    lines = [tuple(map(str, row)) for row in rows]
    for column, title in enumerate(header or [""] * (len(lines[0]) if lines else 0)):
        words = [line[column] for line in lines]
        numbers = all(word.replace(".", "").replace("-", "").isdigit() for word in words)
        table.add_column(title, justify="right" if numbers and column else "left")
    for line in lines:
        table.add_row(*line)
    Console(highlight=False, soft_wrap=True).print(table)


def print_record(result: dict[str, Any]) -> None:
    """Print what a JSON object would hold as two columns for a person."""
    shown = {k: f"{v:.5g}" if isinstance(v, float) else str(v) for k, v in result.items()}
    print_table([(key.replace("_", " "), value) for key, value in shown.items()])


def note(message: str, *, quiet: bool = False) -> None:
    """Say something beside the result, on standard error."""
    if not quiet:
        print(message, file=sys.stderr)
