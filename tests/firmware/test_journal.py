"""The journal: its bytes are those of FORMAT.md, and no cut, error or bad slot costs a record."""

import ctypes
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.runtime.journal import HEADS, Head, slots_of

OWNER, SIZE = 0xC0DE, 24  # as in logs.py
KINDS = ("erased to 255", "erased to 0", "encrypted")


@pytest.fixture(scope="module")
def library(native, flash, logs, tmp_path_factory):
    return logs.load(native, flash, tmp_path_factory.mktemp("journal"))


@pytest.fixture
def log(native, flash, logs, library):
    """Make a journal with arguments of ``Log``, and open it."""

    def make(**given):
        made = logs.Log(native, flash, library, **given)
        assert made.open() == "ok"
        return made

    return make


def draw(number, size=SIZE):
    """Draw the record of this number."""
    return np.random.default_rng(number).bytes(size)


def fill(log, count, first=0):
    """Append records; return them with their numbers."""
    made = [(first + i, draw(first + i, log.size)) for i in range(count)]
    for _, record in made:
        assert log.append(record) == "ok"
    return made


# ---- bytes


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["append"] * 4 + ["keep", "rewrite", "clear", "open"]), st.integers(0, 9)
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(
    CHANGES,
    st.sampled_from([1, 4, 16, 64, 256]),
    st.sampled_from([20, 28, 60]),
    st.sampled_from(KINDS),
)
def test_it_holds_what_a_list_would_and_python_reads_it(
    native, flash, logs, library, changes, program_size, size, kind
):
    kind_of_log = {"program_size": program_size, "size": size, "kind": kind, "slots": 12}
    log = logs.Log(native, flash, library, **kind_of_log)
    assert log.open() == "ok"
    held, number, stamp = [], 0, 0
    for what, detail in changes:
        if what == "append":
            status = log.append(draw(number, size))
            assert status == ("ok" if len(held) < 9 else "full")
            if status == "ok":
                held.append((number, draw(number, size)))
                number += 1
        elif what == "open":
            assert log.open() == "ok"
        elif what == "clear":
            assert log.clear(detail) == "ok"
            held, stamp = [], detail
        else:
            held = [(n, r[::-1] if what == "rewrite" else r) for n, r in held if n % 10 != detail]
            new = dict(held)
            assert log.move(lambda n, r, new=new: new.get(n, False), detail) == "ok"
            stamp = detail
        assert log.records() == held
        assert (log.journal.number, log.journal.stamp, log.journal.damaged) == (number, stamp, 0)
        found = log.content()
        if log.journal.generation == 0:
            assert found is None or len(found) == 0
            continue
        assert found.head.owner == OWNER
        assert found.head.generation == log.journal.generation
        assert (found.following, found.head.stamp) == (number, stamp)
        assert found.numbers.tolist() == [n for n, _ in held]
        assert [bytes(r) for r in found.records] == [r for _, r in held]
        assert found.damaged == 0
        assert len(found.copies) == 2


def test_slots_have_the_bytes_of_the_page(log):
    made = log(program_size=32, slots=8)
    held = fill(made, 3)
    assert made.move(lambda number, record: number > 0, 77) == "ok"
    held = held[1:] + fill(made, 1, first=3)
    head = Head(2, OWNER, 77, 32, SIZE, 3, HEADS + 2, 2)
    numbers = np.array([number for number, _ in held])
    records = np.frombuffer(b"".join(record for _, record in held), np.uint8).reshape(-1, SIZE)
    slots = slots_of(head, numbers, records)
    block = made.memory.content()[: 8 * 32]
    assert block[:28] == block[32:60] == head.to_bytes()[:28]
    assert block[64:96] == b"\xff" * 32
    assert block[96:192] == slots
    assert block[192:] == b"\xff" * 64


@pytest.mark.parametrize("program_size", [1, 128])
def test_it_reads_what_python_writes(log, program_size):
    made = log(program_size=program_size)
    numbers = np.array([3, 5, 6])
    records = np.arange(3 * SIZE, dtype=np.uint8).reshape(3, SIZE)
    head = Head(9, OWNER, 4, made.slot, SIZE, 6, HEADS + 2, 2)
    image = head.to_bytes() * 2 + b"\xff" * made.slot + slots_of(head, numbers, records)
    ctypes.memmove(made.memory.cell, image, len(image))
    assert made.open() == "ok"
    assert made.records() == [(n, bytes(r)) for n, r in zip(numbers, records, strict=True)]
    assert (made.journal.stamp, made.journal.number, made.journal.generation) == (4, 7, 9)
    assert made.append(draw(0)) == "ok"
    assert made.content().numbers.tolist() == [3, 5, 6, 7]


# ---- what cannot be a journal


def test_program_sizes_that_are_none(log):
    for program_size in (0, 3, 12, 24, 255, 257, 512, 65535):
        made = log()
        made.storage.block_size = 24 * program_size * 40 or 4096
        made.storage.program_size = program_size
        assert made.library.twin_journal_slot(ctypes.byref(made.storage), SIZE) == 0
        assert made.open() == "store"
        assert made.move(stamp=0) == made.clear() == "store"
        assert made._call("append") == made._call("next", None) == "store"


def test_storage_records_and_memory_that_cannot_serve(log):
    for name in ("read", "program", "erase"):
        made = log()
        setattr(made.storage, name, None)
        assert made.open() == "store"
    for size in (0, 16, 19, 21, 22, 23, 26, 65533):
        made = log(program_size=4)
        assert made.library.twin_journal_slot(ctypes.byref(made.storage), size) == 0
        assert made.open(size=size) == "store"
    made = log()
    for shift in (1, 2, 3):
        assert made.open(shift=shift) == "store"
    assert made.open() == "ok"


def test_blocks_of_odd_sizes(log):
    made = log(program_size=8, slots=4)
    slot = made.slot
    sizes = {4 * slot: slot, 4 * slot - 8: 0, 4 * slot + 4: 0, 4 * slot + 8: slot, 0: 0}
    sizes |= {65535 * slot: slot, 65536 * slot: 0, 2**31: 0, 2**31 + 4 * slot: 0, 2**32 - 8: 0}
    for block_size, expected in sizes.items():
        made.storage.block_size = block_size
        assert made.library.twin_journal_slot(ctypes.byref(made.storage), SIZE) == expected
    made.storage.block_size, made.storage.program_size = 2**30, 256
    assert made.library.twin_journal_slot(ctypes.byref(made.storage), 65532) == 0


# ---- full, other, unreadable


def test_a_full_journal_is_not_worn_until_records_are_removed(log):
    made = log(slots=7)
    held = fill(made, 4)
    before = made.memory.changes
    for _ in range(3):
        assert made.append(draw(9), move=False) == "full"
    assert made.memory.changes == before
    assert made.open() == "ok"
    assert made.append(draw(9), move=False) == "full"
    assert made.records() == held
    assert made.move(lambda number, record: number != 1) == "ok"
    assert made.append(draw(4)) == "ok"
    assert [number for number, _ in made.records()] == [0, 2, 3, 4]


def test_numbers_end(log):
    made = log()
    head = Head(1, OWNER, 0, made.slot, SIZE, 2**32 - 2, HEADS, 0)
    ctypes.memmove(made.memory.cell, head.to_bytes() * 2, 2 * made.slot)
    assert made.open() == "ok"
    assert made.append(draw(0)) == "ok"
    assert made.records() == [(2**32 - 2, draw(0))]
    assert made.append(draw(1)) == "full"
    assert made.open() == "ok"
    assert made.append(draw(1)) == "full"


def test_another_owner_is_left_alone_until_all_is_cleared(log):
    made = log()
    held = fill(made, 3)
    image = made.memory.content()
    for other in ({"owner": OWNER + 1}, {"size": SIZE + 4}):
        assert made.open(**other) == "other"
        assert made._call("next", None) == made._call("append") == made.move() == "other"
        assert made.move(lambda number, record: False) == "other"
        assert made.memory.content() == image
        assert made.open(size=SIZE) == "ok"
        assert made.records() == held
    assert made.open(OWNER + 1) == "other"
    assert made.clear(5) == "ok"
    assert made.records() == []
    assert (made.journal.number, made.journal.stamp, made.journal.generation) == (0, 5, 2)
    assert made.append(draw(7)) == "ok"
    assert made.open(OWNER) == "other"
    assert made.open(OWNER + 1) == "ok"
    assert made.records() == [(0, draw(7))]


def test_an_interrupted_takeover_leaves_the_other_journal_or_an_empty_one(log, flash):
    seen = set()
    for cut in range(3):
        for seed in range(60):
            made = log(program_size=1 if seed % 2 else 64, seed=seed + 1)
            held = fill(made, 3)
            assert made.open(OWNER + 1) == "other"
            made.memory.cut = made.memory.changes + cut
            assert made.clear() == ("ok" if cut == 2 else "storage")
            made.memory.dead, made.memory.cut = 0, flash.NEVER
            status = made.open(OWNER + 1)
            seen.add((cut, status))
            if status == "ok":
                assert made.records() == []
            elif made.open(OWNER) == "ok":  # undecided bits may also read otherwise now
                assert made.records() == held
            else:
                assert cut == 1
    assert seen == {(0, "other"), (1, "other"), (1, "ok"), (2, "ok")}


def test_what_cannot_be_read_can_be_opened_later(log, flash):
    made = log()
    held = fill(made, 3)
    for calls in range(100):
        made.memory.error = made.memory.calls + calls
        status = made.open()
        if made.memory.calls <= made.memory.error:
            break
        assert status == "storage"
        assert made.append(draw(0), move=False) == made.move() == made.clear() == "storage"
    made.memory.error = flash.NEVER
    assert calls > 20
    assert status == "ok"
    assert made.records() == held


def test_a_read_that_fails_once_is_tried_again(log):
    made = log()
    held = fill(made, 3)
    for calls in range(3):
        made.memory.error = made.memory.calls + calls
        found, step = [], ["more"]
        while step[0] != "ok":
            step = made.next()
            if step[0] == "more":
                found.append(step[1:])
        assert found == held
    made.memory.error = made.memory.calls + 2  # the second word that is read back
    assert made.append(draw(3)) == "ok"
    assert made.journal.damaged == 1
    assert made.open() == "ok"
    assert made.records() == [*held, (3, draw(3))]
    assert made.journal.damaged == made.content().damaged == 1


# ---- drivers and memories that fail


@pytest.mark.parametrize("way", ["lie", "fail", "skip"])
def test_a_slot_whose_programming_fails_costs_no_record(log, way):
    """Bytes that land though the driver reports a timeout, or that do not, in any slot."""
    for at in range(18):
        made = log()
        setattr(made.memory, way, at * made.slot)
        held = fill(made, 4)
        assert made.open() == "ok"
        assert made.records() == held
        held += fill(made, 1, first=4)
        assert made.records() == held
        if way == "lie":
            assert made.clear() == "ok"
            continue
        bad = at - made.journal.block // made.slot
        assert made.journal.damaged == made.content().damaged == (HEADS <= bad < HEADS + 5)


@pytest.mark.parametrize(("kind", "program_size"), [(KINDS[0], 1), (KINDS[1], 16), (KINDS[2], 1)])
def test_a_stuck_bit_stops_nothing(log, kind, program_size):
    made = log(kind=kind, program_size=program_size, slots=8 if program_size == 1 else 6)
    passed = ctypes.c_uint32()
    fault = made.library.journal_wear(
        ctypes.byref(made.memory), ctypes.byref(made.storage), SIZE, ctypes.byref(passed)
    )
    assert fault == 0, f"journal_cuts.c:{fault}"
    assert passed.value > 1000


@pytest.mark.parametrize("program_size", [1, pytest.param(64, marks=pytest.mark.slow)])
def test_a_bit_that_flips_costs_one_record_at_most(log, program_size):
    fresh = log(program_size=program_size)
    held = fill(fresh, 5)
    start, slot = fresh.journal.block, fresh.slot
    for at in range(start, start + fresh.storage.block_size):
        mask = 64 if at % 2 else 1
        fresh.memory.cell[at] ^= mask
        assert fresh.open() == "ok"
        which = (at - start) // slot - HEADS
        matters = 0 <= which < 5 and (at - start) % slot < 8 + SIZE
        kept = [one for i, one in enumerate(held) if not matters or i != which]
        assert fresh.records() == kept
        assert fresh.content().numbers.tolist() == [number for number, _ in kept]
        assert fresh.journal.damaged == fresh.content().damaged
        assert fresh.journal.damaged == matters or which >= 5
        fresh.memory.cell[at] ^= mask


# ---- power cuts


SHAPES = [(most, more) for most in (2, 5, 9) for more in (4, 5, 8)]  # records, slots beyond them


def cut_everywhere(flash, library, program_size, rounds, changes):
    """Cut the power at every change of a memory, of all kinds; return counts."""
    total = np.zeros(4, int)
    for seed, (most, more) in enumerate(SHAPES * rounds):
        for number, kind in enumerate(flash.KINDS):
            size = 20 + 4 * (seed % 6)
            slot = -(-(8 + size) // program_size) * program_size
            start = 1000 * program_size + 3 * seed + number
            memory, storage = flash.make(library, (most + more) * slot, program_size, kind, start)
            if seed % 4 == 3:  # a stuck bit in each block
                rng = np.random.default_rng(start)
                for block in range(2):
                    at = block * storage.block_size + int(rng.integers(storage.block_size))
                    bit = 1 << int(rng.integers(8))
                    library.flash_wear(ctypes.byref(memory), at, bit, int(rng.integers(2)))
            counts = (ctypes.c_uint32 * 4)()
            where = ctypes.byref(memory), ctypes.byref(storage)
            nested = 6 if seed % 2 else 0  # cuts in a row, after the first
            memory.once = seed % 10 == 4  # cannot decide again what two cuts left undecided
            fault = library.journal_cuts(*where, size, most, changes, nested, counts)
            assert fault == 0, f"journal_cuts.c:{fault}, seed {start}, {most} + {more}, {kind}"
            total += counts
    return total


def assert_survived(total, cuts):
    assert total[0] > cuts
    assert total[1] > cuts / 10  # errors
    assert total[2] > cuts / 20  # the records of before
    assert total[3] > cuts / 100  # those of after


def test_a_power_cut_leaves_the_records_of_before_or_of_after(native, flash, library):
    total, share = np.zeros(4, int), 5 if native.EXTRA_OPTIONS else 1
    for program_size in flash.PROGRAM_SIZES:  # large slots take longer
        changes = (30 if program_size < 32 else 10) // share
        total += cut_everywhere(flash, library, program_size, 1, changes)
    assert_survived(total, 30_000 if share == 1 else 5_000)


@pytest.mark.slow
@pytest.mark.parametrize("program_size", [2**i for i in range(9)])
def test_a_million_power_cuts(uninstrumented, flash, library, program_size):
    total = cut_everywhere(flash, library, program_size, 20, 30)
    assert_survived(total, 1_000_000 / 9)


# What makes the journal safe; without it, the test above fails. Some faults take two cuts in a row.
BROKEN = {
    "a block counts though it lacks records": ("before != extent >> 16", "before > slot + 70000u"),
    "what a cut left is not written again": (
        "journal->heads != 1 || ",
        "journal->heads != 9 || ",
    ),
    "records that a cut left are not written again": (
        "if (twini_write_slot(journal, journal->at - 1u, 0) > SLOT_REPORTED)",
        "if (0)",
    ),
    "a head that reads otherwise now is trusted": (
        "twini_look_at(journal, 0) < first)",
        "twini_look_at(journal, 0) > BLOCK_VALID)",
    ),
    "generations do not tell blocks apart": (
        "twini_put(buffer + HEAD_GENERATION, journal->generation + 1);",
        "twini_put(buffer + HEAD_GENERATION, journal->generation);",
    ),
    "heads come before records": (
        "extent = twini_copy_records(journal, keep, context);",
        "twini_write_heads(journal, 1), extent = twini_copy_records(journal, keep, context);",
    ),
    "the block in use is erased": (
        "storage->erase(storage->context, block)",
        "storage->erase(storage->context, journal->block)",
    ),
    "records are appended to what a cut may have left": (
        "    journal->next = journal->slots;\n    journal->moved = 0;\n    journal->failed = 0;",
        "    journal->next = 7;\n    journal->moved = 0;\n    journal->failed = 0;",
    ),
    "a slot is not read back": ("if (word != found)", "if (word != found && slot > 70000u)"),
    "a failed read is no reason to stop": (
        "return journal->failed ? 0 : extent;",
        "return extent;",
    ),
    "a record that was cut has the number of another": (
        "whole && number >= journal->least",
        "whole",
    ),
    "a move that failed is forgotten": (
        "journal->next = journal->slots; /* the other block",
        "/* the other block",
    ),
    "a head that may be there is followed by another": (
        "result == SLOT_UNREAD && !heads",
        "result > SLOT_UNREAD",
    ),
    "a bad slot is not passed over": (
        "while (journal->next < journal->slots) {",
        "if (journal->next < journal->slots) {",
    ),
}
SOME_BROKEN = ("heads come before records", "a slot is not read back")


@pytest.mark.parametrize(
    "why",
    [pytest.param(one, marks=[pytest.mark.slow] * (one not in SOME_BROKEN)) for one in BROKEN],
)
def test_a_journal_that_is_not_safe_is_found(uninstrumented, native, flash, logs, tmp_path, why):
    right, wrong = BROKEN[why]
    code = (native.FIRMWARE / "src" / "twin_journal.c").read_text()
    assert code.count(right) == 1
    library = logs.load(native, flash, tmp_path, code.replace(right, wrong))
    sizes = flash.PROGRAM_SIZES[:4] * 10
    with pytest.raises(AssertionError, match=r"journal_cuts\.c:"):
        sum(cut_everywhere(flash, library, program_size, 2, 20) for program_size in sizes)


def test_the_example_of_the_header_compiles(native, tmp_path):
    header = (native.FIRMWARE / "include" / "twin_journal.h").read_text()
    (code,) = re.findall(r"(?m)(?:^ \*     .*\n)+", header)
    source = tmp_path / "example.c"
    source.write_text(
        '#include "twin_journal.h"\n#include <stddef.h>\n'
        "enum { OWNER = 1 };\nextern const twin_storage storage; extern uint32_t number;\n"
        "void do_without_it(void); void use(uint32_t number, const uint8_t *record);\n"
        "void fill_in(uint8_t *record);\ntwin_status example(void);\n"
        "twin_status example(void) {\n    twin_status status;\n"
        + re.sub(r"(?m)^ \* ?", "", code)
        + "    return status;\n}\n"
    )
    native.compile_c(tmp_path / "example.o", "-O2", "-c", sources=[source])
