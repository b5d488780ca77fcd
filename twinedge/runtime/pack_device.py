"""A ``.twin`` file as a device, and the backend that evaluates it with numpy."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from twinedge.errors import InputError
from twinedge.pack import PackError, read_pack
from twinedge.pack.check import LARGEST
from twinedge.pack.contents import Array, Pack
from twinedge.runtime import reference
from twinedge.runtime.device import Device


class Evaluator(Protocol):
    """Evaluates one pack.

    ``neighbors`` is how many nearest anchors of each twin predict, 0 for all; negative: as in the
    pack.
    """

    def predict_with_spread(self, x: Array, neighbors: int = -1) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``."""

    def predict_with_bounds(self, x: Array, levels: Sequence[int], neighbors: int = -1) -> Array:
        """Predict means, spreads, scales, low and high at each level: float32 ``(3 + 2 k, n)``.

        Levels are in thousandths, and of those that the pack has.
        """

    def evaluate(self, x: Array, neighbors: int = -1) -> reference.Estimates:
        """Everything there is to say of queries ``(n, f)``."""


class Reference:
    """The integer arithmetic in numpy."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def predict_with_spread(self, x: Array, neighbors: int = -1) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``."""
        found = self.evaluate(x, neighbors)
        return np.stack([found.mean, found.spread])

    def predict_with_bounds(self, x: Array, levels: Sequence[int], neighbors: int = -1) -> Array:
        """Predict means, spreads, scales, low and high at each level: float32 ``(3 + 2 k, n)``."""
        assert self._pack.intervals is not None
        found = self.evaluate(x, neighbors)
        usual = reference.bounds(self._pack, found, self._pack.intervals.usual_level)
        at_each = [reference.bounds(self._pack, found, level) for level in levels]
        ends = [end for one in at_each for end in (one.low, one.high)]
        return np.stack([found.mean, found.spread, usual.scale, *ends])

    def evaluate(self, x: Array, neighbors: int = -1) -> reference.Estimates:
        """Everything there is to say of queries ``(n, f)``."""
        pack = self._pack if neighbors < 0 else replace(self._pack, neighbors=neighbors)
        return reference.evaluate(pack, x)


class PackDevice(Device):
    """A pack and what evaluates it.

    Parameters
    ----------
    pack : Pack
        What the file holds.
    path : path
        The file, for messages.
    evaluator : Evaluator
        Open on that pack.
    backend : str
        Name of that kind.
    """

    def __init__(self, pack: Pack, path: Path, evaluator: Evaluator, backend: str) -> None:
        reach = LARGEST / pack.x_gain.astype(np.float64)
        super().__init__(
            pack.metadata,
            np.stack([pack.x_offset - reach, pack.x_offset + reach]),
            anchors=len(pack.targets),
            info={
                "file": str(path),
                "backend": backend,
                "shape": "pack",
                "level": f"int{pack.weight_bits}",
                "twins": len(pack.twins),
                "hidden": list(pack.hidden),
                "activation": pack.activation,
                "neighbors": pack.neighbors,
            },
            levels=() if pack.intervals is None else tuple(pack.intervals.quantiles),
            fillable=reference.fillable(pack),
        )
        self.pack = pack
        self._evaluator = evaluator

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        mean, spread = self._evaluator.predict_with_spread(x, neighbors or -1)
        return mean, spread

    def _bounds(self, x: Array, neighbors: int | None, levels: tuple[int, ...]) -> Array:
        return self._evaluator.predict_with_bounds(x, levels, neighbors or -1)

    def _outside(self, x: Array) -> Array:
        if self.pack.domain is None:
            return super()._outside(x)
        # Of integers, as in C: of two values that make the same, both are outside or none is.
        outside: Array = reference.outside(self.pack, reference.quantise(self.pack, x))
        return outside & ~np.isnan(x)

    def _members(self, x: Array, neighbors: int | None) -> Array:
        members = self._evaluator.evaluate(x, neighbors or -1).members.astype(np.float32)
        estimates: Array = members * self.pack.y_gain + self.pack.y_offset
        return estimates


def read_pack_file(path: Path) -> Pack:
    """Read a pack; one that is refused is named."""
    try:
        return read_pack(path.read_bytes())
    except PackError as error:
        raise PackError(error.reason, f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def open_file(path: Path) -> Device:
    """Open a ``.twin`` file."""
    pack = read_pack_file(path)
    return PackDevice(pack, path, Reference(pack), "numpy")
