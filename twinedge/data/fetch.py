"""Load the nine data sets: from the user's folder, the cache, or where they are published.

Downloading (`download_openml`, `download_bytes`) is kept apart from parsing, so that everything
else can be tested without a network.
"""

import http.client
import io
import os
import urllib.request
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinedge.atomic_files import write_file
from twinedge.data.catalogue import (
    GENERATORS,
    VARIANTS,
    Dataset,
    Entry,
    entry_of,
    paper_test_function,
)
from twinedge.data.dialect import RowError, Rows, find_delimiter
from twinedge.data.frames import read_binary
from twinedge.data.reading import read_table
from twinedge.errors import InputError, MissingPackageError
from twinedge.wording import quoted, shown

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
        # os.access: a folder that may not be searched counts as not having the file.
        if folder is not None and os.access(folder / entry.file_name, os.F_OK):
            return folder / entry.file_name
    return None


def write_to_cache(entry: Entry, values: NDArray[np.float64]) -> Path | None:
    """Cache a downloaded set atomically.

    Parameters
    ----------
    entry
        Which set.
    values : ndarray of float64, shape (rows, features + 1)
        Target last. Written so that reading returns the same bits.

    Returns
    -------
    Path or None
        None if the cache cannot be written; the data can be used all the same.
    """
    lines = [entry.header, *(",".join(map(repr, row)) for row in values.tolist())]
    path = cache_folder() / entry.file_name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, "\n".join(lines) + "\n")
    except (OSError, InputError):
        return None
    return path


# Copies differ in the last digits they print, which moves a mean far less than this; a missing row,
# a swapped column or another target moves it far more.
_TOLERANCE = 1e-3  # standard deviations of the column


def verify(entry: Entry, values: NDArray[np.float64], where: str) -> None:
    """Refuse a table that is not the data set of the paper.

    Parameters
    ----------
    entry
        What is expected.
    values : ndarray of float64, shape (rows, features + 1)
        What was found, target last.
    where
        Path or address where it was found, for the message.

    Raises
    ------
    InputError
        If the shape, a column's mean or the order of the rows is not as expected.
    """
    rows, columns = values.shape
    if columns != entry.features + 1:
        raise InputError(
            f"{where}: has {columns - 1} features; {entry.title} ({entry.name}) has "
            f"{entry.features}, the header is {entry.header}"
        )
    if rows != entry.rows:
        raise InputError(f"{where}: has {rows} rows; {entry.title} ({entry.name}) has {entry.rows}")
    names = (*entry.feature_names, entry.target_name)
    slack = _TOLERANCE * values.std(axis=0)
    for k, (name, mean, expected) in enumerate(
        zip(names, values.mean(axis=0), entry.means, strict=True)
    ):
        # Written so that a NaN fails.
        if not abs(mean - expected) <= slack[k]:
            raise InputError(
                f"{where}: column {quoted(name)} has mean {mean:.6g}; in {entry.title} "
                f"({entry.name}) it is {expected:.6g}"
            )
    moment = np.average(values[:, -1], weights=np.arange(1, rows + 1))
    if not abs(moment - entry.row_moment) <= slack[-1]:
        raise InputError(
            f"{where}: the rows of {entry.title} ({entry.name}) are not in their original order, "
            f"which the paper's splits need; use an unsorted copy"
        )


_SECONDS = 30.0
_LARGEST = 2**25  # bytes of a file; those published are below 1 MB


def fetch(entry: Entry) -> tuple[NDArray[np.float64], str]:
    """Download a set and check that it is the right one.

    Parameters
    ----------
    entry
        Which set; one with an OpenML id or an address.

    Returns
    -------
    values : ndarray of float64, shape (rows, features + 1)
        Columns in our order, target last.
    address : str
        Where it came from.

    Raises
    ------
    InputError
        If it cannot be downloaded, or what arrives is not the set.
    """
    if entry.openml_id is not None:
        address = f"https://www.openml.org/d/{entry.openml_id}"
        raw: Any = _attempt(entry, address, lambda: download_openml(entry.openml_id))
        parse: Callable[[Any, Entry], NDArray[np.float64]] = parse_openml
    elif entry.address is not None:
        address = entry.address
        raw = _attempt(entry, address, lambda: download_bytes(address))
        parse = _PARSERS[entry.name]
    else:
        raise InputError(f"{entry.name} is generated; there is nothing to download")
    try:
        values = parse(raw, entry)
    except MissingPackageError:
        raise
    except (ValueError, RowError) as error:
        raise InputError(
            f"{address}: not {entry.title} ({entry.name}) as expected: {_first_line(error)}; "
            f"{_by_hand(entry)}"
        ) from None
    verify(entry, values, address)
    return values, address


def download_openml(data_id: int | None) -> Any:
    """Get a set from OpenML: a Bunch with ``data``, ``feature_names`` and ``categories``."""
    from sklearn.datasets import fetch_openml

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about retries; the error that follows says it all
        # target_column=None: all columns in one array, so one rule orders them. The liac-arff
        # parser needs no pandas, which scikit-learn does not install.
        return fetch_openml(
            data_id=data_id,
            target_column=None,
            as_frame=False,
            parser="liac-arff",
            cache=False,
            n_retries=1,
        )


def download_bytes(address: str) -> bytes:
    """Get a file over https."""
    request = urllib.request.Request(address, headers={"User-Agent": "twinedge"})
    with urllib.request.urlopen(request, timeout=_SECONDS) as response:
        data: bytes = response.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise OSError(f"more than {_LARGEST} bytes")
    return data


def parse_openml(bunch: Any, entry: Entry) -> NDArray[np.float64]:
    """Make a table of an OpenML set.

    Categories (CHAS and RAD of Boston Housing) arrive as codes 0, 1, ... into a list of labels;
    the labels are the numbers.

    Parameters
    ----------
    bunch
        As `download_openml` returns it.
    entry
        Which set.

    Returns
    -------
    ndarray of float64, shape (rows, features + 1)
    """
    values = np.array(bunch.data, dtype=np.float64)
    columns = list(bunch.feature_names)
    if values.ndim != 2 or values.shape[1] != len(columns):
        raise ValueError(f"{len(columns)} names for an array of shape {values.shape}")
    for name, labels in (bunch.categories or {}).items():
        codes = values[:, columns.index(name)].astype(np.int64)
        if codes.min() < 0 or codes.max() >= len(labels):
            raise ValueError(f"column {quoted(name)} has codes without a label")
        values[:, columns.index(name)] = np.array([float(label) for label in labels])[codes]
    wanted = (*entry.feature_names, entry.target_name)
    plain = [_plain(name) for name in columns]
    if sorted(plain) == sorted(map(_plain, wanted)):
        return values[:, [plain.index(_plain(name)) for name in wanted]]
    # The names are spelled differently: go by position. `verify` checks the mean of every column.
    return values


def parse_bc(data: bytes, entry: Entry) -> NDArray[np.float64]:
    """Read the descriptors and the target from UCI's zip: 14 columns, some of them text."""
    text = _unzip(data, str(entry.member)).decode("utf-8-sig", errors="replace")
    lines = text.splitlines(keepends=True)
    rows = [row for _, row in Rows(lines, find_delimiter(lines[:50]))]
    return _numbers(rows, (*entry.feature_names, entry.target_name))


def parse_ee(data: bytes, entry: Entry) -> NDArray[np.float64]:
    """Read X1 to X8 and Y2, the cooling load, from the workbook in UCI's zip.

    The original file rather than OpenML 44960: that copy is prepared for the heating load, and
    whether it still holds the cooling load is not documented.
    """
    sheet = io.BytesIO(_unzip(data, str(entry.member)))
    rows = [row for _, row in read_binary(sheet, ".xlsx", str(entry.member))]
    return _numbers(rows, (*(f"X{k}" for k in range(1, 9)), "Y2"))


_PARSERS: dict[str, Callable[[bytes, Entry], NDArray[np.float64]]] = {
    "bc": parse_bc,
    "ee": parse_ee,
}


def _unzip(data: bytes, name: str) -> bytes:
    """Unpack one file of a zip; ValueError if it is not there, damaged, or too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            info = archive.getinfo(name)
            if info.file_size > _LARGEST:  # a small zip can unpack to a disk full
                raise ValueError(f"{name} unpacks to {info.file_size} bytes")
            return archive.read(info)
    except KeyError:
        raise ValueError(f"no {name} in the zip file") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"damaged: {error}") from None


def _numbers(rows: Sequence[Sequence[str]], wanted: Sequence[str]) -> NDArray[np.float64]:
    """Read the wanted columns ``(n, columns)`` of rows, the first of which is the header."""
    if not rows:
        raise ValueError("the table is empty")
    header = [cell.strip() for cell in rows[0]]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(f"no column {quoted(missing[0])}")
    columns = [header.index(name) for name in wanted]
    if any(len(row) <= max(columns) for row in rows):
        raise ValueError("rows of different lengths")
    cells = [[float(row[k]) for k in columns] for row in rows[1:]]
    return np.array(cells).reshape(-1, len(wanted))


def _attempt(entry: Entry, address: str, get: Callable[[], Any]) -> Any:
    try:
        return get()
    except ImportError:
        raise InputError(
            f"{entry.name}: scikit-learn is needed to download it from {address}: "
            f"pip install 'twinedge[train]'; {_by_hand(entry)}"
        ) from None
    # ValueError and KeyError: what scikit-learn makes of an answer that is not OpenML's.
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        raise InputError(
            f"{entry.name}: not on this machine, and {address} cannot be reached "
            f"({_first_line(error)}); {_by_hand(entry)}"
        ) from None


def _by_hand(entry: Entry) -> str:
    return (
        f"to work without a network, put {entry.file_name} with the header {entry.header} into "
        f"{shown(cache_folder())} or the folder that {DATA_VARIABLE} names"
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def load(name: str, variant: str = "published") -> Dataset:
    """Load one of the paper's data sets.

    Looks for ``<name>.csv`` in the folder named by the environment variable TWINEDGE_DATA, then in
    the cache; otherwise downloads it (to the cache) or, for the generated sets, generates it. Files
    and downloads are checked against what the paper used. ``tf`` is always generated.

    Parameters
    ----------
    name
        Key of the set: bc, bh, cs, ee, rcl, tf, wn, wsb or yh.
    variant
        "published": the data behind the paper's numbers. "paper", for rcl and wsb only: generated
        as in the paper's text, which differs from its files.

    Returns
    -------
    Dataset
        Rows in the order that `splits` refers to.

    Raises
    ------
    InputError
        If there is no such set or variant, a file is not the set it is named after, or the set is
        not on this machine and cannot be downloaded.

    Examples
    --------
    >>> load("tf").X.shape
    (1000, 2)
    """
    entry = entry_of(name)
    if variant not in VARIANTS:
        raise InputError(f"no variant {quoted(variant)}; use {' or '.join(map(repr, VARIANTS))}")
    generate = GENERATORS.get(entry.name)
    if variant == "paper":
        if generate is None:
            raise InputError(
                f"{entry.name} has no variant 'paper'; only {' and '.join(GENERATORS)} differ "
                f"between the paper's text and its files"
            )
        return generate(variant)
    if entry.name == "tf":
        return paper_test_function()
    path = find_file(entry)
    if path is not None:
        return _from_file(entry, path)
    if generate is not None:
        return generate(variant)
    values, source = fetch(entry)
    kept = write_to_cache(entry, values)
    return entry.dataset(
        np.ascontiguousarray(values[:, :-1]),
        values[:, -1].copy(),
        source if kept is None else str(kept),
    )


def _from_file(entry: Entry, path: Path) -> Dataset:
    try:
        table = read_table(path, target=-1)
        assert table.y is not None
        verify(entry, np.column_stack([table.X, table.y]), shown(path))
        if (*table.feature_names, table.target_name) != (*entry.feature_names, entry.target_name):
            raise InputError(f"{shown(path)}: the header is not {entry.header}")
    except InputError as error:
        if path.parent == cache_folder():
            raise InputError(f"{error}; delete it to download it again") from None
        raise
    return entry.dataset(table.X, table.y, str(path))
