"""Kinds of values that options and arguments take: which are right, and how a shell completes them.

Click's own types do the work. What is added here are numbers that may be a word as well, lists with
commas, and paths of runs and packs.
"""

from collections.abc import Iterable
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
    _Path = click.Path[Path]
else:  # not generic before click 8.4
    _Type, _Path = click.ParamType, click.Path

# Whether a path exists is checked by whoever reads it, who knows what should be there.
PATH: _Path = click.Path(path_type=Path)
FOLDER: _Path = click.Path(path_type=Path, file_okay=False)
PATH_OR_DASH: _Path = click.Path(path_type=Path, allow_dash=True)

_RUN, _EXPORT, _PACK = "run.json", "export.json", "model.twin"


class Whole(click.IntRange):
    """A whole number of at least ``min``."""

    name = "whole number"


class Number(click.FloatRange):
    """A finite number in a range."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):  # no range excludes what is not a number
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


SHARE = Number(0, 1, min_open=True, max_open=True)
SHARE.name = "number between 0 and 1"


class WordOr(_Type):
    """One of a few words, or a value of another type.

    Parameters
    ----------
    other : click.ParamType
        The type of all other values.
    *words : str
        Words that are values.
    formerly : sequence of str
        Words that still are, and are not offered any more.
    """

    name = "value"

    def __init__(self, other: _Type, *words: str, formerly: Iterable[str] = ()) -> None:
        self.other = other
        self.words = words
        self._formerly = tuple(formerly)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word, or what the other type makes of it."""
        if value in (*self.words, *self._formerly):
            return value
        try:
            return self.other.convert(value, param, ctx)
        except click.BadParameter as error:
            words = " or ".join(map(repr, self.words))
            self.fail(f"{error.message.rstrip('.')}, nor {words}", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete both; words come last, since bash forgets those that come before files."""
        return [*self.other.shell_complete(ctx, param, incomplete), *items(self.words, incomplete)]


class Several(_Type):
    """Values of another type, separated by commas.

    Parameters
    ----------
    one : click.ParamType
        The type of each value.
    like : str
        What an error recommends.
    distinct : bool
        Whether a value counts once, however often it is named.
    """

    name = "list"

    def __init__(self, one: _Type, like: str, *, distinct: bool = True) -> None:
        self.one = one
        self._like = like
        self._distinct = distinct

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        """Return the values."""
        try:
            values = [self.one.convert(part, param, ctx) for part in value.split(",")]
        except click.BadParameter as error:
            reason = error.message.rstrip(".")
            self.fail(f"{reason}; expected a list like {self._like}", param, ctx)
        return tuple(dict.fromkeys(values) if self._distinct else values)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last value of the list."""
        head, comma, last = incomplete.rpartition(",")
        named = head.split(",") if self._distinct else []
        found = self.one.shell_complete(ctx, param, last)
        return [CompletionItem(f"{head}{comma}{x.value}") for x in found if x.value not in named]


class ModelPath(click.Path):
    """The path of a model of one kind; a model of the other is refused.

    Parameters
    ----------
    kind : {"run", "pack"}
        A run folder; or a pack, which may be named by the folder of its export.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(path_type=Path)
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path of the run or pack."""
        path = Path(value)
        command = "this command" if ctx is None else ctx.command_path.partition(" ")[2]
        if self._kind == "pack" and (path / _RUN).is_file():
            self.fail(
                f"{path} is a run, and {command} reads a pack: write one with 'twinedge export "
                f"{path}'. Runs are read by export, anchors, predict, evaluate, report and budget",
                param,
                ctx,
            )
        if self._kind == "run" and (path.suffix == ".twin" or is_export(path)):
            kind = "an export" if path.is_dir() else "a pack"
            self.fail(
                f"{path} is {kind}, and {command} reads a run: name the folder that train "
                "wrote. Packs are read by predict, evaluate, inspect, calibrate, adapt, report, "
                "budget and firmware",
                param,
                ctx,
            )
        return path if self._kind == "run" else exported(path)


def is_export(path: Path) -> bool:
    """Whether a path is the folder of an export, rather than of a run."""
    return (path / _PACK).is_file() or (path / _EXPORT).is_file()


def exported(path: Path) -> Path:
    """Return the pack in the folder of an export, or the path as it is."""
    return path / _PACK if is_export(path) else path


def exported_for(path: Path, backend: str) -> Path:
    """Return the file in the folder of an export that a backend reads, or the path as it is."""
    pack = exported(path)
    other = pack.with_suffix(f".{backend}")  # backends of other files have their names
    return other if pack != path and other.is_file() else pack


def items(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Offer the words that begin like the incomplete one."""
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def boards(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of boards."""
    from twinedge.budget import all_boards

    return items(all_boards(), incomplete)


def columns(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of the columns in the table, or the first, that the command line names."""
    # While an option lacks its value, click leaves arguments before it among the rest.
    tables = context.params.get("tables") or (context.params.get("table"),)
    for path in (*tables, *context.args):
        with suppress(Exception):  # a line that is being typed is no occasion to complain
            from twinedge.data.csvfile import open_table

            with open_table(Path(str(path))) as table:
                return items(table.names, incomplete)
    return []
