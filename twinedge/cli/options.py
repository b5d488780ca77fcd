"""How commands, arguments and options are declared, and the options that several commands share.

A wrong value is refused before any work is done.
"""

import shlex
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from twinedge import defaults
from twinedge.cli.values import (
    FOLDER,
    PATH,
    ModelPath,
    Number,
    Whole,
    WordOr,
    boards,
    columns,
    items,
)
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.wording import quoted

if TYPE_CHECKING:
    from click.parser import _OptionParser

Decorator = Callable[[Callable[..., None]], Callable[..., None]]
_LONGEST_WORD = 40
_ALIKE = 0.7  # from here on, one option may be a misspelling of another
INTERRUPTED = 130  # exit code after Ctrl-C


class _Argument(click.Argument):
    """An argument that the help explains."""

    def __init__(self, names: Sequence[str], text: str, **more: Any) -> None:
        super().__init__(names, **more)
        self._text = text

    def row(self) -> tuple[str, str]:
        """Return its name and text for the help."""
        return (self.metavar or "").strip("[]."), self._text + "  [required]" * self.required


class _Option(click.Option):
    """An option that refuses a second value, where click would keep only the last."""

    def add_to_parser(self, parser: "_OptionParser", ctx: click.Context) -> None:
        """Collect all values, except of a flag without an opposite, which may be repeated."""
        mine: dict[str, Any] = {"obj": self, "dest": self.name}
        if self.multiple or self.count or (self.is_flag and not self.secondary_opts):
            super().add_to_parser(parser, ctx)
        elif self.is_flag:
            for names, value in ((self.opts, True), (self.secondary_opts, False)):
                parser.add_option(opts=names, action="append_const", const=value, **mine)
        else:
            parser.add_option(opts=self.opts, action="append", nargs=self.nargs, **mine)

    def handle_parse_result(
        self, ctx: click.Context, opts: Any, args: list[str]
    ) -> tuple[Any, list[str]]:
        """Take the only value."""
        values = opts.get(self.name)
        if isinstance(values, list) and not self.multiple:
            if len(values) > 1 and not ctx.resilient_parsing:
                raise click.UsageError(self._contradiction(values), ctx)
            opts = {**opts, str(self.name): values[-1]}
        return super().handle_parse_result(ctx, opts, args)

    def _contradiction(self, values: list[Any]) -> str:
        if self.is_flag:
            return f"{self.opts[0]} or {self.secondary_opts[0]} is needed once, at most"
        words = " and ".join(_shell_word(value) for value in values)
        return f"{_long_name(self)} takes one value, but was given {len(values)}: {words}"


class _Command(click.Command):
    """A command whose help has a section of arguments, and whose errors name its own options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [one.row() for one in self.params if isinstance(one, _Argument)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; an error leads to the help of this command and recommends options it has."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = [name for one in self.get_params(ctx) for name in one.opts]
            near = get_close_matches(error.option_name, known, n=1, cutoff=_ALIKE)
            words = f"No such option {error.option_name!r}"
            ctx.fail(f"{words} (did you mean {near[0]!r}?)" if near else words)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run; while the command is known, an error is put in the words of its options."""
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            raise InputError(error.advice.spelled(as_option)) from error
        except MemoryError as error:
            smaller = " or a smaller --hidden" * any(one.name == "hidden" for one in self.params)
            raise InputError(f"not enough memory: try a smaller table{smaller}") from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None


class Group(_Command, click.Group):
    """A group that lists its commands in the order they were added.

    Without a command it shows its help.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        usage = {"invoke_without_command": True, "subcommand_metavar": "COMMAND [ARGS]..."}
        super().__init__(*arguments, **{**usage, **more})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order they were added."""
        return list(self.commands)


def argument(name: str, metavar: str, text: str, **more: Any) -> Decorator:
    """Declare a positional argument, by default a path; ``[NAME]`` is optional."""
    given = {"type": PATH, "required": not metavar.startswith("["), **more}
    return click.argument(name, cls=_Argument, metavar=metavar, text=text, **given)


def option(*names: str, text: str, metavar: str | None = None, **more: Any) -> Decorator:
    """Declare an option, by default one that takes text."""
    return click.option(*names, cls=_Option, metavar=metavar, help=text, **more)


def file_option(*names: str, text: str, metavar: str = "FILE", **more: Any) -> Decorator:
    """Declare an option that takes the path of a file."""
    return option(*names, text=text, metavar=metavar, type=PATH, **more)


def folder_option(*names: str, text: str, metavar: str = "DIR", **more: Any) -> Decorator:
    """Declare an option that takes the path of a folder."""
    return option(*names, text=text, metavar=metavar, type=FOLDER, **more)


def flag(*names: str, text: str, **more: Any) -> Decorator:
    """Declare an option without a value: ``--name``, or ``--name/--no-name``."""
    return option(*names, text=text, is_flag=True, **more)


def choice(name: str, *words: str, text: str, **more: Any) -> Decorator:
    """Declare an option that takes one of a few words."""
    return option(name, text=text, metavar="|".join(words), type=click.Choice(words), **more)


def value(name: str, metavar: str, kind: Any, *, text: str, **more: Any) -> Decorator:
    """Declare an option whose value is of a kind: a type of click or of ``values``."""
    return option(name, text=text, metavar=metavar, type=kind, **more)


def column(*names: str, text: str, metavar: str = "COLUMN", **more: Any) -> Decorator:
    """Declare an option that takes the name of a column of the table."""
    return option(*names, text=text, metavar=metavar, shell_complete=columns, **more)


def split(text: str) -> Decorator:
    """Declare which random split of a table is meant."""
    return value("--split", "N", Whole(0), default=0, text=text)


def effort(default: str, text: str) -> Decorator:
    """Declare how long to train."""
    return choice("--effort", "quick", "normal", "thorough", default=default, text=text)


def steps(text: str) -> Decorator:
    """Declare how many steps a training has; auto goes by effort."""
    return value("--steps", "auto|N", WordOr(Whole(1), "auto"), default="auto", text=text)


def input_map(default: str, text: str) -> Decorator:
    """Declare how many straight pieces the curves in front of the networks have."""
    kind = WordOr(Whole(1, 255), "none", "auto")
    return value("--input-map", "none|auto|BINS", kind, default=default, text=text)


target_curve = choice(
    "--target-curve",
    *("none", "log", "log1p", "sqrt", "auto"),
    default="none",
    text="Learn the logarithm or the root of the target in place of it; auto tries on folds "
    "whether that lowers the error.",
)


def anchors(text: str) -> Decorator:
    """Declare how many training points travel to a device."""
    kind = WordOr(Whole(1), "fewest", "all", formerly=["auto"])
    return value("--anchors", "N|fewest|all", kind, default=defaults.ANCHORS, text=text)


METHODS = ("auto", "match", "xy", "medoids", "stratified", "farthest", "greedy", "random")


def counter(text: str) -> Decorator:
    """Declare the counter of releases."""
    words = "Counter of releases: devices may refuse packs with a lower one than they had. "
    return value("--counter", "N", Whole(0, 2**32 - 1), text=words + text)


lowest_counter = value(
    "--lowest-counter",
    "N",
    Whole(0, 2**32 - 1),
    default=0,
    text="Refuse a signed pack whose counter is lower: an old release, sent again.",
)


def select(text: str) -> Decorator:
    """Declare how anchors are chosen."""
    kind = WordOr(click.Path(), *METHODS)
    return value("--select", "METHOD|FILE", kind, default="auto", text=text)


def jobs(text: str) -> Decorator:
    """Declare how much may be done at a time."""
    return option("--jobs", "n_jobs", metavar="N", type=Whole(1), text=text)


def board(text: str, **more: Any) -> Decorator:
    """Declare a board, by its name."""
    return option("--board", "-b", metavar="NAME", text=text, shell_complete=boards, **more)


DATASETS = ("bc", "bh", "cs", "ee", "rcl", "tf", "wn", "wsb", "yh")
set_name: dict[str, Any] = {
    "metavar": "NAME",
    "shell_complete": lambda _context, _parameter, word: items(DATASETS, word),
}

as_json = flag("--json", "as_json", text="Print one JSON object and nothing else.")
quiet = flag("--quiet", "-q", text="No progress bar, no remarks.")
seed = value("--seed", "N", Whole(0), default=0, text="Seed of every random number.")
run_folder = argument("run", "RUN", "Run folder written by train.", type=ModelPath("run"))
model_file = argument(
    "model", "FILE", "Run folder, export folder, or a .twin, .tflite or .onnx file."
)
pack_file = argument(
    "pack",
    "MODEL.twin",
    "Pack with intervals, or the export folder with it.",
    type=ModelPath("pack"),
)
written_pack = argument(
    "file", "FILE.twin", "Pack written by export, or the export folder.", type=ModelPath("pack")
)
backend = choice(
    "--backend",
    *("auto", "native", "numpy", "tflite", "onnx"),
    default="auto",
    text="What reads an exported file.",
)
weights = choice(
    "--weights", "int8", "int16", default=defaults.WEIGHTS, text="Weights of the .twin."
)
state_file = file_option(
    "--state",
    text="Keep the last samples (of a model with derived inputs) in this file, to continue after a "
    "restart.",
)
keep_columns = column(
    "--keep",
    multiple=True,
    text="Column or JSON key to repeat in front of each prediction, such as time; may be repeated, "
    "or given as a,b.",
)
store_file = file_option("--store", text="Store with points measured on site.")
overwrite = flag(
    "--overwrite",
    text="Replace files even if they were changed or are in the way; other files stay.",
)
firmware_sizes = file_option(
    "--firmware", text="Measured sizes of the runtime, instead of those shipped."
)
pack_intervals = flag(
    "--intervals/--no-intervals",
    default=True,
    text="A pack with intervals, ranges of the features and fill values.",
)
tolerance = value(
    "--tolerance",
    "NUMBER",
    Number(0),
    default=defaults.TOLERANCE,
    text="How much rounding may raise the validation error, as a fraction.",
)

# What a command learns from: a file with its options, or one of the paper's sets.
data_file = argument(
    "tables",
    "[DATA.csv]...",
    "Table with one row per point; rows of several with the same columns are joined.",
    nargs=-1,
)
target = column(
    "--target",
    multiple=True,
    text="Column to predict, by name or position (0 is the first, -1 the last); up to 8, if "
    "repeated or given as a,b.",
)
drop = column(
    "--drop", multiple=True, text="Column to leave out; may be repeated, or given as a,b."
)
impute = choice(
    "--impute",
    "median",
    text="Fill in missing features with the median of the training rows, or their most frequent "
    "name; without this they are refused.",
)
missing = option(
    "--missing",
    metavar="VALUE",
    multiple=True,
    text="Number or text that stands for a missing value in every column, such as -9999; may be "
    "repeated.",
)
categorical = column(
    "--categorical",
    metavar="auto|COLUMN",
    multiple=True,
    text="Column whose values are names, though they look like numbers; may be repeated. "
    "Columns of text always are (auto).",
)
group_column = column(
    "--group",
    text="Rows with the same value here belong together: a batch, a machine. Not a feature.",
)
weight_column = column(
    "--weight",
    text="How much each row counts; rows of weight 0 are left out. Not a feature.",
)
time_column = column(
    "--time",
    text="When each row was measured: dates, times or seconds since 1970. Models learn from the "
    "past and are tested on the future. Not a feature.",
)
derived_inputs = (
    option(
        "--derive",
        metavar="INPUTS",
        multiple=True,
        text="Inputs from the last samples: temp@6 (six samples ago), mean(temp, 12), min, max, "
        "std, slope, delta(flow); spans of time, such as mean(temp, 10min), if rows are evenly "
        "sampled. Needs --time; --group says which stream a row is of.",
    ),
    option(
        "--gap",
        metavar="SPAN|N",
        text="With --derive: the longest step inside a window, such as 90s or a number of usual "
        "steps; by default 1.5 if rows are evenly sampled, otherwise 10.",
    ),
)
calendar = column(
    "--calendar",
    multiple=True,
    text="Column of dates or times to learn from: hour of the day, day of the week, season; may be "
    "repeated, and be that of --time.",
)
drop_missing_target = flag("--drop-missing-target", text="Leave out rows without a target.")
skip_bad_rows = flag(
    "--skip-bad-rows",
    text="Leave out rows that cannot be read, and count them; without this, one refuses the table.",
)
dataset = option(
    "--dataset", **set_name, text="One of the paper's sets instead of a file, e.g. cs."
)


def together(*decorators: Decorator) -> Decorator:
    """Join declarations, in the order that the help shows them."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for one in reversed(decorators):
            function = one(function)
        return function

    return decorate


reading = together(
    *(data_file, target, drop, missing, impute, categorical, calendar),
    *(drop_missing_target, skip_bad_rows, *derived_inputs),
)


def examples(*commands: str) -> str:
    """Write an epilog with one command per line, which the help shows unchanged."""
    return "\n".join(["\b", "Examples:", *(f"  twinedge {command}" for command in commands)])


def command(name: str, *lines: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command with its examples; defaults are shown."""
    shown = {"show_default": True}
    return click.command(name, cls=_Command, epilog=examples(*lines), context_settings=shown)


def group(name: str, *lines: str, cls: type[Group] = Group) -> Callable[..., Group]:
    """Declare a group of commands with its examples."""
    return click.group(name, cls=cls, epilog=examples(*lines))


def as_option(one: Parameter) -> str:
    """Spell a parameter of a message as an option of the command, ready to paste into a shell.

    One that the command does not have is put in plain words.

    Examples
    --------
    >>> as_option(Parameter("drop", ["site", "air temp"]))
    "--drop site --drop 'air temp'"
    >>> as_option(Parameter("overwrite", True)), as_option(Parameter("tolerance", 0.02))
    ('--overwrite', '--tolerance 0.02')
    >>> as_option(Parameter("formats", ("twin", "c")))
    '--formats twin,c'
    """
    context = click.get_current_context(silent=True)
    name = f"--{one.name.replace('_', '-')}"
    if context is not None:
        options = [each for each in context.command.params if isinstance(each, click.Option)]
        mine = [each for each in options if each.name == one.name or name in each.opts]
        name = _long_name(mine[0]) if mine else one.name.replace("_", " ")
    if any(one.value is each for each in (..., None, True)):
        return name
    values = one.value if isinstance(one.value, list) else [one.value]
    return " ".join(f"{name} {_shell_word(word)}" for word in values)


def _long_name(one: click.Option) -> str:
    return max(one.opts, key=len)


def _shell_word(word: Any) -> str:
    """Quote a word for a shell, unless it is too odd for one line."""
    if isinstance(word, float):
        return f"{word:g}"
    text = ",".join(map(str, word)) if isinstance(word, tuple) else str(word)
    plain = text.isprintable() and len(text) <= _LONGEST_WORD
    return shlex.quote(text) if plain else quoted(text)
