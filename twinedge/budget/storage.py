"""How many bytes a model takes, from the layout of the pack itself.

A twin's integer weights are counted as the pack stores them, to the byte, and so is what intervals
take. No pack holds an ordinary ensemble; it is counted as if one did: header, scaling and curve
once, and for each network the record of a twin without the kernel of the second point (the bias of
the output has its place in the head of a record). There are no anchors and no intervals.

Float weights are counted as bare parameters, anchors included: less than any file of them takes.
"""

from typing import Any

import numpy as np

from twinedge.budget.model import Model
from twinedge.errors import InputError
from twinedge.pack.layout import KERNEL_TYPES, TWIN_HEAD, Kind, Shape, align, file_size, kernels

KERNELS: dict[str, np.dtype[Any]] = {"int8": KERNEL_TYPES[0], "int16": KERNEL_TYPES[1]}
_FLOATS = {"float16": 2, "float32": 4}


def twin_bytes(model: Model) -> int:
    """Bytes of the pack that a device holds, without ids and metadata.

    Raises
    ------
    InputError
        Where no pack can hold the model.

    Examples
    --------
    >>> twin_bytes(Model.of(8, (128, 128), 32, weights="float32"))
    76420
    """
    if model.weights in _FLOATS:
        return _FLOATS[model.weights] * model.twin_params
    return file_size(_sections(model).values())


def ann_bytes(model: Model, members: int | None = None) -> int:
    """Bytes of ordinary networks, by default as many as the model has members."""
    members = model.members if members is None else members
    if model.weights in _FLOATS:
        return _FLOATS[model.weights] * (model.ann_params // model.members) * members
    shape = Shape(model.features, model.hidden, KERNELS[model.weights], 1, 1)
    sections = _checked(shape).device_sections(model.activation)
    del sections[Kind.ANCHORS]
    second = f"{kernels(0)[1]}0"
    parts = (part.size for part in shape.twin_parts() if part.name != second)
    sections[Kind.TWINS] = members * align(TWIN_HEAD.size + sum(parts))
    return file_size(sections.values())


def pack_sections(model: Model) -> dict[str, int]:
    """Say what the bytes of the pack are for; the padding of sections is the last entry."""
    sections = _sections(model)
    lengths = {kind.name.lower(): length for kind, length in sections.items()}
    header = file_size([0] * len(sections))
    padding = file_size(sections.values()) - header - sum(lengths.values())
    return {"header": header, **lengths, "padding": padding}


def pack_fault(model: Model) -> str | None:
    """Say why no pack can hold the model; None where one can."""
    if model.weights not in KERNELS:
        return f"a pack has no {model.weights} weights"
    return _shape(model).fault()


def _shape(model: Model) -> Shape:
    kernel = KERNELS[model.weights]
    shape = (model.features, model.hidden, kernel, model.twins, model.anchors)
    return Shape(*shape, scaled=model.scaled)


def _sections(model: Model) -> dict[Kind, int]:
    shape = _checked(_shape(model))
    sections = shape.device_sections(model.activation, model.levels)
    ranges = shape.length(Kind.DOMAIN)
    if model.intervals and ranges is not None:
        sections[Kind.DOMAIN] = ranges  # without intervals, too
    return sections


def _checked(shape: Shape) -> Shape:
    fault = shape.fault()
    if fault:
        raise InputError(fault)
    return shape
