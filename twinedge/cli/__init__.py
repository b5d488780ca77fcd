"""The command line: parse, call, print.

Every command is a small file of its own, and what is heavy is imported inside it: ``twinedge
--help`` answers at once.
"""

import sys
import warnings
from typing import Annotated

import typer

from twinedge.cli import (
    adapt,
    anchors,
    budget,
    calibrate,
    check,
    data,
    evaluate,
    export,
    firmware,
    inspect,
    predict,
    report,
    reproduce,
    train,
)
from twinedge.cli.output import print_text
from twinedge.errors import InputError
from twinedge.version import __version__

app = typer.Typer(
    name="twinedge",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("train", epilog=train.EXAMPLES)(train.train)
app.command("export", epilog=export.EXAMPLES)(export.export)
app.command("predict", epilog=predict.EXAMPLES)(predict.predict)
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("calibrate", epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.command("adapt", epilog=adapt.EXAMPLES)(adapt.adapt)
app.command("anchors", epilog=anchors.EXAMPLES)(anchors.anchors)
app.command("inspect", epilog=inspect.EXAMPLES)(inspect.inspect)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("check", epilog=check.EXAMPLES)(check.check)
app.command("reproduce", epilog=reproduce.EXAMPLES)(reproduce.reproduce)
app.add_typer(budget.app, name="budget")
app.add_typer(data.app, name="data")
app.add_typer(firmware.app, name="firmware")

# Typer's errors, whichever copy of click this version of it brings.
_ClickException = typer.BadParameter.__mro__[2]
_TRAINING_NEEDS = ("tensorflow", "keras", "sklearn", "joblib")


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(__version__)
        raise typer.Exit


@app.callback(
    invoke_without_command=True, epilog="Start with: twinedge train DATA.csv --target COLUMN"
)
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Twin neural network regression for small devices: an ensemble in the memory of one."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input is one line on standard error and exit code 2."""
    with warnings.catch_warnings():
        if not sys.warnoptions:  # a library's remark to programmers is none to a person
            warnings.simplefilter("ignore")
        sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        return app(args=arguments, prog_name="twinedge", standalone_mode=False) or 0
    except InputError as error:
        return _refuse(str(error))
    except _ClickException as error:  # type: ignore[misc]
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "twinedge"
        return _refuse(f"{error.format_message().rstrip('.')} (see {command} --help)")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _TRAINING_NEEDS:
            raise
        return _refuse(f"{error.name} is not installed: pip install 'twinedge[train]'")
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except MemoryError:
        return _refuse("not enough memory: try a smaller table or a smaller --hidden")
    except OSError as error:
        return _refuse(f"{error.filename or 'system'}: {error.strerror or error}")


def _refuse(message: str) -> int:
    print("twinedge:", " ".join(message.split()), file=sys.stderr)
    return 2
