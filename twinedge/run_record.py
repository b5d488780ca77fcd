"""The record of a run: what was trained, on what, with which scores; read without TensorFlow."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from twinedge.atomic_files import RUN, recover
from twinedge.errors import InputError

FILE = "run.json"
FORMAT, VERSION = "twinedge run", 1


def read_record(folder: Path) -> dict[str, Any]:
    """Read the record of a run folder.

    A folder that was being replaced when the program was killed is restored first.

    Raises
    ------
    InputError
        If there is none, or it has another version.
    """
    path = folder / FILE
    if not folder.exists():
        with suppress(OSError):
            recover(folder, RUN)
    if not folder.exists():
        raise InputError(f"{folder} does not exist: create a run with 'twinedge train'")
    if not path.is_file():
        raise InputError(f"{folder} is not a run folder: it has no {FILE}")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged (not JSON); train the run again") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f"{path} was not written by twinedge")
    if record.get("version") != VERSION:
        raise InputError(
            f"{path} has version {record.get('version')}, this twinedge reads {VERSION}"
        )
    return record
