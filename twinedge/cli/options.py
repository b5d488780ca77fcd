"""Arguments and options of several commands, so that they are called the same everywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from twinedge.cli.words import Parser, one_of, whole

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder written by train.")]
Table = Annotated[Path, typer.Argument(metavar="DATA.csv", help="Table with the run's columns.")]


def choice(text: str, *words: str) -> Any:
    """Declare an option that takes one of a few words."""
    return typer.Option(help=text, metavar="|".join(words), parser=one_of(*words))


def value(text: str, metavar: str, parser: Parser) -> Any:
    """Declare an option with a value of its own kind."""
    return typer.Option(help=text, metavar=metavar, parser=parser)


Seed = Annotated[int, value("Seed of every random number.", "N", whole(0))]


def examples(*commands: str) -> str:
    """Write an epilog with one command to a line, which the help shows as it stands."""
    return "\n".join(["\b", "Examples:", *(f"  twinedge {command}" for command in commands)])
