"""Options that several commands share, so that they are called the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks.")]
Seed = Annotated[int, typer.Option(help="Seed of every random number.", min=0)]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder written by train.")]
Table = Annotated[Path, typer.Argument(metavar="DATA.csv", help="Table with the run's columns.")]
