"""Load an exported file as a device, with the backend that can read it.

Files of an export belong together by name. ``model.twin`` is the pack. ``model.tflite``,
``model.onnx`` and ``model_float.onnx`` are ensembles with their anchors inside. The same names with
the suffix ``_twin`` are bare twins, which take their anchors from ``model.twin`` beside them.
"""

import os
import zlib
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from twinedge.errors import InputError, MissingPackageError, wrong_value
from twinedge.runtime.device import Device

if TYPE_CHECKING:
    from twinedge.runtime.pack_device import PackDevice

_PACK = "model.twin"


class Backend(NamedTuple):
    """Reads files with ``suffix``: ``opener`` in module ``home`` takes a path and threads."""

    suffix: str
    home: str
    opener: str


# "auto" uses the first that can read a file: one whose package is not installed raises
# MissingPackageError.
BACKENDS = {
    "native": Backend(".twin", "twinedge.runtime.native", "open_native"),
    "numpy": Backend(".twin", "twinedge.runtime.pack_device", "open_reference"),
    "tflite": Backend(".tflite", "twinedge.runtime.interpreters", "open_tflite"),
    "onnx": Backend(".onnx", "twinedge.runtime.interpreters", "open_onnx"),
}


def pack_in(path: Path) -> Path:
    """Return the pack of an export folder; any other path stays as it is."""
    pack = path / _PACK
    return pack if pack.is_file() else path


def load(
    path: str | Path,
    backend: str = "auto",
    *,
    store: str | Path | None = None,
    threads: int | None = 1,
) -> Device:
    """Load an exported file, or the pack of an export folder; see ``twinedge.load``.

    Parameters
    ----------
    path : path
        A ``.twin``, ``.tflite`` or ``.onnx`` file; or the folder of an export, for its pack.
    backend : str
        "auto", or one of ``BACKENDS``.
    store : path, optional
        A file that keeps what the device learns.
    threads : int, optional
        How many threads may answer a batch; None for one per core.

    Raises
    ------
    InputError
        If the file cannot be used; a ``MissingPackageError`` if something must be installed first.
    """
    path = pack_in(Path(path))
    if backend != "auto" and backend not in BACKENDS:
        raise wrong_value("backend", backend, f"is not one of auto, {', '.join(BACKENDS)}")
    able = [name for name, one in BACKENDS.items() if one.suffix == path.suffix.lower()]
    if not able:
        kinds = ", ".join(dict.fromkeys(one.suffix for one in BACKENDS.values()))
        raise InputError(f"{path} is not one of the files that an export writes ({kinds})")
    if backend != "auto":
        if backend not in able:
            suffix = BACKENDS[backend].suffix
            raise wrong_value("backend", backend, f"reads {suffix} files, but {path} is not one")
        able = [backend]
    if not path.is_file():
        raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    if threads is None:
        threads = core_count()
    elif isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        why = "is not a whole number of at least 1, or None for one per core"
        raise wrong_value("threads", threads, why)
    before = _checksum(path)  # of what is opened, so that a pickle never meets another file
    device = _open(able, path, int(threads))
    if store is not None:
        device.keep(store)
        store = Path(store).absolute()
    device._opened = path.absolute(), device.info["backend"], store, int(threads), before
    return device


def reopen(path: Path, backend: str, store: Path | None, threads: int, before: int) -> Device:
    """Load a pickled device, whose file had this checksum before."""
    if _checksum(path) != before:
        raise InputError(f"{path} has changed since the device was loaded: load it again")
    return load(path, backend, store=store, threads=threads)


def _checksum(path: Path) -> int:
    try:
        return zlib.crc32(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def load_pack_device(path: Path) -> "PackDevice":
    """Load a pack, the only kind of file that can learn.

    Raises
    ------
    InputError
        If it is another kind of file, or cannot be used.
    """
    from twinedge.runtime.pack_device import PackDevice

    if path.suffix != ".twin":
        raise InputError(f"{path}: only a .twin pack can learn")
    device = load(path)
    assert isinstance(device, PackDevice)
    return device


def core_count() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _open(able: list[str], path: Path, threads: int) -> Device:
    """Open a file with the first of these backends that is installed."""
    name, *others = able
    try:
        backend = BACKENDS[name]
        device: Device = getattr(import_module(backend.home), backend.opener)(path, threads)
    except MissingPackageError:
        if others:
            return _open(others, path, threads)
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return device
