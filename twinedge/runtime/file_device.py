"""Converted files as devices, whichever interpreter runs them.

Interpreters trust their files: some flipped bits make them crash. So the last eight bytes of a file
are the CRC-32 of everything before, in hexadecimal. They are put where the format has room for
more: after a flatbuffer, or in the last field of a protocol buffer.

An ``ensemble`` has its anchors inside. A bare ``twin`` has none: they come from the ``.twin``
beside it, ``model.twin`` for ``model_twin.tflite``, ``model_twin.onnx`` or
``model_float_twin.onnx``. So do the calibration, for the intervals, and the input map and the
target curve: a bare twin takes points behind the map, as the pack has its anchors, and predicts
differences on the curve.

A file for several targets lists them as ``targets`` in its metadata. Its outputs have one more axis
for them: of an ensemble ``(n, m)`` for mean, spread and scale, and ``(n, m, k)`` for low and high;
of a bare twin ``(pairs, twins, m)``.
"""

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import LARGEST, Array, Pack
from twinedge.runtime import reference
from twinedge.runtime.device import Device
from twinedge.runtime.pack_calibration import calibration_of
from twinedge.runtime.pack_device import read_pack_file
from twinedge.scoring.target_curve import TargetCurve

_DIGITS = 8


def seal(data: bytes) -> bytes:
    """Append the checksum."""
    return data + _checksum(data)


def read_sealed(path: Path) -> bytes:
    """Read a file whose last bytes are its checksum.

    Raises
    ------
    InputError
        If they are not.
    """
    data = path.read_bytes()
    if data[-_DIGITS:] != _checksum(data[:-_DIGITS]):
        raise InputError(f"{path} is damaged, or not a file of twinedge (its checksum differs)")
    return data


def _checksum(data: bytes) -> bytes:
    return f"{zlib.crc32(data):0{_DIGITS}x}".encode()


_BARE = "_twin"
_FLOAT = "_float"
_VALUES = 1 << 21  # held at a time in a hidden layer: 8 MB
_WIDTH = 128  # rough width of a hidden layer


class Interpreter(Protocol):
    """Runs one file: named float32 arrays in, named float32 arrays out."""

    metadata: dict[str, Any]
    runtime: str
    outputs: Sequence[str]

    def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Run the file on one batch."""


def device_of(path: Path, backend: str, interpreter: Interpreter) -> Device:
    """Make a device from an interpreter that has its file loaded."""
    about = interpreter.metadata
    try:
        shape, scaling = about["shape"], about["scaling"]
        centre, unit = (np.array(scaling[key], np.float64) for key in ("centre", "unit"))
        reach = float(scaling["limit"]) * unit
        span = np.stack([centre - reach, centre + reach])
        info = {"file": str(path), "backend": backend, "runtime": interpreter.runtime}
        if shape == "ensemble":
            return EnsembleFile(interpreter, span, int(sum(about["anchors"])), info)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} has no twinedge metadata, or it is damaged") from error
    beside = path.with_name(path.stem.removesuffix(_BARE).removesuffix(_FLOAT) + ".twin")
    if not beside.is_file():
        raise InputError(f"{path} is a bare twin and takes its anchors from {beside}: put it there")
    pack, _ = read_pack_file(beside)
    sizes = pack.inputs, len(pack.twins), len(pack.every_target)
    if sizes != (len(centre), about["twins"], _target_count(about)):
        raise InputError(f"{beside} belongs to another model than {path}: export both together")
    if pack.map is not None:  # what the file says is about points behind it
        span = np.stack([_unquantised(pack, end) for end in (-LARGEST, LARGEST)])
    return TwinFile(interpreter, span, pack, info)


class EnsembleFile(Device):
    """A file with its anchors inside: mean and spread, and scale and intervals if it has them."""

    def __init__(
        self, interpreter: Interpreter, span: Array, anchors: int, info: dict[str, Any]
    ) -> None:
        about = interpreter.metadata
        levels = _levels(about["coverages"]) if "scale" in interpreter.outputs else []
        self._columns = {level: column for column, level in enumerate(levels)}
        fill = [np.nan if one is None else float(one) for one in about.get("fill", [])]
        self._fill = np.array(fill) if fill else np.full(span.shape[1], np.nan)
        if len(self._fill) != span.shape[1]:
            raise ValueError("the number of fill values differs from the number of features")
        super().__init__(
            about,
            span,
            anchors=anchors,
            info=info,
            levels=levels,
            fillable=~np.isnan(self._fill),
            targets=_target_count(about),
        )
        self._interpreter = interpreter
        self._rows = max(1, _VALUES // (2 * anchors * _WIDTH))

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        mean, spread = self._run(x, neighbors, ["mean", "spread"])
        return mean, spread

    def _bounds(self, x: Array, neighbors: int | None, levels: tuple[int, ...]) -> Array:
        ends = [(side, self._columns[level]) for level in levels for side in ("low", "high")]
        found = self._run(x, neighbors, ["mean", "spread", "scale", *ends])
        # An interval contains its prediction, even if 8-bit rounding has moved that.
        found[3::2] = np.minimum(found[3::2], found[0])
        found[4::2] = np.maximum(found[4::2], found[0])
        return found

    def _run(
        self, x: Array, neighbors: int | None, wanted: Sequence[str | tuple[str, int]]
    ) -> Array:
        """Run on all queries; returns outputs, or columns of outputs: float32 ``(wanted, n)``.

        For several targets ``(wanted, n, m)``.
        """
        if neighbors is not None:
            raise InputError(
                f"{self.info['file']} has all anchors inside and cannot choose the nearest: use "
                "the .twin, or the bare twin beside it"
            )
        x = _single(_filled(x, self._fill))
        of_each = () if self.targets == 1 else (self.targets,)
        done = np.empty((len(wanted), len(x), *of_each), np.float32)
        for start in range(0, len(x), self._rows):
            rows = slice(start, start + self._rows)
            found = self._interpreter.run({"x": x[rows]})
            for row, one in zip(done, wanted, strict=True):
                row[rows] = found[one] if isinstance(one, str) else found[one[0]][..., one[1]]
        return done

    def _estimates(self, x: Array, neighbors: int | None) -> Array:
        raise InputError(
            f"{self.info['file']} has only mean and spread of its estimates: use the .twin, or "
            "the bare twin beside it"
        )


class TwinFile(Device):
    """A file that predicts the difference of two points, with the anchors of a pack."""

    def __init__(
        self, interpreter: Interpreter, span: Array, pack: Pack, info: dict[str, Any]
    ) -> None:
        info["neighbors"] = pack.neighbors
        # A file without a second output may be beside a pack with intervals, and vice versa.
        self._second = "difficulty" in interpreter.outputs
        self._each = [_FileTarget(one, self._second) for one in pack.singles]
        self._fill = fill_values(pack)
        levels = [one.levels for one in self._each]
        super().__init__(
            interpreter.metadata,
            span,
            anchors=len(pack.targets),
            info=info,
            levels=[level for level in levels[0] if all(level in one for one in levels)],
            fillable=~np.isnan(self._fill),
            targets=len(self._each),
        )
        self._interpreter, self._pack = interpreter, pack
        points = pack.anchors if pack.map is not None else _unquantised(pack, pack.anchors)
        targets = np.stack([one.targets for one in self._each], axis=1)
        ends = np.cumsum(pack.counts, dtype=np.int64)
        # For each twin: quantised anchors, anchors in single precision, and their targets (k, m).
        self._anchors = [
            (pack.anchors[mine], _single(points[mine]), targets[mine])
            for mine in (
                slice(end - count, end) for end, count in zip(ends, pack.counts, strict=True)
            )
        ]

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        pairs = zip(self._each, self._pairs(x, neighbors), strict=True)
        mean, spread = self._of_each([one.predict(own) for one, own in pairs])
        return mean, spread

    def _bounds(self, x: Array, neighbors: int | None, levels: tuple[int, ...]) -> Array:
        pairs = zip(self._each, self._pairs(x, neighbors), strict=True)
        return self._of_each([one.bounds(own, levels) for one, own in pairs])

    def _estimates(self, x: Array, neighbors: int | None) -> Array:
        pairs = zip(self._each, self._pairs(x, neighbors), strict=True)
        return self._of_each([one.estimates(own) for one, own in pairs])

    def _of_each(self, found: list[Array]) -> Array:
        """Return what is found for the only target, or for several of them on a last axis."""
        return found[0] if self.targets == 1 else np.stack(found, axis=-1)

    def _pairs(self, x: Array, neighbors: int | None) -> Array:
        """Estimates, asymmetries and difficulties (0 if there are none): float32 ``(m, 3, n, k)``.

        They are on the curves of the ``m`` targets.
        """
        count = self._pack.neighbors if neighbors is None else neighbors
        x = _filled(x, self._fill)
        columns, q = [], np.zeros(0)
        if count or self._pack.map is not None:
            q = reference.map_points(self._pack, reference.quantise(self._pack, x))
        if self._pack.map is not None:
            x = q
        for number, (quantised, points, targets) in enumerate(self._anchors):
            if count:
                chosen = reference.nearest(q, quantised, count)
            else:
                chosen = np.broadcast_to(np.arange(len(targets)), (len(x), len(targets)))
            found = self._differences(number, _single(x), points, chosen)
            found[0] += targets[chosen]
            columns.append(found)
        return np.ascontiguousarray(np.moveaxis(np.concatenate(columns, axis=2), -1, 0))

    def _differences(self, twin: int, x: Array, points: Array, chosen: Array) -> Array:
        """Half of F(x, a) - F(a, x), half of their sum, and difficulties of (a, x).

        For the chosen anchors ``(n, k)`` of each query: ``(3, n, k, m)``.
        """
        done = np.zeros((3, *chosen.shape, self.targets), np.float32)
        members = chosen.shape[1]
        step = max(1, _VALUES // (members * _WIDTH))
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            queries = np.repeat(x[rows], members, axis=0)
            anchors = points[chosen[rows]].reshape(queries.shape)
            forward, back = (
                self._interpreter.run({"first": first, "second": second})
                for first, second in ((queries, anchors), (anchors, queries))
            )
            ahead, mirrored = (one["difference"][:, twin] for one in (forward, back))
            done[0, rows] = ((ahead - mirrored) / 2).reshape(-1, members, self.targets)
            done[1, rows] = ((ahead + mirrored) / 2).reshape(-1, members, self.targets)
            if self._second:
                hard = back["difficulty"][:, twin]
                done[2, rows] = hard.reshape(-1, members, self.targets)
        return done


class _FileTarget:
    """What a bare twin needs of a pack to predict one target, from pairs float32 ``(3, n, k)``."""

    def __init__(self, pack: Pack, second: bool) -> None:
        offset, unit = units_of_estimates(pack)
        self.targets = pack.targets.astype(np.float32) * np.float32(unit) + np.float32(offset)
        self._calibration = calibration_of(pack, unit) if second else None
        self._curve = curve_of(pack)

    @property
    def levels(self) -> list[int]:
        return _levels(self._calibration.quantiles) if self._calibration else []

    def predict(self, pairs: Array) -> Array:
        """Mean and spread, float32 ``(2, n)``."""
        estimates = pairs[0].astype(np.float64)
        mean, spread = estimates.mean(axis=1), estimates.std(axis=1)
        if self._curve is not None:
            mean, spread = self._curve.inverse(mean), self._curve.deviation(mean, spread)
        return np.stack([mean, spread]).astype(np.float32)

    def bounds(self, pairs: Array, levels: tuple[int, ...]) -> Array:
        """Mean, spread and scale, then low and high at each level: float32 ``(3 + 2 l, n)``."""
        assert self._calibration is not None  # there are no levels without it
        estimates, asymmetries, difficulties = pairs.astype(np.float64)
        mean, spread = estimates.mean(axis=1), estimates.std(axis=1)
        asymmetry = np.sqrt(np.square(asymmetries).mean(axis=1))
        difficulty = np.maximum(difficulties.mean(axis=1), 0)
        scale = self._calibration.scale(np.stack([spread, asymmetry, difficulty]))
        reaches = [self._calibration.reach(level / 1000) * scale for level in levels]
        ends = [end for reach in reaches for end in (mean - reach, mean + reach)]
        if self._curve is not None:
            deviations = [self._curve.deviation(mean, one) for one in (spread, scale)]
            mean, *ends = (self._curve.inverse(one) for one in (mean, *ends))
            spread, scale = deviations
        return np.stack([mean, spread, scale, *ends]).astype(np.float32)

    def estimates(self, pairs: Array) -> Array:
        """Estimates of single anchors, float32 ``(n, k)``."""
        return pairs[0] if self._curve is None else _single(self._curve.inverse(pairs[0]))


def _target_count(metadata: dict[str, Any]) -> int:
    """Return how many targets a file predicts, as its metadata says."""
    targets = metadata.get("targets")
    return len(targets) if isinstance(targets, list) and targets else 1


def units_of_estimates(pack: Pack) -> tuple[float, float]:
    """Return offset and unit of the estimates of a pack, in units of the target.

    With a target curve, they are those on the curve, as its metadata says.

    Raises
    ------
    InputError
        If the pack has a target curve and no metadata that says which.
    """
    if pack.target_curve is None:
        return float(pack.y_offset), float(pack.y_gain)
    try:
        about = pack.metadata["target_curve"]
        return float(about["offset"]), float(about["unit"])
    except (KeyError, TypeError, ValueError) as error:
        raise _unknown_curve() from error


def curve_of(pack: Pack) -> TargetCurve | None:
    """Return the target curve of a pack, as its metadata say."""
    if pack.target_curve is None:
        return None
    try:
        return TargetCurve(pack.metadata["target_curve"]["kind"])
    except (KeyError, TypeError, ValueError) as error:
        raise _unknown_curve() from error


def _unknown_curve() -> InputError:
    return InputError(
        "the metadata of the pack do not say what its target curve is; export it again"
    )


def fill_values(pack: Pack) -> Array:
    """Return fill values for missing features, float64 ``(f,)`` in their units; NaN for none."""
    if pack.domain is None:
        return np.full(pack.features, np.nan)
    values = _unquantised(pack, pack.domain.fill)
    filled: Array = np.where(reference.fillable(pack), values, np.nan)
    return filled


def _unquantised(pack: Pack, q: Array | int) -> Array:
    """Quantised features in their own units, float64."""
    x: Array = q / pack.x_gain.astype(np.float64) + pack.x_offset
    return x


def _levels(coverages: Iterable[float]) -> list[int]:
    """Coverages in thousandths."""
    return [round(1000 * one) for one in coverages]


def _filled(x: Array, fill: Array) -> Array:
    missing = np.isnan(x)
    return np.where(missing, fill, x) if missing.any() else x


def _single(x: Array) -> Array:
    with np.errstate(over="ignore"):  # infinity is as good as any number beyond the range
        single: Array = x.astype(np.float32)
    return single
