"""Read the shape of a model from a pack or a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from twinedge import defaults
from twinedge.budget.model import TARGET_BINS, Model, layers
from twinedge.encoding.derived import Derived
from twinedge.encoding.windows import memory_of
from twinedge.errors import InputError
from twinedge.pack import Pack, read_pack
from twinedge.run_record import FILE, read_record


def from_pack(path: Path) -> tuple[Model, int]:
    """Read a pack; returns its model and the size of the file in bytes, with metadata.

    Raises
    ------
    InputError
        If it cannot be read or is damaged.
    """
    try:
        data = path.read_bytes()
        pack = read_pack(data)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return of_pack(pack), len(data)


def of_pack(pack: Pack) -> Model:
    """Return the shape of what a pack holds."""
    model = Model(
        pack.features,
        pack.hidden,
        tuple(int(count) for count in pack.counts),
        pack.neighbors,
        pack.activation,
        f"int{pack.weight_bits}",
        identified=pack.release is not None and pack.release.identity is not None,
        window_bytes=_window_bytes(pack.metadata.get("columns")),
    )
    if pack.map is not None:
        rows, outputs = pack.map.table.shape
        curves = int(np.count_nonzero(pack.map.bins))
        model = replace(model, map_outputs=outputs, map_rows=rows, map_curves=curves)
    bins = [0 if (one := each.target_curve) is None else one.bins for each in pack.every_target]
    model = replace(model, target_bins=bins[0], further_bins=tuple(bins[1:]))
    if pack.intervals is None and pack.domain is None:
        return model
    levels = 0 if pack.intervals is None else len(pack.intervals.quantiles)
    return replace(model, intervals=True, levels=levels)


def from_run(
    folder: Path,
    anchors: int = defaults.ANCHORS,
    weights: str = defaults.WEIGHTS,
    intervals: bool = True,
) -> Model:
    """Read the shape of a trained model from its ``run.json``.

    Parameters
    ----------
    folder : path
        Run folder.
    anchors : int
        How many of its training points would travel to the device.
    weights : str
        How its weights would be stored.
    intervals : bool
        Whether its pack would have intervals, if the run has them.

    Raises
    ------
    InputError
        If it is not a run of this version.
    """
    record = read_record(folder)
    try:
        parameters, calibration = record["parameters"], record["calibration"]
        model = Model.of(
            len(record["feature_names"]),
            layers(parameters["hidden"]),
            anchors,
            twins=parameters["twins"],
            neighbors=parameters["neighbors"] if parameters["pairs"] == "neighbors" else 0,
            activation=record["chosen"]["activation"],
            weights=weights,
        )
        window = _window_bytes(record.get("columns"))
        model = replace(model, identified=True, window_bytes=window, **_curves(record))
        further = len(record.get("target_names", [""])) - 1
        model = replace(model, further_bins=(0,) * further)
        each = calibration if further else [calibration]
        if not each or not all(each) or not intervals:
            return model
        # A pack has the levels that all of its targets have.
        levels = set.intersection(*({level for level, _ in one["quantiles"]} for one in each))
        return replace(model, intervals=True, levels=len(levels))
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / FILE} does not say what was trained") from error


def _window_bytes(columns: Any) -> int:
    """Return the RAM for the last samples, as the columns of a model describe what is derived."""
    try:
        derived = [Derived.of(one["derived"]) for one in columns or [] if "derived" in one]
    except (TypeError, KeyError, AttributeError):
        return 0
    return memory_of(derived)


def _curves(record: dict[str, Any]) -> dict[str, Any]:
    """Read the shape of the map and the target curve of a run, as its export would have them.

    The bins of a target curve follow from the targets, and are usually about this many.
    """
    curve, found = record["chosen"].get("target_curve", "none"), record.get("map")
    sizes = {"target_bins": 0 if curve == "none" else TARGET_BINS}
    if found is None:
        return sizes
    knots = found["knots"]
    sizes |= {"map_outputs": found["outputs"], "map_rows": sum(knots)}
    return {**sizes, "map_curves": sum(one > 0 for one in knots)}
