"""Arguments and options that commands share, and parsers for their values.

A wrong value is refused before any work is done.
"""

import shlex
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

from twinedge.errors import InputError, Parameter, quoted

Parser = Callable[[str], Any]
Decorator = Callable[[Callable[..., None]], Callable[..., None]]
_Number = TypeVar("_Number", int, float)
_LONGEST_WORD = 40
PATH = click.Path(path_type=Path)  # whether it exists is checked by whoever reads it


class _Argument(click.Argument):
    """An argument that the help explains; text that is slow to produce may be a function."""

    def __init__(self, names: Sequence[str], text: str | Callable[[], str], **more: Any) -> None:
        super().__init__(names, **more)
        self._text = text

    def row(self) -> tuple[str, str]:
        """Return its name and text for the help."""
        text = self._text if isinstance(self._text, str) else self._text()
        return (self.metavar or "").strip("[]"), text + "  [required]" * self.required


class _Command(click.Command):
    """A command whose help has a section of arguments."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [one.row() for one in self.params if isinstance(one, _Argument)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)


class Group(click.Group):
    """A group that lists its commands in the order they were added.

    Without a command it shows its help. A command that is not installed says where to find it.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        usage = {"invoke_without_command": True, "subcommand_metavar": "COMMAND [ARGS]..."}
        super().__init__(*arguments, **{**usage, **more})
        self._elsewhere: set[str] = set()

    def add_for_developers(self, command: click.Command, package: str, file: str) -> None:
        """Add a command if ``file`` of ``package`` exists; the installed package lacks it."""
        found = find_spec(package)  # does not run the package
        folders = (found and found.submodule_search_locations) or ()
        if any(Path(folder, file).is_file() for folder in folders):
            self.add_command(command)
        else:
            self._elsewhere.add(str(command.name))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order they were added."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Refuse a command that is not part of this installation, and say where to find it."""
        if cmd_name in self._elsewhere:
            raise InputError(
                f"{cmd_name} is for developers and not in the installed package: run it from a "
                "clone of the repository (pip install -e .)"
            )
        return super().get_command(ctx, cmd_name)


def argument(name: str, metavar: str, text: str | Callable[[], str], **more: Any) -> Decorator:
    """Declare a positional argument, by default a path; ``[NAME]`` is optional."""
    given = {"type": PATH, "required": not metavar.startswith("["), **more}
    return click.argument(name, cls=_Argument, metavar=metavar, text=text, **given)


def option(*names: str, text: str, metavar: str | None = None, **more: Any) -> Decorator:
    """Declare an option, by default one that takes text."""
    return click.option(*names, metavar=metavar, help=text, **more)


def file_option(*names: str, text: str, metavar: str = "FILE", **more: Any) -> Decorator:
    """Declare an option that takes a path."""
    return option(*names, text=text, metavar=metavar, type=PATH, **more)


def flag(*names: str, text: str, **more: Any) -> Decorator:
    """Declare an option without a value."""
    return click.option(*names, is_flag=True, help=text, **more)


def choice(name: str, *words: str, text: str, **more: Any) -> Decorator:
    """Declare an option that takes one of a few words."""
    return option(name, text=text, metavar="|".join(words), type=one_of(*words), **more)


def value(name: str, metavar: str, parser: Parser, *, text: str, **more: Any) -> Decorator:
    """Declare an option whose value ``parser`` converts."""
    return option(name, text=text, metavar=metavar, type=parser, **more)


def one_of(*allowed: str) -> Parser:
    """Take one of a few words."""

    def parse(word: str) -> str:
        if word in allowed:
            return word
        raise click.BadParameter(f"{word!r}; expected {_listed(allowed)}")

    return parse


def whole(least: int, *words: str) -> Parser:
    """Take a whole number of at least ``least``, or one of these words."""

    def parse(word: str) -> int | str:
        if word in words:
            return word
        value = _converted(int, word)
        if value is not None and value >= least:
            return value
        expected = _listed([f"a whole number of at least {least}", *map(repr, words)])
        raise click.BadParameter(f"{word!r}; expected {expected}")

    return parse


def number(*words: str) -> Parser:
    """Take a finite number of at least 0, or one of these words."""

    def parse(word: str) -> float | str:
        if word in words:
            return word
        value = _converted(float, word)
        if value is not None and isfinite(value) and value >= 0:
            return value
        expected = _listed(["a number of at least 0", *map(repr, words)])
        raise click.BadParameter(f"{word!r}; expected {expected}")

    return parse


def share(word: str) -> float:
    """Take a number between 0 and 1, exclusive."""
    value = _converted(float, word)
    if value is not None and 0 < value < 1:
        return value
    raise click.BadParameter(f"{word!r}; expected a number between 0 and 1")


def widths(word: str) -> tuple[int, ...]:
    """Take the widths of the hidden layers, as in ``64,32``."""
    values = [_converted(int, part) for part in word.split(",")]
    if all(value is not None and value >= 1 for value in values):
        return tuple(value for value in values if value is not None)
    raise click.BadParameter(f"{word!r}; expected widths of at least 1 like 128,128")


def widths_or_auto(word: str) -> tuple[int, ...] | str:
    """Take the widths of the hidden layers, or ``auto``."""
    return word if word == "auto" else widths(word)


def some_of(*allowed: str, alone: tuple[str, ...] = ()) -> Parser:
    """Take some of the ``allowed`` words, separated by commas, or a single word of ``alone``."""

    def parse(word: str) -> tuple[str, ...] | str:
        if word in alone:
            return word
        words = tuple(dict.fromkeys(word.split(",")))
        wrong = [one for one in words if one not in allowed]
        if wrong:
            expected = " or ".join([*alone, f"some of {', '.join(allowed)}"])
            raise click.BadParameter(f"{wrong[0]!r}; expected {expected}")
        return words

    return parse


def split(text: str) -> Decorator:
    """Declare which random split of a table is meant."""
    return value("--split", "N", whole(0), default=0, text=text)


def effort(default: str, text: str) -> Decorator:
    """Declare how long to train."""
    return choice("--effort", "quick", "normal", "thorough", default=default, text=text)


def steps(text: str) -> Decorator:
    """Declare how many steps a training has; auto goes by effort."""
    return value("--steps", "auto|N", whole(1, "auto"), default="auto", text=text)


def _converted(kind: type[_Number], word: str) -> _Number | None:
    try:
        return kind(word)
    except ValueError:
        return None


def _listed(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


as_json = flag("--json", "as_json", text="Print one JSON object and nothing else.")
quiet = flag("--quiet", "-q", text="No progress bar, no remarks.")
seed = value("--seed", "N", whole(0), default=0, text="Seed of every random number.")
run_folder = argument("run", "RUN", "Run folder written by train.")
model_file = argument("model", "FILE", "Run folder, or a .twin, .tflite or .onnx file.")
pack_file = argument("pack", "MODEL.twin", "Pack with intervals.")
written_pack = argument("file", "FILE.twin", "Pack written by export.")
backend = choice(
    "--backend",
    *("auto", "native", "numpy", "tflite", "onnx"),
    default="auto",
    text="What reads an exported file.",
)
store_file = file_option(
    "--store", text="File with points measured on site; created if it does not exist."
)
overwrite = flag(
    "--overwrite",
    text="Replace files even if they were changed or are in the way; other files stay.",
)
firmware_sizes = file_option(
    "--firmware", text="Measured sizes of the runtime, instead of those shipped."
)
pack_intervals = click.option(
    "--intervals/--no-intervals",
    default=True,
    help="A pack with intervals, ranges of the features and fill values.",
)

tolerance = value(
    "--tolerance",
    "NUMBER",
    number(),
    default=0.02,
    text="How much rounding may raise the validation error, as a fraction.",
)

# What a command learns from: a file with its options, or one of the paper's sets.
data_file = argument("table", "[DATA.csv]", "Table with one row per point.")
target = option(
    "--target",
    metavar="COLUMN",
    text="Column to predict, by name or position (0 is the first, -1 the last).",
)
drop = option(
    "--drop",
    metavar="COLUMN",
    multiple=True,
    text="Column to leave out; may be repeated, or given as a,b.",
)
impute = choice(
    "--impute",
    "median",
    text="Fill in missing features with the median of the training rows, or their most frequent "
    "name; without this they are refused.",
)
categorical = option(
    "--categorical",
    metavar="auto|COLUMN",
    multiple=True,
    text="Column whose values are names, though they look like numbers; may be repeated. "
    "Columns of text always are (auto).",
)
drop_missing_target = flag("--drop-missing-target", text="Leave out rows without a target.")
dataset = option(
    "--dataset", metavar="NAME", text="One of the paper's sets instead of a file, e.g. cs."
)


def together(*decorators: Decorator) -> Decorator:
    """Join declarations, in the order that the help shows them."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for one in reversed(decorators):
            function = one(function)
        return function

    return decorate


reading = together(data_file, target, drop, impute, categorical, drop_missing_target)


def examples(*commands: str) -> str:
    """Write an epilog with one command per line, which the help shows unchanged."""
    return "\n".join(["\b", "Examples:", *(f"  twinedge {command}" for command in commands)])


def command(name: str, *lines: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command with its examples; defaults are shown."""
    shown = {"show_default": True}
    return click.command(name, cls=_Command, epilog=examples(*lines), context_settings=shown)


def group(name: str, *lines: str) -> Callable[[Callable[..., None]], Group]:
    """Declare a group of commands with its examples."""
    return click.group(name, cls=Group, epilog=examples(*lines))


def as_option(one: Parameter) -> str:
    """Spell a parameter of a message as an option, ready to paste into a shell.

    Examples
    --------
    >>> as_option(Parameter("drop", ["site", "air temp"]))
    "--drop site --drop 'air temp'"
    >>> as_option(Parameter("overwrite", True)), as_option(Parameter("tolerance", 0.02))
    ('--overwrite', '--tolerance 0.02')
    """
    name = f"--{one.name.replace('_', '-')}"
    if one.value is None or one.value is True:
        return name
    values = one.value if isinstance(one.value, list | tuple) else [one.value]
    return " ".join(f"{name} {_shell_word(word)}" for word in values)


def _shell_word(word: Any) -> str:
    """Quote a word for a shell, unless it is too odd for one line."""
    if isinstance(word, float):
        return f"{word:g}"
    text = str(word)
    plain = text.isprintable() and len(text) <= _LONGEST_WORD
    return shlex.quote(text) if plain else quoted(text)
