"""Cells: what one independent unit of work is, what decides its numbers, and how it is computed."""

import json
import os
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple

# Goes up whenever our own trainer gives other networks: their cells are others then, and those of
# networks trained as published stay.
OUR_TRAINER = 1

EFFORTS = ("quick", "normal", "thorough")
TRAINERS = ("twinedge", "published")
PROTOCOLS = ("published", "text")


@dataclass(frozen=True)
class Setup:
    """What a person may choose about an experiment.

    Parameters
    ----------
    members : int
        Networks in an ensemble; the paper has 32.
    effort : {"quick", "normal", "thorough"}
        How long our trainer searches and trains; forests search a small grid if "quick".
    trainer : {"twinedge", "published"}
        Who trains the networks: we, or the recipe of the paper's code.
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


class Method(NamedTuple):
    """Where the function of a method is, its version, and which parts of the setup it looks at.

    The version goes up whenever the same cell would come out with other numbers. A light method
    does without TensorFlow. One whose seconds count is computed alone.
    """

    home: str
    version: int
    decided_by: tuple[str, ...]
    light: bool = False
    alone: bool = False


_NETWORKS = ("effort", "trainer", "protocol", "steps")
_FORESTS = ("effort", "protocol")

METHODS = {
    "networks": Method("networks", 1, ("members", *_NETWORKS)),
    "twins": Method("networks", 1, ("members", *_NETWORKS)),
    "unsure_twin": Method("networks", 1, _NETWORKS),
    "neighbour_twin": Method("networks", 1, _NETWORKS),
    "multiplied_twin": Method("networks", 1, _NETWORKS),
    "timed_network": Method("networks", 1, _NETWORKS, alone=True),
    "timed_twin": Method("networks", 1, _NETWORKS, alone=True),
    "nearest": Method("nearest", 1, ("protocol",), light=True),
    "forest": Method("forests", 1, _FORESTS),
    "twinned_forest": Method("forests", 1, _FORESTS),
    "loop_forest": Method("forests", 1, _FORESTS),
    "check": Method("checks", 1, ("effort",)),
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
        How.
    number : int, optional
        Neighbours or multiplier, for a method that has such a number.
    """

    method: str
    dataset: str
    split: int
    setup: Setup
    number: int | None = None

    @property
    def key(self) -> dict[str, Any]:
        """All that decides the numbers of this cell, and nothing else."""
        method = METHODS[self.method]
        chosen = asdict(self.setup)
        key = {
            "method": self.method,
            "version": method.version,
            "dataset": self.dataset,
            "split": self.split,
            **{name: chosen[name] for name in method.decided_by if chosen[name] != "auto"},
        }
        if key.get("trainer") == "twinedge" and OUR_TRAINER > 1:
            key["trainer_version"] = OUR_TRAINER
        return key if self.number is None else {**key, "number": self.number}

    @property
    def name(self) -> str:
        """Short and for people, but different for every key: names a file."""
        digest = sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:12]
        number = "" if self.number is None else f"{self.number}-"
        return f"{self.method}-{number}{self.dataset}-{self.split}-{digest}"

    def __str__(self) -> str:
        number = "" if self.number is None else f" {self.number}"
        return f"{self.method}{number} {self.dataset} {self.split}"


def compute(cell: Cell) -> dict[str, Any]:
    """Do the work of a cell, in this process and on one thread."""
    method = METHODS[cell.method]
    if not method.light:
        _one_thread()
    home = import_module(f"twinedge.reproduce.{method.home}")
    result: dict[str, Any] = getattr(home, cell.method)(cell)
    return result


def _one_thread() -> None:
    """Let the trainer take one core: the others compute cells of their own.

    It counts the cores it may use when it is loaded. The narrowing ends with that, so that the
    system may move this process to whichever core is free.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        import_module("twinedge.learn.backend")
    finally:
        os.sched_setaffinity(0, cores)
