"""What input maps and target curves add on a board: bytes, scratch and the longest query."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model, read_firmware, twin_bytes
from twinedge.budget.measurements import PARTS
from twinedge.budget.read_model import of_pack
from twinedge.pack import write_pack
from twinedge_export.boards import all_ports, run_pack
from twinedge_export.boards.build import flags_for
from twinedge_export.boards.curve_parts import KINDS, with_part
from twinedge_export.boards.reference_packs import random_pack, references
from twinedge_export.boards.run import anchor_queries
from twinedge_export.boards.worst import PROGRAM, count_packs

QUICK = "mps2-an386"
BOARDS = [pytest.param(one, marks=() if one == QUICK else pytest.mark.slow) for one in all_ports()]
# None of them was measured; few outputs and many, curves of all features and of some; the last one
# has all parts.
MODELS = {
    "map": Model.of(5, (24, 12), 9, map_outputs=11, map_rows=40),
    "few curves": Model.of(9, (16, 8), 8, map_outputs=9, map_rows=14, map_curves=2),
    "target curve": Model.of(4, (12, 9), 6, twins=2, target_bins=33),
    "both": Model.of(3, (20, 10), 8, map_outputs=8, map_rows=27, target_bins=100),
}


def test_every_core_was_measured_with_curves():
    for core, runtime in read_firmware().items():
        assert set(runtime.parts) == set(PARTS), core
        hosted = next(one.hosted for one in all_ports().values() if one.core == core)
        assert all((one.rates is None) == hosted for one in runtime.parts.values())
        assert runtime.parts["map"].text_bytes > 100
        # The working memory of a host's kernel may be larger than any map needs.
        assert runtime.parts["map"].place_bytes >= 4 or hosted


def test_reference_packs_with_curves_are_those_without(tmp_path):
    for kind in KINDS:
        model = references(kind)[-1]
        plain = random_pack(model)
        for part in PARTS:
            pack = random_pack(with_part(model, part))
            assert of_pack(pack) == with_part(model, part)
            assert replace(pack, map=None, target_curve=None, domain=None) is not None
            assert (pack.anchors == plain.anchors).all()
            assert (pack.targets == plain.targets).all()
            assert (pack.twins[0].layers[0].kernel == plain.twins[0].layers[0].kernel).all()


@pytest.mark.parametrize("intervals", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one != "both")) for one in MODELS]
)
@pytest.mark.parametrize("board", BOARDS)
def test_flash_and_ram_are_predicted(builder, board, name, intervals):
    model = replace(MODELS[name], intervals=intervals)
    pack = random_pack(model)
    images = builder(board, flags_for(pack))
    build = read_firmware()[images.board.core].build(model)
    content = write_pack(pack, metadata=False)
    result = run_pack(images, content, anchor_queries(pack, 1), count=False)
    assert not len(result.mismatches)
    assert result.image.pack_bytes == twin_bytes(model)
    taken = result.image.sizes.flash + result.image.pack_bytes
    if not images.board.hosted:
        taken = images.flash_bytes(result.image) - 4 - 4 * result.features
    assert build.flash_bytes + twin_bytes(model) == pytest.approx(taken, rel=0.02)
    assert build.scratch.bytes(model) == result.answers.scratch
    assert abs(build.ram_bytes(model) - result.ram_bytes) <= 64


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
def test_no_query_exceeds_the_bound(builder, board):
    rng = np.random.default_rng(0)
    for name, shape in MODELS.items():
        model = replace(shape, intervals=True)
        images = builder(board, flags_for(random_pack(model)), PROGRAM)
        build = read_firmware()[images.board.core].build(model)
        if images.board.hosted:
            assert build.worst is None
            return
        sizes = rng.choice([1e-3, 1, 1e3], size=(6, model.features))
        queries = (sizes * rng.normal(size=sizes.shape)).astype(np.float32)
        counted = count_packs(images, [(random_pack(model), query) for query in queries])
        most = build.worst.instructions(model)
        assert max(counted) <= most, name
        assert most < 3 * max(counted), name
