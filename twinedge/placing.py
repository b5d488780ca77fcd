"""Putting folders and files in their place whole: written beside it, then moved, or not at all."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from twinedge.errors import InputError


def place_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a new folder, and put it where ``folder`` is or was.

    Whatever goes wrong on the way, the folder that was there stays as it was.
    """
    folder = folder.resolve()
    beside, old = _beside(folder, "partial"), _beside(folder, "old")
    try:
        beside.mkdir(parents=True)
        write(beside)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        beside.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def place_file(path: Path, content: bytes) -> None:
    """Put a file in its place whole, or leave what was there as it was."""
    beside = _beside(path.resolve(), "partial")
    try:
        beside.write_bytes(content)
        beside.replace(path.resolve())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)


def check_place(folder: Path, noun: str, sign: str) -> None:
    """Refuse a place that a folder cannot be put in, before hours are spent on what goes in it.

    Parameters
    ----------
    folder : path
        May exist if it is empty or one of ours.
    noun : str
        What is to go there, for the message: "run".
    sign : str
        File by which one of ours is known: "run.json".
    """
    if folder.name in ("", ".."):
        raise InputError(f"{folder} has no name of its own: name a folder for the {noun}")
    beside = _beside(folder.resolve(), "partial")
    try:
        if folder.exists():
            if not folder.is_dir():
                raise InputError(f"{folder} is a file: name a folder for the {noun}")
            if any(folder.iterdir()) and not (folder / sign).is_file():
                raise InputError(
                    f"{folder} holds something that is not {_a(noun)}: name another folder"
                )
        beside.parent.mkdir(parents=True, exist_ok=True)
        # Permissions do not tell: try, and clear away what a process that was killed left.
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        beside.rmdir()
    except OSError as error:
        raise InputError(f"cannot write to {beside.parent}: {error.strerror}") from error


def _beside(folder: Path, purpose: str) -> Path:
    return folder.with_name(f".{folder.name}.{os.getpid()}.{purpose}")


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
