"""Why a pack is refused."""

from enum import Enum

from twinedge.errors import InputError


class Reason(Enum):
    """One word for each kind of fault, and a code in C for each (FORMAT.md, section 10)."""

    TRUNCATED = "truncated"
    LENGTH = "length"
    MAGIC = "magic"
    VERSION = "version"
    HEADER_CRC = "header_crc"
    BODY_CRC = "body_crc"
    HEADER = "header"
    SECTION = "section"
    PADDING = "padding"
    VALUE = "value"
    OVERFLOW = "overflow"


class PackError(InputError):
    """A pack that cannot be used.

    Parameters
    ----------
    reason : Reason
        Kind of fault.
    message : str
        What exactly, in one line.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
