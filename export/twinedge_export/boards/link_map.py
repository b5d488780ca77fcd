"""What the linker says of an image: how many bytes of each kind came from where."""

import re
from pathlib import PurePath
from typing import NamedTuple

KINDS = {
    ".text": "text",
    ".init": "text",
    ".fini": "text",
    ".vectors": "text",
    ".rodata": "rodata",
    ".srodata": "rodata",
    ".progmem": "rodata",
    ".data": "data",
    ".sdata": "data",
    ".bss": "bss",
    ".sbss": "bss",
    "COMMON": "bss",
}
# A section that was kept; the linker breaks the line behind a long name.
_SECTION = re.compile(
    r"^ (?P<name>[.\w][\w.$-]*)\s+0x(?P<at>[0-9a-f]+)\s+0x(?P<size>[0-9a-f]+) (?P<file>\S.*)$",
    re.MULTILINE,
)


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


def sizes_of(text: str, harness: set[str], *, libraries: bool) -> Sizes:
    """Add up the sections in the text of a linker map.

    Parameters
    ----------
    text : str
        The map.
    harness : set of str
        Object files that do not count, by name.
    libraries : bool
        Whether what comes out of archives counts.
    """
    total = dict.fromkeys(("text", "rodata", "data", "bss"), 0)
    kept = text.partition("Linker script and memory map")[2]
    for found in _SECTION.finditer(kept):
        kind = KINDS.get(re.match(r"\.?\w+", found["name"])[0])  # type: ignore[index]
        archived = found["file"].endswith(")")
        name = PurePath(found["file"]).name
        if kind and name not in harness and (libraries or not archived):
            total[kind] += int(found["size"], 16)
    return Sizes(**total)
