"""What the kernels of hosts put on the stack, by the compiler: no emulator has all of them."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twinedge.errors import InputError
from twinedge_export.firmware import firmware_folder

# Machine: its compiler, as Debian calls it there and elsewhere, and its kernels.
HOSTS = {
    "x86-64": ("x86_64-linux-gnu-gcc", ("amx", "vnni", "avx_vnni", "avx2", "portable")),
    "aarch64": ("aarch64-linux-gnu-gcc", ("neon_i8mm", "neon_dot", "neon", "portable")),
    "armhf": ("arm-linux-gnueabihf-gcc", ("neon", "portable")),
}
_ALSO = {"neon_i8mm": ("neon_dot",)}  # kernels whose functions it calls
_FLAGS = ("-std=c99", "-O3", "-fstack-usage", "-c")
_CORE = ("twin_edge", "twin_predict")
_CALLERS = ("twin_predict", "twin_step")  # each calls the next
_BETWEEN = ("twini_evaluate", "twini_next_twin")  # or one of them, if it is not part of that


def host_stacks() -> list[dict[str, Any]]:
    """List for each kernel of hosts how many bytes of stack a prediction takes at most.

    Raises
    ------
    InputError
        Where a compiler is missing.
    """
    rows = []
    for machine, (compiler, kernels) in HOSTS.items():
        with TemporaryDirectory(prefix="twinedge-") as folder:
            core = _frames(compiler, _CORE, Path(folder))
            above = sum(core[name] for name in _CALLERS)
            above += max(core.get(name, 0) for name in _BETWEEN)
            for kernel in kernels:
                files = (kernel, *_ALSO.get(kernel, ()))
                own = _frames(
                    compiler, tuple(f"kernels/kernel_{name}" for name in files), Path(folder)
                )
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
                raise InputError(f"{place}: the compiler does not know how much stack that takes")
            found[place.rpartition(":")[2]] = int(size)
    return found
