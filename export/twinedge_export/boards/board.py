"""The boards: folders in ``firmware_ref/ports`` with a ``board.toml``."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from twinedge.data.wording import closest
from twinedge.errors import InputError
from twinedge_export.firmware import firmware_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Board:
    """A board that an emulator plays; ``docs/ports.md`` explains ``board.toml``.

    Parameters
    ----------
    name : str
        The folder's.
    folder : Path
        Where its files are; paths below are relative to it.
    title, core : str
        For people, and for ``twinedge.budget``.
    compiler : str
        A gcc; it also links.
    flags : tuple of str
        For the compiler, always.
    sources : tuple of str
        What the board adds to runtime and harness.
    link : tuple of str
        For the compiler as it links.
    run : tuple of str
        Command that runs ``{image}``.
    runner : tuple of str
        Command that compiles ``{runner}``, a program for this machine; none by default.
    counts_per_instruction : float
        What the harness' counter does; 0 for a board that has none.
    needs : dict
        By Debian package: what it has to bring, a program, ``<header.h>`` or ``/path``.
    hosted : bool
        Whether an operating system lends the libraries: they do not count then.
    """

    name: str
    folder: Path
    title: str
    core: str
    compiler: str
    flags: tuple[str, ...]
    sources: tuple[str, ...]
    link: tuple[str, ...]
    run: tuple[str, ...]
    needs: dict[str, str]
    runner: tuple[str, ...] = ()
    counts_per_instruction: float = 0
    hosted: bool = False

    def command(self, words: tuple[str, ...], **places: Path) -> list[str]:
        """Put paths into a list of words: ``{board}``, ``{ports}`` and those given."""
        known = {"board": self.folder, "ports": self.folder.parent, **places}
        return [word.format(**known) for word in words]

    @property
    def missing(self) -> list[str]:
        """Debian packages that it needs and that are not here."""
        return [package for package, what in self.needs.items() if not self._has(what)]

    def check_tools(self) -> None:
        """Refuse to go on where a tool is missing.

        Raises
        ------
        InputError
            With the names of the Debian packages to install.
        """
        if self.missing:
            raise InputError(
                f"{self.name} needs {', '.join(self.needs[one] for one in self.missing)}: "
                f"apt-get install {' '.join(self.missing)}"
            )

    def _has(self, what: str) -> bool:
        if what.startswith("/"):
            return Path(what).exists()
        if not what.startswith("<"):
            return shutil.which(what) is not None
        return shutil.which(self.compiler) is not None and _has_header(
            (self.compiler, *self.command(self.flags)), what
        )


@cache
def _has_header(compiler: tuple[str, ...], header: str) -> bool:
    done = subprocess.run(
        [*compiler, "-E", "-x", "c", "-"],
        input=f"#include {header}\n".encode(),
        capture_output=True,
    )
    return done.returncode == 0


@cache
def all_boards() -> dict[str, Board]:
    """Boards by name."""
    files = sorted((firmware_folder() / "ports").glob("*/board.toml"))
    return {file.parent.name: _read(file) for file in files}


def board_named(name: str) -> Board:
    """Look a board up.

    Raises
    ------
    InputError
        Where there is none of that name.
    """
    boards = all_boards()
    if name not in boards:
        raise InputError(
            f"no board is called {name!r}{closest(name, boards)}: it is one of {', '.join(boards)}"
        )
    return boards[name]


def _read(file: Path) -> Board:
    try:
        row: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
        return Board(name=file.parent.name, folder=file.parent, **{**row, **lists})
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise InputError(f"{file}: {error}") from error
