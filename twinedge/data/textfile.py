"""The lines of a text file, whatever its encoding, compressed or not.

UTF-16 is known by its byte order mark, or by its zero bytes. Anything else is UTF-8 until a byte
proves otherwise, and then Windows-1252, which is Latin-1 with a few letters more.
"""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from twinedge.encoding.cells import WINDOWS_1252
from twinedge.errors import InputError
from twinedge.wording import shown

# Without a limit, a file with no line breaks would be read into memory as one line.
LONGEST_LINE = 2**24
_SAVE_AS = "save it as CSV in UTF-8"
_GZIP = b"\x1f\x8b"
_BAD_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
_ESCAPED = re.compile("[\udc80-\udcff]")


class TextLines:
    """An iterator over the lines of an open text file, with their line endings.

    Parameters
    ----------
    stream : TextIO
        Undecodable bytes are lone surrogates (``errors="surrogateescape"``).
    path : Path
        Where it comes from, for messages.

    Attributes
    ----------
    encoding : str
        What the lines so far are: "ASCII", "UTF-8", "UTF-16" or "Windows-1252".
    """

    def __init__(self, stream: TextIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self._number = 0
        self.encoding = "UTF-16" if stream.encoding.startswith("utf-16") else "ASCII"

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._number += 1
        try:
            line = self._stream.readline(LONGEST_LINE + 1)
        except UnicodeDecodeError:  # of blocks of several kilobytes, so the row is not known
            raise InputError(f"{shown(self._path)}: damaged UTF-16 text; {_SAVE_AS}") from None
        except _BAD_GZIP:
            raise _incomplete(self._path) from None
        except OSError as error:
            raise InputError(f"{shown(self._path)}: cannot be read: {error.strerror}") from None
        if not line:
            raise StopIteration
        if "\0" in line:
            raise self._refused(f"not a text file (it holds zero bytes); {_SAVE_AS}")
        if len(line) > LONGEST_LINE:
            raise self._refused(
                f"longer than {LONGEST_LINE} characters; a CSV has one line per row"
            )
        return line if line.isascii() or self.encoding == "UTF-16" else self._decoded(line)

    def _decoded(self, line: str) -> str:
        """Decode what is left of a line with letters other than ASCII."""
        escaped = _ESCAPED.search(line)
        found = "Windows-1252" if escaped else "UTF-8"
        text = line.translate(WINDOWS_1252)
        if escaped and "\ufffd" in text:
            raise self._refused(f"text in neither UTF-8 nor Windows-1252; {_SAVE_AS}")
        alone = not escaped or _ESCAPED.sub("", line).isascii()
        if not alone or self.encoding not in ("ASCII", found):
            raise self._refused(f"text partly in UTF-8, partly in Windows-1252; {_SAVE_AS}")
        self.encoding = found
        return text

    def _refused(self, reason: str) -> InputError:
        return InputError(f"{shown(self._path)}: row {self._number}: {reason}")


@contextmanager
def open_text(path: Path) -> Iterator[TextLines]:
    """Open a text file, which may be compressed by gzip, and find out its encoding."""
    try:
        stream = _open_bytes(path)
    except IsADirectoryError:
        raise InputError(f"{shown(path)}: is a folder; give the path of a CSV file") from None
    except FileNotFoundError:
        raise InputError(f"{shown(path)}: no such file; give the path of a CSV file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise InputError(f"{shown(path)}: cannot be read: {reason}") from None
    with stream:
        try:
            encoding = _encoding_of(stream.peek(1))
        except _BAD_GZIP:
            raise _incomplete(path) from None
        except OSError as error:
            raise InputError(f"{shown(path)}: cannot be read: {error.strerror}") from None
        errors = "surrogateescape" if encoding == "utf-8-sig" else "strict"
        yield TextLines(io.TextIOWrapper(stream, encoding, errors, newline=""), path)


def _open_bytes(path: Path) -> io.BufferedReader:
    stream = path.open("rb")
    if stream.peek(2)[:2] != _GZIP or not path.is_file():
        return stream
    stream.close()
    return cast(io.BufferedReader, gzip.open(path, "rb"))  # it has the same methods


def _encoding_of(head: bytes) -> str:
    """Tell UTF-16 from all else; a table is mostly digits, half of whose bytes are zero there."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    first, second = head[::2].count(0), head[1::2].count(0)
    if 4 * max(first, second) >= len(head) > 1 and not min(first, second):
        return "utf-16-le" if second else "utf-16-be"
    return "utf-8-sig"


def _incomplete(path: Path) -> InputError:
    return InputError(f"{shown(path)}: is not a complete gzip file; compress it again")
