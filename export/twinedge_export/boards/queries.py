"""Queries for a pack from a table."""

from pathlib import Path

import numpy as np

from twinedge.data import read_features, read_table
from twinedge.data.wording import place, plural
from twinedge.encoding import Encoding
from twinedge.errors import InputError
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.reference import fillable


def read_queries(path: Path, pack: Pack, most: int | None = None) -> Array:
    """Read the first ``most`` rows of a CSV file as queries ``(n, f)``, float32.

    Columns are found by the names in the pack's metadata. A pack without names takes a file with
    as many columns as it has features, or one more, which is taken for the target.

    Raises
    ------
    InputError
        Where the file does not have the columns.
    """
    names = _names(pack)
    if names:
        encoding = Encoding.of(pack.metadata.get("columns"), names)
        X, _ = read_features(path, encoding, fillable=fillable(pack))
    else:
        X = read_table(path, target=None).X
        if X.shape[1] - pack.features not in (0, 1):
            raise InputError(
                f"{place(path)} has {plural(X.shape[1], 'column')}, and the pack, which names "
                f"none, takes {plural(pack.features, 'feature')}"
            )
    with np.errstate(over="ignore"):
        queries: Array = X[:most, : pack.features].astype(np.float32)
    return queries


def own_points(pack: Pack, most: int) -> Array:
    """Return the first anchors as queries ``(n, f)``, float32."""
    points = pack.anchors[:most].astype(np.float32) / pack.x_gain + pack.x_offset
    return points.astype(np.float32)


def _names(pack: Pack) -> list[str]:
    listed = pack.metadata.get("features")
    if not isinstance(listed, list) or len(listed) != pack.features:
        return []
    names = [one.get("name") if isinstance(one, dict) else None for one in listed]
    return [name for name in names if isinstance(name, str)] if all(names) else []
