"""Cells: the units of work, what decides their numbers, and where they are kept.

A file is written to a temporary name, flushed to disk and renamed, so that a process killed at any
moment leaves whole cells or none. It names what decided its numbers and carries a checksum; a file
that does not match counts as missing, and its cell is computed again.
"""

import json
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from twinedge.atomic_files import write_file
from twinedge.errors import InputError
from twinedge.training import VERSION


@dataclass(frozen=True)
class Setup:
    """What the user may choose about an experiment.

    Parameters
    ----------
    members : int
        Number of networks in an ensemble; the paper has 32.
    effort : {"quick", "normal", "thorough"}
        How long our trainer searches and trains; forests search a small grid if "quick".
    trainer : {"twinedge", "published"}
        How networks are trained: by twinedge, or by the recipe of the paper's code.
    protocol : {"published", "text"}
        Which to follow where the paper's code and its text differ.
    steps : "auto" or int
        Length of our trainer's last training; "auto" goes by the effort.
    """

    members: int = 4
    effort: str = "quick"
    trainer: str = "twinedge"
    protocol: str = "published"
    steps: int | str = "auto"


class Procedure(NamedTuple):
    """The module of a method's function, its version, and the parts of the setup it depends on.

    The version increases whenever the same cell would get different numbers. A method
    that is timed runs ``alone``.
    """

    home: str
    version: int
    decided_by: tuple[str, ...]
    alone: bool = False


_NETWORKS = ("effort", "trainer", "protocol", "steps")
_FORESTS = ("effort", "protocol")

# Cells on disk have these names in their keys and results: do not change them.
METHODS = {
    "networks": Procedure("networks", 1, ("members", *_NETWORKS)),
    "twins": Procedure("networks", 1, ("members", *_NETWORKS)),
    "unsure_twin": Procedure("networks", 1, _NETWORKS),
    "neighbour_twin": Procedure("networks", 1, _NETWORKS),
    "multiplied_twin": Procedure("networks", 1, _NETWORKS),
    "timed_network": Procedure("networks", 1, _NETWORKS, alone=True),
    "timed_twin": Procedure("networks", 1, _NETWORKS, alone=True),
    "nearest": Procedure("rows", 1, ("protocol",)),
    "forest": Procedure("forests", 1, _FORESTS),
    "twinned_forest": Procedure("forests", 1, _FORESTS),
    "loop_forest": Procedure("forests", 1, _FORESTS),
    "check": Procedure("networks", 1, ("effort",)),
}


@dataclass(frozen=True)
class Cell:
    """One method on one split of one data set.

    Parameters
    ----------
    method : str
        One of ``METHODS``.
    dataset : str
        Key of a data set.
    split : int
        Number of the split, from 0.
    setup : Setup
        Settings of the experiment.
    number : int, optional
        Number of neighbors or multiplier, for a method that has one.
    """

    method: str
    dataset: str
    split: int
    setup: Setup
    number: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether our own trainer makes its networks."""
        decided = METHODS[self.method].decided_by
        return self.method == "check" or ("trainer" in decided and self.setup.trainer == "twinedge")

    @property
    def key(self) -> dict[str, Any]:
        """Everything that decides the numbers of this cell, and nothing else."""
        return self.key_of(VERSION)

    def key_of(self, version: int) -> dict[str, Any]:
        """Return the key with a version of our own trainer; it has no place in other keys."""
        method = METHODS[self.method]
        chosen = asdict(self.setup)
        key = {
            "method": self.method,
            "version": method.version,
            "dataset": self.dataset,
            "split": self.split,
            **{name: chosen[name] for name in method.decided_by if chosen[name] != "auto"},
        }
        if self.is_ours and version > 1:  # keys of the first version do not name it
            key["trainer_version"] = version
        return key if self.number is None else {**key, "number": self.number}

    @property
    def name(self) -> str:
        """Short and readable, but different for every key; used as a file name."""
        digest = sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:12]
        number = "" if self.number is None else f"{self.number}-"
        return f"{self.method}-{number}{self.dataset}-{self.split}-{digest}"

    def __str__(self) -> str:
        number = "" if self.number is None else f" {self.number}"
        return f"{self.method}{number} {self.dataset} {self.split}"


Results = dict[Cell, dict[str, Any]]


def compute(cell: Cell) -> dict[str, Any]:
    """Compute a cell, in this process and on one thread."""
    home = import_module(f"benchmarks.reproduction.{METHODS[cell.method].home}")
    result: dict[str, Any] = getattr(home, cell.method)(cell)
    return result


_LONG_AGO = 60.0  # seconds: no older file is still being written


class CellStore:
    """The cells in a folder.

    Parameters
    ----------
    folder : path
        Created if it does not exist.

    Attributes
    ----------
    damaged : list of path
        Files that were found and could not be used.
    """

    def __init__(self, folder: Path) -> None:
        self._cells = folder / "cells"
        self.damaged: list[Path] = []
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            for left in self._cells.glob(".*.partial"):
                if time.time() - left.stat().st_mtime > _LONG_AGO:
                    left.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot keep results in {folder}: {error.strerror}") from error

    def load(self, cell: Cell) -> dict[str, Any] | None:
        """Return the result of a cell, or None if it has not been computed."""
        path = self._path(cell)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            text = ""
        try:
            kept = json.loads(text)
            result: dict[str, Any] = kept["result"]
            whole = kept["cell"] == cell.key and kept["sha256"] == _digest(cell.key, result)
        except (ValueError, TypeError, KeyError):
            whole = False
        if whole:
            return result
        self.damaged.append(path)
        return None

    def save(self, cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
        """Keep the result of a cell, and return it as ``load`` would."""
        result = json.loads(json.dumps(result, sort_keys=True))
        record = {"cell": cell.key, "result": result, "sha256": _digest(cell.key, result)}
        write_file(self._path(cell), json.dumps(record, sort_keys=True) + "\n")
        return result

    def _path(self, cell: Cell) -> Path:
        return self._cells / f"{cell.name}.json"


def _digest(key: dict[str, Any], result: dict[str, Any]) -> str:
    return sha256(json.dumps([key, result], sort_keys=True).encode()).hexdigest()
