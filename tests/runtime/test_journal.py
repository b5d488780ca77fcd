"""A journal as bytes and as a file: section 11 of FORMAT.md, and no harm whatever happens to it."""

import errno
import os
import random
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.runtime import journal_file as module
from twinedge.runtime.journal import read_journal
from twinedge.runtime.journal_file import Journal

HERE = Path(__file__).parent
WORD = 2**32
OWNER, STAMP, SIZE = 0xC0FFEE, 77, 24
SLOT = 8 + SIZE


# The format, by hand.


def checked(content, before=b""):
    return struct.pack("<I", zlib.crc32(before + content)) + content


def head(generation, count, *, slot=SLOT, end=None, following=None, owner=OWNER, stamp=STAMP):
    end, following = end or 3 + count, count if following is None else following
    fields = generation % WORD, owner, stamp, slot, SIZE, following, end, count
    return checked(struct.pack("<IIIHHIHH", *fields))


def entry(generation, number, record):
    return checked(struct.pack("<I", number) + record, struct.pack("<I", generation % WORD))


def record(seed):
    return random.Random(str(seed)).randbytes(SIZE)


def some(count, seed=0, first=0):
    """Numbers and records: ``{number: bytes}``."""
    return {first + k: record((seed, first + k)) for k in range(count)}


def block(generation, held, *, size, slot=SLOT, moved=None, behind=b"\xff", erased=b"\xff", **more):
    """A block with two heads and these records, of which the first ``moved`` were there before."""
    moved = len(held) if moved is None else moved
    more = {"following": max([*list(held)[:moved], -1]) + 1, **more}
    copy = head(generation, moved, slot=slot, **more).ljust(slot, behind)
    entries = [entry(generation, *one).ljust(slot, behind) for one in held.items()]
    return b"".join([copy, copy, erased * slot, *entries]).ljust(size, erased)


def changed(content, slot, new, size=SLOT):
    """A block with another slot."""
    new = new.ljust(size, b"\xff")
    return content[: slot * size] + new + content[slot * size + len(new) :]


# Journals.


@pytest.fixture
def path(tmp_path):
    return tmp_path / "site.store"


def array(held):
    return np.array([list(one) for one in held.values()], np.uint8).reshape(-1, SIZE)


def in_words(content):
    return dict(zip(content.numbers.tolist(), map(bytes, content.records), strict=True))


def read(*parts):
    found = read_journal(b"".join(parts))
    assert found is not None
    return in_words(found)


def held(path):
    return in_words(Journal(path).content)


def opened(path, room=40):
    journal = Journal(path)
    if not journal.content.head.generation:
        journal.lay_out(OWNER, SIZE, room, STAMP)
    return journal


def forget(journal, *numbers):
    journal.lock()
    journal.keep(~np.isin(journal.content.numbers, numbers))


def names(folder):
    return sorted(one.name for one in folder.iterdir())


# Bytes.


def test_a_new_journal_has_the_bytes_of_the_format(path):
    size, erased = SLOT * 43, b"\xff" * SLOT * 43
    with opened(path) as journal:
        assert journal.add(array(some(3))).tolist() == [0, 1, 2]
        assert path.read_bytes() == block(1, some(3), size=size) + erased
        # One record more is one slot more, and nothing else.
        assert journal.add(array(some(1, first=3))).tolist() == [3]
        assert path.read_bytes() == block(1, some(4), size=size, moved=3) + erased
        journal.add(array(some(1, first=4)))
        first = block(1, some(5), size=size, moved=3)
        assert path.read_bytes() == first + erased
    with opened(path) as journal:
        # The first time after opening, all records are moved first.
        journal.add(array(some(1, first=5)))
        second = block(2, some(6), size=size, moved=5)
        assert path.read_bytes() == first + second
        forget(journal, 1, 2, 3, 5)
        left = {number: one for number, one in some(6).items() if number in (0, 4)}
        first = block(3, left, size=size, following=6)
        assert path.read_bytes() == first + second
        forget(journal, *range(9))
        assert path.read_bytes() == first + block(4, {}, size=size, following=6)
    # Numbers are never used again.
    with opened(path) as journal:
        assert journal.add(array(some(1, first=6))).tolist() == [6]
        assert path.read_bytes()[:size] == block(
            5, some(1, first=6), size=size, moved=0, following=6
        )


def test_the_first_record_goes_after_the_heads_of_a_new_journal(path):
    with opened(path) as journal:
        journal.add(array(some(1)))
    size = SLOT * 43
    assert path.read_bytes() == block(1, some(1), size=size, moved=0) + b"\xff" * size


@pytest.mark.parametrize("program", [1, 2, 4, 8, 16, 32, 64, 128, 256])
@pytest.mark.parametrize("erased", [b"\xff", b"\0", b"\xa5"])
def test_a_dump_of_flash_is_read_and_goes_on(path, program, erased):
    slot = -(-SLOT // program) * program
    size = -(-12 * slot // 256) * 256
    points = some(5, first=3)
    # What follows a record means nothing: here it is leftover memory.
    old = block(WORD - 1, some(2), size=size, slot=slot, behind=b"\x5a", erased=erased)
    new = block(1, points, size=size, slot=slot, moved=4, behind=b"\x33", erased=erased)
    path.write_bytes(new + old)
    found = Journal(path).content
    assert in_words(found) == points
    assert (found.head.owner, found.head.stamp, found.damaged) == (OWNER, STAMP, 0)
    assert found.numbers.dtype == np.uint32
    with Journal(path) as journal:
        journal.add(array(some(1, first=8)))
        journal.add(array(some(2, first=9)))
    assert held(path) == some(8, first=3)
    assert len(path.read_bytes()) == 2 * size
    with Journal(path) as journal:
        forget(journal, *range(9))
        journal.add(array(some(1, first=11)))
    assert held(path) == some(3, first=9)


@pytest.mark.parametrize("size", [20, 24, 28, 4112])
def test_records_of_any_size_are_kept(path, size):
    records = np.random.default_rng(size).integers(0, 256, (9, size)).astype(np.uint8)
    with Journal(path) as journal:
        journal.lay_out(5, size, 10)
        journal.add(records[:4])
        for one in records[4:]:
            journal.add(one[None])
    found = Journal(path).content
    np.testing.assert_array_equal(found.records, records)
    assert (found.head.size, found.head.slot, found.room) == (size, size + 8, 10)


@pytest.mark.parametrize("fill", [b"", b"\xff", b"\0", b"\x17"])
def test_a_journal_that_was_never_written_is_empty(path, fill):
    path.write_bytes(fill * 4096)
    with opened(path) as journal:
        assert (len(journal), journal.content.head.generation) == (0, 0)
        journal.add(array(some(2)))
    assert held(path) == some(2)


def test_updated_records_are_written_with_the_next_change(path):
    with opened(path) as journal:
        journal.add(array(some(3)))
        before = path.read_bytes()
        journal.update(array(some(3, seed=5)), 1234)
        assert path.read_bytes() == before
        journal.add(array(some(1, first=3)))
    assert held(path) == {**some(3, seed=5), **some(1, first=3)}
    assert Journal(path).content.head.stamp == 1234
    size = len(before) // 2
    new = block(2, held(path), size=size, moved=3, stamp=1234)
    assert path.read_bytes() == before[:size] + new


# Which block is in use.


generations = st.integers(1, WORD - 1) | st.sampled_from([1, 2**31, WORD - 1, WORD - 2])


@settings(max_examples=60, deadline=None)
@given(generations, st.integers(-(2**31) + 1, 2**31 - 1))
def test_of_two_blocks_the_later_one_counts(first, ahead):
    if (first + ahead) % WORD:  # which is no generation
        one = block(first, some(2), size=480)
        other = block(first + ahead, some(3, seed=5), size=480)
        assert read(one, other) == (some(3, seed=5) if ahead > 0 else some(2))


def test_generations_go_on_after_the_last(path):
    size = SLOT * 9
    path.write_bytes(block(WORD - 1, some(2), size=size) + b"\xff" * size)
    with Journal(path) as journal:
        journal.add(array(some(1, first=2)))
        assert journal.content.head.generation == 1
    assert held(path) == some(3)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_any_of_the_heads_will_do(which, places):
    size = SLOT * 12
    new = block(6, some(4, seed=1), size=size)
    whole = new[:SLOT]
    for broken in (b"\xff" * SLOT, bytes(SLOT), b"\xff" * 9 + whole[9:]):
        for place in range(3):
            new = changed(new, place, whole if place in places else broken)
        blocks = [block(5, some(2), size=size)] * 2
        blocks[which] = new
        found = read_journal(b"".join(blocks))
        assert in_words(found) == some(4, seed=1)
        assert found.damaged == 0
        assert found.copies == places


@pytest.mark.parametrize("which", [0, 1])
def test_a_block_with_one_head_counts_only_if_what_was_moved_is_there(which):
    size, points, before = SLOT * 20, some(5, seed=1), some(2)
    for slot in range(3, 9):
        for damage in (b"\xff" * SLOT, bytes(SLOT)):
            new = changed(block(6, points, size=size, moved=3), 1, b"\xff" * SLOT)
            new = changed(new, slot, damage)
            blocks = [block(5, before, size=size)] * 2
            blocks[which] = new
            left = {number: one for number, one in points.items() if number + 3 != slot}
            found = read_journal(b"".join(blocks))
            assert in_words(found) == (before if slot < 6 else left)
            if slot >= 6:
                # Erased at the end is not damaged, unless a whole record follows.
                assert found.damaged == (damage[0] == 0 or slot == 6)
            # With a second head each record stands alone.
            blocks[which] = changed(new, 2, head(6, 3))
            assert read(*blocks) == left
            # And if there is nothing else, the records that are left are better than none.
            blocks[which], blocks[1 - which] = new, b"\xff" * size
            assert read(*blocks) == left


def test_slots_that_were_passed_over_do_not_count():
    size = SLOT * 12
    # One slot did not take its record, and another one took it in spite of a reported failure.
    slots = [b"\0" * SLOT, *(entry(6, *one) for one in some(3).items()), entry(6, 2, record("x"))]
    new = head(6, 3, end=8) + b"\xff" * (3 * SLOT - 28) + b"".join(slots)
    new = new.ljust(size, b"\xff")
    found = read_journal(new + block(5, some(1, seed=3), size=size))
    assert in_words(found) == some(3)
    assert found.damaged == 2


def test_numbers_ascend():
    size = SLOT * 12
    numbers = [4, 3, 4, 9, 9, 5, 10, WORD - 1]
    slots = b"".join(entry(6, one, record(one)) for one in numbers)
    new = changed(block(6, {}, size=size), 3, slots)
    found = read_journal(new + b"\xff" * size)
    assert in_words(found) == {one: record(one) for one in (4, 9, 10)}
    assert found.following == 11


def test_records_of_an_earlier_generation_do_not_count():
    size = SLOT * 12
    old = block(4, some(6), size=size)
    new = block(6, some(2, seed=1), size=size)
    content = new[: 5 * SLOT] + old[5 * SLOT :]
    found = read_journal(content + block(5, {}, size=size))
    assert in_words(found) == some(2, seed=1)
    assert found.damaged == 4


@pytest.mark.parametrize("erased", [b"\xff", b"\0"])
def test_damage_at_the_end_is_seen_where_storage_erases_to_one_value(erased):
    size = SLOT * 12
    content = block(6, some(3), size=size, erased=erased)
    for slot in (6, 9, 10):
        broken = changed(content, slot, record(1) + bytes(8))
        assert read_journal(broken + erased * size).damaged == 1
    # Elsewhere it cannot be told from nothing.
    noise = random.Random(0).randbytes(size)
    content = content[: 6 * SLOT] + noise[6 * SLOT :]
    found = read_journal(content + noise)
    assert in_words(found) == some(3)
    assert found.damaged == 0


def test_a_block_that_was_cut_is_written_again_before_the_other_is_touched(path, monkeypatch):
    written, write = [], module._write
    monkeypatch.setattr(
        module, "_write", lambda file, at, data: (written.append((at, data)), write(file, at, data))
    )
    size = SLOT * 20
    old = block(5, some(1, seed=8), size=size)
    for place, second in ((0, 1), (1, 0), (2, 0)):
        written.clear()
        whole = block(6, some(4), size=size, moved=3)
        new = changed(changed(whole, 0, b"\xff" * SLOT), 1, b"\xff" * SLOT)
        new = changed(new, place, whole[:SLOT])
        path.write_bytes(old + new)
        with Journal(path) as journal:
            forget(journal, 1)
        base = size
        assert written[:3] == [
            (base + 3 * SLOT, new[3 * SLOT : 6 * SLOT]),
            (base + place * SLOT, whole[:SLOT]),
            (base + second * SLOT, whole[:SLOT]),
        ]
        left = {number: one for number, one in some(4).items() if number != 1}
        assert path.read_bytes()[:size] == block(7, left, size=size)
        assert read_journal(path.read_bytes()[size:] + b"\xff" * size).head.generation == 6


def test_heads_are_written_last_and_the_first_one_first(path, monkeypatch):
    written, write = [], module._write
    monkeypatch.setattr(
        module, "_write", lambda *what: (written.append((what[1], len(what[2]))), write(*what))
    )
    size = SLOT * 20
    path.write_bytes(block(3, some(2), size=size) + b"\xff" * size)
    with Journal(path) as journal:
        journal.add(array(some(1)))
        journal.add(array(some(1)))
        forget(journal, 0)
    at = [(size, size), *((size + one * SLOT, SLOT) for one in (0, 1, 5, 6))]
    assert written == [*at, (0, size), (0, SLOT), (SLOT, SLOT)]


# A list in a file.


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 3)),
        st.tuples(st.just("forget"), st.integers(0, 25), st.integers(0, 25)),
        st.tuples(st.just("close")),
        st.tuples(st.just("reopen")),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(steps, st.sampled_from([None, (SLOT, SLOT * 12), (SLOT, SLOT * 9 + 5), (64, 64 * 20)]))
def test_it_is_a_list_that_survives(tmp_path_factory, steps, shape):
    path = tmp_path_factory.mktemp("lists") / "site.store"
    most = 40
    if shape is not None:
        slot, size = shape
        path.write_bytes(block(3, {}, slot=slot, size=size) + b"\xff" * size)
        most = size // slot - 3
    model, following = {}, 0
    journal = opened(path)
    for name, *numbers in steps:
        if name == "add":
            more = some(numbers[0], first=following)
            if len(model) + len(more) > most:
                with pytest.raises(InputError, match="has room for"):
                    journal.add(array(more))
            else:
                assert journal.add(array(more)).tolist() == list(more)
                model, following = {**model, **more}, following + len(more)
        elif name == "forget":
            gone = range(numbers[0], numbers[1] + 1)
            forget(journal, *gone)
            model = {number: one for number, one in model.items() if number not in gone}
        else:
            journal.close()
            journal = opened(path) if name == "reopen" else journal
        assert in_words(journal.content) == model
        assert held(path) == model
    journal.close()


def test_a_full_journal_refuses_more_and_keeps_what_it_has(path, complaint):
    size = SLOT * 8
    path.write_bytes(block(1, some(3), size=size) + b"\xff" * size)
    with Journal(path) as journal:
        assert "room for 5 points and holds 3" in complaint(journal.add, array(some(3)))
        journal.add(array(some(2, first=3)))
        before = path.read_bytes()
        assert "forget some before learning 1 more" in complaint(journal.add, array(some(1)))
        assert path.read_bytes() == before
        forget(journal, 0)
        journal.add(array(some(1, first=5)))
    assert held(path) == some(5, first=1)


def test_many_single_records_go_round_the_blocks(path):
    size = SLOT * 10
    path.write_bytes(block(1, {}, size=size) + b"\xff" * size)
    with Journal(path) as journal:
        for number in range(60):
            if len(journal) == 7:
                forget(journal, *journal.content.numbers[:5])
            journal.add(array(some(1, first=number)))
            assert held(path) == in_words(journal.content)
    assert max(held(path)) == 59
    assert Journal(path).content.head.generation > 10


def test_numbers_may_run_out_but_are_not_used_again(path, complaint):
    size = SLOT * 10
    path.write_bytes(block(1, some(1), size=size, following=WORD - 3) + b"\xff" * size)
    with Journal(path) as journal:
        assert "used all its numbers" in complaint(journal.add, array(some(3)))
        assert journal.add(array(some(2))).tolist() == [WORD - 3, WORD - 2]
        assert "used all its numbers" in complaint(journal.add, array(some(1)))
        assert journal.add(array({})).tolist() == []


def test_a_link_stays_a_link(path, tmp_path):
    real = tmp_path / "elsewhere"
    real.mkdir()
    path.symlink_to(real / "points")
    for number in range(3):
        with opened(path) as journal:
            journal.add(array(some(1, first=number)))
    assert path.is_symlink()
    assert names(real) == ["points"]
    assert held(real / "points") == some(3)


# Damage.


def two_blocks():
    """A journal with records in both blocks, the second of which is in use, and what it holds."""
    size, records = 12 * SLOT + 12, some(6, seed=2, first=4)
    old = block(7, some(5), size=size)
    return old + block(8, records, size=size, moved=4), records, size


def test_a_bit_that_flips_costs_one_record_at_most():
    content, whole, size = two_blocks()
    bits = [*range(8 * size, 16 * size), *random.Random(0).sample(range(8 * size), 300)]
    for bit in bits:
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        found = read_journal(bytes(broken))
        slot = (bit // 8 - size) // SLOT
        if bit >= 8 * size and 3 <= slot < 9:
            left = {number: one for number, one in whole.items() if number - 1 != slot}
            assert in_words(found) == left
            assert found.damaged == 1
        else:
            assert in_words(found) == whole
            # An erased slot is told by its second word; the last one says what that reads.
            number = 4 <= (bit // 8 - size) % SLOT < 8
            assert found.damaged == (bit >= 8 * size and 9 <= slot < 11 and number)
        assert not found.truncated


def test_after_damage_it_goes_on(path):
    content, _, size = two_blocks()
    for bit in random.Random(1).sample(range(8 * size, 16 * size), 40):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        with Journal(path) as journal:
            left = in_words(journal.content)
            if bit % 2:
                # The head knows the numbers before it, the records those after it.
                number = int(journal.add(array(some(1, first=99)))[0])
                assert number == max(*left, 7) + 1
                left[number] = record((0, 99))
            else:
                forget(journal)  # which clears away what is damaged
            assert journal.content.damaged == 0
            assert in_words(journal.content) == left
        found = Journal(path).content
        assert in_words(found) == left
        assert (found.damaged, found.following) == (0, max(*left, 7) + 1)


def test_cut_at_any_byte_it_has_records_that_were_there_and_is_not_written(path, complaint):
    content, records, size = two_blocks()
    were = [some(5), records]
    seen = set()
    for length in range(1, len(content)):
        found = read_journal(content[:length])
        if found is None:
            assert length < 28
            continue
        words = in_words(found)
        assert any(words.items() <= one.items() for one in were)
        # As long as the later block has two heads, older records are never returned, and what is
        # left of it is.
        if length >= size + 28:
            # Blocks that are each one slot shorter have the heads in the next slots.
            assert found.truncated == (length != 2 * size - 2 * SLOT)
        if length >= size + SLOT + 28:
            assert words == dict(list(records.items())[: max((length - size) // SLOT - 3, 0)])
        seen.add(found.truncated)
        if length % 50 == 0 and found.truncated:
            path.write_bytes(content[:length])
            assert f"{path} is cut short" in complaint(Journal(path).add, array(some(1)))
            assert path.read_bytes() == content[:length]
    assert seen == {True, False}


def test_a_first_block_that_is_cut_gives_what_is_left_of_it():
    content = block(3, some(9), size=20 * SLOT) + b"\xff" * (20 * SLOT)
    for slots in range(3, 12):
        found = read_journal(content[: slots * SLOT + 5 * 4])
        assert found.truncated
        assert in_words(found) == some(slots - 3)
    assert not read_journal(content).truncated


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=500), st.integers(0, 900), st.booleans())
def test_whatever_is_written_over_it_there_are_whole_records_or_none(rubbish, place, longer):
    content, records, _ = two_blocks()
    if longer:
        content = content[:place] + rubbish + content[place:]
    else:
        content = (content[:place] + rubbish + content[place + len(rubbish) :])[: len(content)]
    found = read_journal(content)
    if found is not None:
        assert in_words(found).items() <= {*some(5).items(), *records.items()}


@settings(max_examples=300, deadline=None)
@given(
    generation=generations,
    slot=st.integers(0, 400) | st.sampled_from([65532, 65535]),
    size=st.integers(0, 300),
    following=st.integers(0, WORD - 1),
    end=st.integers(0, 65535),
    count=st.integers(0, 65535),
    length=st.integers(0, 3000),
)
def test_a_head_of_any_content_is_harmless(
    tmp_path_factory, generation, slot, size, following, end, count, length
):
    fields = generation, OWNER, STAMP, slot, size, following, end, count
    content = checked(struct.pack("<IIIHHIHH", *fields)).ljust(length, b"\xff")
    path = tmp_path_factory.getbasetemp() / "hostile.store"
    path.write_bytes(content)
    try:
        with Journal(path) as journal:
            forget(journal)
    except InputError:
        assert path.read_bytes() == content
    else:
        assert len(path.read_bytes()) == len(content)
        assert len(Journal(path)) == 0


def test_reading_a_full_journal_takes_little_time(path):
    with Journal(path) as journal:
        journal.lay_out(OWNER, 96, 1088)
        journal.add(np.random.default_rng(0).integers(0, 256, (1024, 96)).astype(np.uint8))
    data = path.read_bytes()
    took = []
    for _ in range(5):
        start = time.perf_counter()
        read_journal(data)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.02  # seconds; a few milliseconds on a quiet machine


# Interrupted programs.


def test_a_power_cut_leaves_the_records_of_before_or_those_of_after(path, monkeypatch, tmp_path):
    rng = random.Random(3)
    # All that the storage may hold when the power is cut during a write or after it.
    states, write = [], module._write

    def recorded(file, at, content):
        there = path.exists() and os.path.samestat(os.fstat(file), path.stat())
        before = path.read_bytes() if path.exists() else b""
        states.append(before)
        if there:
            cuts = {1, 11, 12, 15, 16, 27, 28, SLOT, SLOT + 1, 2 * SLOT, len(content) - 1}
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
    monkeypatch.setattr(os, "fsync", lambda file: None)
    beside = tmp_path / "cut" / "site.store"
    beside.parent.mkdir()
    journal, seen = opened(path), 0
    for number in range(40):
        before = in_words(journal.content)
        if number % 9 == 8:
            journal.close()
            journal = opened(path)
        if number % 4 == 3:
            forget(journal, *range(*sorted(rng.randrange(40) for _ in range(2))))
        else:
            journal.add(array(some(rng.choice([1, 1, 2]), seed=number)))
        after = in_words(journal.content)
        for state in states:
            assert read(state) in (before, after)
        # Whatever it is, the next change succeeds.
        for state in rng.sample(states, min(3, len(states))):
            beside.write_bytes(state)
            with opened(beside) as other:
                there = in_words(other.content)
                other.add(array(some(1, seed=99)))
                assert dict(list(in_words(other.content).items())[:-1]) == there
            assert dict(list(held(beside).items())[:-1]) == there
        seen += len(states)
        states.clear()
    journal.close()
    assert seen > 1000


@pytest.mark.parametrize("times", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_killed_many_times_it_has_all_that_was_confirmed(tmp_path, times):
    done = subprocess.run(
        [sys.executable, HERE / "kill_journal.py", tmp_path, str(times), "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    confirmed, under_way = map(int, done.stdout.split())
    assert confirmed > 1.5 * times  # the children did something,
    assert under_way > times / 200  # and some were killed in the middle of it


def no_room(*wanted):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["write", "half", "fsync"])
def test_a_full_disk_changes_nothing(path, complaint, monkeypatch, call):
    write = os.write

    def half(file, content):
        write(file, content[: len(content) // 2])
        no_room()

    instead = half if call == "half" else no_room
    name = "fsync" if call == "fsync" else "write"
    with opened(path) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(os, name, instead)
            message = complaint(journal.add, array(some(2)))
        assert message == f"cannot write {path}: No space left on device"
        assert len(journal) == 0
        assert names(path.parent) in ([], [path.name])
        assert not path.exists() or path.read_bytes() == b""
        journal.add(array(some(3)))
        before = in_words(journal.content)
        calls = (
            lambda: journal.add(array(some(2, seed=1))),
            lambda: journal.add(array(some(1, seed=1))),
            lambda: forget(journal, 0, 1),
        )
        for change in calls:
            with monkeypatch.context() as patch:
                patch.setattr(os, name, instead)
                assert "No space left" in complaint(change)
            assert in_words(journal.content) == before
            if call != "fsync":  # what was written is there despite the error
                assert held(path) == before
            # Work continues when there is room again.
            number = int(journal.add(array(some(1, seed=5)))[0])
            before[number] = record((5, 0))
            assert held(path) == before


def test_a_file_that_may_not_be_written_is_named(path, complaint, monkeypatch):
    with opened(path) as journal:
        journal.add(array(some(2)))
    before, open_file = path.read_bytes(), os.open

    def read_only(name, flags, *mode):
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(name, flags, *mode)

    monkeypatch.setattr(os, "open", read_only)
    journal = Journal(path)
    assert in_words(journal.content) == some(2)
    for change in (lambda: journal.add(array(some(1))), lambda: forget(journal, 0)):
        assert complaint(change) == f"cannot write {path}: Permission denied"
    assert in_words(journal.content) == some(2)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("where", "opening", "writing"),
    [
        ("nowhere/site.store", None, "No such file or directory"),
        ("file/site.store", "Not a directory", None),
        ("folder", "is not a file", None),
        ("pipe", "is not a file", None),
        ("table.csv", "is not a store", None),
        ("x" * 300, "File name too long", None),
    ],
)
def test_a_place_where_no_journal_can_be_is_named(tmp_path, complaint, where, opening, writing):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.csv").write_text("a,b\n1,2\n" * 50)
    os.mkfifo(tmp_path / "pipe")
    path, before = tmp_path / where, names(tmp_path)
    if opening is None:
        assert writing in complaint(opened(path).add, array(some(1)))
    else:
        assert opening in complaint(Journal, path)
    assert names(tmp_path) == before


def test_a_storage_without_locks_is_named(path, complaint, monkeypatch):
    def no_locks(*wanted):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(module.fcntl, "flock", no_locks)
        assert "No locks available" in complaint(opened(path).add, array(some(1)))
    opened(path).add(array(some(1)))


# Two programs.


HOLDER = """
import sys
from twinedge.runtime.journal_file import Journal
journal = Journal(sys.argv[1])
journal.lock()
for line in sys.stdin:
    if line == "forget\\n":
        journal.keep(journal.content.numbers > 0)
    else:
        journal.close()
    print(len(journal), flush=True)
"""


def test_a_second_program_is_refused_until_the_first_has_closed(path, complaint):
    with opened(path) as journal:
        journal.add(array(some(3)))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
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
        mine = Journal(path)  # reading alone needs no lock
        assert len(mine) == 2
        for change in (lambda: mine.add(array(some(1))), lambda: forget(mine, 1)):
            assert complaint(change) == f"{path} is in use by another program"
        assert path.read_bytes() == before
        assert len(Journal(path)) == len(mine) == 2
        assert ask("close") == 2
        mine.add(array(some(1)))
        assert len(mine) == 3
        other.stdin.close()
    mine.close()


def test_who_waits_sees_what_the_other_wrote_before_it_writes(path):
    first, second = opened(path), opened(path)
    first.add(array(some(2)))
    first.close()
    assert len(second) == 0
    assert second.add(array(some(1))).tolist() == [2]
    second.close()
    forget(first, 0, 1)
    assert first.content.numbers.tolist() == [2]


def test_a_new_journal_is_locked_from_its_first_moment_on(path, complaint):
    first = opened(path)
    first.add(array(some(1)))
    second = opened(path)
    assert len(second) == 1
    assert "in use" in complaint(second.add, array(some(1)))
    first.add(array(some(1)))
    first.close()
    second.add(array(some(1)))
    assert len(second) == 3


def test_a_journal_that_is_made_while_it_is_opened_is_seen(path, monkeypatch):
    late, claim, seen = opened(path), module._claim, []

    def meanwhile(file):
        if not seen:
            seen.append(file)
            monkeypatch.setattr(module, "_claim", claim)
            with opened(path) as early:
                # This puts a new file in the place of the one just opened.
                early.add(array(some(2)))
        claim(file)

    monkeypatch.setattr(module, "_claim", meanwhile)
    late.add(array(some(1, first=2)))
    assert seen
    late.close()
    assert held(path) == some(3)


def test_a_journal_that_nobody_has_any_more_is_free(path):
    journal = opened(path)
    journal.add(array(some(1)))
    del journal
    with opened(path) as again:
        again.add(array(some(1)))
    again.add(array(some(1)))  # which opens it again
    assert len(again) == 3
