"""Read a pack: everything FORMAT.md requires is checked before anything is used."""

import json
import math
import zlib
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from twinedge.pack import layout
from twinedge.pack.checks import (
    check_anchors,
    check_curve,
    check_head,
    check_map,
    check_scaling,
    check_target_curve,
    check_weights,
)
from twinedge.pack.contents import (
    Array,
    Difficulty,
    Domain,
    InputMap,
    Intervals,
    Layer,
    Output,
    Pack,
    Target,
    TargetCurve,
    Twin,
)
from twinedge.pack.layout import Kind, PackError, Part, Reason, Shape, align, kernels
from twinedge.pack.release import release_of


class Section(NamedTuple):
    """An entry of the section table."""

    kind: int
    flags: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        """Offset of the first byte after it."""
        return self.offset + self.length


class Header(NamedTuple):
    """Header and section table; the shape also has the sizes that sections of new kinds state."""

    version: int
    shape: Shape
    activation: str
    neighbors: int
    trained_on_neighbors: bool
    sections: tuple[Section, ...]


def read_header(data: bytes) -> Header:
    """Check length, both CRCs, every field and every section, and return what they say.

    Raises
    ------
    PackError
        For faults 1 to 11 of FORMAT.md, section 10.
    """
    if len(data) < layout.HEADER.size:
        raise PackError(Reason.TRUNCATED, f"{len(data)} bytes are too few for a pack")
    magic, version, count, length, header_crc, body_crc, *fields = layout.HEADER.unpack_from(data)
    if magic != layout.MAGIC:
        raise PackError(Reason.MAGIC, "not a .twin pack: it does not start with TWIN")
    if not layout.OLDEST <= version <= layout.NEWEST:
        raise PackError(
            Reason.VERSION,
            f"version {version}; this twinedge reads {layout.OLDEST} to {layout.NEWEST}",
        )
    if len(data) < length:
        raise PackError(Reason.TRUNCATED, f"{len(data)} bytes of {length}: the end is missing")
    if len(data) > length:
        raise PackError(Reason.LENGTH, f"{len(data)} bytes, but the header says {length}")
    if length % layout.ALIGNMENT:
        raise PackError(Reason.LENGTH, f"{length} bytes are not a multiple of {layout.ALIGNMENT}")
    behind = layout.HEADER.size + layout.ENTRY.size * count
    if not 1 <= count <= layout.MAX_SECTIONS or behind > length:
        raise PackError(Reason.HEADER, f"{count} sections are not possible")
    table = data[layout.HEADER.size : behind]
    zeroed = (
        data[: layout.HEADER_CRC_AT]
        + bytes(4)
        + data[layout.HEADER_CRC_AT + 4 : layout.HEADER.size]
    )
    if zlib.crc32(zeroed + table) != header_crc:
        raise PackError(Reason.HEADER_CRC, "damaged: the checksum of the header does not match")
    if zlib.crc32(memoryview(data)[behind:]) != body_crc:
        raise PackError(Reason.BODY_CRC, "damaged: the checksum of the content does not match")
    header = _header(version, fields, table)
    _check_offsets(header.sections, behind, length)
    header = header._replace(shape=_with_sizes(header, data))
    _check_kinds(header, data)
    _check_gaps(data, behind, header.sections, header.shape)
    return header


def _header(version: int, fields: list[Any], table: bytes) -> Header:
    features, layers, activation, *rest = fields
    widths, (kernel, zero, twins, anchors, neighbors, flags, reserved) = rest[:3], rest[3:]
    known = (
        layout.TRAINED_ON_NEIGHBORS
        if version == 1
        else layout.TRAINED_ON_NEIGHBORS | layout.WITH_INTERVALS
    )
    near = bool(flags & layout.TRAINED_ON_NEIGHBORS)
    sound = (
        layers <= len(widths)
        and not any(widths[layers:])
        and activation < len(layout.ACTIVATIONS)
        and kernel < len(layout.KERNEL_TYPES)
        and neighbors <= layout.MAX_ANCHORS
        and not (zero or any(reserved) or flags & ~known)
        and (neighbors or not near)
    )
    if not sound:
        raise PackError(Reason.HEADER, "the header describes an impossible network")
    hidden, scaled = tuple(widths[:layers]), bool(flags & layout.WITH_INTERVALS)
    shape = Shape(features, hidden, layout.KERNEL_TYPES[kernel], twins, anchors, scaled)
    fault = shape.fault()
    if fault:
        raise PackError(Reason.HEADER, fault)
    sections = tuple(Section(*entry) for entry in layout.ENTRY.iter_unpack(table))
    return Header(version, shape, layout.ACTIVATIONS[activation], neighbors, near, sections)


def _check_offsets(sections: tuple[Section, ...], start: int, length: int) -> None:
    for number, one in enumerate(sections):
        if one.offset != align(start) or one.end > length:
            raise PackError(Reason.SECTION, f"section {number} is not where it should be")
        start = one.end
    if align(start) != length:
        raise PackError(Reason.SECTION, "the file goes on after its last section")


def _with_sizes(header: Header, data: bytes) -> Shape:
    """Return the shape with the sizes that map, targets and target curves state themselves."""
    shape = header.shape
    found = {Kind.of(one.kind, header.version): one for one in header.sections}
    targets, curves = found.get(Kind.TARGETS), found.get(Kind.TARGET_CURVE)
    if targets is not None and targets.length >= layout.TARGETS.size:
        count, _ = layout.TARGETS.unpack_from(data, targets.offset)
        if count == 1:
            raise PackError(Reason.SECTION, "one target needs no section for targets")
        shape = replace(shape, targets=count)
    one = found.get(Kind.MAP)
    if one is not None and one.length >= layout.MAP_HEAD.size:
        shape = replace(shape, map=layout.MAP_HEAD.unpack_from(data, one.offset))
    if curves is not None:
        shape = replace(shape, curve_bins=_curve_bins(curves, shape.targets, data))
    fault = shape.section_fault()
    if fault:
        raise PackError(Reason.SECTION, fault)
    return shape


def _curve_bins(section: Section, targets: int, data: bytes) -> tuple[int, ...]:
    """Bins of each target curve."""
    found, at = [], section.offset
    for _ in range(targets):
        if at + layout.TARGET_CURVE_HEAD.size > section.end:
            raise PackError(Reason.SECTION, "the target curve ends too early")
        *_, bins = layout.TARGET_CURVE_HEAD.unpack_from(data, at)
        found.append(bins)
        at += layout.TARGET_CURVE_HEAD.size + Shape.curve_values(bins).size
    return tuple(found)


def _check_kinds(header: Header, data: bytes) -> None:
    kinds = [one.kind for one in header.sections]
    if len(set(kinds)) < len(kinds):
        raise PackError(Reason.SECTION, "a section occurs twice")
    needed = {Kind.SCALING, Kind.TWINS, Kind.ANCHORS}
    if header.activation == "silu":
        needed.add(Kind.CURVE)
    elif Kind.CURVE in kinds:
        raise PackError(Reason.SECTION, "relu has no table, but there is a section for it")
    if header.shape.scaled:
        needed.add(Kind.INTERVALS)
    elif Kind.INTERVALS in kinds:
        raise PackError(Reason.SECTION, "there are intervals that the header does not mention")
    missing = needed.difference(kinds)
    if missing:
        names = ", ".join(kind.name.lower() for kind in sorted(missing))
        raise PackError(Reason.SECTION, f"sections are missing: {names}")
    for one in header.sections:
        _check_kind(one, header, data)


def _check_kind(one: Section, header: Header, data: bytes) -> None:
    if one.flags & ~layout.REQUIRED:
        raise PackError(Reason.SECTION, f"section kind {one.kind} has unknown flags")
    required = bool(one.flags & layout.REQUIRED)
    kind = Kind.of(one.kind, header.version)
    if kind is None:
        if required:
            raise PackError(Reason.SECTION, f"section kind {one.kind} is required but not known")
        return
    if required != kind.required:
        raise PackError(Reason.SECTION, f"section kind {one.kind} has the wrong flag")
    length = header.shape.length(kind)
    if kind is Kind.INTERVALS:
        length = _intervals_length(one, header.shape, data)
    elif length is None and kind not in layout.OF_ANY_LENGTH:
        raise PackError(Reason.SECTION, f"section kind {one.kind} has no sizes")
    if length is not None and one.length != length:
        raise PackError(
            Reason.SECTION, f"section kind {one.kind} has {one.length} bytes, not {length}"
        )


def _intervals_length(section: Section, shape: Shape, data: bytes) -> int:
    """Length that the intervals of all targets should have, as those of the first one say."""
    whole = section.length >= layout.INTERVALS.size
    levels = layout.INTERVALS.unpack_from(data, section.offset)[-1] if whole else 0
    if not 1 <= levels <= layout.MAX_LEVELS:
        raise PackError(Reason.SECTION, f"{levels} levels of intervals are not possible")
    length = shape.intervals_length(levels)
    if section.length == length:
        for at in range(section.offset, section.end, length // shape.targets):
            if layout.INTERVALS.unpack_from(data, at)[-1] != levels:
                raise PackError(Reason.SECTION, "the targets have intervals of different levels")
    return length


def _check_gaps(data: bytes, start: int, sections: tuple[Section, ...], shape: Shape) -> None:
    for one in sections:
        if not is_zero(data, start, one.offset):
            raise PackError(Reason.PADDING, f"bytes before section {one.kind} are not zero")
        start = one.end
    if not is_zero(data, start, len(data)):
        raise PackError(Reason.PADDING, "bytes after the last section are not zero")
    for one in sections if shape.targets > 1 else ():
        if one.kind == Kind.TARGETS and layout.TARGETS.unpack_from(data, one.offset)[1]:
            raise PackError(Reason.PADDING, "padding of the targets is not zero")


def is_zero(data: bytes, start: int, end: int) -> bool:
    """Whether all these bytes are zero, checked at memory speed."""
    return data.count(0, start, end) == end - start


def read_pack(data: bytes) -> Pack:
    """Read a pack from memory.

    Parameters
    ----------
    data : bytes
        The whole file.

    Raises
    ------
    PackError
        If the bytes are not a complete, sound pack of a known version. With several faults it names
        the first in the order of FORMAT.md, section 10.
    """
    header = read_header(data)
    shape = header.shape
    content = {
        kind: data[one.offset : one.end]
        for one in header.sections
        if (kind := Kind.of(one.kind, header.version)) is not None
    }

    def arrays(kind: Kind) -> dict[str, Array]:
        return _arrays(content[kind], 0, shape.parts(kind)) if kind in content else {}

    # In the order in which faults are reported.
    offsets, gains = arrays(Kind.SCALING)["scaling"].T.copy()
    check_scaling(offsets, gains)
    curves = _map(content.get(Kind.MAP), shape)
    target_curves = _target_curves(content.get(Kind.TARGET_CURVE), shape)
    twins = tuple(_twin(content[Kind.TWINS], number, shape) for number in range(shape.twins))
    curve = arrays(Kind.CURVE).get("curve")
    if curve is not None:
        check_curve(curve)
    anchors = arrays(Kind.ANCHORS)
    anchors["targets"] = anchors["targets"].reshape(shape.targets, -1)
    check_anchors(**anchors)
    targets = (
        offsets[shape.features :],
        gains[shape.features :],
        anchors["targets"],
        _intervals(content.get(Kind.INTERVALS), shape),
        target_curves,
    )
    first, *others = (Target(*one) for one in zip(*targets, strict=True))
    domain, schema = arrays(Kind.DOMAIN).get("domain"), arrays(Kind.SCHEMA).get("schema")
    return Pack(
        activation=header.activation,
        x_offset=offsets[: shape.features],
        x_gain=gains[: shape.features],
        **vars(first),
        twins=twins,
        anchors=anchors["anchors"],
        counts=anchors["counts"],
        curve=curve,
        neighbors=header.neighbors,
        trained_on_neighbors=header.trained_on_neighbors,
        domain=None if domain is None else Domain(*domain.T.copy()),
        schema=None if schema is None else int(schema[0]),
        ids=arrays(Kind.IDS).get("ids"),
        metadata=_metadata(content.get(Kind.METADATA)),
        map=curves,
        release=release_of(data),
        others=tuple(others),
    )


def _map(data: bytes | None, shape: Shape) -> InputMap | None:
    if data is None:
        return None
    arrays = _arrays(data, layout.MAP_HEAD.size, shape.parts(Kind.MAP))
    bins, shifts = np.split(arrays["bins_and_shifts"], [shape.features])
    curves = InputMap(bins, shifts, arrays["knots"], arrays["table"])
    check_map(curves)
    return curves


def _target_curves(data: bytes | None, shape: Shape) -> list[TargetCurve | None]:
    """Read the curve of each target, None for one without."""
    if data is None:
        return [None] * shape.targets
    curves: list[TargetCurve | None] = []
    at = 0
    for part in shape.parts(Kind.TARGET_CURVE):
        first, shift, zero, bins = layout.TARGET_CURVE_HEAD.unpack_from(data, at)
        if zero:
            raise PackError(Reason.PADDING, "padding of the target curve is not zero")
        at += layout.TARGET_CURVE_HEAD.size
        if bins:
            values = np.frombuffer(data, part.dtype, bins + 1, at).astype(np.int32)
            curve = TargetCurve(first, shift, values)
            check_target_curve(curve)
            curves.append(curve)
        elif first or shift:
            raise PackError(Reason.VALUE, "a target without a curve has a part of one")
        else:
            curves.append(None)
        at += part.size
    return curves


def _twin(data: bytes, number: int, shape: Shape) -> Twin:
    start, depth = number * shape.twin_size, len(shape.hidden)
    *numbers, out_shift, second_shift, multiplier, second_multiplier, bias = (
        layout.TWIN_HEAD.unpack_from(data, start)
    )
    shifts, fractions = numbers[: layout.MAX_LAYERS], numbers[layout.MAX_LAYERS :]
    second = (second_shift, second_multiplier, bias)
    if any((*shifts[depth:], *fractions[depth:])) or (any(second) and not shape.scaled):
        raise PackError(Reason.VALUE, f"the head of twin {number} has a value where none belongs")
    empty = np.zeros(0, np.int16)
    layers = tuple(Layer(empty, empty, empty, *one) for one in zip(shifts, fractions, strict=True))
    difficulty = Difficulty(empty, 0, second_multiplier, second_shift) if shape.scaled else None
    others = tuple(
        _output(layout.OUTPUT_HEAD.unpack_from(data, start + at), number, shape.scaled)
        for at in shape.output_heads()
    )
    twin = Twin(layers[:depth], empty, multiplier, out_shift, bias, difficulty, others)
    check_head(twin, number)
    arrays = _arrays(data, start + layout.TWIN_HEAD.size, shape.parts(Kind.TWINS))
    output, *further = (
        _with_weights(one, arrays, f"@{target}" if target else "")
        for target, one in enumerate(twin.outputs)
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
    twin = Twin(layers, **vars(output), others=tuple(further))
    check_weights(twin, number)
    return twin


def _output(head: tuple[int, ...], number: int, scaled: bool) -> Output:
    """Read the head of the output of a further target; its weights are read later."""
    shift, second_shift, multiplier, second_multiplier, zero, bias = head
    if zero or (any((second_shift, second_multiplier, bias)) and not scaled):
        raise PackError(Reason.VALUE, f"an output of twin {number} has a value where none belongs")
    empty = np.zeros(0, np.int16)
    difficulty = Difficulty(empty, 0, second_multiplier, second_shift) if scaled else None
    return Output(empty, multiplier, shift, bias, difficulty)


def _with_weights(output: Output, arrays: dict[str, Array], suffix: str) -> Output:
    """Return an output with its weights."""
    if output.difficulty is None:
        return replace(output, output=arrays[f"output{suffix}"])
    weights, hard = arrays[f"outputs{suffix}"].T
    bias = int(arrays[f"difficulty_bias{suffix}"][0])
    difficulty = replace(output.difficulty, output=hard, bias=bias)
    return replace(output, output=weights, difficulty=difficulty)


def _arrays(data: bytes, start: int, parts: list[Part]) -> dict[str, Array]:
    """Read consecutive arrays; all padding in and after them must be zero."""
    arrays = {}
    for part in parts:
        stored = np.frombuffer(data, part.dtype, math.prod(part.stored), start).reshape(part.stored)
        used = stored[tuple(slice(n) for n in part.used)]
        end = min(start + part.size, len(data))
        beyond = stored.copy()
        beyond[tuple(slice(n) for n in part.used)] = 0
        if not is_zero(data, start + stored.nbytes, end) or beyond.any():
            raise PackError(Reason.PADDING, f"padding of {part.name} is not zero")
        arrays[part.name] = used.astype(part.dtype.newbyteorder("="))
        start = end
    # Records are padded to the alignment, except for the last one in a section.
    if not is_zero(data, start, min(align(start), len(data))):
        raise PackError(Reason.PADDING, "padding after a record is not zero")
    return arrays


def _intervals(data: bytes | None, shape: Shape) -> list[Intervals | None]:
    """Read the intervals of each target."""
    if data is None:
        return [None] * shape.targets
    size = len(data) // shape.targets
    return [_target_intervals(data[at : at + size]) for at in range(0, len(data), size)]


def _target_intervals(data: bytes) -> Intervals:
    head = layout.INTERVALS.unpack_from(data)
    spread, asymmetry, difficulty, constant, rows, trust, typical, outside, _ = head
    quantiles = dict(layout.LEVEL.iter_unpack(data[layout.INTERVALS.size :]))
    return Intervals(
        spread, asymmetry, difficulty, constant, rows, typical, outside, quantiles, trust
    )


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
