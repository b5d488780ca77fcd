"""What the runtime costs on a board, by linker and emulator: an entry of ``firmware.json``.

For developers: it runs from a clone of the repository, and is not in the wheel.
"""

import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from twinedge.atomic_files import write_file
from twinedge.budget import Model, Runtime
from twinedge.budget.boards import Kind, Scratch
from twinedge.errors import InputError
from twinedge.pack import Difficulty, Domain, Intervals, Layer, Pack, Twin, write_pack
from twinedge.pack.contents import Array
from twinedge.pack.layout import ACTIVATIONS
from twinedge.runtime.reference import silu_curve
from twinedge_export.amalgamation import firmware_folder
from twinedge_export.boards import stacks, worst
from twinedge_export.boards.board import Port
from twinedge_export.boards.build import TooLargeError, Workshop, left_out
from twinedge_export.boards.sizes import HEADER, as_words, sizes
from twinedge_export.boards.trial import Trial, own_points, try_pack

# From the paper's model to one so small that the work around its layers shows.
SHAPES = (
    Model.of(8, (128, 128), 32),
    Model.of(8, (64, 64), 32, twins=4),
    Model.of(8, (64, 64), 16),
    Model.of(13, (33, 17), 10),
    Model.of(3, (16,), 8),
)
# The default of exports in every combination; without intervals, only the usual ones.
KINDS: tuple[Kind, ...] = (
    *product(ACTIVATIONS, ("int8", "int16"), (False, True), (True,)),
    *product(ACTIVATIONS, ("int8",), (False,), (False,)),
)
_NEIGHBORS = 4
_LARGEST = 32767  # magnitude of an input
_TYPICAL = 8192  # and of most inputs
_ROOM, _OUTPUT_ROOM = 65535, 32767  # sum of weight magnitudes per output that cannot overflow
_HARD = 3  # bits by which errors are smaller than targets
# Levels in thousandths, and the quantiles of a normal distribution in units of 1/65536.
_QUANTILES = {500: 44203, 800: 83988, 900: 107796, 950: 128448, 990: 168810}


def references(kind: Kind) -> list[Model]:
    """List the models for a build: activation, weights, with or without neighbors and intervals."""
    activation, weights, near, intervals = kind
    return [
        replace(
            one,
            activation=activation,
            weights=weights,
            neighbors=_NEIGHBORS * near,
            intervals=intervals,
        )
        for one in SHAPES
    ]


def random_pack(model: Model) -> Pack:
    """Draw a pack whose activations stay in range, as those of a trained network do.

    With intervals it is the same pack, extended by what intervals need.
    """
    rng = np.random.default_rng(0)
    features = model.features
    pack = Pack(
        activation=model.activation,
        x_offset=np.zeros(features, np.float32),
        x_gain=np.full(features, _TYPICAL, np.float32),
        y_offset=np.float32(0),
        y_gain=np.float32(1 / _TYPICAL),
        twins=tuple(_twin(rng, model) for _ in model.counts),
        anchors=_within(rng, (model.anchors, features), _TYPICAL).astype(np.int16),
        targets=_within(rng, (model.anchors,), _TYPICAL).astype(np.int32),
        counts=np.array(model.counts, np.uint16),
        curve=silu_curve() if model.activation == "silu" else None,
        neighbors=model.neighbors,
        trained_on_neighbors=model.neighbors > 0,
    )
    return _with_intervals(np.random.default_rng(1), pack) if model.intervals else pack


def _with_intervals(rng: np.random.Generator, pack: Pack) -> Pack:
    ends = pack.anchors.min(axis=0), pack.anchors.max(axis=0)
    middle = np.median(pack.anchors, axis=0).astype(np.int16)
    half = 65536 // 2
    return replace(
        pack,
        twins=tuple(_with_difficulty(rng, twin) for twin in pack.twins),
        intervals=Intervals(half, half, half, 4096 * 64, 100, 16 * 1024, 655, _QUANTILES),
        domain=Domain(*ends, middle),
        schema=0,
    )


def _with_difficulty(rng: np.random.Generator, twin: Twin) -> Twin:
    """Add a second output that is seldom negative, as it estimates an error."""
    inputs = len(twin.output)
    output = _within(rng, (1, inputs), _OUTPUT_ROOM // inputs)
    multiplier, shift = _scale(output)
    bias = int(2 * _TYPICAL * np.sqrt(np.square(output.astype(float)).sum()))
    last = output[0].astype(np.int16), bias, int(multiplier[0]), shift + _HARD
    typical = int(_within(rng, (), _TYPICAL))
    return replace(twin, bias=typical, difficulty=Difficulty(*last))


def _twin(rng: np.random.Generator, model: Model) -> Twin:
    layers, inputs = [], 2 * model.features
    dtype = np.dtype(model.weights)
    for width in model.hidden:
        most = min(int(np.iinfo(dtype).max), _ROOM // inputs)
        kernel = _within(rng, (width, inputs), most)
        multiplier, shift = _scale(kernel)
        bias = _within(rng, (width,), _TYPICAL).astype(np.int32)
        layers.append(Layer(kernel.astype(dtype), bias, multiplier, shift, 12))
        inputs = width
    output = _within(rng, (1, inputs), _OUTPUT_ROOM // inputs)
    multiplier, shift = _scale(output)
    return Twin(tuple(layers), output[0].astype(np.int16), int(multiplier[0]), shift)


def _within(rng: np.random.Generator, shape: tuple[int, ...], most: int) -> Array:
    return rng.integers(-most, most, shape, endpoint=True)


def _scale(kernel: Array) -> tuple[Array, int]:
    """Multipliers and the shift that bring sums over typical inputs back to typical ones."""
    factor = 1 / np.maximum(np.sqrt(np.square(kernel.astype(float)).sum(axis=1)), 1)
    shift = int(np.clip(np.floor(np.log2(0.5 / factor.max())), 0, 30))
    multiplier = np.clip(factor * 2.0 ** (16 + shift), 1, _LARGEST)
    return multiplier.astype(np.int16), shift


# Machine: its compiler, by Debian's name there and as a cross compiler.
HOSTS = {
    "x86-64": "x86_64-linux-gnu-gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "armhf": "arm-linux-gnueabihf-gcc",
}
_ALSO = {"neon_i8mm": ("neon_dot",)}  # other kernels whose functions it calls
_FLAGS = ("-std=c99", "-O3", "-fstack-usage", "-c")
_CORE = ("twin_edge", "twin_predict")
_CALLERS = ("twin_predict", "twin_step")  # each calls the next
_BETWEEN = ("twini_evaluate", "twini_next_twin")  # or one of these, if not inlined


def host_stacks() -> list[dict[str, Any]]:
    """List the most bytes of stack that a prediction takes, for each host kernel.

    Raises
    ------
    InputError
        If a compiler is missing.
    """
    rows = []
    chosen = (firmware_folder() / "src" / "kernels" / "choose_host.c").read_text("utf-8")
    kernels = re.findall(r"&twini_kernel_(\w+),", chosen)
    for machine, compiler in HOSTS.items():
        with TemporaryDirectory(prefix="twinedge-") as folder:
            core = _frames(compiler, _CORE, Path(folder))
            above = sum(core[name] for name in _CALLERS)
            above += max(core.get(name, 0) for name in _BETWEEN)
            for kernel in kernels:
                own = _frames(compiler, (f"kernels/kernel_{kernel}",), Path(folder))
                if not own:  # it is for other machines
                    continue
                for name in _ALSO.get(kernel, ()):
                    own |= _frames(compiler, (f"kernels/kernel_{name}",), Path(folder))
                stack = above + max(own.values())
                rows.append({"kernel": kernel, "machine": machine, "stack_bytes": stack})
    return rows


def _frames(compiler: str, names: tuple[str, ...], folder: Path) -> dict[str, int]:
    """Bytes of stack of each function in some files."""
    root = firmware_folder()
    sources = [str(root / "src" / f"{name}.c") for name in names]
    command = [compiler, *_FLAGS, f"-I{root / 'include'}", *sources]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        package = compiler.removesuffix("-gcc").replace("_", "-")
        raise InputError(f"{compiler} is missing: apt-get install gcc-{package}") from error
    found = {}
    for name in names:
        lines = (folder / f"{Path(name).name}.su").read_text("utf-8").splitlines()
        for place, size, kind in (line.split("\t") for line in lines):
            if kind != "static":
                raise InputError(f"{place}: the compiler cannot bound the stack of this function")
            function = place.rpartition(":")[2].partition("_v")[0]  # without the settings
            found[function] = int(size)
    return found


KERNEL_HEADER = ("kernel", "machine", "stack")
_WORDS = ("board", "core", "intervals", "kernel", "machine")  # columns that hold no numbers
_TITLE = "# Ports: the boards that run the runtime"
_NAMES = ("boards", "stacks", "kernels")
_MARKS = "".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in _NAMES)


def checkout() -> Path | None:
    """Root of the repository, if this runs from a clone."""
    root = firmware_folder().parent
    return root if (root / "pyproject.toml").is_file() else None


def write_sheet(firmware: dict[str, Runtime]) -> Path | None:
    """Put all tables between their marks in ``docs/ports.md``; None outside a checkout.

    Raises
    ------
    InputError
        If the page has no marks, or a compiler for a host is missing.
    """
    root = checkout()
    if root is None:
        return None
    page = root / "docs" / "ports.md"
    text = page.read_text("utf-8") if page.exists() else f"{_TITLE}\n\n{_MARKS}"
    write_file(page, with_tables(text, firmware, host_stacks()))
    return page


def with_tables(text: str, firmware: dict[str, Runtime], kernels: list[dict[str, Any]]) -> str:
    """Return a page with what was measured between its marks."""
    text = _with_table(text, "boards", HEADER, sizes(firmware))
    text = _with_table(text, "stacks", stacks.HEADER, stacks.stack_rows(firmware))
    return _with_table(text, "kernels", KERNEL_HEADER, kernels)


def _with_table(text: str, name: str, header: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    mark, end_mark = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, start, rest = text.partition(mark)
    _, end, after = rest.partition(end_mark)
    if not start or not end:
        raise InputError(f"docs/ports.md lacks the marks {mark} and {end_mark}")
    sides = ["---" if one in _WORDS else "--:" for one in header]
    lines = [header, sides, *map(as_words, rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{before}{start}\n{table}\n{end}{after}"


_QUERIES = 2
_QUERY_HEAD = 4  # bytes before the queries in an image


def measure_board(
    board: Port, kinds: Iterable[Kind] = KINDS, say: Callable[[str], None] = lambda what: None
) -> dict[str, Any]:
    """Build and run the reference packs of each kind of build.

    Parameters
    ----------
    board : Port
        Its emulator runs them.
    kinds : iterable of (str, str, bool, bool)
        Activation, weights, whether neighbors predict, and whether there are intervals.
    say : function
        Called with the name of each build before it is made.

    Returns
    -------
    dict
        The entry of the board's core in ``firmware.json``.

    Raises
    ------
    InputError
        If a tool is missing, or a board's bits differ from the reference.
    """
    board.check_tools()
    builds: list[dict[str, Any]] = []
    hostile: dict[tuple[str, str], worst.Extremes] = {}  # by activation and weights
    for kind in kinds:
        activation, weights, near, intervals = kind
        more = " and ".join(["neighbors"] * near + ["intervals"] * intervals)
        say(f"{board.name}, {activation} {weights}" + (f" with {more}" if more else ""))
        with TemporaryDirectory(prefix="twinedge-") as folder:
            builds.append(_build(board, kind, Path(folder), hostile))
    with TemporaryDirectory(prefix="twinedge-") as folder:
        packs = list(map(random_pack, stacks.MODELS))
        calls = stacks.measure_stacks(board, Path(folder), packs)
    return {
        "port": board.name,
        "compiler": _version(board.compiler),
        "flags": " ".join(board.flags),
        "stacks": calls,
        "builds": builds,
    }


def _build(
    board: Port, kind: Kind, folder: Path, hostile: dict[tuple[str, str], worst.Extremes]
) -> dict[str, Any]:
    models = references(kind)
    workshop = Workshop(board, folder, left_out(random_pack(models[0])))
    tried, programs = {}, []
    for model in models:
        try:
            tried[model] = _try(workshop, model)
        except TooLargeError:
            continue  # no need to know what a board cannot hold
        programs.append(_program(workshop, tried[model]))
    if not tried:
        raise InputError(f"{board.name}: no reference fits")
    first = next(iter(tried.values()))
    sections = {f"{name}_bytes": size for name, size in first.image.sizes._asdict().items()}
    return {
        **dict(zip(("activation", "weights", "neighbors", "intervals"), kind, strict=True)),
        **sections,
        # Padding depends on the pack; take the most seen.
        "program_bytes": max(programs),
        "context_bytes": first.answers.context,
        "stack_bytes": max(one.stack_bytes for one in tried.values()),
        "scratch": vars(_scratch(board, tried)),
        "references": [_reference(*one) for one in tried.items()],
        "worst": None if board.hosted else _worst(workshop, kind, tried, hostile),
    }


def _worst(
    workshop: Workshop,
    kind: Kind,
    tried: dict[Model, Trial],
    hostile: dict[tuple[str, str], worst.Extremes],
) -> dict[str, Any]:
    """Find the rates of the worst case; not of host kernels, as machines choose among several."""
    shop, like = workshop.with_program(worst.PROGRAM), next(iter(tried))
    pairs = tried[like].answers.kernel.pairs
    known = [(one, float(trial.answers.instructions.max())) for one, trial in tried.items()]
    before = hostile.get(kind[:2])
    found, hostile[kind[:2]] = worst.find_worst(shop, like, pairs, known, before)
    return {"pairs": found.pairs, "rates": found.rates}


def _try(workshop: Workshop, model: Model) -> Trial:
    pack = random_pack(model)
    trial = try_pack(workshop, write_pack(pack, metadata=False), own_points(pack, _QUERIES))
    if len(trial.mismatches):
        raise InputError(f"{workshop.board.name}: bits differ from the reference for {model}")
    return trial


def _program(workshop: Workshop, trial: Trial) -> int:
    """Flash of an image besides runtime, pack and queries; none on Linux."""
    if workshop.board.hosted:
        return 0
    image, queries = trial.image, _QUERY_HEAD + 4 * trial.features * _QUERIES
    return workshop.flash_bytes(image) - image.sizes.flash - image.pack_bytes - queries


def _scratch(board: Port, tried: dict[Model, Trial]) -> Scratch:
    """Take the numbers that the kernel states, and the measured remainder as the rest.

    The remainder is room for features, lines, and on hosts some working memory.
    """
    (kernel,) = {one.answers.kernel for one in tried.values()}
    said = (kernel.align, kernel.unit, kernel.partial_bytes, kernel.block_bytes)
    for hosted, lines, room in product(sorted({False, board.hosted}), range(2), range(256)):
        rule = Scratch(*said, room_bytes=room, lines=lines, work_bytes=0)
        beyond = {one.answers.scratch - rule.bytes(model) for model, one in tried.items()}
        if len(beyond) == 1 and (beyond == {0} or hosted):
            return replace(rule, work_bytes=beyond.pop())
    raise InputError(f"{board.name}: {kernel} does not explain the scratch that was measured")


def _reference(model: Model, trial: Trial) -> dict[str, Any]:
    return {
        "features": model.features,
        "hidden": list(model.hidden),
        "counts": list(model.counts),
        "neighbors": model.neighbors,
        "scratch_bytes": trial.answers.scratch,
        "instructions": trial.instructions_per_query,
    }


def _version(compiler: str) -> str:
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[0]
