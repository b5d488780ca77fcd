"""The size of a pack is known before it is written."""

import numpy as np
import pytest

from twinedge.pack import read_header, write_pack
from twinedge.pack.layout import file_size


@pytest.mark.parametrize("seed", range(40))
def test_sizes_are_those_of_what_is_written(packs, seed):
    pack = packs.random_pack(np.random.default_rng(seed), scaled=bool(seed % 2))
    lean = write_pack(pack, metadata=False)
    header = read_header(lean)
    expected = {one.kind: one.length for one in header.sections}
    sections = header.shape.device_sections(
        pack.activation, len(pack.intervals.quantiles) if pack.intervals else 0
    )
    assert sections == expected
    assert list(sections) == list(expected)
    assert file_size(sections.values()) == len(lean)
    whole = write_pack(pack)
    assert file_size([one.length for one in read_header(whole).sections]) == len(whole)
