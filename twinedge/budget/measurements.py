"""What the C runtime takes on measured cores: bytes, scratch, and instructions of a query.

``firmware.json`` is written by ``twinedge firmware measure``, never by hand; a core that is not in
it has not been measured. ``docs/budget.md`` describes every field.
"""

import json
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from twinedge.atomic_files import write_file
from twinedge.budget.boards import Board
from twinedge.budget.model import Model
from twinedge.budget.worst import PART_NAMES, Worst, read_rates, read_worst
from twinedge.errors import InputError
from twinedge.pack.layout import align

FORMAT, VERSION = "twinedge firmware", 1
SHIPPED = Path(__file__).with_name("firmware.json")
QUERY = 4  # bytes of a feature as the caller holds it, a float32
Kind = tuple[str, str, bool, bool]  # activation, weights, whether neighbors predict, intervals
Range = tuple[float, float]
# Bytes in the scratch of any kernel: of a feature, of one of the nearest anchors, and of silu as
# line segments for kernels that want them. Features are padded to a multiple of four.
FEATURE, NEAREST, LINES, FOURS = 2, 8, 1024, 4


def scratch_cells(inputs: int, hidden: tuple[int, ...], unit: int) -> tuple[int, int, list[int]]:
    """Count what a kernel keeps in the scratch for a shape.

    Returns the numbers of a point that the twins take, sums of the first layer, and neurons of each
    layer but the last, which is folded, in multiples of ``unit``.
    """
    return align(inputs, FOURS), hidden[0], [align(width, unit) for width in hidden[:-1]]


@dataclass(frozen=True)
class Scratch:
    """What a kernel needs in the scratch: the fields of ``twin_kernel``, by the same names.

    ``place_bytes`` is for a build with an input map: what the map keeps for each feature, where the
    first layers have their room afterwards.
    """

    align: int
    unit: int
    partial_bytes: int
    block_bytes: int
    room_bytes: int
    lines: int
    work_bytes: int
    place_bytes: int = 0

    def bytes(self, model: Model) -> int:
        """Scratch of one prediction, as ``twin_scratch_size`` of the C runtime computes it."""
        inputs, first, stored = scratch_cells(model.inputs, model.hidden, self.unit)
        layers = [self.partial_bytes * first, *(self.block_bytes * one for one in stored)]
        room = sum(align(part, self.align) for part in layers) + self.work_bytes
        if model.map_outputs:
            room = max(room, align(self.place_bytes * model.features, self.align))
        parts = [self.room_bytes * inputs]
        if 0 < model.neighbors < max(model.counts):
            parts.append(NEAREST * model.neighbors)
        if self.lines and model.activation == "silu":
            parts.append(LINES)
        room += sum(align(part, self.align) for part in parts)
        return room + FEATURE * inputs + self.align - 1


@dataclass(frozen=True)
class ReferenceModel:
    """A model that was measured: scratch in bytes, instructions of one query."""

    model: Model
    scratch_bytes: int
    instructions: int


@dataclass(frozen=True)
class Build:
    """The runtime with what packs of one kind need, all sizes in bytes.

    Parameters
    ----------
    text_bytes, rodata_bytes, data_bytes, bss_bytes : int
        Sections of a linked image without the pack, and without what the caller owns: context,
        scratch and query. ``data_bytes`` are in flash and in RAM.
    program_bytes : int
        Flash of a minimal program around it: start-up code, reading queries, printing predictions.
    context_bytes : int
        Size of an open pack.
    stack_bytes : int
        High-water mark of opening and predicting.
    scratch : Scratch
        What its kernel needs in the scratch.
    references : tuple of ReferenceModel
        Models that were measured.
    worst : Worst or None
        What the longest prediction takes; None if it was not measured, as for host kernels.
    """

    text_bytes: int
    rodata_bytes: int
    data_bytes: int
    bss_bytes: int
    program_bytes: int
    context_bytes: int
    stack_bytes: int
    scratch: Scratch
    references: tuple[ReferenceModel, ...]
    worst: Worst | None

    @property
    def flash_bytes(self) -> int:
        """Flash of an image without its pack."""
        return self.text_bytes + self.rodata_bytes + self.data_bytes + self.program_bytes

    @property
    def fixed_ram_bytes(self) -> int:
        """RAM that is the same for all models: static memory, context and stack."""
        return self.data_bytes + self.bss_bytes + self.context_bytes + self.stack_bytes

    def ram_bytes(self, model: Model) -> int:
        """RAM of an image that holds one query, its scratch, and the samples it derives from."""
        query = QUERY * model.features + model.window_bytes
        return self.fixed_ram_bytes + self.scratch.bytes(model) + query


@dataclass(frozen=True)
class Part:
    """What a part of the runtime that few packs need adds to any build, all sizes in bytes.

    Parameters
    ----------
    text_bytes, rodata_bytes, data_bytes, bss_bytes, context_bytes, stack_bytes : int
        As in ``Build``: the most by which an image with it exceeds one without.
    place_bytes : int
        As in ``Scratch``; 0 if this part needs no scratch.
    rates : dict of str to float, or None
        Most instructions of its rounds, by their names in ``part_rounds``; None if they were not
        measured, as for host kernels.
    """

    text_bytes: int
    rodata_bytes: int
    data_bytes: int
    bss_bytes: int
    context_bytes: int
    stack_bytes: int
    place_bytes: int
    rates: dict[str, float] | None

    def added_to(self, build: Build) -> Build:
        """Return a build with this part."""
        worst = None
        if build.worst is not None and self.rates is not None:
            worst = replace(build.worst, rates=build.worst.rates | self.rates)
        sizes = {name: getattr(build, name) + getattr(self, name) for name in _ADDED}
        scratch = replace(
            build.scratch, place_bytes=max(build.scratch.place_bytes, self.place_bytes)
        )
        return replace(build, **sizes, scratch=scratch, worst=worst)


# Parts that few packs need, and the number of a model that is not 0 if it needs them.
PARTS = {"map": "map_outputs", "target_curve": "target_bins"}
_PART_SIZES = tuple(one.name for one in fields(Part) if one.name.endswith("_bytes"))
_ADDED = tuple(name for name in _PART_SIZES if name != "place_bytes")


def parts_of(model: Model) -> tuple[str, ...]:
    """Return the names of the parts that a model needs.

    Examples
    --------
    >>> parts_of(Model.of(8)), parts_of(Model.of(8, map_outputs=8, map_rows=16))
    ((), ('map',))
    """
    return tuple(name for name, number in PARTS.items() if getattr(model, number))


@dataclass(frozen=True)
class Runtime:
    """The runtime on one core.

    Parameters
    ----------
    port, compiler, flags : str
        How it was built.
    builds : dict of (str, str, bool, bool) to Build
        By activation, weights, whether neighbors predict, and whether there are intervals: a build
        leaves out what a pack does not need.
    stacks : dict of str to int
        Most bytes of stack of the calls in ``CALLS``; empty if they were not measured.
    parts : dict of str to Part
        What the parts in ``PARTS`` add, as far as they were measured.
    """

    port: str
    compiler: str
    flags: str
    builds: dict[Kind, Build]
    stacks: dict[str, int] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)

    def build(self, model: Model) -> Build | None:
        """Return the build for a model; None if it, or a part that it needs, was not measured.

        A build with intervals also serves a model without, though it is a little too large. Several
        targets were not measured.
        """
        if model.targets > 1:
            return None
        kind = build_kind(model)
        build = self.builds.get(kind) or self.builds.get((*kind[:3], True))
        for name in parts_of(model):
            part = self.parts.get(name)
            build = None if build is None or part is None else part.added_to(build)
        return build


_TEXTS = ("port", "compiler", "flags")
_SIZES = tuple(one.name for one in fields(Build) if one.name.endswith("_bytes"))
_SCRATCH = tuple(one.name for one in fields(Scratch) if one.name != "place_bytes")
_KIND = ("activation", "weights", "neighbors", "intervals")
_SHAPE = ("features", "hidden", "counts", "neighbors")
# Groups of calls whose stack was measured: of opening, of predicting at once and in steps, of the
# watch, of opening a store, of learning, and of predicting with what was learnt.
CALLS = ("open", "predict", "steps", "watch", "store", "learn", "adapted")


def read_firmware(path: Path | None = None) -> dict[str, Runtime]:
    """Read measured sizes by core, by default those shipped with the package.

    Raises
    ------
    InputError
        If the file has another format, or contradicts itself.
    """
    return {core: read_runtime(entry) for core, entry in read_entries(path).items()}


def read_entries(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """Read and check the raw entries of the file, for ``write_firmware``."""
    place = path or SHIPPED
    try:
        record = json.loads(place.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{place} is not JSON: write it with 'twinedge firmware measure'"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {place}: {error.strerror}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f"{place} holds no firmware sizes: its format is not {FORMAT!r}")
    if record.get("version") != VERSION:
        raise InputError(f"{place} has version {record.get('version')}; this reads {VERSION}")
    cores = record.get("cores")
    if not isinstance(cores, dict):
        raise InputError(f"{place}: 'cores' is not an object")
    try:
        for entry in cores.values():
            read_runtime(entry)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    return cores


def write_firmware(cores: dict[str, dict[str, Any]], path: Path) -> None:
    """Check measured entries by core, and write them."""
    for entry in cores.values():
        read_runtime(entry)
    record = {"format": FORMAT, "version": VERSION, "cores": dict(sorted(cores.items()))}
    write_file(path, json.dumps(record, indent=1) + "\n")


def read_runtime(entry: Any) -> Runtime:
    """Check the entry of a core, and return it as a ``Runtime``.

    Raises
    ------
    InputError
        If a field is missing, unknown or of the wrong type, or the computed scratch differs from
        what was measured.
    """
    _check_fields("a core", entry, (*_TEXTS, "builds", "stacks"), ("parts",))
    for name in _TEXTS:
        if not isinstance(entry[name], str):
            raise InputError(f"{name} {entry[name]!r} is not text")
    builds: dict[Kind, Build] = {}
    for one in _list("builds", entry["builds"]):
        _check_fields("a build", one, (*_KIND, *_SIZES, "scratch", "references", "worst"))
        for name in ("neighbors", "intervals"):
            if not isinstance(one[name], bool):
                raise InputError(f"{name} of a build: {one[name]!r} is not true or false")
        # The smallest model of this kind checks its fields.
        given = int(one["neighbors"]), one["activation"], one["weights"], one["intervals"]
        kind = build_kind(Model(1, (1,), (2,), *given))
        if kind in builds:
            raise InputError(f"two builds for {one['activation']} and {one['weights']}")
        builds[kind] = _read_build(one, kind)
    stacks = entry["stacks"]
    if stacks != {}:
        _check_fields("stacks", stacks, CALLS)
        stacks = {name: _whole(name, stacks[name]) for name in CALLS}
    parts = entry.get("parts", {})
    _check_fields("parts", parts, (), tuple(PARTS))
    return Runtime(
        **{name: entry[name] for name in _TEXTS},
        builds=builds,
        stacks=stacks,
        parts={name: _read_part(name, one) for name, one in parts.items()},
    )


def _read_part(name: str, entry: Any) -> Part:
    _check_fields(name, entry, (*_PART_SIZES, "rates"))
    sizes = {size: _whole(size, entry[size]) for size in _PART_SIZES}
    rates = None if entry["rates"] is None else read_rates(name, entry["rates"], PART_NAMES[name])
    return Part(**sizes, rates=rates)


def _read_build(entry: Any, kind: Kind) -> Build:
    _check_fields("scratch", entry["scratch"], _SCRATCH)
    sizes = {name: _whole(name, entry[name]) for name in _SIZES}
    scratch = Scratch(**{name: _whole(name, entry["scratch"][name]) for name in _SCRATCH})
    if not scratch.align or not scratch.unit:
        raise InputError("align and unit of the scratch are at least 1")
    models = _list("references", entry["references"])
    references = tuple(_read_reference(one, kind) for one in models)
    for one in references:
        found = scratch.bytes(one.model)
        if found != one.scratch_bytes:
            raise InputError(
                f"the scratch comes to {found} bytes for {one.model.hidden} with "
                f"{one.model.features} features, but {one.scratch_bytes} were measured"
            )
    return Build(**sizes, scratch=scratch, references=references, worst=read_worst(entry["worst"]))


def _read_reference(entry: Any, kind: Kind) -> ReferenceModel:
    _check_fields("a reference", entry, (*_SHAPE, "scratch_bytes", "instructions"))
    lists = [_list(name, entry[name]) for name in ("hidden", "counts")]
    for number in (entry["features"], entry["neighbors"], *chain(*lists)):
        _whole("a reference", number)
    hidden, counts = map(tuple, lists)
    activation, weights, _, intervals = kind
    shape = (entry["features"], hidden, counts, entry["neighbors"])
    model = Model(*shape, activation, weights, intervals)
    if build_kind(model) != kind:
        raise InputError(f"a reference with {model.neighbors} neighbors belongs to another build")
    scratch = _whole("scratch_bytes", entry["scratch_bytes"])
    return ReferenceModel(model, scratch, _whole("instructions", entry["instructions"]))


def build_kind(model: Model) -> Kind:
    """Return the kind of build that a model needs."""
    return model.activation, model.weights, model.neighbors > 0, model.intervals


def _check_fields(
    what: str, entry: Any, names: tuple[str, ...], more: tuple[str, ...] = ()
) -> None:
    """Check that an object has these fields, and none but these and ``more``."""
    if not isinstance(entry, dict):
        raise InputError(f"{what} is not an object")
    for name in names:
        if name not in entry:
            raise InputError(f"{what} has no {name}")
    for name in entry:
        if name not in (*names, *more):
            raise InputError(f"{what} has the unknown field {name}")


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name}: {value!r} is not a list")
    return value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name}: {value!r} is not a whole number of at least 0")
    return value


def instructions(model: Model, build: Build) -> Range | None:
    """Least and most instructions of one query; None if no model was measured.

    A measured model takes what was measured. Any other is estimated from the instructions per
    multiply-add of its nearest neighbours in size, one smaller and one larger, with the same build:
    the smaller a model is, the more the work around its layers shows.
    """
    adds = model.multiply_adds
    for one in build.references:
        if one.model == model:
            return float(one.instructions), float(one.instructions)
    known = [(one.model.multiply_adds, one.instructions) for one in build.references]
    near = [max((one for one in known if one[0] <= adds), default=None)]
    near.append(min((one for one in known if one[0] >= adds), default=None))
    ratios = [one[1] / one[0] for one in near if one is not None]
    return (min(ratios) * adds, max(ratios) * adds) if ratios else None


def milliseconds(model: Model, board: Board, build: Build) -> Range | None:
    """Estimate the time of one query, shortest and longest.

    Instructions times the range of cycles per instruction that ``boards.toml`` states for the
    core, at the board's clock: an estimate, not a measurement on the board.
    """
    found = instructions(model, build)
    if found is None:
        return None
    low, high = (
        1000 * count * cycles / board.clock
        for count, cycles in zip(found, board.core.cycles_per_instruction, strict=True)
    )
    return low, high
