"""A pack evaluated by the C runtime: the bits of the reference, at the speed of the processor."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twinedge.errors import InputError
from twinedge.pack import read_pack
from twinedge.pack.contents import Array, Pack
from twinedge.pack.errors import PackError, Reason
from twinedge.pack.layout import MAX_ANCHORS
from twinedge.runtime import reference
from twinedge.runtime.device import Device, MissingPackageError
from twinedge.runtime.pack_device import PackDevice

if TYPE_CHECKING:
    from twinedge.runtime import _native
else:
    try:
        from twinedge.runtime import _native
    except ImportError:  # installed where there was no C compiler
        _native = None

NOT_A_NUMBER = "a query has a feature that is not a number"
_AS_IN_THE_PACK = -1
_REASONS = tuple(Reason)  # number n stands for the status -1 - n of the C runtime
_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)  # what it takes as it is


class Native:
    """A pack, open in the C runtime.

    Threads may share it: several queries, and one that takes long, are answered with the
    interpreter unlocked.

    Parameters
    ----------
    data : bytes
        The whole file; it is used where it lies.
    pack : Pack
        The same, read.
    kernel : str, optional
        Which of ``kernels`` is to evaluate; by default the fastest.

    Raises
    ------
    MissingPackageError
        Where there is no C runtime.
    PackError
        Where it refuses the pack.
    InputError
        Where it has no such kernel.
    """

    def __init__(self, data: bytes, pack: Pack, kernel: str | None = None) -> None:
        if _native is None:
            raise MissingPackageError(
                "the C runtime was not compiled when twinedge was installed: install a C compiler, "
                "then twinedge anew (pip install --force-reinstall --no-deps twinedge)"
            )
        try:
            self.model = _native.Model(data, kernel)
        except ValueError as error:
            if len(error.args) == 2:
                status, words = error.args
                raise PackError(_REASONS[-status - 1], words) from None
            raise InputError(str(error)) from None
        self._pack = pack
        self._features = pack.features

    @property
    def kernel(self) -> str:
        """Name of the kernel that evaluates."""
        return self.model.kernel()

    @property
    def kernels(self) -> list[str]:
        """Names of those that this processor has for the pack, the fastest first."""
        return self.model.kernels()

    def predict_with_spread(self, x: Array, neighbors: int = _AS_IN_THE_PACK) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``."""
        out = np.empty((2, len(x)), np.float32)
        self.answer(self.fitting(x), out, None, neighbors)
        return out

    def members(self, x: Array, neighbors: int = _AS_IN_THE_PACK) -> Array:
        """Estimates of single anchors, int32 ``(n, m)``."""
        return self._all(self.fitting(x), np.empty(len(x), np.float32), neighbors)

    def evaluate(self, x: Array, neighbors: int = _AS_IN_THE_PACK) -> reference.Estimates:
        """Everything there is to say of queries ``(n, f)``."""
        out = np.empty((2, len(x)), np.float32)
        self._all(self.fitting(x), out, neighbors)
        raw = self.evaluate_raw(reference.quantise(self._pack, x), neighbors)
        return raw._replace(mean=out[0], spread=out[1])

    def evaluate_raw(self, q: Array, neighbors: int = _AS_IN_THE_PACK) -> reference.Estimates:
        """Evaluate quantised queries, int16 ``(n, f)``; mean and spread are as integers, too."""
        out = np.empty((2, len(q)), np.int32)
        members = self._all(np.require(q, np.int16, ["C", "A"]), out, neighbors)
        mean, root = out
        return reference.Estimates(mean, root, mean, root.view(np.uint32), members)

    def fitting(self, x: Array) -> Array:
        """Bring checked queries to a type that ``answer`` takes, float32 or float64."""
        if (x.dtype is _FLOAT or x.dtype is _DOUBLE) and _lies_well(x):
            return x
        with np.errstate(over="ignore"):  # infinity is as good as any number beyond the range
            return np.require(x, np.float32, ["C", "A"])

    def _all(self, x: Array, out: Array, neighbors: int) -> Array:
        most = self._pack.neighbors if neighbors < 0 else min(neighbors, MAX_ANCHORS)
        counts = np.minimum(self._pack.counts, most) if most else self._pack.counts
        count = int(counts.sum(dtype=np.int64))
        members = np.empty((len(x), count), np.int32)
        self.answer(x, out, members, neighbors)
        return members

    def answer(self, x: Array, out: Array, members: Array | None, neighbors: int) -> None:
        """Write means, and spreads where ``out`` has room for them; and members, if wanted."""
        if self.model.predict(x, out, members, min(neighbors, MAX_ANCHORS)) != len(x):
            raise InputError(NOT_A_NUMBER)


def _lies_well(x: Array) -> bool:
    """Whether the C runtime can read an array where it lies."""
    flags = x.flags
    return flags.c_contiguous and flags.aligned


class NativeDevice(PackDevice):
    """A pack and the C runtime.

    Parameters
    ----------
    pack : Pack
        What the file holds.
    path : path
        The file, for messages.
    native : Native
        Open on that pack.
    """

    def __init__(self, pack: Pack, path: Path, native: Native) -> None:
        super().__init__(pack, path, native, "native")
        self.info["kernel"] = native.kernel
        self._native = native
        self._answer = native.model.predict

    def predict(self, x: Any, return_std: bool = False, neighbors: int | None = None) -> Any:
        """Predict queries; see ``Device.predict``.

        An array of floats is looked at as little as can be, for one query is soon answered.
        """
        if not (
            type(x) is np.ndarray
            and (x.dtype is _FLOAT or x.dtype is _DOUBLE)
            and x.ndim == 2
            and x.shape[1] == self.features
            and _lies_well(x)
        ):
            x = self._native.fitting(self._check(x))
        if neighbors is None:
            nearest = _AS_IN_THE_PACK
        else:
            nearest = min(self._check_neighbors(neighbors) or 0, MAX_ANCHORS)
        out = np.empty((2, len(x)) if return_std else len(x), _FLOAT)
        if self._answer(x, out, None, nearest) != len(x):
            raise InputError(NOT_A_NUMBER)
        return (out[0], out[1]) if return_std else out

    def _members(self, x: Array, neighbors: int | None) -> Array:
        members = self._native.members(x, _AS_IN_THE_PACK if neighbors is None else neighbors)
        estimates: Array = members.astype(np.float32) * self.pack.y_gain + self.pack.y_offset
        return estimates


def open_file(path: Path) -> Device:
    """Open a ``.twin`` file."""
    try:
        data = path.read_bytes()
        pack = read_pack(data)
        return NativeDevice(pack, path, Native(data, pack))
    except PackError as error:
        raise PackError(error.reason, f"{path}: {error}") from error
