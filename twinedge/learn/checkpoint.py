"""Saving a training while it runs, so that it can go on where it was stopped.

A checkpoint is a folder: one file for each round of training with the state of its networks, and
one that tells which data and settings it belongs to. Files are written beside and renamed, so that
a stop at any moment leaves the last whole state.
"""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.errors import InputError

Arrays = dict[str, Any]

INTERVAL = 15.0  # seconds between two saves


class Checkpoint:
    """The states of a training's rounds in a folder, or nowhere.

    Parameters
    ----------
    folder : path or None
        Where to keep them; None keeps nothing.
    owner : dict
        Data and settings of the training, in JSON types; a checkpoint of another owner is refused.
    resume : bool
        Go on from what the folder holds; otherwise it is emptied.
    """

    def __init__(
        self, folder: Path | None, owner: dict[str, Any] | None = None, resume: bool = False
    ) -> None:
        self._folder = folder
        if folder is None:
            return
        label = folder / "owner.json"
        if resume:
            _check_owner(label, owner)
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        label.write_text(json.dumps(owner))

    def save(self, stage: str, stacks: list[Arrays]) -> None:
        """Keep the arrays of each stack of a round."""
        if self._folder is None:
            return
        named = {f"{i}/{key}": a for i, stack in enumerate(stacks) for key, a in stack.items()}
        beside = self._folder / f"{stage}.partial"
        with beside.open("wb") as file:
            np.savez(file, **named)
        beside.replace(self._folder / f"{stage}.npz")

    def load(self, stage: str) -> list[Arrays] | None:
        """Arrays of each stack of a round, or None if it was not begun."""
        path = None if self._folder is None else self._folder / f"{stage}.npz"
        if path is None or not path.exists():
            return None
        stacks: dict[int, Arrays] = {}
        try:
            with np.load(path, allow_pickle=False) as file:
                for name in file.files:
                    number, key = name.split("/")
                    stacks.setdefault(int(number), {})[key] = file[name]
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is damaged: train again without --resume") from error
        return [stacks[i] for i in sorted(stacks)]


def discard(folder: Path) -> None:
    """Remove a checkpoint: its training is finished."""
    shutil.rmtree(folder, ignore_errors=True)


def _check_owner(label: Path, owner: dict[str, Any] | None) -> None:
    try:
        found = json.loads(label.read_text())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{label.parent} holds no training to resume: train without --resume"
        ) from error
    if found != json.loads(json.dumps(owner)):
        differing = sorted(
            key for key in {*found, *(owner or {})} if found.get(key) != (owner or {}).get(key)
        )
        raise InputError(
            f"{label.parent} was begun with another {', '.join(differing)}: "
            "resume with the same, or train without --resume"
        )
