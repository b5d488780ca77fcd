"""Several targets in a pack: it is the packs of each, joined, and faults are refused in order."""

import struct
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinedge.budget.model import twin_bytes
from twinedge.budget.read_model import of_pack
from twinedge.errors import InputError
from twinedge.pack import PackError, Reason, joined, read_header, read_pack, write_pack
from twinedge.pack.contents import metadata_of, target_names
from twinedge.pack.describe import describe, uses

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
drawn = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 5), st.booleans())
TABLE = 48


def random_pack(packs, seed, outputs, features=2, scaled=False):
    """Draw a small pack; two in three have a map, and as many a curve."""
    return packs.random_pack(
        np.random.default_rng(seed),
        features=features,
        hidden=(3, 2),
        counts=[3, 1],
        scaled=scaled,
        mapped=seed % 3 > 0,
        curved=seed % 3 < 2,
        outputs=outputs,
    )


def refused(data):
    with pytest.raises(PackError) as caught:
        read_pack(bytes(data))
    assert len(str(caught.value).splitlines()) == 1
    return caught.value.reason


def put(data, code, at, *values):
    changed = bytearray(data)
    struct.pack_into(f"<{code}", changed, at, *values)
    return changed


def section(data, kind):
    return next(one for one in read_header(data).sections if one.kind == kind)


def test_packs_go_through_their_bytes_unchanged(packs):
    @quick
    @given(drawn)
    def holds(case):
        seed, outputs, features, scaled = case
        pack = random_pack(packs, seed, outputs, features, scaled)
        data = write_pack(pack)
        found = read_pack(data)
        assert write_pack(found) == data
        assert len(found.every_target) == outputs
        assert (data[4] == 3) >= (outputs > 1)
        header = read_header(data)
        levels = 0 if pack.intervals is None else len(pack.intervals.quantiles)
        for kind, length in header.shape.device_sections(pack.activation, levels).items():
            assert section(data, kind).length == length

    holds()


def test_a_pack_is_the_packs_of_its_targets(packs):
    @quick
    @given(drawn)
    def holds(case):
        seed, outputs, features, scaled = case
        pack = read_pack(write_pack(random_pack(packs, seed, outputs, features, scaled)))
        singles = [read_pack(write_pack(one)) for one in pack.singles]
        assert all(not one.others for one in singles)
        assert write_pack(joined(singles)) == write_pack(pack)

    holds()


def test_no_byte_is_left_out_or_counted_twice(packs):
    @quick
    @given(drawn)
    def holds(case):
        seed, outputs, features, scaled = case
        data = write_pack(random_pack(packs, seed, outputs, features, scaled))
        found, end = describe(data), 0
        for piece in found.pieces:
            assert (piece.offset, piece.size > 0) == (end, True)
            assert 0 <= piece.padding <= piece.size
            end += piece.size
        assert end == len(data) == sum(uses(found.pieces).values())
        assert len(found.ranges) == features + outputs

    holds()


def test_a_budget_counts_the_bytes(packs):
    @quick
    @given(drawn)
    def holds(case):
        seed, outputs, features, scaled = case
        pack = replace(random_pack(packs, seed, outputs, features, scaled), ids=None)
        model = of_pack(pack)
        assert model.targets == outputs
        assert twin_bytes(model) == len(write_pack(pack, metadata=False))

    holds()


def test_only_the_last_layer_grows(packs):
    one = random_pack(packs, 2, 1, scaled=True)
    lengths = [
        len(write_pack(packs.with_targets(np.random.default_rng(0), one, count), metadata=False))
        for count in (1, 2, 3)
    ]
    # Two twins with two neurons; four anchors; the intervals.
    levels = len(one.intervals.quantiles)
    further = 2 * (12 + 4 + 16) + 4 * 4 + 8 + 32 + 8 * levels
    assert lengths[2] - lengths[1] == pytest.approx(further, abs=48)


@pytest.fixture
def several(packs):
    """Three targets, two of them with a curve, and intervals."""
    pack = random_pack(packs, 4, 1, scaled=True)
    assert pack.target_curve is not None
    found = packs.with_targets(np.random.default_rng(1), pack, 3)
    bins = [
        None if one.target_curve is None else one.target_curve.bins for one in found.every_target
    ]
    assert None in bins[1:]
    assert bins[0] is not None
    return found


@pytest.fixture
def data(several):
    return write_pack(several)


@pytest.mark.parametrize("count", [0, 1, 9, 65535])
def test_impossible_numbers_of_targets(packs, data, count):
    at = section(data, 12).offset
    assert refused(packs.repair(put(data, "H", at, count))) is Reason.SECTION


def test_another_number_of_targets_than_there_are(packs, data):
    at = section(data, 12).offset
    for count in (2, 4, 8):
        assert refused(packs.repair(put(data, "H", at, count))) is Reason.SECTION


def test_the_section_is_required_and_of_one_length(packs, data):
    entry = TABLE + 12 * [one.kind for one in read_header(data).sections].index(12)
    assert refused(packs.repair(put(data, "H", entry + 2, 0))) is Reason.SECTION
    for length in (0, 2, 3, 8):
        assert refused(packs.repair(put(data, "I", entry + 8, length))) is Reason.SECTION
    assert refused(packs.repair(put(data, "H", 4, 2))) is Reason.SECTION  # older readers refuse it


def test_bytes_that_are_to_be_zero(packs, data):
    at = section(data, 12).offset
    for more in range(2, 16):
        assert refused(packs.repair(put(data, "B", at + more, 1))) is Reason.PADDING


def curve_heads(data):
    """Where the head of each target curve is, and how many bins it has."""
    at = section(data, 11).offset
    for _ in range(3):
        bins = struct.unpack_from("<H", data, at + 6)[0]
        yield at, bins
        at += 8 + (4 * (bins + 1) if bins else 0)


def test_faults_of_target_curves(packs, data):
    heads = list(curve_heads(data))
    for at, bins in heads:
        assert refused(packs.repair(put(data, "B", at + 5, 1))) is Reason.PADDING
        assert refused(packs.repair(put(data, "B", at + 4, 25))) is Reason.VALUE
        assert refused(packs.repair(put(data, "i", at, -(2**30)))) is Reason.VALUE
        for wrong in (bins + 1, 4097, 65535):
            assert refused(packs.repair(put(data, "H", at + 6, wrong))) is Reason.SECTION
    (none, _), *_ = [one for one in heads if not one[1]]
    assert refused(packs.repair(put(data, "i", none, 1))) is Reason.VALUE
    assert refused(packs.repair(put(data, "B", none + 4, 1))) is Reason.VALUE


def test_of_faults_in_curves_the_first_counts(packs, data):
    first, *_, last = (at for at, _ in curve_heads(data))
    both = put(put(data, "B", first + 4, 25), "B", last + 5, 1)
    assert refused(packs.repair(both)) is Reason.VALUE
    both = put(put(data, "B", first + 5, 1), "B", last + 4, 25)
    assert refused(packs.repair(both)) is Reason.PADDING


def test_a_pack_without_a_target_curve_for_any_of_its_targets_is_sound(packs, data, several):
    bare = [replace(one, target_curve=None) for one in several.singles]
    data = write_pack(joined(bare))
    assert 11 not in [one.kind for one in read_header(data).sections]


def test_intervals_of_each_target_have_as_many_levels(packs, data):
    found = section(data, 7)
    for number in range(3):
        at = found.offset + number * found.length // 3 + 28
        levels = struct.unpack_from("<I", data, at)[0]
        for wrong in (0, levels - 1, levels + 1, 16):
            assert refused(packs.repair(put(data, "I", at, wrong))) is Reason.SECTION


def test_faults_of_outputs(packs, data):
    header, twins = read_header(data), section(data, 2)
    size = header.shape.twin_size
    second = header.shape.output_heads()[0]
    # Behind the head: bias of the difficulty, then two neurons' weights, padded to four.
    faults = {
        (0, "B", 31): Reason.VALUE,
        (1, "B", 31): Reason.VALUE,
        (2, "h", -1): Reason.VALUE,
        (4, "h", -1): Reason.VALUE,
        (6, "h", 1): Reason.VALUE,
        (8, "i", -(2**31)): Reason.OVERFLOW,
        (12, "i", -(2**31)): Reason.OVERFLOW,
        (24, "h", 1): Reason.PADDING,
        (30, "h", 1): Reason.PADDING,
    }
    for (more, code, value), reason in faults.items():
        for twin in (0, 1):
            at = twins.offset + twin * size + second + more
            assert refused(packs.repair(put(data, code, at, value))) is reason, more
    # A head counts before the padding in front of it, and that before a sum.
    at = twins.offset + second
    both = put(put(data, "h", at + 24, 1), "B", at + header.shape.output_heads()[1] - second, 31)
    assert refused(packs.repair(both)) is Reason.VALUE
    both = put(put(data, "i", at + 8, -(2**31)), "h", at + 30, 1)
    assert refused(packs.repair(both)) is Reason.PADDING


def test_an_output_without_intervals_has_no_difficulty(packs):
    data = write_pack(random_pack(packs, 2, 2))
    header, twins = read_header(data), section(data, 2)
    at = twins.offset + header.shape.output_heads()[0]
    for more, code in ((1, "B"), (4, "h"), (6, "h"), (8, "i")):
        assert refused(packs.repair(put(data, code, at + more, 1))) is Reason.VALUE


def test_faults_of_scaling_and_anchors(packs, data, several):
    scaling, anchors = section(data, 1), section(data, 4)
    assert scaling.length == 8 * (2 + 3)
    for target in range(3):
        at = scaling.offset + 8 * (2 + target)
        assert refused(packs.repair(put(data, "f", at, np.inf))) is Reason.VALUE
        assert refused(packs.repair(put(data, "f", at + 4, 0.0))) is Reason.VALUE
        last = anchors.end - 4 * 4 * (3 - target)
        for wrong in (2**30, -(2**30)):
            assert refused(packs.repair(put(data, "i", last, wrong))) is Reason.VALUE


def test_no_damage_is_overlooked(packs, data):
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(data), 200).tolist():
        changed = put(data, "B", at, data[at] ^ int(rng.integers(1, 256)))
        with pytest.raises(PackError):
            read_pack(bytes(changed))
        with suppress(PackError):  # with right checksums, it is read or refused, and nothing else
            read_pack(packs.repair(changed))


def test_what_does_not_fit_is_not_written(several):
    first, second, third = several.singles
    level = {one: quantile + 1 for one, quantile in first.intervals.quantiles.items()}
    fewer = dict(list(level.items())[:-1])
    other = replace(second.twins[0], layers=third.twins[0].layers[::-1])
    for wrong in (
        replace(several, others=several.others[:1]),
        replace(several, others=several.others * 4),
        replace(several, twins=tuple(replace(one, others=()) for one in several.twins)),
        replace(several, others=tuple(replace(one, intervals=None) for one in several.others)),
        replace(
            several, others=tuple(replace(one, targets=one.targets[:2]) for one in several.others)
        ),
        joined(
            [first, replace(second, intervals=replace(second.intervals, quantiles=fewer)), third]
        ),
    ):
        with pytest.raises(PackError) as caught:
            write_pack(wrong)
        assert len(str(caught.value).splitlines()) == 1
    for wrong in (
        replace(second, neighbors=1 + first.neighbors),
        replace(second, anchors=second.anchors + np.int16(1)),
        replace(second, twins=(other, *second.twins[1:])),
    ):
        with pytest.raises(InputError, match="cannot be joined"):
            joined([first, wrong])


def test_metadata_say_what_is_of_a_target(packs):
    pack = random_pack(packs, 2, 1)
    about = [
        {"features": [1, 2], "target": "NOX", "scores": {"rmse": 1.0}},
        {"features": [1, 2], "target": "CO", "scores": {"rmse": 2.0}, "curve": "log"},
    ]
    both = joined([replace(pack, metadata=one) for one in about])
    assert both.metadata["features"] == [1, 2]
    assert [metadata_of(both.metadata, target) for target in (0, 1)] == about
    assert [one.metadata for one in both.singles] == about
    assert target_names(both.metadata, 2) == ("NOX", "CO")
    assert target_names(about[0], 1) == ("NOX",)
    assert target_names({}, 1) == ("target",)
    assert target_names({"targets": [1]}, 2, "y") == ("y0", "y1")
    assert target_names({"targets": [{"target": "NOX"}]}, 2, "y") == ("NOX", "y1")
