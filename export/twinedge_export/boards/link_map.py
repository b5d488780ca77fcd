"""What the linker says of an image: how many bytes of each kind came from where."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

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
# A section of the image, at the start of a line, and one of a file that went into it; the linker
# breaks the line behind a long name.
_SECTION = re.compile(
    r"^(?P<into>\.\w+)\b|"
    r"^ (?P<name>[.\w][\w.$-]*)\s+0x(?P<at>[0-9a-f]+)\s+0x(?P<size>[0-9a-f]+) (?P<file>\S.*)$",
    re.MULTILINE,
)
_RUNTIME = ("twin.", "twin_", "kernel_", "choose_host")  # how names of its files begin
_CHECKS = ("twin_open",)  # those that only opening a pack takes


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
    """Add up the sections of the runtime, and where asked of what came out of archives."""
    total = dict.fromkeys(Sizes._fields, 0)
    for one in _sections(link_map):
        if one.of_runtime or (libraries and one.of_library):
            total[one.kind] += one.size
    return Sizes(**total)


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
