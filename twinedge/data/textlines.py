"""The lines of a text file from outside, read one at a time and checked on the way."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from twinedge.data.wording import place
from twinedge.errors import InputError

# Without a limit a file with no line end at all would be read into memory as one line.
LONGEST_LINE = 2**24
_SAVE_AS = "save it as CSV in UTF-8"
_GZIP = b"\x1f\x8b"


def open_text(path: Path) -> TextIO:
    """Open a file as UTF-8 text, with or without a byte order mark, line ends kept.

    One that gzip compressed is taken for what it holds.
    """
    try:
        return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", newline="")
    except IsADirectoryError:
        raise InputError(f"{place(path)}: is a folder; give the path of a CSV file") from None
    except FileNotFoundError:
        raise InputError(f"{place(path)}: no such file; give the path of a CSV file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise InputError(f"{place(path)}: cannot be read: {reason}") from None


def lines(stream: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of `stream`; bytes that are not text end in an `InputError`.

    Parameters
    ----------
    stream
        As `open_text` returns it.
    path
        Where the stream comes from, for messages.
    """
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(LONGEST_LINE + 1)
        except UnicodeDecodeError:
            row = _undecodable_row(path)
            raise InputError(f"{place(path)}:{row} not UTF-8 text; {_SAVE_AS}") from None
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise InputError(
                f"{place(path)}: is not a whole gzip file; compress it again"
            ) from None
        except OSError as error:
            raise InputError(f"{place(path)}: cannot be read: {error.strerror}") from None
        if not line:
            return
        if "\0" in line:
            raise InputError(
                f"{place(path)}: row {number}: not a text file (it holds zero bytes); {_SAVE_AS}"
            )
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{place(path)}: row {number}: longer than {LONGEST_LINE} characters; "
                f"a CSV has one line per row"
            )
        yield line


def _open_bytes(path: Path) -> BinaryIO:
    stream = path.open("rb")
    if stream.peek(2)[:2] != _GZIP or not path.is_file():
        return stream
    stream.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def _undecodable_row(path: Path) -> str:
    # The text layer decodes blocks of some kilobytes, so it cannot say which line was at fault:
    # look again, in bytes. A pipe cannot be read twice; then the message goes without a row.
    if not path.is_file():
        return ""
    with _open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.decode("utf-8", errors="ignore").encode() != line:
                return f" row {number}:"
    return ""
