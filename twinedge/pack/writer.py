"""Write a pack as bytes, refusing any that a reader would refuse."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.pack import layout
from twinedge.pack.checks import (
    check_contents,
    check_head,
    check_target_curve,
    scaling_of,
    targets_of_anchors,
)
from twinedge.pack.contents import Array, InputMap, Intervals, Output, Pack, TargetCurve, Twin
from twinedge.pack.layout import Kind, PackError, Part, Reason, Shape, kernels
from twinedge.pack.release import with_release
from twinedge.pack.sections import Content, join


def write_pack(pack: Pack, *, metadata: bool = True) -> bytes:
    """Write a pack as bytes that every reader accepts.

    Parameters
    ----------
    pack : Pack
        What to write.
    metadata : bool
        Keep the metadata and ids, which a device does not need.

    Raises
    ------
    PackError
        If a reader would refuse it.
    InputError
        If the metadata cannot be stored.

    Notes
    -----
    Self-test, identity and signature are written as far as they are true of what is written: a pack
    that was changed has none.
    """
    shape = shape_of(pack)
    scaling = _columns(*scaling_of(pack))
    sections = {Kind.SCALING: _arrays(shape, Kind.SCALING, scaling=scaling)}
    if pack.map is not None:
        sections[Kind.MAP] = _map(pack.map, shape)
    if shape.curve_bins:
        curves = [_target_curve(one.target_curve) for one in pack.every_target]
        sections[Kind.TARGET_CURVE] = b"".join(curves)
    if shape.targets > 1:
        sections[Kind.TARGETS] = layout.TARGETS.pack(shape.targets, 0)
    twins = [_twin(twin, number, shape) for number, twin in enumerate(pack.twins)]
    sections[Kind.TWINS] = b"".join(twins)
    if pack.curve is not None:
        sections[Kind.CURVE] = _arrays(shape, Kind.CURVE, curve=pack.curve)
    targets = targets_of_anchors(pack) if pack.others else pack.targets
    sections[Kind.ANCHORS] = _arrays(
        shape, Kind.ANCHORS, counts=pack.counts, anchors=pack.anchors, targets=targets
    )
    check_contents(pack)
    if shape.scaled:
        sections[Kind.INTERVALS] = _intervals(pack)
    if pack.domain is not None:
        domain = _columns(pack.domain.least, pack.domain.most, pack.domain.fill)
        sections[Kind.DOMAIN] = _arrays(shape, Kind.DOMAIN, domain=domain)
    if pack.schema is not None:
        sections[Kind.SCHEMA] = _arrays(shape, Kind.SCHEMA, schema=np.array([pack.schema], "u4"))
    if metadata and pack.ids is not None:
        sections[Kind.IDS] = _arrays(shape, Kind.IDS, ids=pack.ids)
    if metadata and pack.metadata:
        sections[Kind.METADATA] = _json(pack.metadata)
    return with_release(_assemble(pack, shape, sections), pack.release)


def shape_of(pack: Pack) -> Shape:
    """Return the shape of a pack, if a header can describe it."""
    if not pack.twins or not pack.twins[0].layers:
        raise PackError(Reason.HEADER, "a pack needs a twin, and a twin needs a hidden layer")
    kernel = pack.twins[0].layers[0].kernel.dtype.newbyteorder("<")
    scaled = pack.intervals is not None
    bins = [0 if (one := each.target_curve) is None else one.bins for each in pack.every_target]
    shape = Shape(
        pack.features,
        pack.hidden,
        kernel,
        len(pack.twins),
        len(pack.targets),
        scaled,
        None if pack.map is None else (pack.map.outputs, len(pack.map.knots)),
        len(pack.every_target),
        tuple(bins) if any(one.target_curve is not None for one in pack.every_target) else (),
    )
    fault = shape.fault()
    if fault:
        raise PackError(Reason.HEADER, fault)
    if kernel not in layout.KERNEL_TYPES or pack.activation not in layout.ACTIVATIONS:
        raise PackError(Reason.HEADER, f"no pack has {kernel} kernels and {pack.activation}")
    if not 0 <= pack.neighbors <= layout.MAX_ANCHORS or (
        pack.trained_on_neighbors and not pack.neighbors
    ):
        raise PackError(Reason.HEADER, f"{pack.neighbors} neighbors cannot predict")
    if (pack.curve is not None) != (pack.activation == "silu"):
        raise PackError(Reason.SECTION, "silu needs its table, and other activations have none")
    if any(len(twin.others) != len(pack.others) for twin in pack.twins):
        raise PackError(Reason.VALUE, "every twin needs an output for each target")
    outputs = [output for twin in pack.twins for output in twin.outputs]
    has = [one.difficulty is not None for one in outputs]
    has += [one.intervals is not None for one in pack.others]
    if any(one != scaled for one in has):
        raise PackError(Reason.SECTION, "a pack has both intervals and difficulties, or neither")
    fault = shape.section_fault()
    if fault:
        raise PackError(Reason.SECTION, fault)
    return shape


def version_of(pack: Pack) -> int:
    """Return the oldest version of the format that can hold a pack."""
    if pack.map is not None or pack.others or pack.target_curve is not None:
        return 3
    return 1 if pack.intervals is None and pack.domain is None else 2


def _assemble(pack: Pack, shape: Shape, sections: dict[Kind, bytes]) -> bytes:
    flags = (
        layout.TRAINED_ON_NEIGHBORS * pack.trained_on_neighbors
        | layout.WITH_INTERVALS * shape.scaled
    )
    header = layout.HEADER.pack(
        layout.MAGIC,
        version_of(pack),
        *(0, 0, 0, 0),  # what depends on the sections
        shape.features,
        len(shape.hidden),
        layout.ACTIVATIONS.index(pack.activation),
        *_filled(shape.hidden),
        layout.KERNEL_TYPES.index(shape.kernel),
        0,
        shape.twins,
        shape.anchors,
        pack.neighbors,
        flags,
        bytes(8),
    )
    return join(
        header,
        (
            Content(kind, layout.REQUIRED if kind.required else 0, content)
            for kind, content in sections.items()
        ),
    )


def _twin(twin: Twin, number: int, shape: Shape) -> bytes:
    if len(twin.layers) != len(shape.hidden):
        raise PackError(Reason.VALUE, "the twins of a pack must have the same shape")
    check_head(twin, number)
    arrays: dict[str, Array] = {}
    for target, one in enumerate(twin.outputs):
        suffix = f"@{target}" if target else ""
        shift, second_shift, *factors, bias = _output_head(one)
        if target:
            further = layout.OUTPUT_HEAD.pack(shift, second_shift, *factors, 0, bias)
            arrays[f"head{suffix}"] = np.frombuffer(further, np.uint8)
        else:
            *shifts, _ = twin.shifts
            settings = (*_filled(shifts), *_filled(twin.fractions), shift, second_shift)
            head = layout.TWIN_HEAD.pack(*settings, *factors, bias)
        if one.difficulty is None:
            arrays[f"output{suffix}"] = one.output
        else:
            arrays[f"outputs{suffix}"] = _columns(one.output, one.difficulty.output)
            arrays[f"difficulty_bias{suffix}"] = np.array([one.difficulty.bias], np.int32)
    for depth, layer in enumerate(twin.layers):
        halves = [layer.kernel] if depth else np.split(layer.kernel, [shape.inputs], axis=1)
        for name, half in zip(kernels(depth), halves, strict=True):
            arrays[f"{name}{depth}"] = half
        arrays[f"bias{depth}"], arrays[f"multiplier{depth}"] = layer.bias, layer.multiplier
    return _arrays(shape, Kind.TWINS, head, **arrays).ljust(shape.twin_size, b"\0")


def _output_head(output: Output) -> tuple[int, ...]:
    """Both shifts, both multipliers and the bias of an output; 0 where it has none."""
    second, bias = output.difficulty, output.bias
    if second is None and bias:
        raise PackError(Reason.VALUE, "only packs with intervals have a bias of the output")
    for one in (bias, 0 if second is None else second.bias):
        if not -(2**31) <= one < 2**31:
            raise PackError(Reason.OVERFLOW, f"the bias of an output, {one}, exceeds 32 bits")
    if second is None:
        return output.shift, 0, output.multiplier, 0, 0
    return output.shift, second.shift, output.multiplier, second.multiplier, bias


def _map(curves: InputMap, shape: Shape) -> bytes:
    settings = np.concatenate([curves.bins, curves.shifts])
    if curves.bins.shape != (shape.features,):
        raise PackError(Reason.VALUE, f"bins has shape {curves.bins.shape}, not one per feature")
    head = layout.MAP_HEAD.pack(curves.outputs, len(curves.knots))
    return _arrays(
        shape, Kind.MAP, head, bins_and_shifts=settings, knots=curves.knots, table=curves.table
    )


def _target_curve(curve: TargetCurve | None) -> bytes:
    if curve is None:  # of one of several targets
        return bytes(layout.TARGET_CURVE_HEAD.size)
    check_target_curve(curve)  # its numbers fit their types
    head = layout.TARGET_CURVE_HEAD.pack(curve.first, curve.shift, 0, curve.bins)
    return head + _stored(Shape.curve_values(curve.bins), curve.values)


def _intervals(pack: Pack) -> bytes:
    """Store the intervals of all targets, which have the same levels."""
    each = [one.intervals for one in pack.every_target if one.intervals is not None]
    if any(list(one.quantiles) != list(each[0].quantiles) for one in each):
        raise PackError(Reason.SECTION, "the targets have intervals of different levels")
    return b"".join(map(intervals_bytes, each))


def intervals_bytes(intervals: Intervals) -> bytes:
    """Store the intervals of a target."""
    if len(intervals.quantiles) > layout.MAX_LEVELS:
        raise PackError(Reason.SECTION, f"{len(intervals.quantiles)} levels are too many")
    head = layout.INTERVALS.pack(
        *intervals.weights,
        intervals.constant,
        intervals.rows,
        intervals.trust,
        intervals.typical,
        intervals.outside,
        len(intervals.quantiles),
    )
    return head + b"".join(layout.LEVEL.pack(*one) for one in intervals.quantiles.items())


def _filled(numbers: Iterable[int]) -> tuple[int, ...]:
    """One number for each possible layer, 0 for missing ones."""
    return (*numbers, 0, 0)[: layout.MAX_LAYERS]


def _columns(*columns: Array) -> Array:
    """Put arrays ``(n,)`` side by side."""
    if len({column.shape for column in columns}) > 1:
        raise PackError(Reason.VALUE, "arrays that belong together have different lengths")
    return np.stack(columns, axis=1)


def _arrays(shape: Shape, kind: Kind, data: bytes = b"", /, **arrays: Array) -> bytes:
    """Store arrays after ``data``, padded as their parts say; no number is rounded or wrapped."""
    data += b"".join(_stored(part, arrays[part.name]) for part in shape.parts(kind))
    return data if kind is Kind.TWINS else data[: shape.length(kind)]


def _stored(part: Part, array: Array) -> bytes:
    dtype = part.dtype.newbyteorder("=")
    if array.shape != part.used or array.dtype != dtype:
        raise PackError(
            Reason.VALUE,
            f"{part.name} has shape {array.shape} and type {array.dtype}, not {part.used} and "
            f"{dtype}",
        )
    stored = np.zeros(part.stored, part.dtype)
    stored[tuple(slice(n) for n in part.used)] = array
    return stored.tobytes().ljust(part.size, b"\0")


def _json(metadata: dict[str, Any]) -> bytes:
    try:
        return json.dumps(metadata, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the metadata cannot be stored as JSON: {error}") from error
