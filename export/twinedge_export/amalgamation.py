"""The C runtime as one ``twin.c`` and one ``twin.h``, made of the files of ``firmware_ref``.

A file of C may name what it keeps to itself as it likes: other files do not see it. In one file they
do, so each name of a file's own gets the file's name in front, and its macros end where it ends.

A header that some file includes before it says anything itself needs nothing of that file: it is
shared, and comes once, in front of all files. Any other may depend on what was said before it, such
as ``plain.h`` on the layout of a block: it belongs to the file that includes it, and comes anew with
each. What only files of the runtime use becomes static, unless it is written in assembly.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    tokens_of,
)
from twinedge_export.firmware import firmware_folder

HEADER, SOURCE = "twin.h", "twin.c"
_PUBLIC = "twin_"  # how names begin that programs use
_OURS = ("twin", "TWIN")  # and those that are the same in all files
_HIDDEN = "TWIN_INTERNAL"  # how the sources mark what only they use
_WIDTH = 100

_OF_HEADER = f"""/* twinedge {__version__}: the C runtime, in {HEADER} and {SOURCE}.
 *
 * Made of several headers, whose names stand above each; change those, not this.
 *
 * SPDX-License-Identifier: Apache-2.0 */
"""
_OF_SOURCE = f"""/* twinedge {__version__}: the C runtime, in {HEADER} and {SOURCE}.
 *
 * Made of several files, whose names stand above each; change those, not this. What a file keeps to
 * itself has the file's name in front here.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include "{HEADER}"
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
        With ``include/`` and ``src/``; by default those that are installed.

    Raises
    ------
    InputError
        Where the files cannot be joined.
    """
    root = folder or firmware_folder()
    return Amalgamation(_header(root), _source(root))


def write_amalgamation(to: Path) -> tuple[Path, Path]:
    """Write ``twin.h`` and ``twin.c`` into a folder, and return their paths."""
    made = amalgamate()
    to.mkdir(parents=True, exist_ok=True)
    header, source = to / HEADER, to / SOURCE
    header.write_text(made.header, "utf-8")
    source.write_text(made.source, "utf-8")
    return header, source


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
                parts.append(join(path.parent / name))
        return "".join(parts)

    paths = [first, *sorted(first.parent.glob("*.h"))]
    return _tidy(_OF_HEADER + "".join(join(path) for path in paths if path not in done))


def _source(root: Path) -> str:
    files = _Files(root)
    units = [_Unit.of(path, files) for path in sorted((root / "src").rglob("*.c"))]
    # C++ knows no static variable that is declared before it is defined: kernels come first.
    units.sort(key=lambda unit: not unit.has_variables)
    internal = {name for unit in units for name in unit.internal}
    parts = [_OF_SOURCE]
    for path in files.shared:
        tokens = [token for token in files.tokens(path) if not _quoted(token)]
        parts += [_title(path, root), _text(_kept_inside(tokens, internal, files.macros))]
    parts += [_system_includes(units), _BEGIN_C]
    for unit in units:
        tokens = _kept_inside(unit.tokens, internal, {**files.macros, **unit.macros})
        parts.append(_text(_renamed(tokens, unit.new_names(files))))
        parts += ["\n", *(f"#undef {name}\n" for name in unit.macros)]
    return _tidy("".join([*parts, _END_C]))


class _Files:
    """The files of the runtime: their text, and which of the headers they share."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._public = {path.name for path in (root / "include").glob("*.h")}
        self._tokens: dict[Path, list[Token]] = {}
        paths = sorted((root / "src").rglob("*.[ch]"))
        self.macros = {
            macro.name: macro for path in paths for macro in macros_of(self.tokens(path))
        }
        self.names = {
            token.text for path in paths for token in self.tokens(path) if token.kind == "name"
        }
        self.shared: list[Path] = []
        for path in paths:
            if path.suffix == ".c":
                for name in _leading_includes(self.tokens(path)):
                    self._share(self.find(name, path))

    def tokens(self, path: Path) -> list[Token]:
        """Return a file without its include guard."""
        if path not in self._tokens:
            self._tokens[path] = _without_guard(tokens_of(path.read_text("utf-8")))
        return self._tokens[path]

    def find(self, name: str, beside: Path) -> Path | None:
        """Find a header that a file includes; None where it is a public one."""
        if Path(name).name in self._public:
            return None
        for folder in (beside.parent, self.root / "src"):
            if (folder / name).is_file():
                return (folder / name).resolve()
        raise InputError(f"{beside}: there is no {name} that it includes")

    def _share(self, path: Path | None) -> None:
        """Add a header, behind those that it includes."""
        if path is None or path in self.shared:
            return
        for token in self.tokens(path):
            name = _quoted(token)
            if name:
                self._share(self.find(name, path))
        self.shared.append(path)


@dataclass
class _Unit:
    """A file with all that is its own: the headers that it does not share are in their places."""

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
        """What distinguishes it, such as "avx2" or "open"."""
        return re.sub("^(kernel|twin)_", "", self.path.stem)

    @property
    def declared(self) -> list[Declaration]:
        """What it declares, with names of macros as what they stand for."""
        return list(_declared(self.tokens, {**self.files.macros, **self.macros}))

    @property
    def internal(self) -> set[str]:
        """Names that it defines for other files, but not for programs."""
        return {
            one.names[-1]
            for one in self.declared
            if one.is_definition and not one.is_static and not one.names[-1].startswith(_PUBLIC)
        }

    @property
    def has_variables(self) -> bool:
        return any(one.kind == "variable" for one in self.declared)

    def new_names(self, files: _Files) -> dict[str, str]:
        """Return what to call its own names."""
        names = {}
        for old in (name for one in self.declared for name in one.names):
            prefix = f"{self.name.upper() if old.isupper() else self.name}_"
            if not old.startswith((prefix, *_OURS)):
                names[old] = prefix + old
        taken = files.names.intersection(names.values())
        if taken:
            raise InputError(f"{self.path}: {taken.pop()} would be the name of two things")
        return names

    @property
    def _here(self) -> tuple[str, ...]:
        """Conditions that the present place is under."""
        return tuple(
            part
            for level in self._conditions
            for part in (*(f"!({before})" for before in level[:-1]), level[-1])
            if part
        )

    def _add(self, path: Path) -> None:
        self._places[path] = self._here
        title = _title(path, self.files.root)
        self.tokens += [*tokens_of(f"{title}"), *(() if path == self.path else ())]
        for token in self.files.tokens(path):
            said = directive_of(token)
            if said.word == "include":
                self._include(said.rest, path)
                continue
            self._see(said)
            self.tokens.append(token)

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

    def _include(self, what: str, beside: Path) -> None:
        if what in self.macros:
            what = self.macros[what].body
        if what.startswith("<"):
            self.includes.append((self._here, what))
        if not what.startswith('"'):
            return
        path = self.files.find(what.strip('"'), beside)
        if path is None or path in self.files.shared:
            return
        if path not in self._places:
            self._add(path)
        elif self._places[path] != self._here[: len(self._places[path])]:
            raise InputError(f"{beside}: {what} was included before, under another condition")


def _declared(tokens: Sequence[Token], macros: Mapping[str, Macro]) -> Iterator[Declaration]:
    for one in declarations(tokens, macros):
        names = (macros[name].body if name in macros else name for name in one.names)
        yield one._replace(names=tuple(names))


def _kept_inside(
    tokens: Sequence[Token], internal: set[str], macros: Mapping[str, Macro]
) -> list[Token]:
    """Make static what programs do not use, and drop what announces it without being it."""
    out = list(tokens)
    for one in _declared(tokens, macros):
        if one.is_static or not one.names or one.names[-1] not in internal:
            continue
        if one.kind == "variable" and not one.is_definition:
            out[one.start : one.end + 1] = [Token("space", "")] * (one.end + 1 - one.start)
        elif out[one.start].text == _HIDDEN:
            out[one.start] = Token("name", "static")
        else:
            out[one.start] = Token("name", f"static {out[one.start].text}")
    return out


def _renamed(tokens: Sequence[Token], names: Mapping[str, str]) -> Iterator[Token]:
    """Rename all but fields of structs, which are known by what they are fields of."""
    code = [token.text for token in tokens if token.is_code]
    code += ["", "", ""]  # so that there is something in front of the first, and behind the last
    is_struct: list[bool] = []  # for each brace that is open
    brackets = 0
    number = 0
    for token in tokens:
        if token.kind == "directive" and directive_of(token).word == "define":
            yield _renamed_macro(token, names)
        if not token.is_code:
            if not (token.kind == "directive" and directive_of(token).word == "define"):
                yield token
            continue
        before, behind = code[number - 1], code[number + 1]
        number += 1
        if token.text == "{":
            is_struct.append({before, code[number - 3]} & {"struct", "union"} != set())
        elif token.text == "}":
            is_struct.pop()
        brackets += (token.text == "[") - (token.text == "]")
        declared = is_struct[-1:] == [True] and not brackets and behind in (*";,[:)=",)
        if token.text in names and before not in (".", "->") and not declared:
            yield Token("name", names[token.text])
        else:
            yield token
