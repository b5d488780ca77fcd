"""Boards that people own, what the C runtime takes on their cores, and how long a query takes.

``firmware.json`` is written by ``twinedge firmware measure``, never by hand; a core that is not in
it has not been measured. ``docs/budget.md`` describes every field.
"""

import json
import sys
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from twinedge.atomic_files import write_file
from twinedge.budget.model import Model
from twinedge.budget.worst import Worst, worst_of
from twinedge.errors import InputError
from twinedge.pack.layout import align

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Core:
    """A processor core.

    Parameters
    ----------
    name : str
        As in ``boards.toml``.
    cycles_per_instruction : (float, float)
        Range used to estimate times: an assumption, not a measurement.
    same_as : str
        Core whose measured code runs on it unchanged; its own name if it was measured itself.
    """

    name: str
    cycles_per_instruction: tuple[float, float]
    same_as: str


@dataclass(frozen=True)
class Board:
    """A board; sizes in bytes, ``clock`` in Hz. ``flash`` is None if programs are on a card.

    ``pack_in_ram`` is for flash that can only be read in whole words: the pack takes RAM as well.
    """

    name: str
    title: str
    chip: str
    core: Core
    clock: int
    ram: int
    source: str
    flash: int | None = None
    reserved_flash: int = 0
    reserved_ram: int = 0
    pack_in_ram: bool = False
    note: str = ""

    @property
    def free_flash(self) -> int | None:
        """Flash for program and pack."""
        return None if self.flash is None else self.flash - self.reserved_flash

    @property
    def free_ram(self) -> int:
        """RAM for a program."""
        return self.ram - self.reserved_ram


@cache
def all_boards() -> dict[str, Board]:
    """Boards by name, in the order of the file."""
    text = files("twinedge.budget").joinpath("boards.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)
    cores = {
        name: Core(name, tuple(row["cycles_per_instruction"]), row.get("same_as", name))
        for name, row in tables["cores"].items()
    }
    return {
        name: Board(name, **{**row, "core": cores[row["core"]]})
        for name, row in tables["boards"].items()
    }


def board_named(name: str) -> Board:
    """Look up a board.

    Raises
    ------
    InputError
        If there is none with this name.
    """
    boards = all_boards()
    if name in boards:
        return boards[name]
    near = get_close_matches(name.lower(), boards, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "'twinedge budget boards' lists them"
    raise InputError(f"no board is called {name!r}; {hint}")


FORMAT, VERSION = "twinedge firmware", 1
SHIPPED = Path(__file__).with_name("firmware.json")
QUERY = 4  # bytes of a feature as the caller holds it, a float32
Kind = tuple[str, str, bool, bool]  # activation, weights, whether neighbors predict, intervals
# Bytes in the scratch of any kernel: of a feature, of one of the nearest anchors, and of silu as
# line segments for kernels that want them. Features are padded to a multiple of four.
FEATURE, NEAREST, LINES, FOURS = 2, 8, 1024, 4


def scratch_cells(features: int, hidden: tuple[int, ...], unit: int) -> tuple[int, int, list[int]]:
    """Count what a kernel keeps in the scratch for a shape.

    Returns features, sums of the first layer, and neurons of each layer but the last, which is
    folded, in multiples of ``unit``.
    """
    return align(features, FOURS), hidden[0], [align(width, unit) for width in hidden[:-1]]


@dataclass(frozen=True)
class Scratch:
    """What a kernel needs in the scratch: the fields of ``twin_kernel``, by the same names."""

    align: int
    unit: int
    partial_bytes: int
    block_bytes: int
    room_bytes: int
    lines: int
    work_bytes: int

    def bytes(self, model: Model) -> int:
        """Scratch of one prediction, as ``twin_scratch_size`` of the C runtime computes it."""
        features, first, stored = scratch_cells(model.features, model.hidden, self.unit)
        parts = [self.partial_bytes * first, self.room_bytes * features]
        parts += [self.block_bytes * neurons for neurons in stored]
        if 0 < model.neighbors < max(model.counts):
            parts.append(NEAREST * model.neighbors)
        if self.lines and model.activation == "silu":
            parts.append(LINES)
        aligned = sum(align(part, self.align) for part in parts)
        return aligned + self.work_bytes + FEATURE * features + self.align - 1


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
        Flash of a minimal program around it: start-up code, reading queries, printing answers.
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
    worst: Worst | None = None

    @property
    def flash_bytes(self) -> int:
        """Flash of an image without its pack."""
        return self.text_bytes + self.rodata_bytes + self.data_bytes + self.program_bytes

    def ram_bytes(self, model: Model) -> int:
        """RAM of an image that holds one query: static, context, scratch, query and stack."""
        static = self.data_bytes + self.bss_bytes + self.context_bytes
        return static + self.scratch.bytes(model) + QUERY * model.features + self.stack_bytes


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
    """

    port: str
    compiler: str
    flags: str
    builds: dict[Kind, Build]
    stacks: dict[str, int] = field(default_factory=dict)

    def build(self, model: Model) -> Build | None:
        """Return the build for a model; None if it was not measured.

        A build with intervals also serves a model without, though it is a little too large.
        """
        kind = kind_of(model)
        return self.builds.get(kind) or self.builds.get((*kind[:3], True))


_SIZES = (
    *("text_bytes", "rodata_bytes", "data_bytes", "bss_bytes"),
    *("program_bytes", "context_bytes", "stack_bytes"),
)
_SCRATCH = tuple(field.name for field in fields(Scratch))
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
        If the file is not one of ours, or contradicts itself.
    """
    return {core: runtime_of(row) for core, row in read_rows(path).items()}


def read_rows(path: Path | None = None) -> dict[str, dict[str, Any]]:
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
        for row in cores.values():
            runtime_of(row)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    return cores


def write_firmware(cores: dict[str, dict[str, Any]], path: Path) -> None:
    """Check measured entries by core, and write them."""
    for row in cores.values():
        runtime_of(row)
    record = {"format": FORMAT, "version": VERSION, "cores": dict(sorted(cores.items()))}
    write_file(path, json.dumps(record, indent=1) + "\n")


def runtime_of(row: Any) -> Runtime:
    """Check the entry of a core, and return it as a ``Runtime``.

    Raises
    ------
    InputError
        If a field is missing, unknown or of the wrong type, or the computed scratch differs from
        what was measured.
    """
    words = ("port", "compiler", "flags")
    row = {"stacks": {}, **row} if isinstance(row, dict) else row  # older files have none
    _fields("a core", row, (*words, "builds", "stacks"))
    for name in words:
        if not isinstance(row[name], str):
            raise InputError(f"{name} {row[name]!r} is not text")
    builds: dict[Kind, Build] = {}
    for given in _listed("builds", row["builds"]):
        # An older file does not mention intervals, or the worst case.
        absent = {"intervals": False, "worst": None}
        one = {**absent, **given} if isinstance(given, dict) else given
        _fields("a build", one, (*_KIND, *_SIZES, "scratch", "references", "worst"))
        for name in ("neighbors", "intervals"):
            if not isinstance(one[name], bool):
                raise InputError(f"{name} of a build: {one[name]!r} is not true or false")
        # The smallest model of this kind checks its fields.
        given_kind = (int(one["neighbors"]), one["activation"], one["weights"], one["intervals"])
        kind = kind_of(Model(1, (1,), (2,), *given_kind))
        if kind in builds:
            raise InputError(f"two builds for {one['activation']} and {one['weights']}")
        builds[kind] = _build(one, kind)
    stacks = row["stacks"]
    if stacks != {}:
        _fields("stacks", stacks, CALLS)
        stacks = {name: _whole(name, stacks[name]) for name in CALLS}
    return Runtime(**{name: row[name] for name in words}, builds=builds, stacks=stacks)


def _build(row: Any, kind: Kind) -> Build:
    _fields("scratch", row["scratch"], _SCRATCH)
    sizes = {name: _whole(name, row[name]) for name in _SIZES}
    scratch = Scratch(**{name: _whole(name, row["scratch"][name]) for name in _SCRATCH})
    if not scratch.align or not scratch.unit:
        raise InputError("align and unit of the scratch are at least 1")
    rows = _listed("references", row["references"])
    references = tuple(_reference(one, kind) for one in rows)
    for one in references:
        found = scratch.bytes(one.model)
        if found != one.scratch_bytes:
            raise InputError(
                f"the scratch comes to {found} bytes for {one.model.hidden} with "
                f"{one.model.features} features, but {one.scratch_bytes} were measured"
            )
    return Build(**sizes, scratch=scratch, references=references, worst=worst_of(row["worst"]))


def _reference(row: Any, kind: Kind) -> ReferenceModel:
    _fields("a reference", row, (*_SHAPE, "scratch_bytes", "instructions"))
    lists = [_listed(name, row[name]) for name in ("hidden", "counts")]
    for number in (row["features"], row["neighbors"], *chain(*lists)):
        _whole("a reference", number)
    hidden, counts = map(tuple, lists)
    activation, weights, _, intervals = kind
    shape = (row["features"], hidden, counts, row["neighbors"])
    model = Model(*shape, activation, weights, intervals)
    if kind_of(model) != kind:
        raise InputError(f"a reference with {model.neighbors} neighbors belongs to another build")
    scratch = _whole("scratch_bytes", row["scratch_bytes"])
    return ReferenceModel(model, scratch, _whole("instructions", row["instructions"]))


def kind_of(model: Model) -> Kind:
    """Return the kind of build that a model needs."""
    return model.activation, model.weights, model.neighbors > 0, model.intervals


def _fields(what: str, row: Any, names: tuple[str, ...]) -> None:
    if not isinstance(row, dict):
        raise InputError(f"{what} is not an object")
    for name in names:
        if name not in row:
            raise InputError(f"{what} has no {name}")
    for name in row:
        if name not in names:
            raise InputError(f"{what} has the unknown field {name}")


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name}: {value!r} is not a list")
    return value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name}: {value!r} is not a whole number of at least 0")
    return value


Range = tuple[float, float]


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
