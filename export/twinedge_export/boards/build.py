"""From a pack to an image: compile and link it for a board, and read the linker map.

Where the emulator cannot count instructions, it logs them: the instructions of each basic block
once, and its address on every execution. The logs of two images that differ by one query then give
the cost of a query.
"""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import NamedTuple

from twinedge.errors import InputError
from twinedge.pack.contents import Array, Pack
from twinedge_export.amalgamation import firmware_folder, write_amalgamation
from twinedge_export.boards.board import Port

_KINDS = {
    ".text": "text",
    ".literal": "text",  # constants of Xtensa code
    ".rodata": "rodata",
    ".srodata": "rodata",
    ".progmem": "rodata",
    ".data": "data",
    ".sdata": "data",
    ".bss": "bss",
    ".sbss": "bss",
    "COMMON": "bss",
}
# A section of the image, at the start of a line, and one of an input file; the linker breaks the
# line after a long name.
_SECTION = re.compile(
    r"^(?P<into>\.\w+)\b|"
    r"^ (?P<name>[.\w][\w.$-]*)\s+0x(?P<at>[0-9a-f]+)\s+0x(?P<size>[0-9a-f]+) (?P<file>\S.*)$",
    re.MULTILINE,
)
_RUNTIME = ("twin.", "twin_", "kernel_", "choose_host")  # prefixes of its files
_CHECKS = ("twin_open",)  # files that only opening a pack needs


class Sizes(NamedTuple):
    """Bytes of the runtime and of the compiler's library in an image, without pack and harness."""

    text: int
    rodata: int
    data: int
    bss: int

    @property
    def flash(self) -> int:
        """Bytes in flash."""
        return self.text + self.rodata + self.data


class _Section(NamedTuple):
    kind: str
    start: int
    size: int
    file: str

    @property
    def of_runtime(self) -> bool:
        return PurePath(self.file).name.startswith(_RUNTIME)

    @property
    def of_library(self) -> bool:
        return self.file.endswith(")")


def sizes_of(link_map: str, *, libraries: bool) -> Sizes:
    """Add up the sections of the runtime, and on request those from archives."""
    total = dict.fromkeys(Sizes._fields, 0)
    for one in _sections(link_map):
        if one.of_runtime or (libraries and one.of_library):
            total[one.kind] += one.size
    return Sizes(**total)


def sizes_by_file(link_map: str) -> dict[str, Sizes]:
    """Add up the sections of each object file, by its name without ``.o``."""
    total: dict[str, dict[str, int]] = {}
    for one in _sections(link_map):
        if not one.of_library:
            own = total.setdefault(PurePath(one.file).stem, dict.fromkeys(Sizes._fields, 0))
            own[one.kind] += one.size
    return {name: Sizes(**sizes) for name, sizes in total.items()}


def runtime_ranges(link_map: str) -> list[tuple[int, int]]:
    """Start and size of all code of the runtime that a prediction may execute."""
    return [
        (one.start, one.size)
        for one in _sections(link_map)
        if one.of_runtime and one.kind == "text" and one.size and not one.file.startswith(_CHECKS)
    ]


def _sections(link_map: str) -> Iterator[_Section]:
    kept = link_map.partition("Linker script and memory map")[2]
    into = ""
    for found in _SECTION.finditer(kept):
        if found["into"]:
            into = found["into"]
            continue
        stem = re.match(r"\.?\w+", found["name"])
        kind = _KINDS.get(stem[0] if stem else "")
        if kind == "rodata" and into == ".data":
            kind = "data"  # AVR reads constants from RAM
        if kind:
            yield _Section(kind, int(found["at"], 16), int(found["size"], 16), found["file"])


WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
RUNNER = "runner"
EVERYTHING = ("-DTWIN_INTERVALS=1",)  # for any pack of one target; some boards have less by default
_ALIGNED = 16  # bytes, of a pack in an image
_TOO_LARGE = re.compile(r"overflowed by \d+ bytes|will not fit")
_TROUBLE = re.compile(r"error:.*|undefined reference.*")


class TooLargeError(InputError):
    """An image does not fit its board."""


@dataclass(frozen=True)
class Image:
    """A program with its pack and queries.

    Parameters
    ----------
    path : Path
        ELF file.
    sizes : Sizes
        Of its runtime.
    pack_bytes : int
    flags : tuple of str
        Flags it was compiled with.
    """

    path: Path
    sizes: Sizes
    pack_bytes: int
    flags: tuple[str, ...]


def join_packs(contents: Iterable[bytes]) -> bytes:
    """Put packs one after the other, each aligned, as programs with several packs take them."""
    return b"".join(one + bytes(-len(one) % _ALIGNED) for one in contents)


def flags_for(pack: Pack) -> tuple[str, ...]:
    """Return flags that leave out of the runtime what this pack does not need.

    The flag for intervals is always present: their default differs from board to board.
    """
    needless = {
        "SILU": pack.activation != "silu",
        "INT16": pack.weight_bits == 8,
        "NEIGHBORS": not pack.neighbors,
        "MAP": pack.map is None,
        "TARGET_CURVE": pack.target_curve is None,
    }
    flags = [f"-DTWIN_{what}=0" for what, is_so in needless.items() if is_so]
    unusual = pack.intervals is not None or pack.domain is not None
    return (*flags, f"-DTWIN_INTERVALS={int(unusual)}", *_targets_flag(pack))


def all_flags_for(pack: Pack) -> tuple[str, ...]:
    """Return flags that keep what other packs with as many targets need."""
    return (*EVERYTHING, *_targets_flag(pack))


def _targets_flag(pack: Pack) -> tuple[str, ...]:
    targets = len(pack.every_target)
    return (f"-DTWIN_TARGETS={targets}",) if targets > 1 else ()


@dataclass
class Builder:
    """Builds images for one board in a folder, and reuses object files.

    Parameters
    ----------
    board : Port
    folder : Path
        Empty, or left by a builder for the same board and flags.
    flags : tuple of str
        More flags, as from ``flags_for``.
    single_file : bool
        Whether to compile the runtime as one file.
    program : str
        Program of the harness: a file in ``ports/harness``, without its suffix.
    sources : tuple of Path
        More files that belong to the program.
    foreign : tuple of Path
        Files of others, which are compiled without warnings.
    """

    board: Port
    folder: Path
    flags: tuple[str, ...] = ()
    single_file: bool = False
    program: str = "main"
    sources: tuple[Path, ...] = ()
    foreign: tuple[Path, ...] = ()
    _objects: list[Path] = field(default_factory=list)
    _runtime_objects: list[Path] = field(default_factory=list)

    def with_program(self, program: str) -> "Builder":
        """Return one for another program, in the same folder and with the same runtime."""
        return replace(self, program=program, _objects=[])

    def image(self, content: bytes, queries: Array) -> Image:
        """Build an image.

        Parameters
        ----------
        content : bytes
            A valid pack.
        queries : array of shape (n, f), float32
            Queries for the harness; other programs may take rows of their own.

        Raises
        ------
        TooLargeError
            If the image does not fit the board.
        InputError
            If a tool is missing.
        """
        if not self._objects:
            self._compile()
        (self.folder / "pack.twin").write_bytes(content)
        (self.folder / "queries.bin").write_bytes(queries.astype("<f4").tobytes())
        harness = self.board.folder.parent / "harness"
        self._gcc("-c", str(harness / "image.S"))
        image, link_map = self.folder / "image.elf", self.folder / "image.map"
        link = self.board.command(self.board.link)
        self._gcc(
            *(path.name for path in self._objects),
            *("image.o", *link, "-Wl,--gc-sections", f"-Wl,-Map={link_map.name}"),
            *("-o", image.name),
        )
        text = link_map.read_text(encoding="utf-8", errors="replace")
        sizes = sizes_of(text, libraries=not self.board.hosted)
        return Image(image, sizes, len(content), (*self.board.flags, *self.flags))

    def flash_bytes(self, image: Image) -> int:
        """Bytes of flash of a whole image, queries included, as ``size`` counts them."""
        output = self._run(re.sub("gcc$", "size", self.board.compiler), str(image.path))
        text, data = output.splitlines()[1].split()[:2]
        return int(text) + int(data)

    def _compile(self) -> None:
        if not self._runtime_objects:
            self._compile_runtime()
        board = self.board
        harness = board.folder.parent / "harness" / f"{self.program}.c"
        sources = [harness, *(board.folder / source for source in board.sources), *self.sources]
        # Keep loops of the harness from becoming library calls, which would count.
        plain = "-fno-tree-loop-distribute-patterns"
        own = self._compile_each(sources, *WARNINGS, plain)
        foreign = self._compile_each(self.foreign, "-w")
        self._objects = [*self._runtime_objects, *own, *foreign]

    def _compile_runtime(self) -> None:
        self.board.check_tools()
        self.folder.mkdir(parents=True, exist_ok=True)
        runtime = sorted((firmware_folder() / "src").rglob("*.c"))
        if self.single_file:
            runtime = [Path(write_amalgamation(self.folder).source.name)]
        self._runtime_objects.extend(self._compile_each(runtime, *WARNINGS))
        if self.board.runner:
            self._run(*self.board.command(self.board.runner), "-o", RUNNER)

    def _compile_each(self, sources: Iterable[Path], *options: str) -> list[Path]:
        """Compile file by file, as ccache knows only commands with one of them."""
        made = []
        for path in sources:
            self._gcc("-c", *options, str(path))
            made.append(self.folder / f"{path.stem}.o")
        return made

    def _gcc(self, *words: str) -> None:
        root = firmware_folder()
        headers = "." if self.single_file else root / "include"
        self._run(
            self.board.compiler,
            *("-std=c99", *self.board.command(self.board.flags)),
            *self.flags,
            *("-ffunction-sections", "-fdata-sections"),
            *(f"-I{headers}", f"-I{root / 'ports' / 'harness'}", *words),
        )

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            large = _TOO_LARGE.search(done.stderr)
            trouble = large or _TROUBLE.search(done.stderr)
            why = trouble[0] if trouble else done.stderr.strip()[-200:]
            kind = TooLargeError if large else InputError
            raise kind(f"{self.board.name}: {command[0]}: {why}")
        return done.stdout


def count_query(builder: Builder, content: bytes, query: Array, seconds: float) -> int:
    """Count the instructions of the runtime for one query ``(1, f)``.

    Raises
    ------
    InputError
        If the emulator fails, or does not end within ``seconds``.
    """
    once, twice = (
        _executed(builder, content, query.repeat(times, axis=0), seconds) for times in (1, 2)
    )
    return twice - once


def _executed(builder: Builder, content: bytes, queries: Array, seconds: float) -> int:
    board, image = builder.board, builder.image(content, queries)
    ranges = runtime_ranges(image.path.with_suffix(".map").read_text("utf-8", "replace"))
    emulator = board.command(board.run, image=image.path)
    pipe = builder.folder / "executed"
    command = [
        *(emulator[0], "-d", "in_asm,exec,nochain", "-D", str(pipe)),
        *("-dfilter", ",".join(f"{start:#x}+{size:#x}" for start, size in ranges)),
        *emulator[1:],
    ]
    os.mkfifo(pipe)
    # Both ends are opened here, so that neither side waits for the other to open the pipe; the log
    # ends once the emulator has exited and the writing end is closed.
    log = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(log, True)
    writing = os.open(pipe, os.O_WRONLY)
    with ThreadPoolExecutor(1) as reader:
        count = reader.submit(_count, log)
        try:
            done = run_emulator(board, command, seconds)
        finally:
            os.close(writing)
            pipe.unlink()
    if done.returncode:
        raise bad_end(board, command[0], done.returncode, output_lines(done.stdout))
    executed = count.result()
    if not executed:
        raise InputError(f"{board.name}: {command[0]} logged no instruction of the runtime")
    return executed


def run_emulator(
    board: Port, command: list[str], seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Run an emulator to its end, good or bad, with stderr in its output."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        message = f"{board.name}: the emulation did not end in {seconds:.0f} s"
        raise InputError(message) from error


def output_lines(output: bytes) -> list[str]:
    """Return the lines that a program printed, without blank ones."""
    lines = output.decode("utf-8", "replace").splitlines()
    return [line for line in lines if line.strip()]


def bad_end(board: Port, emulator: str, status: int, lines: list[str]) -> InputError:
    """Report how an emulator ended, and its last words."""
    last = lines[-1] if lines else "silence"
    return InputError(f"{board.name}: {emulator} ended with {status} after: {last}")


def _count(log: int) -> int:
    """Add up the lengths of the executed blocks in a log."""
    lengths: Counter[bytes] = Counter()
    executed: Counter[bytes] = Counter()
    start = b""
    with open(log, "rb") as stream:
        for line in stream:
            if line.startswith(b"Trace"):
                executed[line.split(b"/", 2)[1].lstrip(b"0")] += 1
            elif line.startswith(b"IN:"):
                start = b""
            elif line.startswith(b"0x"):
                start = start or line.partition(b":")[0][2:].lstrip(b"0")
                lengths[start] += 1
    return sum(lengths[piece] * times for piece, times in executed.items())
