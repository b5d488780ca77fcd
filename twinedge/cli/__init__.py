"""The command line: parse, call, print.

Every command has a small file of its own and imports heavy packages inside its function, so that
``twinedge --help`` answers at once.
"""

import os
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
    fleet,
    inspect,
    keys,
    predict,
    report,
    serve,
    sign,
    store,
    train,
)
from twinedge.cli.options import INTERRUPTED, Group
from twinedge.cli.output import note, print_help, print_text
from twinedge.errors import InputError
from twinedge.extras import NO_COMPILED_RUNTIME, has_compiled_runtime, missing
from twinedge.version import __version__

_COMPLETE = "_TWINEDGE_COMPLETE"  # set by shells that complete a line
_EPILOG = """\b
Start with: twinedge train DATA.csv --target COLUMN
Exit codes: 0 done, 1 an image for a board differs, 2 bad input, 130 Ctrl-C.
"""


def _print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        print_text(__version__)
        if not has_compiled_runtime():
            note(NO_COMPILED_RUNTIME)
        context.exit()


@click.group(
    "twinedge",
    cls=Group,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},  # of all commands
)
@click.option(
    "--version",
    "-V",
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
    serve.serve,
    evaluate.evaluate,
    calibrate.calibrate,
    adapt.adapt,
    anchors.anchors,
    inspect.inspect,
    sign.sign,
    sign.verify,
    report.report,
    fleet.fleet,
    check.check,
):
    app.add_command(_command)
for _group in (keys.keys, store.store, budget.budget, data.data, firmware.firmware):
    app.add_command(_group)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input is one line on standard error and exit code 2."""
    if _COMPLETE in os.environ:
        from twinedge.cli import completion  # noqa: F401 - registers itself
    with warnings.catch_warnings():
        if not sys.warnoptions:  # warnings of libraries are for programmers, not for users
            warnings.simplefilter("ignore")
        sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        return app.main(arguments, "twinedge", _COMPLETE, standalone_mode=False) or 0
    except click.Abort as stop:  # Ctrl-C before a command began
        if isinstance(stop.__cause__, EOFError):  # the end of a file is a fault of ours
            raise stop.__cause__ from None
        return INTERRUPTED
    except InputError as error:
        return _refuse(str(error))
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        command = where.command_path if where else "twinedge"
        return _refuse(error.format_message().rstrip("."), f"{command} --help")
    except ModuleNotFoundError as error:
        lacking = missing(error.name)
        if lacking is None:
            raise
        return _refuse(str(lacking))
    except OSError as error:
        return _refuse(f"{error.filename or 'system'}: {error.strerror or error}")


def _refuse(message: str, help_: str | None = None) -> int:
    """Print one line that ends with where to read on: its entry of the page, or some help."""
    from twinedge.troubleshooting import address_of

    line = " ".join(message.split())
    where = address_of(line) or help_
    print("twinedge:", f"{line} (see {where})" if where else line, file=sys.stderr)
    return 2
