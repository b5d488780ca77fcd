"""Boards work with the runtime as one file as with separate ones: same bits, no more code."""

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge_export.boards import Builder, all_ports, port_named, run_pack
from twinedge_export.boards.build import flags_for

MORE = 1.01  # times the code of the separate files, at most
MORE_INSTRUCTIONS = 1.1  # compilers inline a function shared by kernels less often

# Features, hidden layers, activation, type of weights; anchors of twins, neighbors.
PACKS = {
    "relu": ((8, (24, 24), "relu", np.int8), [3, 5], 0),
    "silu": ((6, (20, 12), "silu", np.int8), [9], 0),
    "some-of-everything": ((4, (10, 8), "silu", np.int16), [5, 1, 9, 3], 2),
}
QUICK = [("mps2-an386", "some-of-everything")]
CASES = [
    pytest.param(board, name, marks=() if (board, name) in QUICK else pytest.mark.slow)
    for board in all_ports()
    for name in PACKS
]


@pytest.fixture
def both_runs(packs, cases, tmp_path):
    """A pack on a board, by the separate files and by one: ``both_runs(name, board)``."""

    def make(name, board):
        (features, hidden, activation, dtype), counts, neighbors = PACKS[name]
        pack = packs.random_pack(
            np.random.default_rng([61, list(PACKS).index(name)]),
            features=features,
            hidden=hidden,
            activation=activation,
            dtype=dtype,
            counts=counts,
            neighbors=neighbors,
            weights="normal",
        )
        found = []
        for single_file in (False, True):
            folder = tmp_path / f"{board}-{single_file}"
            images = Builder(port_named(board), folder, flags_for(pack), single_file)
            x = cases.queries(pack, 12)
            found.append(run_pack(images, write_pack(pack), x, count=False))
            assert (folder / "twin.o").exists() == single_file
        return found

    return make


@pytest.mark.parametrize(("board", "name"), CASES)
def test_one_file_gives_the_same_bits_and_takes_no_more(both_runs, board, name):
    many, one = both_runs(name, board)
    assert not len(one.mismatches)
    assert len(one.answers.mean) == 12
    assert one.image.sizes.text <= MORE * many.image.sizes.text
    assert one.image.sizes.data <= many.image.sizes.data
    assert one.image.sizes.bss == many.image.sizes.bss
    if many.instructions_per_query:
        assert one.instructions_per_query <= MORE_INSTRUCTIONS * many.instructions_per_query


def test_a_folder_may_be_named_from_where_one_is(tmp_path, monkeypatch, packs, cases):
    monkeypatch.chdir(tmp_path)
    pack = packs.random_pack(np.random.default_rng(62), features=2, hidden=(4,), counts=[2])
    images = Builder(port_named("mps2-an386"), tmp_path.relative_to(tmp_path) / "here", (), True)
    assert not len(run_pack(images, write_pack(pack), cases.queries(pack, 12)).mismatches)
