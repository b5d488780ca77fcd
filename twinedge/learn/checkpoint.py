"""Saving a training while it runs, so that it can go on where it was stopped.

A checkpoint is a folder: one file for each round of training with the state of its networks, and
one that tells which data and settings it belongs to. Files are written beside and renamed, so that
a stop at any moment leaves the last whole state.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.errors import InputError

Arrays = dict[str, Any]

INTERVAL = 15.0  # seconds between two saves
_LABEL = "owner.json"


class Checkpoint:
    """The states of a training's rounds in a folder, or nowhere.

    Parameters
    ----------
    folder : path or None
        Where to keep them; None keeps nothing.
    owner : dict
        Data and settings of the training, in JSON types; a checkpoint of another owner is refused.
    resume : bool
        Go on from what the folder holds; otherwise a checkpoint there is thrown away.
    """

    def __init__(
        self, folder: Path | None, owner: dict[str, Any] | None = None, resume: bool = False
    ) -> None:
        self._folder = None if folder is None else Path(folder)
        if self._folder is None:
            if resume:
                raise InputError("resume=True needs the checkpoint folder to go on from")
            return
        label = self._folder / _LABEL
        if resume:
            _check_owner(label, owner or {})
            return
        try:
            _clear(self._folder, label)
            label.write_text(json.dumps(owner))
        except OSError as error:
            raise _cannot_write(self._folder, error) from error

    def save(self, stage: str, stacks: list[Arrays]) -> None:
        """Keep the arrays of each stack of a round."""
        if self._folder is None:
            return
        named = {f"{i}/{key}": a for i, stack in enumerate(stacks) for key, a in stack.items()}
        beside = self._folder / f"{stage}.partial"
        try:
            with beside.open("wb") as file:
                np.savez(file, **named)
            beside.replace(self._folder / f"{stage}.npz")
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            raise _cannot_write(self._folder, error) from error

    def load(self, stage: str, fresh: list[Arrays]) -> list[Arrays]:
        """Arrays of each stack of a round; the ``fresh`` ones if it was not begun."""
        path = None if self._folder is None else self._folder / f"{stage}.npz"
        if path is None or not path.exists():
            return fresh
        try:
            with np.load(path, allow_pickle=False) as file:
                saved = [
                    {key: file[f"{i}/{key}"] for key in stack} for i, stack in enumerate(fresh)
                ]
            if _shapes(saved) != _shapes(fresh):
                raise ValueError("the stacks are others")
        except Exception as error:  # the readers of zip and npy raise a dozen kinds
            raise InputError(
                f"{path} is damaged or from a machine with another number of cores: "
                "train without --resume"
            ) from error
        return saved


def discard(folder: Path) -> None:
    """Remove a checkpoint: its training is finished. Files of others stay, and the folder then."""
    with suppress(OSError):
        _remove(folder)
        folder.rmdir()


def _shapes(stacks: list[Arrays]) -> list[dict[str, tuple[int, ...]]]:
    return [{key: np.shape(array) for key, array in stack.items()} for stack in stacks]


def _clear(folder: Path, label: Path) -> None:
    """Make the folder, or empty it; what is no checkpoint is left alone."""
    if folder.exists() and any(folder.iterdir()):
        if not label.is_file():
            raise InputError(f"{folder} holds something that is not a checkpoint")
        _remove(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _remove(folder: Path) -> None:
    """Remove the files of a checkpoint; the one that marks it as such goes last."""
    for pattern in ("*.npz", "*.partial", _LABEL):
        for path in folder.glob(pattern):
            path.unlink()


def _cannot_write(folder: Path, error: OSError) -> InputError:
    return InputError(f"cannot write to {folder}: {error.strerror or error}")


def _check_owner(label: Path, owner: dict[str, Any]) -> None:
    try:
        found = json.loads(label.read_text())
        differing = sorted(key for key in {*found, *owner} if found.get(key) != owner.get(key))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{label.parent} holds no training to resume: train without --resume"
        ) from error
    if differing:
        settings = [key for key in differing if key != "data"]
        other = ["other data"] if "data" in differing else []
        if settings:
            value = "another value" if len(settings) == 1 else "other values"
            other.append(f"{value} of {', '.join(settings)}")
        raise InputError(
            f"{label.parent} was begun with {' and '.join(other)}: "
            "resume with the same, or train without --resume"
        )
