"""The C runtime as one ``twin.c`` and one ``twin.h``, joined from the files of ``firmware_ref``.

Headers with an include guard come once, ahead of all files. One without is a template, as
``layers.h`` is: it comes with each file that includes it, where its names get that file's prefix.
No two files share a private name, so all that is left to do is to end each file's macros with it.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from twinedge.errors import InputError
from twinedge.version import __version__

_HERE = Path(__file__).resolve().parent
_HOMES = (_HERE / "firmware_ref", _HERE.parents[1] / "firmware_ref")

HEADER, SOURCE = "twin.h", "twin.c"
_WIDTH = 100
_INCLUDE = re.compile(r'^#include "(?:.*/)?(.+)"\n', re.MULTILINE)
_GUARD = re.compile(r"^#ifndef (\w+_H)\n#define \1\n", re.MULTILINE)
_MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)

_TITLE = f"""/* twinedge {__version__}: the C runtime, in {HEADER} and {SOURCE}.
 *
 * Generated from several files, each under its name; edit those, not this file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
"""
_BEGIN = f"""
#include "{HEADER}"

#define TWIN_SINGLE_FILE

/* No kernel uses every function that the kernels share. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
"""


def firmware_folder() -> Path:
    """Folder with ``include/`` and ``src/`` of the C runtime."""
    for folder in _HOMES:
        if (folder / "include" / "twin.h").is_file():
            return folder
    raise InputError("the sources of the C runtime are not installed: reinstall twinedge")


class Amalgamation(NamedTuple):
    """The text of both files."""

    header: str
    source: str


def amalgamate(folder: Path | None = None) -> Amalgamation:
    """Join the files of the C runtime.

    Parameters
    ----------
    folder : path, optional
        Holds ``include/`` and ``src/``; by default the installed sources.

    Raises
    ------
    InputError
        If a header is missing.
    """
    root = (folder or firmware_folder()).resolve()
    public = _Joiner(root, sorted((root / "include").glob("*.h")), set())
    header = public.shared(root / "include" / HEADER)
    private = _Joiner(root, sorted((root / "src").rglob("*.h")), set(public.headers))
    # Kernels come first, as C++ cannot declare a static variable ahead of its definition.
    sources = sorted((root / "src").rglob("*.c"))
    sources.sort(key=lambda path: not path.name.startswith("kernel_"))
    source = _BEGIN + private.shared() + "".join(map(private.unit, sources))
    return Amalgamation(*(re.sub(r"\n{3,}", "\n\n", _TITLE + text) for text in (header, source)))


class Paths(NamedTuple):
    """Paths of both files."""

    header: Path
    source: Path


def write_amalgamation(to: Path) -> Paths:
    """Write ``twin.h`` and ``twin.c`` into a folder, creating it if needed."""
    made = amalgamate()
    to.mkdir(parents=True, exist_ok=True)
    paths = Paths(to / HEADER, to / SOURCE)
    for path, text in zip(paths, made, strict=True):
        path.write_text(text, "utf-8")
    return paths


class _Joiner:
    """Puts headers, which no two folders name alike, in place of the lines that include them."""

    def __init__(self, root: Path, headers: list[Path], done: set[str]) -> None:
        self.root = root
        self.done = done
        self.headers = {path.name: path for path in headers if path.name not in self.done}
        self.macros: set[str] = set()  # of shared headers

    def shared(self, *first: Path) -> str:
        """Join the headers that have a guard, each once."""
        text = ""
        for path in (*first, *self.headers.values()):
            if path.name not in self.done and _GUARD.search(path.read_text("utf-8")):
                text += self._expanded(path)
        self.macros.update(_MACRO.findall(text))
        return text

    def unit(self, path: Path) -> str:
        """Join a source file with its templates; its macros end with it."""
        text = self._expanded(path)
        macros = sorted(set(_MACRO.findall(text)) - self.macros)
        return text + "\n" + "".join(f"#undef {name}\n" for name in macros)

    def _expanded(self, path: Path) -> str:
        text = path.read_text("utf-8")
        if _GUARD.search(text):
            self.done.add(path.name)

        def include(found: re.Match[str]) -> str:
            name = found[1]
            if name in self.done:
                return ""
            if name not in self.headers:
                raise InputError(f"{path}: includes {name}, which does not exist")
            return self._expanded(self.headers[name]) + self._title(path, ", continued")

        return self._title(path) + _INCLUDE.sub(include, text)

    def _title(self, path: Path, note: str = "") -> str:
        name = path.relative_to(self.root).as_posix()
        return f"\n\n/* ==== {name}{note} ".ljust(_WIDTH - 1, "=") + " */\n\n"


if __name__ == "__main__":
    for written in write_amalgamation(Path(sys.argv[1])):
        print(written)
