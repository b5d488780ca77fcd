"""Evaluate a pack with the C runtime: the same bits as the reference, only faster."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twinedge.errors import InputError, MissingPackageError
from twinedge.pack.contents import Array, Pack
from twinedge.pack.layout import MAX_ANCHORS, PackError, Reason
from twinedge.pack.release import ANSWER
from twinedge.runtime import reference
from twinedge.runtime.device import Device
from twinedge.runtime.pack_device import PackDevice, read_pack_file
from twinedge.runtime.store import stamp_of

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from twinedge.runtime import _native
else:
    try:
        from twinedge.runtime import _native
    except ImportError:  # a wheel for any system, or no C compiler when it was installed
        _native = None

_AS_IN_THE_PACK = -1
_REASONS = tuple(Reason)  # entry n is status -1 - n of the C runtime
_REFUSED = "a query has a feature that is not a number"
_BITS = 31  # bits of its masks with a feature of their own; the last stands for all the rest
_NO_LEVELS = np.empty(0, np.uint16)
_WORTH_A_THREAD = 64  # queries
_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)  # taken without conversion


class Native:
    """A pack, open in the C runtime.

    Threads may share it: batches, and single queries that take long, are answered with the
    interpreter lock released.

    Parameters
    ----------
    data : bytes
        The whole file; it is used in place.
    pack : Pack
        The same file, parsed.
    kernel : str, optional
        Which of ``kernels`` to use; by default the fastest.
    threads : int
        How many threads answer a batch.

    Attributes
    ----------
    each : tuple of int
        Shape of an answer to one query: empty, or ``(t,)`` for several targets.

    Raises
    ------
    MissingPackageError
        If there is no C runtime.
    PackError
        If it refuses the pack.
    InputError
        If it has no such kernel.
    """

    def __init__(
        self, data: bytes, pack: Pack, kernel: str | None = None, threads: int = 1
    ) -> None:
        if _native is None:
            from twinedge.extras import NO_COMPILED_RUNTIME

            raise MissingPackageError(NO_COMPILED_RUNTIME)
        try:
            self.model = _native.Model(data, kernel)
        except ValueError as error:
            if len(error.args) == 2:
                status, message = error.args
                raise PackError(_REASONS[-status - 1], message) from None
            raise InputError(str(error)) from None
        self._pack = pack
        self._features = pack.features
        self.each = (len(pack.every_target),) if pack.others else ()
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    @property
    def kernel(self) -> str:
        """Name of the kernel in use."""
        return self.model.kernel()

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels that this processor can use for the pack, fastest first."""
        return self.model.kernels()

    def predict_with_spread(self, x: Array, neighbors: int = _AS_IN_THE_PACK) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``, or ``(2, n, t)``."""
        out = np.empty((2, len(x), *self.each), np.float32)
        self.answer(self.fitting(x), out, None, neighbors)
        return out

    def predict_with_bounds(
        self, x: Array, levels: Sequence[int], neighbors: int = _AS_IN_THE_PACK
    ) -> Array:
        """Predict means, spreads, scales, low and high at each level: float32 ``(3 + 2 k, n)``.

        For several targets, ``(3 + 2 k, n, t)``.
        """
        out = np.empty((3 + 2 * len(levels), len(x), *self.each), np.float32)
        self.answer(self.fitting(x), out, None, neighbors, np.array(levels, np.uint16))
        return out

    def estimates(self, x: Array, neighbors: int = _AS_IN_THE_PACK) -> Array:
        """Estimates of single anchors, int32 ``(n, m)``, or ``(n, m, t)``."""
        most = self._pack.neighbors if neighbors < 0 else min(neighbors, MAX_ANCHORS)
        counts = np.minimum(self._pack.counts, most) if most else self._pack.counts
        members = int(counts.sum(dtype=np.int64))
        estimates = np.empty((len(x), *self.each, members), np.int32)
        self.answer(
            self.fitting(x), np.empty((1, len(x), *self.each), _FLOAT), estimates, neighbors
        )
        return estimates.swapaxes(1, -1)

    def raw(self, q: Array, neighbors: int = _AS_IN_THE_PACK) -> Array:
        """Means, spreads times the number of members, and scales: integers ``(3, n)``.

        For several targets, ``(3, n, t)``.
        """
        out = np.empty((3, len(q), *self.each), np.int32)
        self.answer(np.require(q, np.int16, ["C", "A"]), out, None, neighbors, _NO_LEVELS)
        mean, *others = out
        return np.stack([mean.astype(np.int64), *(one.view(np.uint32) for one in others)])

    def self_test(self, q: Array) -> Array:
        """Answer the queries of a self-test, int16 ``(n, f)``: ``ANSWER`` ``(n, t)``."""
        scaled = self._pack.intervals is not None
        targets = len(self._pack.every_target)
        out = np.empty((2 + scaled, len(q), targets), np.int32)
        levels = _NO_LEVELS if scaled else None
        self.answer(np.require(q, np.int16, ["C", "A"]), out, None, _AS_IN_THE_PACK, levels)
        found = np.zeros((len(q), targets), ANSWER)
        for name, row in zip(("mean", "root", "scale"), out, strict=False):
            found[name] = row.view(found[name].dtype)
        return found

    def fitting(self, x: Array) -> Array:
        """Convert checked queries to an array that ``answer`` takes, float32 or float64."""
        in_place = x.flags.c_contiguous and x.flags.aligned
        if in_place and (x.dtype is _FLOAT or x.dtype is _DOUBLE):
            return x
        with np.errstate(over="ignore"):  # infinity is as good as any number beyond the range
            return np.require(x, np.float32, ["C", "A"])

    def answer(
        self,
        x: Array,
        out: Array,
        estimates: Array | None,
        neighbors: int,
        levels: Array | None = None,
        flags: Array | None = None,
    ) -> None:
        """Answer contiguous, aligned queries: float32 or float64, or int16 for quantised ones.

        Parameters
        ----------
        x : array of shape (n, f)
            Queries.
        out : array of shape (1, n), (2, n) or (3 + 2 k, n)
            Receives means; spreads; scales, and low and high at each level. float32, or int32 for
            quantised queries. For several targets it has a last axis for them.
        estimates : array of shape (n, m), int32, optional
            Receives estimates. For several targets ``(n, t, m)``.
        neighbors : int
            How many nearest anchors of each twin predict.
        levels : array of shape (k,), uint16, optional
            In thousandths.
        flags : array of shape (2, n), uint32, optional
            Receives masks of the features outside, and of those missing.
        """
        most = min(neighbors, MAX_ANCHORS)
        parts = min(self.threads, len(x) // _WORTH_A_THREAD)
        if parts > 1:
            answered = self._answer_in_threads(parts, x, out, estimates, most, levels, flags)
        else:
            answered = self.model.predict(x, out, estimates, most, levels, flags)
        if answered != len(x):
            # To name the feature.
            reference.check_queries(x, self._features, reference.fillable(self._pack))
            raise InputError(_REFUSED)

    def _answer_in_threads(
        self,
        parts: int,
        x: Array,
        out: Array,
        estimates: Array | None,
        most: int,
        levels: Array | None,
        flags: Array | None,
    ) -> int:
        """Answer a part of the queries in each thread; returns how many were answered."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # rarely needed

            self._pool = ThreadPoolExecutor(self.threads, "twinedge")
        ends = np.linspace(0, len(x), parts + 1).astype(int)
        slices = [slice(*both) for both in pairwise(ends.tolist())]

        def answer(rows: slice) -> tuple[int, Array, Array | None]:
            part = np.empty_like(out[:, rows], order="C")
            marks = None if flags is None else np.empty_like(flags[:, rows], order="C")
            members = None if estimates is None else estimates[rows]
            return self.model.predict(x[rows], part, members, most, levels, marks), part, marks

        count = 0
        for rows, (done, part, marks) in zip(slices, self._pool.map(answer, slices), strict=True):
            count += done
            out[:, rows] = part
            if flags is not None:
                flags[:, rows] = marks
        return count


class NativeDevice(PackDevice):
    """A device that evaluates a pack with the C runtime.

    Parameters
    ----------
    pack : Pack
        Contents of the file.
    path : path
        The file, for messages.
    native : Native
        That pack, open in the C runtime.
    stamp : int
        Checksum of the file.
    """

    def __init__(self, pack: Pack, path: Path, native: Native, stamp: int) -> None:
        super().__init__(pack, path, native, "native", stamp)
        self.info["kernel"] = native.kernel
        self._native = native
        self._each = native.each
        self._answer = native.model.predict
        self._with_std = 3 if self.coverages else 2  # mean, spread, scale
        self._at = {level: np.array([level], np.uint16) for level in self._levels}
        self._bits = np.minimum(np.arange(self.features), _BITS).astype(np.uint32)

    def predict(self, x: Any, return_std: bool = False, neighbors: int | None = None) -> Any:
        """Predict queries; see ``Device.predict``.

        An array of floats is checked as little as possible, because one query takes so little time.
        """
        if len(self.points):
            return super().predict(x, return_std, neighbors)
        if not (
            type(x) is np.ndarray
            and (x.dtype is _FLOAT or x.dtype is _DOUBLE)
            and x.ndim == 2
            and x.shape[1] == self.features
        ):
            x = self._native.fitting(self._check(x))
        nearest = _AS_IN_THE_PACK if neighbors is None else self._check_neighbors(neighbors) or 0
        count = len(x)
        out = np.empty((self._with_std if return_std else 1, count, *self._each), _FLOAT)
        if count > 1 and self._native.threads > 1:
            self._native.answer(self._native.fitting(x), out, None, nearest)
            return (out[0], out[-1]) if return_std else out[0]
        try:
            answered = self._answer(x, out, None, nearest)
        except ValueError:  # not contiguous or not aligned
            answered = self._answer(self._native.fitting(x), out, None, nearest)
        if answered != count:
            self._check(x)  # names the feature
            raise InputError(_REFUSED)
        return (out[0], out[-1]) if return_std else out[0]

    def _predict_all(
        self, x: Array, neighbors: int | None, level: int | None
    ) -> tuple[Sequence[Array], Array, Array]:
        if len(self.points):
            return super()._predict_all(x, neighbors, level)
        levels = None if level is None else self._at[level]
        out = np.empty((2 if level is None else 5, len(x), *self._each), _FLOAT)
        masks = np.empty((2, len(x)), np.uint32)
        most = neighbors or _AS_IN_THE_PACK
        self._native.answer(self._native.fitting(x), out, None, most, levels, masks)
        return [*out], *self._flags(x, masks)

    def _flags(self, x: Array, masks: Array) -> tuple[Array, Array]:
        """Which features are outside, and which missing, bool ``(n, f)``, from bits ``(2, n)``."""
        if self.pack.domain is None or (self.features > _BITS and masks.any()):
            return self._outside(x), np.isnan(x)
        if not masks.any():
            outside, missing = np.zeros((2, *x.shape), bool)
        else:
            outside, missing = (masks[:, :, None] >> self._bits & 1).astype(bool)
        return outside, missing


def open_native(path: Path, threads: int = 1) -> Device:
    """Open a ``.twin`` file."""
    pack, data = read_pack_file(path)
    return NativeDevice(pack, path, Native(data, pack, threads=threads), stamp_of(data))
