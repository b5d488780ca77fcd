"""What models of emlearn cost on a board: their C is compiled, run on the emulator and compared.

Instructions are counted by the emulator. Flash is code, constants and weights; RAM excludes stack.
The board and the printing code count for no model.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from twinedge_export.boards import Builder, Port, run_pack

HERE = Path(__file__).parent
BOARD = "mps2-an386"
LEVELS = ("-Os", "-O3")


class Source(NamedTuple):
    """C of a model, and the name of its function: float (const float *features, int32_t count)."""

    code: str
    function: str


def network_sources(networks: list[Any]) -> list[Source]:
    """Let emlearn convert scikit-learn networks, all of one shape."""
    import emlearn

    # emlearn compiles what it converts for this machine, in the current folder. Once is enough: the
    # others differ in their weights alone.
    made = emlearn.convert(networks[0], method="loadable", return_type="regressor")
    sources = []
    for number, network in enumerate(networks):
        made.weights, made.biases = network.coefs_, network.intercepts_
        name = f"net{number}"
        sources.append(Source(made.save(name=name), f"{name}_regress1"))
    return sources


def header(sources: list[Source], x: np.ndarray) -> str:
    """Return the C of models to average, and the queries."""
    rows = ",\n".join("{" + ", ".join(f"{value!r}f" for value in row.tolist()) + "}" for row in x)
    parts = [
        f"#define MODELS {len(sources)}",
        f"#define FEATURES {x.shape[1]}",
        *(source.code for source in sources),
        f"#define QUERIES {len(x)}",
        f"static const float queries[QUERIES][FEATURES] = {{{rows}}};",
    ]
    if sources:
        calls = ", ".join(source.function for source in sources)
        parts.append(f"static float (*const models[])(const float *, int32_t) = {{{calls}}};")
    return "\n".join(parts) + "\n"


def build(board: Port, code: str, level: str, folder: Path) -> Path:
    """Compile emlearn's C for the board."""
    import emlearn

    (folder / "models.h").write_text(code)
    image = folder / "image.elf"
    sources = [HERE / "device.c", *(board.folder / one for one in board.sources)]
    command = [
        *(board.compiler, "-std=c99", *board.flags, level, "-ffunction-sections"),
        *("-fdata-sections", f"-I{board.folder.parent / 'harness'}", f"-I{folder}"),
        *(f"-I{emlearn.includedir}", *map(str, sources), *board.command(board.link)),
        *("-Wl,--gc-sections", "-o", str(image), "-lm"),
    ]
    subprocess.run(command, check=True)
    return image


def sizes(image: Path) -> np.ndarray:
    """Flash and static RAM of an image, in bytes."""
    sizes = subprocess.run(
        ["arm-none-eabi-size", image], check=True, capture_output=True, text=True
    ).stdout
    text, data, bss = map(int, sizes.splitlines()[1].split()[:3])
    return np.array([text + data, data + bss])


def run(board: Port, image: Path) -> tuple[np.ndarray, float]:
    """Return the means of an image's queries, and the instructions of one query."""
    command = board.command(board.run, image=image)
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    words = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    means = np.array([int(word, 16) for kind, word in words if kind == "mean"], np.uint32)
    counts = [int(word, 16) for kind, word in words if kind == "counts"]
    return means.view(np.float32), float(np.mean(counts)) / board.counts_per_instruction


def cost(
    board: Port, sources: list[Source], x: np.ndarray, expected: np.ndarray, level: str
) -> dict[str, Any]:
    """Build models, compare the means of their answers, and return what they cost."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        empty = sizes(build(board, header([], x), level, folder))
        image = build(board, header(sources, x), level, folder)
        flash, ram = (sizes(image) - empty).tolist()
        means, instructions = run(board, image)
    assert np.abs(means - expected).max() < 1e-5 * max(1.0, np.abs(expected).max())
    return {
        "level": level,
        "instructions_per_query": round(instructions),
        "flash_bytes": flash,
        "ram_bytes": ram,
    }


def fastest(
    board: Port, sources: list[Source], x: np.ndarray, expected: np.ndarray
) -> dict[str, Any]:
    """Return what models cost at their best optimisation level."""
    found = (cost(board, sources, x, expected, level) for level in LEVELS)
    return min(found, key=lambda row: row["instructions_per_query"])


def pack_cost(board: Port, content: bytes, x: np.ndarray, flags: Any) -> dict[str, Any]:
    """Build a pack, compare its answers bit for bit with the reference, and return its cost."""
    with TemporaryDirectory() as folder:
        found = run_pack(Builder(board, Path(folder), flags), content, x)
    assert not len(found.mismatches)
    code = found.image.sizes
    return {
        "level": "-Os",
        "instructions_per_query": found.instructions_per_query,
        "flash_bytes": code.text + code.rodata + code.data + found.image.pack_bytes,
        "ram_bytes": found.ram_bytes - found.stack_bytes,
    }
