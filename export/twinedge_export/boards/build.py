"""From a pack to an image: compile the runtime for a board, link the pack and queries with it."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from twinedge.errors import InputError
from twinedge.pack.contents import Array, Pack
from twinedge_export.amalgamation import write_amalgamation
from twinedge_export.boards.board import Board
from twinedge_export.boards.link_map import Sizes, sizes_of
from twinedge_export.firmware import firmware_folder

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
RUNNER = "runner"
EVERYTHING = ("-DTWIN_INTERVALS=1",)  # flags for any pack, where a board has less by default
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
        Of the runtime in it.
    pack_bytes : int
    flags : tuple of str
        What it was compiled with.
    """

    path: Path
    sizes: Sizes
    pack_bytes: int
    flags: tuple[str, ...]


def left_out(pack: Pack) -> tuple[str, ...]:
    """Return flags that leave out of the runtime what this pack does not need.

    Whether it needs intervals is told either way: boards differ in what they have by default.
    """
    needless = {
        "SILU": pack.activation != "silu",
        "INT16": pack.weight_bits == 8,
        "NEIGHBOURS": not pack.neighbors,
    }
    flags = [f"-DTWIN_{what}=0" for what, is_so in needless.items() if is_so]
    unusual = pack.intervals is not None or pack.domain is not None
    return (*flags, f"-DTWIN_INTERVALS={int(unusual)}")


@dataclass
class Workshop:
    """Builds images for one board in a folder; what was compiled is used again.

    Parameters
    ----------
    board : Board
    folder : Path
        May be empty, or one that a workshop with the same board and flags has left.
    flags : tuple of str
        Further flags, as from ``left_out``.
    single_file : bool
        Whether to compile the runtime as one file.
    program : str
        Which one of the harness: a file in ``ports/harness``, without its ending.
    """

    board: Board
    folder: Path
    flags: tuple[str, ...] = ()
    single_file: bool = False
    program: str = "main"
    _objects: list[Path] = field(default_factory=list)

    def image(self, content: bytes, queries: Array) -> Image:
        """Build an image.

        Parameters
        ----------
        content : bytes
            A sound pack.
        queries : array of shape (n, f), float32
            What the harness is to evaluate; another program may take other rows.

        Raises
        ------
        TooLargeError
            Where the image does not fit the board.
        InputError
            Where a tool is missing.
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
        said = link_map.read_text(encoding="utf-8", errors="replace")
        sizes = sizes_of(said, libraries=not self.board.hosted)
        return Image(image, sizes, len(content), (*self.board.flags, *self.flags))

    def flash_bytes(self, image: Image) -> int:
        """Bytes that all of an image takes in flash, queries included, as ``size`` counts them."""
        said = self._run(re.sub("gcc$", "size", self.board.compiler), str(image.path))
        text, data = said.splitlines()[1].split()[:2]
        return int(text) + int(data)

    def _runtime(self) -> list[Path]:
        if self.single_file:
            return [Path(write_amalgamation(self.folder).source.name)]
        return sorted((firmware_folder() / "src").rglob("*.c"))

    def _harness(self) -> list[Path]:
        mine = [self.board.folder / source for source in self.board.sources]
        return [self.board.folder.parent / "harness" / f"{self.program}.c", *mine]

    def _compile(self) -> None:
        self.board.check_tools()
        self.folder.mkdir(parents=True, exist_ok=True)
        runtime = self._runtime()
        # The harness must not be turned into calls of the library: they would count.
        plain = "-fno-tree-loop-distribute-patterns"
        self._gcc("-c", *WARNINGS, *map(str, runtime))
        self._gcc("-c", *WARNINGS, plain, *map(str, self._harness()))
        if self.board.runner:
            words = self.board.command(self.board.runner)
            self._run(*words, "-o", RUNNER)
        sources = (*runtime, *self._harness())
        self._objects = [self.folder / f"{PurePath(one).stem}.o" for one in sources]

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
