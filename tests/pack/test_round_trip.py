"""What is written is read back, and nothing that could not be read is written."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack import PackError, Reason, read_header, read_pack, write_pack
from twinedge.pack.layout import file_size


def assert_equal(one, other):
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_equal(*pair)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("seed", range(8))
def test_a_pack_survives_writing_and_reading_and_has_the_size_that_was_expected(packs, seed):
    kinds = {"scaled": bool(seed & 1), "mapped": bool(seed & 2), "curved": bool(seed & 4)}
    pack = packs.random_pack(np.random.default_rng(seed), **kinds)
    data = write_pack(pack)
    assert_equal(read_pack(data), pack)
    assert write_pack(read_pack(data)) == data
    assert file_size([one.length for one in read_header(data).sections]) == len(data)
    lean = write_pack(pack, metadata=False)
    header = read_header(lean)
    levels = len(pack.intervals.quantiles) if pack.intervals else 0
    sections = header.shape.device_sections(pack.activation, levels)
    assert list(sections.items()) == [(one.kind, one.length) for one in header.sections]
    assert file_size(sections.values()) == len(lean)


def test_a_device_needs_neither_ids_nor_metadata(small, data):
    lean = read_pack(write_pack(small, metadata=False))
    assert len(write_pack(small, metadata=False)) < len(data)
    assert_equal(lean, replace(small, ids=None, metadata={}))


def test_the_header_says_what_is_inside(data):
    header = read_header(data)
    assert header.shape.hidden == (3, 5)
    assert (header.activation, header.neighbors) == ("silu", 2)
    assert [one.kind for one in header.sections] == [1, 2, 3, 4, 5, 6]
    assert all(one.offset % 16 == 0 for one in header.sections)


def test_reading_copies_what_it_needs(data):
    pack = read_pack(data)
    pack.anchors[:] = 0
    pack.twins[0].layers[0].kernel[:] = 0
    pack.x_gain[:] = 1


def change(pack, **changes):
    """Change a pack, its first twin (``twin_...``) or the first layer of that (``layer_...``)."""
    twin = pack.twins[0]
    own = {name: value for name, value in changes.items() if "__" not in name}
    of_twin = {name[6:]: value for name, value in changes.items() if name.startswith("twin__")}
    of_layer = {name[7:]: value for name, value in changes.items() if name.startswith("layer__")}
    layers = (replace(twin.layers[0], **of_layer), *twin.layers[1:])
    twins = (replace(twin, **({"layers": layers} | of_twin)), *pack.twins[1:])
    return replace(pack, **({"twins": twins} | own))


WRONG = {
    "no twins": {"twins": ()},
    "no layers": {"twin__layers": ()},
    "another activation": {"activation": "tanh"},
    "relu with a table": {"activation": "relu"},
    "silu without a table": {"curve": None},
    "short table": {"curve": np.zeros(192, np.int16)},
    "trained on neighbors, predicting with all": {"neighbors": 0, "trained_on_neighbors": True},
    "negative neighbors": {"neighbors": -1},
    "too many neighbors": {"neighbors": 4097},
    "a kernel of another type": {"layer__kernel": np.zeros((3, 4), np.int32)},
    "kernels of two types": {"layer__kernel": np.zeros((3, 4), np.int16)},
    "a kernel of another shape": {"layer__kernel": np.zeros((3, 5), np.int8)},
    "a bias of another type": {"layer__bias": np.zeros(3, np.int64)},
    "a negative multiplier": {"layer__multiplier": np.full(3, -1, np.int16)},
    "a shift too large": {"layer__shift": 31},
    "a negative shift": {"twin__shift": -1},
    "fraction bits too few": {"layer__fraction": 4},
    "an output multiplier too large": {"twin__multiplier": 32768},
    "an overflow": {"layer__bias": np.array([-(2**31), 0, 0], np.int32)},
    "float64 offsets": {"x_offset": np.zeros(2)},
    "gains of another shape": {"x_gain": np.ones(3, np.float32)},
    "a gain of zero": {"y_gain": np.float32(0)},
    "counts that do not add up": {"counts": np.array([2, 2], np.uint16)},
    "ids of another shape": {"ids": np.zeros(2, np.uint32)},
    "an anchor out of range": {"anchors": np.full((3, 2), -32768, np.int16)},
    "a bias of the output without intervals": {"twin__bias": 1},
    "a schema that is too large": {"schema": 2**32},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_what_no_reader_would_take_is_not_written(small, changes):
    with pytest.raises(PackError) as caught:
        write_pack(change(small, **changes))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": 2**16}, "the intervals have a number that cannot be stored"),
        ({"typical": -1}, "the intervals have a number that cannot be stored"),
        ({"quantiles": dict.fromkeys(range(500, 516), 1)}, "16 levels are too many"),
    ],
)
def test_intervals_that_cannot_be_stored_are_not_written(packs, changes, says):
    pack = packs.random_pack(np.random.default_rng(0), scaled=True)
    with pytest.raises(PackError, match=says):
        write_pack(replace(pack, intervals=replace(pack.intervals, **changes)))
    (twin, *others) = pack.twins
    wide = replace(twin, bias=2**31)
    with pytest.raises(PackError, match="the bias of an output, 2147483648, exceeds 32 bits"):
        write_pack(replace(pack, twins=(wide, *others)))


def test_twins_of_different_depth_are_not_written(small):
    first, second = small.twins
    shallow = replace(second, layers=second.layers[:1])
    with pytest.raises(PackError, match="the twins of a pack must have the same shape"):
        write_pack(replace(small, twins=(first, shallow)))


def test_a_pack_too_large_is_not_written(packs):
    pack = packs.random_pack(np.random.default_rng(0), features=1, hidden=(1,), counts=[4097])
    with pytest.raises(PackError, match="4097 anchors") as caught:
        write_pack(pack)
    assert caught.value.reason is Reason.HEADER


@pytest.mark.parametrize(
    "metadata",
    [{"a": float("nan")}, {"a": object()}, {1: 0, "a": 0}],
    ids=["nan", "object", "keys of two kinds"],
)
def test_metadata_that_is_no_json_is_not_written(small, metadata):
    with pytest.raises(InputError, match="metadata"):
        write_pack(replace(small, metadata=metadata))
