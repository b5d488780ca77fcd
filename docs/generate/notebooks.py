"""The notebooks of docs/notebooks with their outputs: `make notebooks` runs them and keeps these.

A notebook is stored without outputs. Beside it are what its cells print (``NAME.json``) and draw
(``NAME-CELL.svg``), so that the site needs no training; a test runs the notebooks and compares.
"""

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "notebooks"
SECONDS = 300  # for one cell

# What a kernel finds in its profile: pictures of a page, without dates and random names.
_PROFILE = """\
c = get_config()
c.HistoryManager.enabled = False
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.print_figure_kwargs = {"metadata": {"Date": None, "Creator": None}}
"""
_STYLE = "svg.hashsalt: twinedge\nsvg.fonttype: none\nfigure.constrained_layout.use: True\n"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\r")
_ID = re.compile(r"\b[0-9a-f]{16,}\b")  # of keys and packs
_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


class StaleError(Exception):
    """Outputs that are not of this notebook."""


class Output(NamedTuple):
    """What a cell shows: ``text``, ``html`` or ``svg``, and its content."""

    kind: str
    content: str


def sources() -> list[Path]:
    """List the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def cells_of(notebook: Path) -> list[dict[str, Any]]:
    """Read the cells of a notebook; the source of each is one text."""
    found: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in found]


def digest(notebook: Path) -> str:
    """Return a digest of the code that the outputs are of."""
    code = [cell["source"] for cell in cells_of(notebook) if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


# ---- run


def run(notebook: Path) -> list[list[Output]]:
    """Run a notebook in an empty folder; return the outputs of each of its code cells."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    book = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "ipython", "profile_default")
        profile.mkdir(parents=True)
        (profile / "ipython_kernel_config.py").write_text(_PROFILE)
        Path(folder, "matplotlibrc").write_text(_STYLE)
        Path(folder, "work").mkdir()
        surroundings = os.environ | {
            "IPYTHONDIR": str(profile.parent),
            "MATPLOTLIBRC": folder,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        kernel = {"transport": "ipc", "connection_file": str(Path(folder, "kernel.json"))}
        NotebookClient(
            book,
            kernel_name="python3",
            timeout=SECONDS,
            resources={"metadata": {"path": str(Path(folder, "work"))}},
            config=Config({"KernelManager": kernel}),  # files instead of ports of this machine
        ).execute(env=surroundings)
    return [_outputs(cell["outputs"]) for cell in book.cells if cell.cell_type == "code"]


def _outputs(found: list[Any]) -> list[Output]:
    shown: list[Output] = []
    for one in found:
        if one["output_type"] == "stream":
            text = _COLOUR.sub("", one["text"])
            if shown and shown[-1].kind == "text":
                shown[-1] = Output("text", shown[-1].content + text)
            else:
                shown.append(Output("text", text))
            continue
        data = one["data"]
        kinds = {"svg": "image/svg+xml", "html": "text/html", "text": "text/plain"}
        kind = next(kind for kind, name in kinds.items() if name in data)
        shown.append(Output(kind, data[kinds[kind]]))
    return shown


def keep(notebook: Path, found: list[list[Output]]) -> None:
    """Write the outputs of a notebook beside it."""
    from generate.lean import lean_picture

    for old in notebook.parent.glob(f"{notebook.stem}-*.svg"):
        old.unlink()
    kept: list[list[list[str]]] = []
    for number, outputs in enumerate(found, 1):
        kept.append([])
        for kind, content in outputs:
            shown = content
            if kind == "svg":
                shown = f"{notebook.stem}-{number}.svg"
                (notebook.parent / shown).write_text(lean_picture(content), "utf-8")
            kept[-1].append([kind, shown])
    record = {"code": digest(notebook), "outputs": kept}
    text = json.dumps(record, indent=1, ensure_ascii=False)
    notebook.with_suffix(".json").write_text(text + "\n", "utf-8")


def kept_outputs(notebook: Path) -> list[list[Output]]:
    """Read the outputs that are kept of a notebook; an ``svg`` is the name of a file."""
    record = json.loads(notebook.with_suffix(".json").read_text("utf-8"))
    if record["code"] != digest(notebook):
        raise StaleError(f"{notebook.name} was changed since its outputs were kept: make notebooks")
    return [[Output(*one) for one in outputs] for outputs in record["outputs"]]


# ---- compare


def differences(kept: list[list[Output]], found: list[list[Output]]) -> Iterator[str]:
    """Yield what differs by more than another machine explains: words, and numbers by a third."""
    if len(kept) != len(found):
        yield f"{len(kept)} cells are kept, {len(found)} were run"
    for number, (old, new) in enumerate(zip(kept, found, strict=False), 1):
        if [one.kind for one in old] != [one.kind for one in new]:
            yield f"cell {number} shows {[one.kind for one in new]}"
            continue
        for (kind, before), (_, after) in zip(old, new, strict=True):
            if kind != "svg" and not _alike(before, after):
                yield f"cell {number} shows {after!r}, not {before!r}"


def _alike(one: str, other: str) -> bool:
    lines = [[line for line in map(str.strip, text.splitlines()) if line] for text in (one, other)]
    return len(lines[0]) == len(lines[1]) and all(map(_alike_lines, *lines))


def _alike_lines(one: str, other: str) -> bool:
    one, other = (_ID.sub("id", line) for line in (one, other))
    words = [re.sub(r"\s+", " ", _NUMBER.sub("#", line)) for line in (one, other)]
    old, new = (
        [float(number.replace(",", "")) for number in _NUMBER.findall(line)]
        for line in (one, other)
    )
    largest = max(map(abs, old), default=0.0)
    return words[0] == words[1] and all(
        abs(a - b) <= 0.35 * max(abs(a), abs(b)) + 0.02 * largest
        for a, b in zip(old, new, strict=True)
    )


# ---- show


def markdown(notebook: Path) -> str:
    """Return the page of a notebook: its text, its code, and what this shows."""
    parts, shown = [], iter(kept_outputs(notebook))
    for cell in cells_of(notebook):
        if cell["cell_type"] == "markdown":
            parts.append(cell["source"])
            continue
        parts.append(f"```notebook\n{cell['source']}\n```")
        for kind, content in next(shown):
            if kind == "svg":
                parts.append(f"![{cell['metadata']['alt']}]({content})")
            elif kind == "html":
                parts.append(f'<div class="output">\n{content.strip()}\n</div>')
            else:
                lines = escape(content.rstrip(), quote=False)
                parts.append(f'<div class="output"><pre>{_unbroken(lines)}</pre></div>')
    return "\n\n".join(parts)


def _unbroken(text: str) -> str:
    """Keep a blank line from ending a piece of HTML."""
    return re.sub(r"\n(?=\s*\n)", "\n&#8203;", text)


def main() -> None:
    """Run all notebooks, or those that are named, and keep their outputs."""
    for notebook in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sources():
        print(notebook.relative_to(DOCS.parent), file=sys.stderr)
        keep(notebook, run(notebook))


if __name__ == "__main__":
    main()
