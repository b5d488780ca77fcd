"""The store of a device as a file: its bytes, and no harm whatever happens to it."""

import errno
import os
import random
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.pack import read_pack, write_pack
from twinedge.runtime import store as module
from twinedge.runtime.adapting import Points, most_points
from twinedge.runtime.store import Store

HERE = Path(__file__).parent
WORD = 2**32
EVERY = (0, WORD - 1)  # numbers, for forgetting
FEATURES = 3


# The format, by hand: FORMAT.md, section 11.


def with_sum(content, slot, behind=b"\xff"):
    """A slot: checksum, content, and arbitrary padding."""
    return (struct.pack("<I", zlib.crc32(content)) + content).ljust(slot, behind)


def padded(count):
    return (count + 3) // 4 * 4


def slot_of(features, unit=1):
    return -(-(16 + 2 * padded(features)) // unit) * unit


def head(data, slot, generation, end, behind=b"\xff"):
    whose = (struct.unpack_from("<I", data, 12)[0] + 65536 + slot) % WORD
    return with_sum(struct.pack("<III", generation % WORD, whose, end), slot, behind)


def entry(slot, number, target, score, scale, features, behind=b"\xff"):
    many = [*features, *[0] * (padded(len(features)) - len(features))]
    content = struct.pack(f"<IihH{len(many)}h", number, target, score, scale, *many)
    return with_sum(content, slot, behind)


def entries(slot, points, behind=b"\xff"):
    rows = zip(*(column.tolist() for column in vars(points).values()), strict=True)
    return [
        entry(slot, number, target, score, scale, features, behind)
        for number, features, target, score, scale in rows
    ]


def block(data, slot, size, generation, points, end=None, behind=b"\xff"):
    """A block with two heads and these points."""
    end = 2 + len(points) if end is None else end
    heads = [head(data, slot, generation, end, behind)] * 2
    return b"".join([*heads, *entries(slot, points, behind)]).ljust(size, b"\xff")


# Packs and points.


@pytest.fixture(scope="module")
def pack(random_pack):
    return random_pack(
        np.random.default_rng(0), features=FEATURES, hidden=(2,), counts=[2], scaled=True
    )


@pytest.fixture(scope="module")
def data(pack):
    return write_pack(pack)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "site.store"


def some(count, seed=0, first=0, features=FEATURES):
    """Points as a device could have learnt them."""
    rng = np.random.default_rng([seed, count, first])
    return Points(
        np.arange(first, first + count, dtype=np.uint32),
        rng.integers(-32767, 32768, (count, features)).astype(np.int16),
        rng.integers(-(2**30) + 1, 2**30, count).astype(np.int32),
        rng.integers(-511, 512, count).astype(np.int16),
        rng.integers(0, 65536, count).astype(np.uint16),
    )


def joined(*parts):
    whole, *more = parts
    for one in more:
        whole = whole.joined(one)
    return whole


def in_words(points):
    """Points as a list that can be compared."""
    return [
        (number, *features, target, score, scale)
        for number, features, target, score, scale in zip(
            *(column.tolist() for column in vars(points).values()), strict=True
        )
    ]


def names(folder):
    return sorted(one.name for one in folder.iterdir())


def opened(path, pack, data):
    """A store, or the words that it is refused with."""
    try:
        return Store(path, pack, data)
    except InputError as error:
        return str(error)


def held(path, pack, data):
    return in_words(Store(path, pack, data).points)


# Bytes.


def test_a_new_store_has_the_bytes_of_the_format(path, pack, data):
    slot, size = 24, 24 * (1024 + 64)
    with Store(path, pack, data) as store:
        store.add(some(3))
        right = block(data, slot, size, 1, some(3))
        assert path.read_bytes() == right + b"\xff" * size
        # One point more is one slot more, and nothing else.
        store.add(some(1, first=3))
        right = block(data, slot, size, 1, joined(some(3), some(1, first=3)), end=5)
        assert path.read_bytes() == right + b"\xff" * size
        store.add(some(1, first=4))
        points = joined(some(3), some(1, first=3), some(1, first=4))
        right = block(data, slot, size, 1, points, end=5)
        assert path.read_bytes() == right + b"\xff" * size
    with Store(path, pack, data) as store:
        # The first time after opening, all points are moved first.
        store.add(some(1, first=5))
        more = joined(points, some(1, first=5))
        assert path.read_bytes() == right + block(data, slot, size, 2, more, end=7)
        store.forget(1, 4)
        points = more[np.array([0, 5])]
        assert path.read_bytes()[:size] == block(data, slot, size, 3, points)
        assert path.read_bytes()[size:] == block(data, slot, size, 2, more, end=7)
        store.forget(*EVERY)
        assert path.read_bytes()[size:] == block(data, slot, size, 4, points[:0])


def test_the_first_point_goes_behind_the_heads_of_a_new_store(path, pack, data):
    with Store(path, pack, data) as store:
        store.add(some(1))
    size = 24 * (1024 + 64)
    assert path.read_bytes() == block(data, 24, size, 1, some(1), end=2) + b"\xff" * size


@pytest.mark.parametrize("features", [1, 3, 4, 5, 64])
@pytest.mark.parametrize("twins", [1, 9])
def test_its_size_is_that_of_as_many_points_as_there_may_be(random_pack, path, features, twins):
    pack = random_pack(
        np.random.default_rng(1), features=features, hidden=(1,), counts=[1] * twins, scaled=True
    )
    data, most = write_pack(pack), min(1024, 4096 // twins)
    points = some(2, features=features)
    with Store(path, pack, data) as store:
        store.add(points)
    slot = slot_of(features)
    size = slot * (most + 64)
    assert path.read_bytes() == block(data, slot, size, 1, points) + b"\xff" * size
    assert held(path, pack, data) == in_words(points)


def test_bytes_made_by_hand_are_read(path, pack, data):
    points = some(7, first=40)
    path.write_bytes(block(data, 24, 2400, 9, some(4)) + block(data, 24, 2400, 10, points))
    store = Store(path, pack, data)
    assert in_words(store.points) == in_words(points)
    assert (len(store), store.lost) == (7, 0)
    for name, kind in (
        ("numbers", np.uint32),
        ("features", np.int16),
        ("targets", np.int32),
        ("scores", np.int16),
        ("scales", np.uint16),
    ):
        assert getattr(store.points, name).dtype == kind


@pytest.mark.parametrize("unit", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("size", [1000, 4096])
@pytest.mark.parametrize("features", [1, 6])
def test_a_store_from_flash_is_read_and_goes_on(random_pack, path, unit, size, features):
    pack = random_pack(np.random.default_rng(2), features=features, hidden=(1,), scaled=True)
    data, slot = write_pack(pack), slot_of(features, unit)
    points = some(5, features=features, first=3)
    # What follows an entry means nothing: here it is leftover memory.
    old = block(data, slot, size, WORD - 1, points[:2], behind=b"\x5a")
    path.write_bytes(block(data, slot, size, 0, points, end=4, behind=b"\xa5") + old)
    assert held(path, pack, data) == in_words(points)
    with Store(path, pack, data) as store:
        store.add(some(1, features=features))
        store.add(some(2, features=features, seed=1))
        store.add(some(1, features=features, seed=2))
    more = [some(count, features=features, seed=seed) for seed, count in enumerate((1, 2, 1))]
    expected = replace(joined(points, *more), numbers=np.arange(3, 12, dtype=np.uint32))
    assert held(path, pack, data) == in_words(expected)
    assert len(path.read_bytes()) == 2 * size
    with Store(path, pack, data) as store:
        assert store.forget(0, 9) == 7
        store.add(some(1, features=features, seed=7))
    assert len(held(path, pack, data)) == 3


def test_blocks_keep_their_size_and_slots_those_of_the_storage(path, pack, data):
    slot, size = 32, 700
    path.write_bytes(block(data, slot, size, 6, some(4)) + b"\xff" * size)
    with Store(path, pack, data) as store:
        store.add(some(2, first=4))
    points = joined(some(4), some(2, first=4))
    right = block(data, slot, size, 6, some(4)) + block(data, slot, size, 7, points)
    assert path.read_bytes() == right


def test_heads_are_written_last_and_the_first_one_first(path, pack, data, monkeypatch):
    written, write = [], module._write
    monkeypatch.setattr(
        module, "_write", lambda *what: (written.append((what[1], len(what[2]))), write(*what))
    )
    size = 24 * 20
    path.write_bytes(block(data, 24, size, 3, some(2)) + b"\xff" * size)
    with Store(path, pack, data) as store:
        store.add(some(1))
        store.add(some(1))
        store.forget(0, 0)
    assert written == [
        *((size, size), (size, 24), (size + 24, 24), (size + 24 * 4, 24), (size + 24 * 5, 24)),
        *((0, size), (0, 24), (24, 24)),
    ]


# Which block is valid.


generations = st.integers(0, WORD - 1) | st.sampled_from([0, 1, 2**31, WORD - 1, WORD - 2])


@settings(max_examples=60, deadline=None)
@given(generations, st.integers(-(2**31) + 1, 2**31 - 1))
def test_of_two_blocks_the_later_one_counts(tmp_path_factory, pack, data, first, ahead):
    path = tmp_path_factory.mktemp("later") / "site.store"
    one, other = some(2), some(3, seed=5)
    path.write_bytes(block(data, 24, 480, first, one) + block(data, 24, 480, first + ahead, other))
    assert held(path, pack, data) == in_words(other if ahead > 0 else one)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("missing", [0, 1])
def test_one_whole_head_is_enough(path, pack, data, which, missing):
    blocks = [block(data, 24, 480, 5, some(2)), block(data, 24, 480, 5, some(2))]
    new = bytearray(block(data, 24, 480, 6, some(4, seed=1)))
    for what in (b"\xff" * 24, b"\0" * 24, b"\xff" * 8 + bytes(new[8:24])):
        new[24 * missing : 24 * missing + 24] = what
        blocks[which] = bytes(new)
        path.write_bytes(b"".join(blocks))
        assert held(path, pack, data) == in_words(some(4, seed=1))
        assert Store(path, pack, data).lost == 0


@pytest.mark.parametrize("which", [0, 1])
def test_a_block_without_a_second_head_counts_only_if_what_was_moved_is_whole(
    path, pack, data, which
):
    points, before = some(5, seed=1), some(2)
    blocks = [block(data, 24, 480, 5, before)] * 2
    for broken in range(2, 8):
        for damage in (b"\xff" * 24, b"\0" * 24):
            new = bytearray(block(data, 24, 480, 6, points, end=5))
            new[24:48] = b"\xff" * 24
            new[24 * broken : 24 * broken + 24] = damage
            blocks[which] = bytes(new)
            path.write_bytes(b"".join(blocks))
            store = Store(path, pack, data)
            if broken < 5:
                assert in_words(store.points) == in_words(before)
                assert store.lost == 0
            else:
                left = [one for k, one in enumerate(in_words(points)) if k + 2 != broken]
                assert in_words(store.points) == left
                assert store.lost == (damage[0] == 0)
            # With a second head each entry stands alone.
            new[24:48] = head(data, 24, 6, 5)
            blocks[which] = bytes(new)
            path.write_bytes(b"".join(blocks))
            left = [one for k, one in enumerate(in_words(points)) if k + 2 != broken]
            assert held(path, pack, data) == left


def test_a_store_of_which_no_block_counts_is_empty(path, pack, data):
    only = bytearray(block(data, 24, 480, 1, some(3)))
    only[24:48] = b"\xff" * 24
    only[72:96] = bytes(24)
    path.write_bytes(bytes(only) + b"\xff" * 480)
    with Store(path, pack, data) as store:
        assert len(store) == 0
        store.add(some(2, seed=3))
    assert held(path, pack, data) == in_words(some(2, seed=3))


def test_a_second_head_that_is_missing_is_not_missed(path, pack, data):
    new = bytearray(block(data, 24, 480, 6, some(3)))
    new[24:48] = b"\xff" * 24
    path.write_bytes(bytes(new) + block(data, 24, 480, 5, some(1, seed=8)))
    with Store(path, pack, data) as store:
        store.forget(1, 1)
    left = some(3)[np.array([0, 2])]
    assert path.read_bytes() == bytes(new) + block(data, 24, 480, 7, left)


# A point list in a file.


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 3)),
        st.tuples(st.just("forget"), st.integers(0, 25), st.integers(0, 25)),
        st.tuples(st.just("close")),
        st.tuples(st.just("reopen")),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps, st.sampled_from([None, 24 * 12, 24 * 9 + 5, 32 * 30]))
def test_it_is_a_list_that_survives(tmp_path_factory, pack, data, steps, size):
    path = tmp_path_factory.mktemp("lists") / "site.store"
    most = 1024
    if size is not None:
        slot = 32 if size % 32 == 0 else 24
        path.write_bytes(block(data, slot, size, 3, some(0)) + b"\xff" * size)
        most = size // slot - 3
    model, seed = [], 0
    store = Store(path, pack, data)
    for name, *numbers in steps:
        if name == "add":
            seed += 1
            points = some(numbers[0], seed=seed)
            if len(model) + len(points) > most:
                with pytest.raises(InputError, match="has room for"):
                    store.add(points)
            else:
                store.add(points)
                first = model[-1][0] + 1 if model else 0
                model += [(first + k, *one[1:]) for k, one in enumerate(in_words(points))]
        elif name == "forget":
            left = [one for one in model if not numbers[0] <= one[0] <= numbers[1]]
            assert store.forget(*numbers) == len(model) - len(left)
            model = left
        elif name == "close":
            store.close()
        else:
            store.close()
            store = Store(path, pack, data)
        assert in_words(store.points) == model
        assert held(path, pack, data) == model
    store.close()


def test_a_full_store_refuses_more_and_keeps_what_it_has(path, pack, data, complaint):
    size = 24 * 8
    path.write_bytes(block(data, 24, size, 1, some(3)) + b"\xff" * size)
    with Store(path, pack, data) as store:
        assert "room for 5 points and holds 3" in complaint(store.add, some(3, seed=1))
        store.add(some(2, seed=1))
        before = path.read_bytes()
        assert "forget some before learning 1 more" in complaint(store.add, some(1))
        assert path.read_bytes() == before
        assert store.forget(0, 0) == 1
        store.add(some(1, seed=2))
        assert store.points.numbers.tolist() == [1, 2, 3, 4, 5]


def test_as_many_points_fit_as_there_may_be(path, pack, data, complaint):
    most = most_points(pack)
    with Store(path, pack, data) as store:
        store.add(some(most - 1))
        store.add(some(1, seed=1))
        complaint(store.add, some(1))
        assert store.forget(0, most - 2) == most - 1
        store.add(some(most - 1, seed=2))
        assert len(store) == most
    assert Store(path, pack, data).points.numbers.tolist() == list(range(most - 1, 2 * most - 1))


def test_many_single_points_go_round_the_blocks(path, pack, data):
    size = 24 * 10
    path.write_bytes(block(data, 24, size, 1, some(0)) + b"\xff" * size)
    with Store(path, pack, data) as store:
        for number in range(60):
            if len(store) == 7:
                store.forget(0, int(store.points.numbers[4]))
            store.add(some(1, seed=number))
            assert held(path, pack, data) == in_words(store.points)
        assert store.points.numbers[-1] == 59


def test_numbers_wrap_around(path, pack, data):
    points = replace(some(2), numbers=np.array([WORD - 2, WORD - 1], np.uint32))
    path.write_bytes(block(data, 24, 480, 1, points) + b"\xff" * 480)
    with Store(path, pack, data) as store:
        store.add(some(2, seed=1))
        assert store.points.numbers.tolist() == [WORD - 2, WORD - 1, 0, 1]


def test_adding_nothing_and_forgetting_nothing_writes_nothing(path, pack, data):
    with Store(path, pack, data) as store:
        store.add(some(0))
        assert not path.exists()
        store.add(some(3))
        before = path.read_bytes()
        store.add(some(0))
        assert store.forget(7, 9) == 0
        assert store.forget(2, 1) == 0
        assert path.read_bytes() == before


# Files that are something else.


FOREIGN = {
    "a table": b"angle,offset,idle,level\n" + b"0.5,6,-20,51\n" * 40,
    "a line": b"x\n",
    "one byte": b"\0",
    "zeros": bytes(4096),
    "rubbish": random.Random(0).randbytes(5000),
    "mostly erased": b"\xff" * 999 + b"\0" + b"\xff" * 3000,
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(300),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_store_is_refused_and_left_as_it_is(path, pack, data, complaint, name):
    path.write_bytes(FOREIGN[name])
    before = path.stat()
    assert complaint(Store, path, pack, data) == f"{path} is not a store of twinedge"
    assert path.read_bytes() == FOREIGN[name]
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert names(path.parent) == [path.name]


def test_the_pack_itself_is_no_store(path, pack, data, complaint):
    path.write_bytes(data)
    assert "not a store" in complaint(Store, path, pack, data)
    assert path.read_bytes() == data


@pytest.mark.parametrize("change", ["add", "forget", "lock"])
def test_what_took_the_place_of_a_store_is_never_overwritten(path, pack, data, complaint, change):
    store = Store(path, pack, data)
    table = FOREIGN["a table"]
    path.write_bytes(table)
    calls = {
        "add": lambda: store.add(some(1)),
        "forget": lambda: store.forget(*EVERY),
        "lock": store.lock,
    }
    for _ in range(3):
        assert "not a store" in complaint(calls[change])
        assert path.read_bytes() == table
    # It is not kept locked either, and once it is gone, work continues.
    path.unlink()
    store.add(some(1))
    assert held(path, pack, data) == in_words(some(1))


def test_a_store_that_vanishes_is_begun_anew_by_who_opens_it(path, pack, data):
    with Store(path, pack, data) as store:
        store.add(some(3))
    waiting = Store(path, pack, data)
    path.unlink()
    waiting.add(some(2, seed=4))
    assert held(path, pack, data) == in_words(some(2, seed=4))


@pytest.mark.parametrize("other", ["weights", "metadata", "version", "slots"])
def test_points_of_another_pack_are_refused_and_left_as_they_are(
    path, pack, data, complaint, other
):
    theirs, slot = data, 24
    if other == "weights":
        theirs = write_pack(replace(pack, targets=pack.targets // 2))
    if other == "metadata":
        theirs = write_pack(replace(pack, metadata={"rmse": 1}))
    content = block(theirs, slot, 480, 1, some(2)) + b"\xff" * 480
    if other in ("version", "slots"):
        whose = struct.unpack_from("<I", content, 8)[0] + (65536 if other == "version" else 3)
        heads = with_sum(struct.pack("<III", 1, whose % WORD, 4), 24) * 2
        content = heads + content[48:]
    path.write_bytes(content)
    assert "another pack; name another file" in complaint(Store, path, pack, data)
    assert path.read_bytes() == content


def test_a_pack_without_intervals_has_no_store(path, random_pack, complaint):
    bare = random_pack(np.random.default_rng(0), features=3, scaled=False)
    assert "no intervals" in complaint(Store, path, bare, write_pack(bare))


@pytest.mark.parametrize("size", [0, 1, 7, 24, 4096, 10_000])
def test_an_empty_or_erased_file_is_an_empty_store(path, pack, data, size):
    path.write_bytes(b"\xff" * size)
    with Store(path, pack, data) as store:
        assert (len(store), store.lost) == (0, 0)
        assert store.forget(*EVERY) == 0
        store.add(some(2))
    assert held(path, pack, data) == in_words(some(2))
    assert names(path.parent) == [path.name]


def test_a_link_stays_a_link(path, pack, data):
    real = path.parent / "elsewhere"
    real.mkdir()
    path.symlink_to(real / "points")
    for number in range(3):
        with Store(path, pack, data) as store:
            store.add(some(1, seed=number))
    assert path.is_symlink()
    assert names(real) == ["points"]
    assert len(held(real / "points", pack, data)) == 3


# Damage.


@pytest.fixture(scope="module")
def two_blocks(data):
    """A store with points in both blocks, the second of which is in use, and what it holds."""
    points = some(6, seed=2, first=4)
    content = block(data, 24, 300, 7, some(5)) + block(data, 24, 300, 8, points, end=6)
    return content, points


def flips(count):
    """All bits of the block in use, and some of the other."""
    return [*range(8 * 300, 8 * 600), *random.Random(0).sample(range(8 * 300), count)]


def test_a_bit_that_flips_costs_one_point_at_most(path, pack, data, two_blocks):
    content, points = two_blocks
    whole = in_words(points)
    for bit in flips(300):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        store = Store(path, pack, data)
        place, byte = divmod(bit // 8 - 300, 24)
        if bit >= 8 * 300 and 2 <= place < 8:
            left = [one for number, one in enumerate(whole) if number + 2 != place]
            assert in_words(store.points) == left
            assert store.lost == 1
        else:
            assert in_words(store.points) == whole
            # A write to an erased slot cannot be told from existing content.
            assert store.lost == (bit >= 8 * 300 and 8 <= place < 12 and byte < 4)


def test_after_damage_it_goes_on(path, pack, data, two_blocks):
    content, points = two_blocks
    for bit in random.Random(1).sample(range(8 * 300, 8 * 600), 60):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        with Store(path, pack, data) as store:
            left = in_words(store.points)
            if bit % 2:
                store.add(some(1))
                left.append((int(left[-1][0]) + 1, *in_words(some(1))[0][1:]))
            else:
                store.forget(77, 77)  # which clears away what was lost
            assert store.lost == 0
            assert in_words(store.points) == left
        again = Store(path, pack, data)
        assert in_words(again.points) == left
        assert again.lost == 0
    assert len(points) == 6


def test_a_whole_entry_that_no_device_could_evaluate_is_passed_over(path, pack, data):
    good = in_words(some(1))
    for features, target in (([1, -32768, 2], 5), ([1, 2, 3], 2**30), ([1, 2, 3], -(2**30))):
        content = block(data, 24, 480, 1, some(1), end=4)
        wrong = entry(24, 1, target, 3, 4, features)
        path.write_bytes(content[:72] + wrong + content[96:] + b"\xff" * 480)
        store = Store(path, pack, data)
        assert in_words(store.points) == good
        assert store.lost == 1


def test_cut_at_any_byte_it_is_refused_or_has_points_that_were_there(path, pack, data, two_blocks):
    content, points = two_blocks
    were = [in_words(some(5)), in_words(points)]
    refused = 0
    for length in range(len(content)):
        path.write_bytes(content[:length])
        store = opened(path, pack, data)
        if isinstance(store, str):
            assert len(store.splitlines()) == 1
            refused += 1
        else:
            found = in_words(store.points)
            assert any(found == one[: len(found)] for one in were)
            # As long as the later block has a head, older points are never returned.
            assert length < 300 + 24 + 16
        assert path.read_bytes() == content[:length]
    assert refused > 400


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 600), st.booleans())
def test_whatever_is_written_over_it_there_is_one_line_or_whole_points(
    tmp_path_factory, pack, data, two_blocks, rubbish, place, longer
):
    path = tmp_path_factory.mktemp("rubbish") / "site.store"
    content, points = two_blocks
    if longer:
        content = content[:place] + rubbish + content[place:]
    else:
        content = (content[:place] + rubbish + content[place + len(rubbish) :])[:600]
    path.write_bytes(content)
    were = {one[1:] for one in (*in_words(some(5)), *in_words(points))}
    store = opened(path, pack, data)
    if isinstance(store, str):
        assert len(store.splitlines()) == 1
        return
    assert {one[1:] for one in in_words(store.points)} <= were


# Interrupted programs.


def test_a_power_cut_leaves_the_points_of_before_or_those_of_after(
    path, pack, data, monkeypatch, tmp_path
):
    rng = random.Random(3)
    # All that the storage may hold when the power is cut during a write or after it.
    states, write = [], module._write

    def recorded(file, at, content):
        there = path.exists() and os.path.samestat(os.fstat(file), path.stat())
        before = path.read_bytes() if path.exists() else b""
        states.append(before)
        if there:
            cuts = {1, 11, 12, 15, 16, 24, 25, 48, len(content) - 1}
            cuts |= {rng.randrange(len(content) + 1) for _ in range(12)}
            parts = [content[:cut] for cut in cuts]
            states.extend(before[:at] + part + before[at + len(part) :] for part in parts)
            for unit in (4, 16, 512):  # parts of a write arrive in any order
                new = bytearray(before)
                for start in range(0, len(content), unit):
                    if rng.random() < 0.5:
                        part = content[start : start + unit]
                        new[at + start : at + start + len(part)] = part
                states.append(bytes(new))
        write(file, at, content)
        states.append(path.read_bytes() if path.exists() else b"")

    monkeypatch.setattr(module, "_write", recorded)
    beside = tmp_path / "cut" / "site.store"
    beside.parent.mkdir()
    store, seen = Store(path, pack, data), 0
    for number in range(40):
        before = in_words(store.points)
        if number % 9 == 8:
            store.close()
            store = Store(path, pack, data)
        if number % 4 == 3:
            store.forget(*sorted(rng.randrange(40) for _ in range(2)))
        else:
            store.add(some(rng.choice([1, 1, 2]), seed=number))
        after = in_words(store.points)
        for state in states:
            beside.write_bytes(state)
            found = held(beside, pack, data)
            assert found in (before, after)
        if states:
            # Whatever it is, the next change succeeds.
            beside.write_bytes(rng.choice(states))
            with Store(beside, pack, data) as other:
                there = in_words(other.points)
                other.add(some(1, seed=99))
                assert in_words(other.points)[:-1] == there
            assert held(beside, pack, data)[:-1] == there
        seen += len(states)
        states.clear()
    store.close()
    assert seen > 1000


@pytest.mark.parametrize("times", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_killed_many_times_it_has_all_that_was_confirmed(tmp_path, data, times):
    pack_path = tmp_path / "model.twin"
    pack_path.write_bytes(data)
    folder = tmp_path / "stores"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, HERE / "kill_store.py", folder, pack_path, str(times), "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    confirmed, under_way, _ = map(int, done.stdout.split())
    assert confirmed > 1.5 * times  # the children did something,
    assert under_way > times / 200  # and some were killed in the middle of it


def no_room(*wanted):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["write", "half", "fsync"])
def test_a_full_disk_changes_nothing(path, pack, data, complaint, monkeypatch, call):
    write = os.write

    def half(file, content):
        write(file, content[: len(content) // 2])
        no_room()

    instead = half if call == "half" else no_room
    name = "fsync" if call == "fsync" else "write"
    with Store(path, pack, data) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, name, instead)
            message = complaint(store.add, some(2))
        assert message == f"cannot write {path}: No space left on device"
        assert len(store) == 0
        assert names(path.parent) in ([], [path.name])
        assert not path.exists() or path.read_bytes() == b""
        store.add(some(3))
        before = in_words(store.points)
        calls = (
            lambda: store.add(some(2, seed=1)),
            lambda: store.add(some(1, seed=1)),
            lambda: store.forget(0, 1),
        )
        for change in calls:
            with monkeypatch.context() as patch:
                patch.setattr(os, name, instead)
                assert "No space left" in complaint(change)
            assert in_words(store.points) == before
            if call != "fsync":  # what was written is there despite the error
                assert held(path, pack, data) == before
            # Work continues when there is room again.
            store.add(some(1, seed=5))
            before.append((before[-1][0] + 1, *in_words(some(1, seed=5))[0][1:]))
            assert held(path, pack, data) == before


def test_a_file_that_may_not_be_written_is_named(path, pack, data, complaint, monkeypatch):
    with Store(path, pack, data) as store:
        store.add(some(2))
    before, opened = path.read_bytes(), os.open

    def read_only(name, flags, *mode):
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(name, flags, *mode)

    monkeypatch.setattr(os, "open", read_only)
    store = Store(path, pack, data)
    assert in_words(store.points) == in_words(some(2))
    for change in (lambda: store.add(some(1)), lambda: store.forget(*EVERY)):
        assert complaint(change) == f"cannot write {path}: Permission denied"
    assert in_words(store.points) == in_words(some(2))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("where", "opening", "writing"),
    [
        ("nowhere/site.store", None, "No such file or directory"),
        ("file/site.store", "Not a directory", None),
        ("folder", "is not a file", None),
        ("pipe", "is not a file", None),
        ("x" * 300, "File name too long", None),
    ],
)
def test_a_place_where_no_file_can_be_is_named(
    tmp_path, pack, data, complaint, where, opening, writing
):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    path, before = tmp_path / where, names(tmp_path)
    if opening is None:
        store = Store(path, pack, data)
        assert writing in complaint(store.add, some(1))
        assert len(store) == 0
    else:
        assert opening in complaint(Store, path, pack, data)
    assert names(tmp_path) == before


def test_a_storage_without_locks_is_named(path, pack, data, complaint, monkeypatch):
    def no_locks(*wanted):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(module.fcntl, "flock", no_locks)
        assert "No locks available" in complaint(Store(path, pack, data).add, some(1))
    Store(path, pack, data).add(some(1))


# Two programs.


HOLDER = """
import sys
from pathlib import Path
from twinedge.pack import read_pack
from twinedge.runtime.store import Store
data = Path(sys.argv[2]).read_bytes()
store = Store(sys.argv[1], read_pack(data), data)
store.lock()
for line in sys.stdin:
    if line == "forget\\n":
        store.forget(0, 0)
    else:
        store.close()
    print(len(store), flush=True)
"""


def test_a_second_program_is_refused_until_the_first_has_closed(path, pack, data, complaint):
    pack_path = path.with_name("model.twin")
    pack_path.write_bytes(data)
    with Store(path, pack, data) as store:
        store.add(some(3))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path, pack_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:

        def ask(what):
            other.stdin.write(f"{what}\n")
            other.stdin.flush()
            return int(other.stdout.readline())

        assert ask("forget") == 2
        before = path.read_bytes()
        mine = Store(path, pack, data)  # reading alone needs no lock
        assert len(mine) == 2
        for change in (lambda: mine.add(some(1)), lambda: mine.forget(*EVERY)):
            assert complaint(change) == f"{path} is in use by another program"
        assert path.read_bytes() == before
        assert len(Store(path, pack, data)) == len(mine) == 2
        assert ask("close") == 2
        mine.add(some(1))
        assert len(mine) == 3
        other.stdin.close()
    mine.close()


def test_who_waits_sees_what_the_other_wrote_before_it_writes(path, pack, data):
    first, second = Store(path, pack, data), Store(path, pack, data)
    first.add(some(2))
    first.close()
    assert len(second) == 0
    second.add(some(1, seed=3))
    assert second.points.numbers.tolist() == [0, 1, 2]
    second.close()
    assert first.forget(0, 1) == 2
    assert first.points.numbers.tolist() == [2]


def test_a_new_store_is_locked_from_its_first_moment_on(path, pack, data, complaint):
    first = Store(path, pack, data)
    first.add(some(1))
    second = Store(path, pack, data)
    assert len(second) == 1
    assert "in use" in complaint(second.add, some(1))
    first.add(some(1, seed=1))
    first.close()
    second.add(some(1))
    assert len(second) == 3


def test_a_store_that_is_made_while_it_is_opened_is_seen(path, pack, data, monkeypatch):
    late, claim = Store(path, pack, data), module._claim
    early, seen = [], []

    def meanwhile(file):
        if not seen:
            seen.append(file)
            monkeypatch.setattr(module, "_claim", claim)
            early.append(Store(path, pack, data))
            early[0].add(some(2))  # which puts a new file in the place of the one just opened
            early[0].close()
        claim(file)

    monkeypatch.setattr(module, "_claim", meanwhile)
    late.add(some(1))
    assert seen
    assert len(late) == 3
    late.close()
    assert len(held(path, pack, data)) == 3


def test_a_store_that_nobody_has_any_more_is_free(path, pack, data):
    store = Store(path, pack, data)
    store.add(some(1))
    del store
    with Store(path, pack, data) as again:
        again.add(some(1))
    again.close()
    again.add(some(1))  # which opens it again
    assert len(again) == 3


def test_the_whole_pack_or_its_header_name_the_same_store(path, pack, data):
    with Store(path, pack, data[:48]) as store:
        store.add(some(2))
    assert held(path, read_pack(data), data) == in_words(some(2))
