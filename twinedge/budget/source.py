"""The shape of a model that exists: a ``.twin`` pack, or a run folder read without TensorFlow."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from twinedge.budget.model import LEVELS, Model
from twinedge.errors import InputError
from twinedge.pack import read_pack

# As ``twinedge train`` writes them.
RUN_FORMAT, RUN_VERSION = "twinedge run", 1


def from_pack(path: Path) -> tuple[Model, int]:
    """Read a pack; returns its model and the bytes of the file, metadata included.

    Raises
    ------
    InputError
        Where it cannot be read or is damaged.
    """
    try:
        data = path.read_bytes()
        pack = read_pack(data)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    counts = tuple(int(count) for count in pack.counts)
    weights = f"int{pack.weight_bits}"
    shape = (pack.features, pack.hidden, counts, pack.neighbors, pack.activation, weights)
    levels = 0 if pack.intervals is None else len(pack.intervals.quantiles)
    unusual = pack.intervals is not None or pack.domain is not None
    return Model(*shape, unusual, levels if unusual else LEVELS), len(data)


def from_run(
    folder: Path, anchors: int = 32, weights: str = "int8", intervals: bool = True
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
        Where it is no run of this version.
    """
    record = _record(folder)
    try:
        parameters = record["parameters"]
        near = parameters["pairs"] == "neighbors"
        features, hidden = len(record["feature_names"]), parameters["hidden"]
        activation = record["chosen"]["activation"]
        twins, neighbors = parameters["twins"], parameters["neighbors"] if near else 0
        calibration = record.get("calibration")  # runs of before there were intervals have none
        model = Model.of(
            features,
            hidden,
            anchors,
            twins=twins,
            neighbors=neighbors,
            activation=activation,
            weights=weights,
        )
        if not calibration or not intervals:
            return model
        return replace(model, intervals=True, levels=len(calibration["quantiles"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / 'run.json'} does not say what was trained") from error


def _record(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{folder} is not a run folder: {error.strerror}: {path.name}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged (not JSON); train the run again") from error
    if not isinstance(record, dict) or record.get("format") != RUN_FORMAT:
        raise InputError(f"{path} was not written by twinedge")
    if record.get("version") != RUN_VERSION:
        raise InputError(f"{path} has version {record.get('version')}; this reads {RUN_VERSION}")
    return record
