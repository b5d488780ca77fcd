"""A journal as bytes and as a file: section 11 of FORMAT.md, and what faults do to it."""

import errno
import os
import random
import struct
import subprocess
import sys
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


def as_dict(content):
    return dict(zip(content.numbers.tolist(), map(bytes, content.records), strict=True))


def read(*parts):
    found = read_journal(b"".join(parts))
    assert found is not None
    return as_dict(found)


def held(path):
    return as_dict(Journal(path).content)


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


@pytest.mark.parametrize("program", [1, 16, 256])
@pytest.mark.parametrize("erased", [b"\xff", b"\xa5"])
def test_a_dump_of_flash_is_read_and_goes_on(path, program, erased):
    slot = -(-SLOT // program) * program
    size = -(-12 * slot // 256) * 256
    points = some(5, first=3)
    # What follows a record means nothing: here it is leftover memory.
    old = block(WORD - 1, some(2), size=size, slot=slot, behind=b"\x5a", erased=erased)
    new = block(1, points, size=size, slot=slot, moved=4, behind=b"\x33", erased=erased)
    path.write_bytes(new + old)
    found = Journal(path).content
    assert as_dict(found) == points
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


@pytest.mark.parametrize("fill", [b"", b"\xff", b"\0", b"\x17"])
def test_a_journal_that_was_never_written_is_empty(path, fill):
    path.write_bytes(fill * 4096)
    with opened(path) as journal:
        assert (len(journal), journal.content.head.generation) == (0, 0)
        journal.add(array(some(2)))
    assert held(path) == some(2)


# Which block is in use.


generations = st.integers(1, WORD - 1) | st.sampled_from([1, 2**31, WORD - 1, WORD - 2])


@settings(max_examples=60, deadline=None)
@given(generations, st.integers(-(2**31) + 1, 2**31 - 1))
def test_of_two_blocks_the_later_one_counts(first, ahead):
    if (first + ahead) % WORD:  # which is no generation
        one = block(first, some(2), size=480)
        other = block(first + ahead, some(3, seed=5), size=480)
        assert read(one, other) == (some(3, seed=5) if ahead > 0 else some(2))


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
        assert as_dict(found) == some(4, seed=1)
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
            assert as_dict(found) == (before if slot < 6 else left)
            if slot >= 6:
                # Erased at the end is not damaged, unless a whole record follows.
                assert found.damaged == (damage[0] == 0 or slot == 6)
            # With a second head each record stands alone.
            blocks[which] = changed(new, 2, head(6, 3))
            assert read(*blocks) == left
            # And if there is nothing else, the records that are left are better than none.
            blocks[which], blocks[1 - which] = new, b"\xff" * size
            assert read(*blocks) == left


def test_slots_that_were_passed_over_or_are_of_an_earlier_generation_do_not_count():
    size = SLOT * 12
    # One slot did not take its record, and another one took it in spite of a reported failure.
    slots = [b"\0" * SLOT, *(entry(6, *one) for one in some(3).items()), entry(6, 2, record("x"))]
    new = head(6, 3, end=8) + b"\xff" * (3 * SLOT - 28) + b"".join(slots)
    new = new.ljust(size, b"\xff")
    found = read_journal(new + block(5, some(1, seed=3), size=size))
    assert (as_dict(found), found.damaged) == (some(3), 2)
    old, new = block(4, some(6), size=size), block(6, some(2, seed=1), size=size)
    found = read_journal(new[: 5 * SLOT] + old[5 * SLOT :] + block(5, {}, size=size))
    assert (as_dict(found), found.damaged) == (some(2, seed=1), 4)


def test_numbers_ascend():
    size = SLOT * 12
    numbers = [4, 3, 4, 9, 9, 5, 10, WORD - 1]
    slots = b"".join(entry(6, one, record(one)) for one in numbers)
    found = read_journal(changed(block(6, {}, size=size), 3, slots) + b"\xff" * size)
    assert as_dict(found) == {one: record(one) for one in (4, 9, 10)}
    assert found.following == 11


@pytest.mark.parametrize("erased", [b"\xff", b"\0"])
def test_damage_at_the_end_is_seen_where_storage_erases_to_one_value(erased):
    size = SLOT * 12
    content = block(6, some(3), size=size, erased=erased)
    for slot in (6, 9, 10):
        broken = changed(content, slot, record(1) + bytes(8))
        assert read_journal(broken + erased * size).damaged == 1
    # Elsewhere it looks like erased storage.
    noise = random.Random(0).randbytes(size)
    content = content[: 6 * SLOT] + noise[6 * SLOT :]
    found = read_journal(content + noise)
    assert as_dict(found) == some(3)
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
        assert as_dict(journal.content) == model
        assert held(path) == model
    journal.close()


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
            assert as_dict(found) == left
            assert found.damaged == 1
        else:
            assert as_dict(found) == whole
            # An erased slot is known by its second word, as the last slot has it.
            number = 4 <= (bit // 8 - size) % SLOT < 8
            assert found.damaged == (bit >= 8 * size and 9 <= slot < 11 and number)
        assert not found.truncated


def test_cut_at_any_byte_it_has_records_that_were_there_and_is_not_written(path, complaint):
    content, records, size = two_blocks()
    were = [some(5), records]
    seen = set()
    for length in range(1, len(content)):
        found = read_journal(content[:length])
        if found is None:
            assert length < 28
            continue
        words = as_dict(found)
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
        assert as_dict(found) == some(slots - 3)
    assert not read_journal(content).truncated


@settings(max_examples=100, deadline=None)
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
        before = as_dict(journal.content)
        if number % 9 == 8:
            journal.close()
            journal = opened(path)
        if number % 4 == 3:
            forget(journal, *range(*sorted(rng.randrange(40) for _ in range(2))))
        else:
            journal.add(array(some(rng.choice([1, 1, 2]), seed=number)))
        after = as_dict(journal.content)
        for state in states:
            assert read(state) in (before, after)
        # Whatever it is, the next change succeeds.
        for state in rng.sample(states, min(3, len(states))):
            beside.write_bytes(state)
            with opened(beside) as other:
                there = as_dict(other.content)
                other.add(array(some(1, seed=99)))
                assert dict(list(as_dict(other.content).items())[:-1]) == there
            assert dict(list(held(beside).items())[:-1]) == there
        seen += len(states)
        states.clear()
    journal.close()
    assert seen > 1000


@pytest.mark.parametrize("times", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_killed_many_times_it_has_all_that_was_confirmed(tmp_path, times):
    done = subprocess.run(
        [sys.executable, HERE / "kill_journal.py", tmp_path, str(times), "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    confirmed, under_way = map(int, done.stdout.split())
    assert confirmed > 1.5 * times  # the children did something,
    assert under_way  # and some were killed in the middle of it


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
        before = as_dict(journal.content)
        calls = (
            lambda: journal.add(array(some(2, seed=1))),
            lambda: journal.add(array(some(1, seed=1))),
            lambda: forget(journal, 0, 1),
        )
        for change in calls:
            with monkeypatch.context() as patch:
                patch.setattr(os, name, instead)
                assert "No space left" in complaint(change)
            assert as_dict(journal.content) == before
            if call != "fsync":  # what was written is there despite the error
                assert held(path) == before
            # Work continues when there is room again.
            number = int(journal.add(array(some(1, seed=5)))[0])
            before[number] = record((5, 0))
            assert held(path) == before


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


def test_who_does_not_hold_the_lock_may_read_but_not_write(path, complaint):
    first = opened(path)
    first.add(array(some(1)))  # locked from its first moment on
    second = opened(path)
    before = path.read_bytes()
    for change in (lambda: second.add(array(some(1))), lambda: forget(second, 0)):
        assert complaint(change) == f"{path} is in use by another program"
    assert path.read_bytes() == before
    assert len(second) == 1
    first.add(array(some(1)))
    first.close()
    second.add(array(some(1)))
    assert len(second) == 3


def test_who_waits_sees_what_the_other_wrote_before_it_writes(path):
    first, second = opened(path), opened(path)
    first.add(array(some(2)))
    first.close()
    assert len(second) == 0
    assert second.add(array(some(1))).tolist() == [2]
    second.close()
    forget(first, 0, 1)
    assert first.content.numbers.tolist() == [2]


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
