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


ModelFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Run folder, or a .twin, .tflite or .onnx file.")
]
Backend = Annotated[
    str, choice("What reads an exported file.", "auto", "native", "numpy", "tflite", "onnx")
]
PackFile = Annotated[Path, typer.Argument(metavar="MODEL.twin", help="Pack with intervals.")]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="Points that were measured on site; made if it is not there.",
    ),
]
DataFile = Annotated[
    Path | None, typer.Argument(metavar="DATA.csv", help="Table with one row per point.")
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column to predict, by name or position (0 is the first, -1 the last).",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to leave out; may be repeated, or a,b."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="auto|COLUMN",
        help="Column whose values are names, though they look like numbers; may be repeated. "
        "Columns of text are (auto).",
    ),
]
DropMissingTarget = Annotated[
    bool,
    typer.Option("--drop-missing-target", help="Leave rows without a target out."),
]
Impute = Annotated[
    str | None,
    choice(
        "Fill missing features in with the median of the training rows, or their most frequent "
        "name; without this they are refused.",
        "median",
    ),
]
DataSet = Annotated[
    str | None,
    typer.Option(
        "--dataset", metavar="NAME", help="One of the paper's sets instead of a file, e.g. cs."
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files there even if they were changed since, or are in the way; others stay.",
    ),
]
Seed = Annotated[int, value("Seed of every random number.", "N", whole(0))]


def examples(*commands: str) -> str:
    """Write an epilog with one command to a line, which the help shows as it stands."""
    return "\n".join(["\b", "Examples:", *(f"  twinedge {command}" for command in commands)])
