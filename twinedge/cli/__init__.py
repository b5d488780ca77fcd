"""The command line: parse, call, print.

Every command is a small file of its own, and what is heavy is imported inside it: ``twinedge
--help`` answers at once.
"""

import os
import sys
from typing import Annotated

import typer

from twinedge import __version__
from twinedge.cli import data, evaluate, predict, train
from twinedge.errors import InputError

app = typer.Typer(
    name="twinedge",
    help="Twin neural network regression for small devices: an ensemble in the memory of one.",
    epilog="Start with: twinedge train DATA.csv --target COLUMN",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command(name="train")(train.train)
app.command(name="predict")(predict.predict)
app.command(name="evaluate")(evaluate.evaluate)
app.add_typer(data.app, name="data")

# Typer's errors, whichever copy of click this version of it brings.
_UsageError, _ClickException = typer.BadParameter.__mro__[1:3]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Twin neural network regression for small devices: an ensemble in the memory of one."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input is one line on standard error and exit code 2."""
    try:
        code = app(args=arguments, prog_name="twinedge", standalone_mode=False) or 0
    except InputError as error:
        code = _refuse(str(error))
    except _ClickException as error:  # type: ignore[misc]
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "twinedge"
        code = _refuse(f"{error.format_message()} (see {command} --help)")
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        code = _refuse(f"{error.filename or 'system'}: {error.strerror or error}")
    sys.exit(code)


def _refuse(message: str) -> int:
    print("twinedge:", " ".join(message.split()), file=sys.stderr)
    return 2
