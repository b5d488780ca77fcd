"""The command line: parse, call, print.

Every command has a small file of its own and imports heavy packages inside its function, so that
``twinedge --help`` answers at once.
"""

import sys
import warnings

import click

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
from twinedge.cli.options import Group, as_option
from twinedge.cli.output import print_help, print_text
from twinedge.errors import InputError, ParameterError
from twinedge.version import __version__

_TRAINING_NEEDS = ("tensorflow", "keras", "sklearn", "joblib", "rich")


def _print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        print_text(__version__)
        context.exit()


@click.group("twinedge", cls=Group, epilog="Start with: twinedge train DATA.csv --target COLUMN")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.pass_context
def app(context: click.Context) -> None:
    """Twin neural network regression for small devices: an ensemble in the memory of one."""
    print_help(context)


for _command in (
    train.train,
    export.export,
    predict.predict,
    evaluate.evaluate,
    calibrate.calibrate,
    adapt.adapt,
    anchors.anchors,
    inspect.inspect,
    report.report,
    check.check,
):
    app.add_command(_command)
app.add_for_developers(reproduce.reproduce, "twinedge", "reproduce/__init__.py")
for _group in (budget.budget, data.data, firmware.firmware):
    app.add_command(_group)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input is one line on standard error and exit code 2."""
    with warnings.catch_warnings():
        if not sys.warnoptions:  # warnings of libraries are for programmers, not for users
            warnings.simplefilter("ignore")
        sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        words = sys.argv[1:] if arguments is None else arguments
        with app.make_context("twinedge", list(words)) as context:
            app.invoke(context)
        return 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except ParameterError as error:
        return _refuse(error.advice.told(as_option))
    except InputError as error:
        return _refuse(str(error))
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        command = where.command_path if where else "twinedge"
        return _refuse(f"{error.format_message().rstrip('.')} (see {command} --help)")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _TRAINING_NEEDS:
            raise
        return _refuse(f"{error.name} is not installed: pip install 'twinedge[train]'")
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        return _refuse("not enough memory: try a smaller table or a smaller --hidden")
    except OSError as error:
        return _refuse(f"{error.filename or 'system'}: {error.strerror or error}")


def _refuse(message: str) -> int:
    print("twinedge:", " ".join(message.split()), file=sys.stderr)
    return 2
