"""The boards: folders in ``firmware_ref/ports`` with a ``board.toml``."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from twinedge.budget import Board as OwnedBoard
from twinedge.budget import all_boards as owned_boards
from twinedge.errors import InputError
from twinedge.wording import closest
from twinedge_export.amalgamation import firmware_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Port:
    """A board with an emulator; ``docs/ports.md`` explains ``board.toml``.

    Parameters
    ----------
    name : str
        Name of its folder.
    folder : Path
        Where its files are; paths below are relative to it.
    title, core : str
        For users, and for ``twinedge.budget``.
    compiler : str
        A gcc; also used as the linker.
    flags : tuple of str
        Compiler flags for every file.
    sources : tuple of str
        Sources beyond runtime and harness.
    link : tuple of str
        Flags for linking.
    run : tuple of str
        Command that runs ``{image}``.
    runner : tuple of str
        Command that compiles ``{runner}``, a program for the host; empty by default.
    counts_per_instruction : float
        Counts of the harness' counter for one instruction; 0 without a counter.
    needs : dict
        Maps Debian packages to what they provide: a program, ``<header.h>`` or ``/path``.
    hosted : bool
        Whether an operating system provides the libraries, which then do not count.
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
        """Fill paths into a command: ``{board}``, ``{ports}`` and those given."""
        known = {"board": self.folder, "ports": self.folder.parent, **places}
        return [word.format(**known) for word in words]

    @property
    def missing(self) -> list[str]:
        """Debian packages that it needs and that are not installed."""
        return [package for package, what in self.needs.items() if not self._has(what)]

    def check_tools(self) -> None:
        """Check that every tool is installed.

        Raises
        ------
        InputError
            If one is missing; it names the Debian packages to install.
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
def all_ports() -> dict[str, Port]:
    """Boards by name."""
    files = sorted((firmware_folder() / "ports").glob("*/board.toml"))
    return {file.parent.name: _read(file) for file in files}


def port_named(name: str) -> Port:
    """Look up a board.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    target = target_named(name)
    if target.owned is not None:
        port = target.port.name
        raise InputError(f"{name} is not a port: use {port}, with the same instructions")
    return target.port


def port_of(board: OwnedBoard) -> Port | None:
    """Find the port that runs code built for a board known to ``twinedge budget``."""
    ports = all_ports()
    if board.name in ports:
        return ports[board.name]
    cores = (one for one in ports.values() if one.core == board.core.same_as)
    return next(cores, None)


def plays(port: Port) -> list[str]:
    """Names of the other boards known to ``twinedge budget`` whose code a port runs."""
    boards = owned_boards().values()
    return [one.name for one in boards if one.name != port.name and port_of(one) == port]


@dataclass(frozen=True)
class Target:
    """A board that the user named, and the port that stands in for it.

    Parameters
    ----------
    name : str
        As the user gave it.
    port : Port
        The board to build for and emulate: itself, or one with the same instruction set.
    owned : OwnedBoard, optional
        Its entry in ``twinedge budget``, if another board stands in for it.
    """

    name: str
    port: Port
    owned: OwnedBoard | None = None

    @property
    def emulated(self) -> str | None:
        """Name the board that stands in for it; None if it has a port."""
        if self.owned is None or self.owned.title == self.port.title:
            return None
        return f"{self.port.name} ({self.port.core}), as {self.name} has no emulator here"

    def too_large(self, error: InputError) -> InputError:
        """Add to an error about size which port's memory it means."""
        if self.emulated is None:
            return error
        return InputError(f"{error}; emulated on {self.emulated}")

    def check(self, *, flash: int = 0, ram: int = 0) -> None:
        """Check that an image that fits the port also fits the board itself; in bytes.

        Raises
        ------
        InputError
            If it does not; it says what the image takes and what there is.
        """
        assert self.owned is not None, "a port holds what its linker lets through"
        limits = {"flash": (flash, self.owned.free_flash), "RAM": (ram, self.owned.free_ram)}
        for what, (used, free) in limits.items():
            if free is not None and used > free:
                raise InputError(f"{self.name}: the image takes {used} of {free} bytes of {what}")


def target_named(name: str) -> Target:
    """Find what emulates a board: a port, or any board known to ``twinedge budget``.

    Raises
    ------
    InputError
        If there is no such board, or no emulator for its core.
    """
    ports, owned = all_ports(), owned_boards()
    if name in ports:
        return Target(name, ports[name])
    if name in owned:
        port = port_of(owned[name])
        if port is not None:
            return Target(name, port, owned[name])
        able = [one for one in owned if port_of(owned[one]) is not None]
        raise InputError(
            f"{name}: there is no emulator here for its core, {owned[name].core.name}; boards that "
            f"can be run: {', '.join(dict.fromkeys([*able, *ports]))}"
        )
    every = list(dict.fromkeys([*ports, *owned]))
    raise InputError(
        f"no board is called {name!r}{closest(name, every)}: it is one of {', '.join(every)}"
    )


def _read(file: Path) -> Port:
    try:
        row: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
        return Port(name=file.parent.name, folder=file.parent, **{**row, **lists})
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise InputError(f"{file}: {error}") from error
