"""Converted files as devices, whichever interpreter runs them.

An ``ensemble`` has its anchors inside. A bare ``twin`` has none: they come from the ``.twin`` that
lies beside it, ``model.twin`` for ``model_twin.tflite``, ``model_twin.onnx`` or
``model_float_twin.onnx``.
"""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Array, Pack
from twinedge.runtime import reference
from twinedge.runtime.device import Device
from twinedge.runtime.pack_device import read_pack_file

_BARE = "_twin"
_FLOAT = "_float"
_VALUES = 1 << 21  # alive at a time in a hidden layer: 8 MB
_WIDTH = 128  # of a hidden layer, or thereabouts


class Interpreter(Protocol):
    """Runs one file: named float32 arrays in, named float32 arrays out."""

    metadata: dict[str, Any]
    runtime: str

    def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Run it on inputs of one batch."""


def device_of(path: Path, backend: str, interpreter: Interpreter) -> Device:
    """Make a device of an interpreter that has its file loaded."""
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
        raise InputError(f"{path} has no metadata of twinedge, or damaged ones") from error
    beside = path.with_name(path.stem.removesuffix(_BARE).removesuffix(_FLOAT) + ".twin")
    if not beside.is_file():
        raise InputError(f"{path} is a bare twin and takes its anchors from {beside}: put it there")
    pack = read_pack_file(beside)
    if (pack.features, len(pack.twins)) != (len(centre), about["twins"]):
        raise InputError(f"{beside} is of another model than {path}: export both together")
    return TwinFile(interpreter, span, pack, info)


class EnsembleFile(Device):
    """A file with anchors inside; it gives mean and spread."""

    def __init__(
        self, interpreter: Interpreter, span: Array, anchors: int, info: dict[str, Any]
    ) -> None:
        super().__init__(interpreter.metadata, span, anchors=anchors, info=info)
        self._interpreter = interpreter
        self._rows = max(1, _VALUES // (2 * anchors * _WIDTH))

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        if neighbors is not None:
            raise InputError(
                f"{self.info['file']} has all anchors inside and cannot choose the nearest: use "
                "the .twin, or the bare twin beside it"
            )
        x = _single(x)
        mean, spread = np.empty((2, len(x)), np.float32)
        for start in range(0, len(x), self._rows):
            rows = slice(start, start + self._rows)
            found = self._interpreter.run({"x": x[rows]})
            mean[rows], spread[rows] = found["mean"], found["spread"]
        return mean, spread

    def _members(self, x: Array, neighbors: int | None) -> Array:
        raise InputError(
            f"{self.info['file']} gives mean and spread only: use the .twin, or the bare twin "
            "beside it"
        )


class TwinFile(Device):
    """A file with the bare difference of two points, and the anchors of a pack."""

    def __init__(
        self, interpreter: Interpreter, span: Array, pack: Pack, info: dict[str, Any]
    ) -> None:
        info["neighbors"] = pack.neighbors
        super().__init__(interpreter.metadata, span, anchors=len(pack.targets), info=info)
        self._interpreter, self._pack = interpreter, pack
        points = pack.anchors / pack.x_gain.astype(np.float64) + pack.x_offset
        targets = pack.targets.astype(np.float32) * pack.y_gain + pack.y_offset
        ends = np.cumsum(pack.counts, dtype=np.int64)
        # Quantised, as they are, in single precision, and their targets: those of each twin.
        self._anchors = [
            (pack.anchors[mine], _single(points[mine]), targets[mine])
            for mine in (
                slice(end - count, end) for end, count in zip(ends, pack.counts, strict=True)
            )
        ]

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        members = self._members(x, neighbors).astype(np.float64)
        return members.mean(axis=1).astype(np.float32), members.std(axis=1).astype(np.float32)

    def _members(self, x: Array, neighbors: int | None) -> Array:
        count = self._pack.neighbors if neighbors is None else neighbors
        columns = []
        for number, (quantised, points, targets) in enumerate(self._anchors):
            if count:
                chosen = reference.nearest(reference.quantise(self._pack, x), quantised, count)
            else:
                chosen = np.broadcast_to(np.arange(len(targets)), (len(x), len(targets)))
            difference = self._differences(number, _single(x), points, chosen)
            columns.append(difference + targets[chosen])
        return np.concatenate(columns, axis=1)

    def _differences(self, twin: int, x: Array, points: Array, chosen: Array) -> Array:
        """Half of F(x, a) - F(a, x) for the chosen anchors ``(n, m)`` of each query."""
        difference = np.empty(chosen.shape, np.float32)
        members = chosen.shape[1]
        step = max(1, _VALUES // (members * _WIDTH))
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            mine = np.repeat(x[rows], members, axis=0)
            theirs = points[chosen[rows]].reshape(mine.shape)
            forward, back = (
                self._interpreter.run({"first": first, "second": second})["difference"][:, twin]
                for first, second in ((mine, theirs), (theirs, mine))
            )
            difference[rows] = ((forward - back) / 2).reshape(-1, members)
        return difference


def _single(x: Array) -> Array:
    with np.errstate(over="ignore"):  # infinity is as good as any number beyond the range
        single: Array = x.astype(np.float32)
    return single
