"""Reading a pack: everything FORMAT.md demands is checked before anything is used."""

import json
import math
from typing import Any

import numpy as np

from twinedge.pack.check import (
    check_anchors,
    check_curve,
    check_head,
    check_scaling,
    check_weights,
)
from twinedge.pack.contents import Array, Layer, Pack, Twin
from twinedge.pack.errors import PackError, Reason
from twinedge.pack.header import is_zero, read_header
from twinedge.pack.layout import MAX_LAYERS, TWIN_HEAD, Kind, Part, Shape, align, kernels


def read_pack(data: bytes) -> Pack:
    """Read a pack from memory.

    Parameters
    ----------
    data : bytes
        The whole file.

    Raises
    ------
    PackError
        Where the bytes are not a pack of this version, whole and sound; of several faults it names
        the first in the order of FORMAT.md, section 8.
    """
    header = read_header(data)
    shape = header.shape
    content = {one.kind: data[one.offset : one.end] for one in header.sections}
    # In the order in which faults count.
    offsets, gains = _scaling(content[Kind.SCALING])
    twins = tuple(_twin(content[Kind.TWINS], number, shape) for number in range(shape.twins))
    curve = _curve(content.get(Kind.CURVE))
    anchors = _arrays(content[Kind.ANCHORS], 0, shape.anchor_parts())
    check_anchors(**anchors)
    ids = content.get(Kind.IDS)
    metadata = _metadata(content.get(Kind.METADATA))
    return Pack(
        activation=header.activation,
        x_offset=offsets[:-1],
        x_gain=gains[:-1],
        y_offset=offsets[-1],
        y_gain=gains[-1],
        twins=twins,
        anchors=anchors["anchors"],
        targets=anchors["targets"],
        counts=anchors["counts"],
        curve=curve,
        neighbors=header.neighbors,
        trained_on_neighbors=header.trained_on_neighbors,
        ids=None if ids is None else np.frombuffer(ids, "<u4").astype(np.uint32),
        metadata=metadata,
    )


def _scaling(data: bytes) -> tuple[Array, Array]:
    """Offsets and gains ``(f + 1,)``, those of the target last."""
    offsets, gains = np.frombuffer(data, "<f4").astype(np.float32).reshape(-1, 2).T.copy()
    check_scaling(offsets, gains)
    return offsets, gains


def _twin(data: bytes, number: int, shape: Shape) -> Twin:
    start, depth = number * shape.twin_size, len(shape.hidden)
    *numbers, out_shift, zero, multiplier, reserved = TWIN_HEAD.unpack_from(data, start)
    shifts, fractions = numbers[:MAX_LAYERS], numbers[MAX_LAYERS:]
    if any((*shifts[depth:], *fractions[depth:], zero, *reserved)):
        raise PackError(Reason.VALUE, f"the head of twin {number} has a value where none belongs")
    check_head((*shifts, out_shift), fractions[:depth], multiplier, number)
    arrays = _arrays(data, start + TWIN_HEAD.size, shape.twin_parts())
    layers = tuple(
        Layer(
            np.concatenate([arrays[f"{half}{d}"] for half in kernels(d)], axis=1),
            arrays[f"bias{d}"],
            arrays[f"multiplier{d}"],
            shifts[d],
            fractions[d],
        )
        for d in range(depth)
    )
    twin = Twin(layers, arrays["output"], multiplier, out_shift)
    check_weights(twin, number)
    return twin


def _arrays(data: bytes, start: int, parts: list[Part]) -> dict[str, Array]:
    """Take arrays apart; whatever pads them, and the record, must be zero."""
    arrays = {}
    for part in parts:
        stored = np.frombuffer(data, part.dtype, math.prod(part.stored), start).reshape(part.stored)
        used = stored[tuple(slice(n) for n in part.used)]
        end = start + part.size
        if not is_zero(data, start + stored.nbytes, end) or stored[..., used.shape[-1] :].any():
            raise PackError(Reason.PADDING, f"padding of {part.name} is not zero")
        arrays[part.name] = used.astype(part.dtype.newbyteorder("="))
        start = end
    # Records are padded to the alignment, the last thing in a section is not.
    if not is_zero(data, start, min(align(start), len(data))):
        raise PackError(Reason.PADDING, "padding behind a record is not zero")
    return arrays


def _curve(data: bytes | None) -> Array | None:
    if data is None:
        return None
    curve = np.frombuffer(data, "<i2").astype(np.int16)
    check_curve(curve)
    return curve


def _metadata(text: bytes | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text.decode("utf-8"), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise PackError(Reason.VALUE, "the metadata is not JSON") from error
    if not isinstance(value, dict):
        raise PackError(Reason.VALUE, "the metadata is not a JSON object")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
