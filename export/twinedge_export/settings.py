"""How a model is to be exported: made once from options or keyword arguments, and passed whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinedge import defaults
from twinedge.errors import InputError, wrong_value

FORMATS = ("twin", "tflite", "onnx", "c")
WEIGHTS = ("int8", "int16")
_COUNTS = ("fewest", "all", "auto")  # the last is the name of the first in earlier versions


@dataclass(frozen=True)
class ExportSettings:
    """The keyword arguments of ``twinedge.export``, which explains them, checked when made."""

    anchors: int | str | Sequence[int] = defaults.ANCHORS
    select: str = "auto"
    formats: Sequence[str] = FORMATS
    weights: str = defaults.WEIGHTS
    qat: bool | None = None
    float_io: bool = False
    single_file: bool = False
    neighbors: int | None = None
    tolerance: float = defaults.TOLERANCE
    intervals: bool = True
    parent: str | Path | None = None
    counter: int | None = None
    overwrite: bool = False
    seed: int = 0
    verbose: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.anchors, str) and self.anchors not in _COUNTS:
            raise wrong_value("anchors", self.anchors, "is not a number, 'fewest', 'all' or rows")
        unknown = [name for name in self.formats if name not in FORMATS]
        if unknown or isinstance(self.formats, str):
            wrong = self.formats if isinstance(self.formats, str) else unknown[0]
            known = ", ".join(FORMATS)
            kind = "a list of formats" if wrong is self.formats else "a format"
            raise InputError(f"{wrong!r} is not {kind}: take some of {known}")
        check_weights(self.weights)
        if not self.tolerance >= 0:
            raise wrong_value("tolerance", self.tolerance, "is not a number of at least 0")
        if self.counter is not None and not 0 <= self.counter < 2**32:
            raise wrong_value("counter", self.counter, f"is not a number from 0 to {2**32 - 1}")

    @property
    def by_file(self) -> bool:
        """Whether ``select`` is a file of row numbers."""
        return Path(self.select).is_file()

    @property
    def requested_anchors(self) -> int | str:
        """How many anchors were requested: a number, "fewest" or "all"; "rows" if row by row."""
        if self.by_file or not (isinstance(self.anchors, str) or np.isscalar(self.anchors)):
            return "rows"
        if isinstance(self.anchors, str):
            return "fewest" if self.anchors == "auto" else self.anchors
        return int(self.anchors)


def check_weights(weights: str) -> None:
    """Refuse kernels of a type that no pack has."""
    if weights not in WEIGHTS:
        raise wrong_value("weights", weights, f"is not one of {', '.join(WEIGHTS)}")
