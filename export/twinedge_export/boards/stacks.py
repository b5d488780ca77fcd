"""How much stack the calls of the API take: on a board's emulator, and on hosts by the compiler."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from twinedge.budget import Model
from twinedge.budget.measurements import CALLS
from twinedge.errors import InputError
from twinedge.pack import Pack, write_pack
from twinedge_export.amalgamation import firmware_folder
from twinedge_export.boards.board import Port
from twinedge_export.boards.build import EVERYTHING, Builder, TooLargeError, flags_for, join_packs
from twinedge_export.boards.run import anchor_queries, run_program, time_limit

PROGRAM = "stacks"
WITH_STORE = (*EVERYTHING, "-DTWIN_STORE=1")  # some boards have less by default
_WORDS = {"stacks": len(CALLS), "done": 0}  # what stacks.c prints, and how many numbers
# The stack depends on which functions run, not on how large a model is.
_SHAPE = Model.of(3, (6, 5), 4, intervals=True)
MODELS = (
    _SHAPE,
    replace(_SHAPE, activation="silu", neighbors=2),
    replace(_SHAPE, activation="silu", neighbors=2, weights="int16"),
)


def measure_stacks(board: Port, folder: Path, packs: list[Pack]) -> dict[str, int]:
    """Measure the stack of each group of calls, the most with any of the packs.

    Parameters
    ----------
    board : Port
    folder : Path
        Empty, for files of the build.
    packs : list of Pack
        Small ones with intervals. If an image with everything that the runtime has does not fit,
        each gets an image without what it does not need, and those that still do not fit are left
        out.

    Returns
    -------
    dict of str to int
        Bytes by name in ``CALLS``, without those of the caller itself.

    Raises
    ------
    InputError
        If a tool is missing, or no image fits.
    """
    try:
        return _marks(Builder(board, folder / "all", WITH_STORE, program=PROGRAM), packs)
    except TooLargeError as error:
        each = [_alone(board, folder / str(at), one) for at, one in enumerate(packs)]
        found = [one for one in each if one is not None]
        if not found:
            raise error
        return {name: max(one[name] for one in found) for name in CALLS}


def _alone(board: Port, folder: Path, pack: Pack) -> dict[str, int] | None:
    flags = tuple(dict.fromkeys((*WITH_STORE, *flags_for(pack))))
    try:
        return _marks(Builder(board, folder, flags, program=PROGRAM), [pack])
    except TooLargeError:
        return None


def _marks(builder: Builder, packs: list[Pack]) -> dict[str, int]:
    content = join_packs(write_pack(one, metadata=False) for one in packs)
    queries = np.concatenate([anchor_queries(one, 1)[0] for one in packs])
    image = builder.image(content, queries)
    output = run_program(builder.board, image, _WORDS, time_limit(0))
    most = np.array(output["stacks"]).max(axis=0)
    return dict(zip(CALLS, most.tolist(), strict=True))


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
            function = re.sub(r"_v\d+_\d+_block.*", "", place.rpartition(":")[2])  # settings
            found[function] = int(size)
    return found
