"""A file of packs and queries for firmware_ref/test/replay.c, and the answers it should write."""

import struct

import numpy as np

from twinedge.pack import write_pack
from twinedge.runtime import reference


class Replay:
    """Packs with this many queries each, and a tenth of that for slow packs."""

    def __init__(self, cases, packs, native, folder, queries):
        self.native, self.folder = native, folder
        self.questions, self.answers = folder / "questions", b""
        parts = [struct.pack("<I", len(cases.SHAPES))]
        for number, name in enumerate(cases.SHAPES):
            pack = cases.draw(packs, name, scaled=bool(number % 2))
            x = cases.queries(pack, max(queries // 10, 20) if name in cases.LARGE else queries)
            data = write_pack(pack)
            parts += [struct.pack("<II", len(data), len(x)), data, x.astype("<f4").tobytes()]
            self.answers += answers(pack, x)
        self.questions.write_bytes(b"".join(parts))

    def build(self, *options, compiler="gcc", kernels=()):
        """Compile replay.c with the portable kernel, and further ones; returns the program."""
        sources = [*self.native.PORTABLE, *kernels, self.native.FIRMWARE / "test" / "replay.c"]
        program = self.folder / "-".join(["replay", compiler, *options]).replace("/", "_")
        options = ("-DTWIN_HOST=0", *options)
        return self.native.compile_c(program, *options, compiler=compiler, sources=sources)

    def mismatches(self, program, *emulator):
        """Run it; return how many answers are wrong, and how many there are."""
        found = self.folder / "answers"
        self.native.run(*emulator, program, self.questions, found)
        found, right = (np.frombuffer(data, "<u4") for data in (found.read_bytes(), self.answers))
        assert len(found) == len(right)
        return int((found != right).sum()), len(right)


def answers(pack, x):
    """Return the words replay.c writes for this pack."""
    expected, missing = reference.evaluate(pack, x), np.isnan(x)
    outside = reference.outside(pack, reference.quantise(pack, x)) & ~missing
    words = np.zeros((len(x), 13 + pack.members), "<u4")
    words[:, 0] = expected.mean.view(np.uint32)
    words[:, 1] = expected.spread.view(np.uint32)
    words[:, 2] = expected.raw_mean.view(np.uint32)
    words[:, 3] = expected.raw_spread
    words[:, 4] = pack.members
    words[:, 5:8] = 0x7FC00000  # not a number
    words[:, 8], words[:, 9] = reference.mask(outside), reference.mask(missing)
    if pack.intervals is not None:
        bounds = reference.bounds(pack, expected, pack.intervals.usual_level)
        for column, name in enumerate(("scale", "low", "high")):
            words[:, 5 + column] = getattr(bounds, name).view(np.uint32)
            words[:, 10 + column] = getattr(bounds, f"raw_{name}").view(np.uint32)
    words[:, 13:] = expected.estimates.view(np.uint32)
    return struct.pack("<i", 0) + words.tobytes()
