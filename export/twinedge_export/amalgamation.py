"""The C runtime as one ``twin.c`` and one ``twin.h``, joined from the files of ``firmware_ref``.

A C file may name its private things as it likes, because no other file sees them. In one file all
names meet, so each private name is prefixed with its file's name, and macros end with their file.

A header that some file includes before any code of its own needs nothing from that file: it is
shared, and appears once, ahead of all files. Any other may depend on what comes before it, as
``plain.h`` does on the layout of a block: it belongs to the file that includes it, and is repeated
in each. What only the runtime itself uses becomes static, unless it is written in assembly.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from twinedge.errors import InputError
from twinedge.version import __version__
from twinedge_export.c_tokens import (
    Declaration,
    Directive,
    Macro,
    Token,
    declarations,
    directive_of,
    macro_of,
    macros_of,
    renamed,
    tokens_of,
)

_HERE = Path(__file__).resolve().parent
_HOMES = (_HERE / "firmware_ref", _HERE.parents[1] / "firmware_ref")


def firmware_folder() -> Path:
    """Folder with ``include/`` and ``src/`` of the C runtime."""
    for folder in _HOMES:
        if (folder / "include" / "twin.h").is_file():
            return folder
    raise InputError("the sources of the C runtime are not installed: reinstall twinedge")


HEADER, SOURCE = "twin.h", "twin.c"
_PUBLIC = "twin_"  # prefix of the names that programs use
_OURS = ("twin_", "twini_", "TWIN_")  # prefixes of names shared by all files
# Marks of names that only the sources use, and what replaces them in the single file.
_STATIC = {"TWIN_INTERNAL": "static"}
_AGAIN = ", continued"
_WIDTH = 100

_OF_HEADER = f"""/* twinedge {__version__}: the C runtime, in {HEADER} and {SOURCE}.
 *
 * Generated from several headers, each under its name; edit those, not this file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
"""
_OF_SOURCE = f"""/* twinedge {__version__}: the C runtime, in {HEADER} and {SOURCE}.
 *
 * Generated from several files, each under its name; edit those, not this file. What is private to
 * a file is prefixed with the file's name here.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include "{HEADER}"

#if TWIN_INTERVALS && defined(__GNUC__)
#define TWIN_SHARED __attribute__((noinline)) static
#else
#define TWIN_SHARED static
#endif

/* No kernel uses every function that the kernels share. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
"""
_BEGIN_C = """
#ifdef __cplusplus
extern "C" {
#endif
"""
_END_C = """
#ifdef __cplusplus
}
#endif
"""


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
        If the files cannot be joined.
    """
    root = (folder or firmware_folder()).resolve()
    return Amalgamation(_header(root), _source(root))


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


def _header(root: Path) -> str:
    first = root / "include" / HEADER
    done: list[Path] = []

    def join(path: Path) -> str:
        done.append(path)
        parts = [_title(path, root)]
        for token in tokens_of(path.read_text("utf-8")):
            name = _quoted(token)
            if not name:
                parts.append(token.text)
            elif path.parent / name not in done:
                parts += [join(path.parent / name), _title(path, root, _AGAIN)]
        return "".join(parts)

    paths = [first, *sorted(first.parent.glob("*.h"))]
    return _tidy(_OF_HEADER + "".join(join(path) for path in paths if path not in done))


def _source(root: Path) -> str:
    files = _Files(root)
    units = [_Unit.of(path, files) for path in files.sources]
    # C++ cannot declare a static variable ahead of its definition, so kernels come first.
    units.sort(key=lambda unit: not unit.has_variables)
    internal = {name for unit in units for name in unit.internal}
    parts = [_OF_SOURCE, _BEGIN_C]
    for path in files.shared:
        tokens = [token for token in files.tokens(path) if not _quoted(token)]
        parts += [_title(path, root), _text(_kept_inside(tokens, internal, files.macros))]
    parts += [_END_C, _system_includes(units), _BEGIN_C]
    for unit, names in zip(units, _new_names(units), strict=True):
        tokens = _kept_inside(unit.tokens, internal, unit.known_macros)
        parts.append(_text(renamed(tokens, names)))
        parts += ["\n", *(f"#undef {name}\n" for name in unit.macros)]
    return _tidy("".join([*parts, _END_C]))


class _Files:
    """The files of the runtime: their text, and which headers they share."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._public = {path.name for path in (root / "include").glob("*.h")}
        self._tokens: dict[Path, list[Token]] = {}
        self.sources = sorted((root / "src").rglob("*.c"))
        self.shared: list[Path] = []
        for path in self.sources:
            for name in _leading_includes(self.tokens(path)):
                self._share(self.find(name, path))
        self.macros = {
            macro.name: macro for path in self.shared for macro in macros_of(self.tokens(path))
        }

    def tokens(self, path: Path) -> list[Token]:
        """Return a file without its include guard."""
        if path not in self._tokens:
            self._tokens[path] = _without_guard(tokens_of(path.read_text("utf-8")))
        return self._tokens[path]

    def find(self, name: str, beside: Path) -> Path | None:
        """Find a header that a file includes; None if it is public."""
        if Path(name).name in self._public:
            return None
        for folder in (beside.parent, self.root / "src"):
            if (folder / name).is_file():
                return (folder / name).resolve()
        raise InputError(f"{beside}: includes {name}, which does not exist")

    def _share(self, path: Path | None) -> None:
        """Add a header, after those that it includes."""
        if path is None or path in self.shared:
            return
        for token in self.tokens(path):
            name = _quoted(token)
            if name:
                self._share(self.find(name, path))
        self.shared.append(path)


@dataclass
class _Unit:
    """A source file with its private headers expanded in place."""

    path: Path
    files: _Files
    tokens: list[Token] = field(default_factory=list)
    macros: dict[str, Macro] = field(default_factory=dict)
    includes: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    _conditions: list[list[str]] = field(default_factory=list)
    _places: dict[Path, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, files: _Files) -> "_Unit":
        unit = cls(path, files)
        unit._add(path)
        return unit

    @property
    def name(self) -> str:
        """Its short name, such as "avx2" or "open"."""
        return re.sub("^(kernel|twin)_", "", self.path.stem)

    @property
    def known_macros(self) -> dict[str, Macro]:
        """Macros that it may use."""
        return {**self.files.macros, **self.macros}

    @cached_property
    def declared(self) -> list[Declaration]:
        """What it declares, with macros expanded."""
        return list(_declared(self.tokens, self.known_macros))

    @property
    def internal(self) -> set[str]:
        """Names that it defines for other files of the runtime only."""
        return {
            one.names[-1]
            for one in self.declared
            if one.is_definition and not one.is_static and not one.names[-1].startswith(_PUBLIC)
        }

    @property
    def has_variables(self) -> bool:
        return any(one.kind == "variable" for one in self.declared)

    @property
    def _here(self) -> tuple[str, ...]:
        """Conditions in force at this point, each ready to be joined by ``&&``."""
        parts: list[str] = []
        for *others, last in self._conditions:
            parts += [f"!({other})" for other in others]
            parts.append(f"({last})" if "||" in last else last)
        return tuple(part for part in parts if part)

    def _add(self, path: Path) -> None:
        self._places[path] = self._here
        self.tokens += tokens_of(_title(path, self.files.root))
        for token in self.files.tokens(path):
            said = directive_of(token)
            if said.word != "include":
                self._see(said)
                self.tokens.append(token)
            elif self._include(said.rest, path):
                self.tokens += tokens_of(_title(path, self.files.root, _AGAIN))

    def _see(self, said: Directive) -> None:
        word, rest = said
        if word == "define":
            macro = macro_of(said)
            self.macros[macro.name] = macro
        elif word in ("if", "ifdef", "ifndef"):
            condition = {"if": "{}", "ifdef": "defined({})", "ifndef": "!defined({})"}[word]
            self._conditions.append([condition.format(rest)])
        elif word in ("elif", "else"):
            self._conditions[-1].append(rest)
        elif word == "endif":
            self._conditions.pop()

    def _include(self, what: str, beside: Path) -> bool:
        """Expand a header in place; returns whether that was new."""
        if what in self.macros:
            what = self.macros[what].body
        if what.startswith("<"):
            self.includes.append((self._here, what))
        if not what.startswith('"'):
            return False
        path = self.files.find(what.strip('"'), beside)
        if path is None or path in self.files.shared:
            return False
        if path not in self._places:
            self._add(path)
            return True
        if self._places[path] != self._here[: len(self._places[path])]:
            raise InputError(f"{beside}: {what} was included before, under a different condition")
        return False


def _declared(tokens: Sequence[Token], macros: Mapping[str, Macro]) -> Iterator[Declaration]:
    for one in declarations(tokens, macros):
        names = (macros[name].body if name in macros else name for name in one.names)
        yield one._replace(names=tuple(names))


def _new_names(units: Sequence[_Unit]) -> Iterator[dict[str, str]]:
    """Yield the new names of each file's private names."""
    used = {token.text for unit in units for token in unit.tokens if token.kind == "name"}
    for unit in units:
        names = {}
        for old in (name for one in unit.declared for name in one.names):
            prefix = f"{unit.name.upper() if old.isupper() else unit.name}_"
            if not old.startswith((prefix, *_OURS)):
                names[old] = prefix + old
        twice = used.intersection(names.values())
        if twice:
            raise InputError(f"{unit.path}: {twice.pop()} would name two things")
        used.update(names.values())
        yield names


def _kept_inside(
    tokens: Sequence[Token], internal: set[str], macros: Mapping[str, Macro]
) -> list[Token]:
    """Make internal names static, and drop their ``extern`` declarations."""
    out = list(tokens)
    for one in _declared(tokens, macros):
        if one.is_static or not one.names or one.names[-1] not in internal:
            continue
        if one.kind == "variable" and not one.is_definition:
            end = one.end + 1
            end += [token.text for token in tokens[end : end + 1]] == ["\n"]
            out[one.start : end] = [Token("space", "")] * (end - one.start)
        elif inside := _STATIC.get(out[one.start].text):
            out[one.start] = Token("name", inside)
        else:
            out[one.start] = Token("name", f"static {out[one.start].text}")
    return out


def _system_includes(units: Sequence[_Unit]) -> str:
    """System headers, ahead of any macro that could change them."""
    wanted: dict[tuple[str, ...], dict[str, None]] = {}
    for unit in units:
        for conditions, name in unit.includes:
            wanted.setdefault(conditions, {})[name] = None
    parts = []
    for conditions, names in wanted.items():
        lines = "".join(f"#include {name}\n" for name in names)
        parts.append(f"\n#if {' && '.join(conditions)}\n{lines}#endif\n" if conditions else lines)
    return "".join(parts)


def _quoted(token: Token) -> str:
    """Name of the header in ``#include "..."``; empty for any other token."""
    said = directive_of(token)
    return said.rest.strip('"') if said.word == "include" and said.rest.startswith('"') else ""


def _leading_includes(tokens: Sequence[Token]) -> Iterator[str]:
    """Names of the headers included ahead of any code."""
    for token in tokens:
        if token.kind in ("comment", "space"):
            continue
        name = _quoted(token)
        if not name:
            return
        yield name


def _without_guard(tokens: list[Token]) -> list[Token]:
    """Remove the include guard."""
    places = [i for i, token in enumerate(tokens) if token.kind not in ("comment", "space")]
    if len(places) < 3:
        return tokens
    first, second, last = (directive_of(tokens[places[i]]) for i in (0, 1, -1))
    if (first.word, second.word, last.word) != ("ifndef", "define", "endif"):
        return tokens
    if first.rest != second.rest:
        return tokens
    guard = {places[0], places[1], places[-1]}
    return [token for i, token in enumerate(tokens) if i not in guard]


def _title(path: Path, root: Path, note: str = "") -> str:
    name = path.relative_to(root).as_posix()
    return f"\n\n/* ==== {name}{note} ".ljust(_WIDTH - 1, "=") + " */\n\n"


def _text(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


def _tidy(text: str) -> str:
    """Drop empty conditionals and titles, and repeated blank lines."""
    count = 1
    while count:
        text, count = re.subn(r"(?m)^#if[^\n]*(?<!\\)\n\s*#endif[^\n]*\n", "", text)
    text = re.sub(rf"/\* ==== [^\n]*{_AGAIN} =+ \*/\s*(?=/\* ====)", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


if __name__ == "__main__":
    for written in write_amalgamation(Path(sys.argv[1])):
        print(written)
