"""Download the measured data sets from where they are published.

Getting bytes (`download_openml`, `download_bytes`) is kept apart from making sense of them, so that
all the rest can be tested on a machine without a network.
"""

import http.client
import urllib.request
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinedge.data.catalogue import Entry
from twinedge.data.dialect import RowError, find_delimiter, rows_of
from twinedge.data.folders import DATA_VARIABLE, cache_folder
from twinedge.data.verify import verify
from twinedge.data.wording import place, quoted
from twinedge.data.xlsx import first_sheet, open_zip, read_member
from twinedge.errors import InputError

_SECONDS = 30.0
_LARGEST_DOWNLOAD = 2**25  # bytes; the zips are below 1 MB


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
        When it cannot be downloaded, or what arrives is not the set.
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
        data: bytes = response.read(_LARGEST_DOWNLOAD + 1)
    if len(data) > _LARGEST_DOWNLOAD:
        raise OSError(f"more than {_LARGEST_DOWNLOAD} bytes")
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
        if name in columns:
            codes = values[:, columns.index(name)].astype(np.int64)
            if codes.min() < 0 or codes.max() >= len(labels):
                raise ValueError(f"column {quoted(name)} has codes without a label")
            values[:, columns.index(name)] = np.array([float(label) for label in labels])[codes]
    ours = (*entry.feature_names, entry.target_name)
    plain = [_plain(name) for name in columns]
    if sorted(plain) == sorted(map(_plain, ours)):
        return values[:, [plain.index(_plain(name)) for name in ours]]
    # Spelled differently: then by position. `verify` knows the mean of every column.
    return values


def parse_bc(data: bytes, entry: Entry) -> NDArray[np.float64]:
    """Take the descriptors and the target out of UCI's zip: 14 columns, some of them text."""
    with open_zip(data) as archive:
        text = read_member(archive, str(entry.member)).decode("utf-8-sig", errors="replace")
    lines = text.splitlines(keepends=True)
    rows = [row for _, row in rows_of(lines, find_delimiter(lines[:50]))]
    if not rows:
        raise ValueError(f"{entry.member} is empty")
    header = [cell.strip() for cell in rows[0]]
    return _numbers(rows[1:], header, (*entry.feature_names, entry.target_name))


def parse_ee(data: bytes, entry: Entry) -> NDArray[np.float64]:
    """Take X1 to X8 and Y2, the cooling load, out of the workbook in UCI's zip.

    The original file rather than OpenML 44960: that copy is prepared for the heating load, and
    whether it still holds the cooling load is not documented.
    """
    with open_zip(data) as archive:
        sheet = first_sheet(read_member(archive, str(entry.member)))
    filled = [row for row in sheet if row]  # formatted but empty rows may follow the data
    if not filled:
        raise ValueError(f"{entry.member} is empty")
    letters = list(filled[0])
    header = [filled[0][letter].strip() for letter in letters]
    rows = [[row.get(letter, "") for letter in letters] for row in filled[1:]]
    return _numbers(rows, header, (*(f"X{k}" for k in range(1, 9)), "Y2"))


_PARSERS: dict[str, Callable[[bytes, Entry], NDArray[np.float64]]] = {
    "bc": parse_bc,
    "ee": parse_ee,
}


def _numbers(
    rows: Sequence[Sequence[str]], header: Sequence[str], wanted: Sequence[str]
) -> NDArray[np.float64]:
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(f"no column {quoted(missing[0])}")
    columns = [list(header).index(name) for name in wanted]
    if any(len(row) <= max(columns) for row in rows):
        raise ValueError("rows of different lengths")
    return np.array([[float(row[k]) for k in columns] for row in rows]).reshape(-1, len(wanted))


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
        f"to go on without a network, put {entry.file_name} with the header {entry.header} into "
        f"{place(cache_folder())} or the folder that {DATA_VARIABLE} names"
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
