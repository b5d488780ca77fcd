"""Where finished cells are kept: a small file for each.

A file is written beside its place, pushed to the disk and renamed, so that whoever is killed at
whatever moment leaves whole cells or none. It names what decided its numbers and carries a
checksum; a file that is not what it should be counts as missing, and its cell is computed again.
"""

import json
import os
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from twinedge.errors import InputError
from twinedge.reproduce.cells import Cell

_LONG_AGO = 60.0  # seconds: nobody is still writing what is older


class Store:
    """The cells of a folder.

    Parameters
    ----------
    folder : path
        Made if it is not there.

    Attributes
    ----------
    damaged : list of path
        Files that were found and could not be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Path] = []
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            for left in self._cells.glob(".*.partial"):
                if time.time() - left.stat().st_mtime > _LONG_AGO:
                    left.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot keep results in {folder}: {error.strerror}") from error

    def load(self, cell: Cell) -> dict[str, Any] | None:
        """Return what a cell came to, or None if that is not known yet."""
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
        """Keep what a cell came to, and return it as ``load`` would."""
        result = json.loads(json.dumps(result, sort_keys=True))
        record = {"cell": cell.key, "result": result, "sha256": _digest(cell.key, result)}
        write_whole(self._path(cell), json.dumps(record, sort_keys=True) + "\n")
        return result

    @property
    def _cells(self) -> Path:
        return self.folder / "cells"

    def _path(self, cell: Cell) -> Path:
        return self._cells / f"{cell.name}.json"


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all, whatever happens on the way."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)


def _digest(key: dict[str, Any], result: dict[str, Any]) -> str:
    return sha256(json.dumps([key, result], sort_keys=True).encode()).hexdigest()
