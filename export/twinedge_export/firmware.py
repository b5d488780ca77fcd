"""Where the sources of the C runtime are: in the checkout, or inside the installed package."""

from pathlib import Path

from twinedge.errors import InputError

_HERE = Path(__file__).resolve().parent
_HOMES = (_HERE / "firmware_ref", _HERE.parents[1] / "firmware_ref")


def firmware_folder() -> Path:
    """Folder with ``include/`` and ``src/`` of the C runtime."""
    for folder in _HOMES:
        if (folder / "include" / "twin.h").is_file():
            return folder
    raise InputError("the sources of the C runtime are not installed: reinstall twinedge")
