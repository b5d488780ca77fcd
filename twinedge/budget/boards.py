"""Boards that people own, and their cores: what ``boards.toml`` lists."""

import sys
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from twinedge.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Core:
    """A processor core.

    Parameters
    ----------
    name : str
        As in ``boards.toml``.
    cycles_per_instruction : (float, float)
        Range used to estimate times: an assumption, not a measurement.
    same_as : str
        Core whose measured code runs on it unchanged; its own name if it was measured itself.
    """

    name: str
    cycles_per_instruction: tuple[float, float]
    same_as: str


@dataclass(frozen=True)
class Board:
    """A board; sizes in bytes, ``clock`` in Hz. ``flash`` is None if programs are on a card.

    ``pack_in_ram`` is for flash that can only be read in whole words: the pack takes RAM as well.
    """

    name: str
    title: str
    chip: str
    core: Core
    clock: int
    ram: int
    source: str
    flash: int | None = None
    reserved_flash: int = 0
    reserved_ram: int = 0
    pack_in_ram: bool = False
    note: str = ""

    @property
    def free_flash(self) -> int | None:
        """Flash for program and pack."""
        return None if self.flash is None else self.flash - self.reserved_flash

    @property
    def free_ram(self) -> int:
        """RAM for a program."""
        return self.ram - self.reserved_ram


@cache
def all_boards() -> dict[str, Board]:
    """Boards by name, in the order of the file."""
    text = files("twinedge.budget").joinpath("boards.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)
    cores = {
        name: Core(name, tuple(row["cycles_per_instruction"]), row.get("same_as", name))
        for name, row in tables["cores"].items()
    }
    return {
        name: Board(name, **{**row, "core": cores[row["core"]]})
        for name, row in tables["boards"].items()
    }


def board_named(name: str) -> Board:
    """Look up a board.

    Raises
    ------
    InputError
        If there is none with this name.
    """
    boards = all_boards()
    if name in boards:
        return boards[name]
    near = get_close_matches(name.lower(), boards, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "'twinedge budget boards' lists them"
    raise InputError(f"no board is called {name!r}; {hint}")
