"""Reading a pack: everything FORMAT.md demands is checked before anything is used."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

from twinedge.pack.check import (
    check_anchors,
    check_curve,
    check_head,
    check_scaling,
    check_weights,
)
from twinedge.pack.contents import Array, Difficulty, Domain, Intervals, Layer, Pack, Twin
from twinedge.pack.errors import PackError, Reason
from twinedge.pack.header import is_zero, read_header
from twinedge.pack.layout import (
    INTERVALS,
    LEVEL,
    MAX_LAYERS,
    TWIN_HEAD,
    Kind,
    Part,
    Shape,
    align,
    kernels,
)


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
        the first in the order of FORMAT.md, section 10.
    """
    header = read_header(data)
    shape = header.shape
    content = {
        kind: data[one.offset : one.end]
        for one in header.sections
        if (kind := Kind.of(one.kind)) is not None
    }
    # In the order in which faults count.
    offsets, gains = _scaling(content[Kind.SCALING])
    twins = tuple(_twin(content[Kind.TWINS], number, shape) for number in range(shape.twins))
    curve = _curve(content.get(Kind.CURVE))
    anchors = _arrays(content[Kind.ANCHORS], 0, shape.anchor_parts())
    check_anchors(**anchors)
    intervals = _intervals(content.get(Kind.INTERVALS))
    domain = _domain(content.get(Kind.DOMAIN))
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
        intervals=intervals,
        domain=domain,
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
    *numbers, out_shift, second_shift, multiplier, second_multiplier, bias = TWIN_HEAD.unpack_from(
        data, start
    )
    shifts, fractions = numbers[:MAX_LAYERS], numbers[MAX_LAYERS:]
    second = (second_shift, second_multiplier, bias)
    if any((*shifts[depth:], *fractions[depth:])) or (any(second) and not shape.scaled):
        raise PackError(Reason.VALUE, f"the head of twin {number} has a value where none belongs")
    empty = np.zeros(0, np.int16)
    layers = tuple(Layer(empty, empty, empty, *one) for one in zip(shifts, fractions, strict=True))
    difficulty = Difficulty(empty, 0, second_multiplier, second_shift) if shape.scaled else None
    twin = Twin(layers[:depth], empty, multiplier, out_shift, bias, difficulty)
    check_head(twin, number)
    arrays = _arrays(data, start + TWIN_HEAD.size, shape.twin_parts())
    output = arrays["outputs"][:, 0] if shape.scaled else arrays["output"]
    if difficulty is not None:
        difficulty = replace(
            difficulty, output=arrays["outputs"][:, 1], bias=int(arrays["difficulty_bias"][0])
        )
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
    twin = replace(twin, layers=layers, output=output, difficulty=difficulty)
    check_weights(twin, number)
    return twin


def _arrays(data: bytes, start: int, parts: list[Part]) -> dict[str, Array]:
    """Take arrays apart; whatever pads them, and the record, must be zero."""
    arrays = {}
    for part in parts:
        stored = np.frombuffer(data, part.dtype, math.prod(part.stored), start).reshape(part.stored)
        used = stored[tuple(slice(n) for n in part.used)]
        end = start + part.size
        beyond = stored.copy()
        beyond[tuple(slice(n) for n in part.used)] = 0
        if not is_zero(data, start + stored.nbytes, end) or beyond.any():
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


def _intervals(data: bytes | None) -> Intervals | None:
    if data is None:
        return None
    head = INTERVALS.unpack_from(data)
    spread, asymmetry, difficulty, constant, rows, trust, typical, outside, _ = head
    quantiles = dict(LEVEL.iter_unpack(data[INTERVALS.size :]))
    return Intervals(
        spread, asymmetry, difficulty, constant, rows, typical, outside, quantiles, trust
    )


def _domain(data: bytes | None) -> Domain | None:
    if data is None:
        return None
    return Domain(*np.frombuffer(data, "<i2").astype(np.int16).reshape(-1, 3).T.copy())


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
