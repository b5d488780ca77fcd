"""Where data sets lie on this machine: the user's folder and the cache."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinedge.data.catalogue import Entry

DATA_VARIABLE = "TWINEDGE_DATA"
CACHE_VARIABLE = "TWINEDGE_CACHE"


def data_folder() -> Path | None:
    """Return the folder named by the environment variable TWINEDGE_DATA, if it is set."""
    value = os.environ.get(DATA_VARIABLE)
    return Path(value) if value else None


def cache_folder() -> Path:
    """Return the folder for downloads.

    TWINEDGE_CACHE if set, else ``twinedge`` in XDG_CACHE_HOME, else in ``~/.cache``.
    """
    value = os.environ.get(CACHE_VARIABLE)
    if value:
        return Path(value)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "twinedge"


def find_file(entry: Entry) -> Path | None:
    """Find the CSV file of a set, first in the user's folder, then in the cache."""
    for folder in (data_folder(), cache_folder()):
        # os.access: a folder that may not be searched counts as one without the file.
        if folder is not None and os.access(folder / entry.file_name, os.F_OK):
            return folder / entry.file_name
    return None


def write_to_cache(entry: Entry, values: NDArray[np.float64]) -> Path | None:
    """Keep a downloaded set, whole or not at all.

    Parameters
    ----------
    entry
        Which set.
    values : ndarray of float64, shape (rows, features + 1)
        Target last. Written so that reading gives the same bits.

    Returns
    -------
    Path or None
        None when the cache cannot be written: the data are good all the same.
    """
    lines = [entry.header, *(",".join(map(repr, row)) for row in values.tolist())]
    path = cache_folder() / entry.file_name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{entry.name}-", dir=path.parent)
    except OSError:
        return None
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write("\n".join(lines) + "\n")
        beside.replace(path)
    except OSError:
        return None
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
    return path
