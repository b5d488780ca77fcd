"""The journal: its bytes are those of FORMAT.md, and it outlives errors and bad slots."""

import ctypes
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.runtime.journal import HEADS, Head, slots_of

OWNER, SIZE = 0xC0DE, 24  # as in logs.py


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


def record_of(number, size=SIZE):
    return np.random.default_rng(number).bytes(size)


def fill(log, count, first=0):
    """Append records; return them with their numbers."""
    made = [(first + i, record_of(first + i, log.size)) for i in range(count)]
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
@given(CHANGES, st.sampled_from([1, 4, 16, 64, 256]), st.sampled_from([20, 28, 60]))
@pytest.mark.parametrize("kind", ["erased to 255", "erased to 0", "encrypted"])
def test_it_holds_what_a_list_would_and_python_reads_it(
    native, flash, logs, library, kind, changes, program_size, size
):
    log = logs.Log(
        native, flash, library, program_size=program_size, size=size, kind=kind, slots=12
    )
    assert log.open() == "ok"
    held, number, stamp = [], 0, 0
    for what, detail in changes:
        if what == "append":
            answer = log.append(record_of(number, size))
            assert answer == ("ok" if len(held) < 9 else "full")
            if answer == "ok":
                held.append((number, record_of(number, size)))
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


@pytest.mark.parametrize("program_size", [1, 32, 128])
def test_it_reads_what_python_writes(native, flash, log, program_size):
    made = log(program_size=program_size)
    numbers = np.array([3, 5, 6])
    records = np.arange(3 * SIZE, dtype=np.uint8).reshape(3, SIZE)
    head = Head(9, OWNER, 4, made.slot, SIZE, 6, HEADS + 2, 2)
    image = head.to_bytes() * 2 + b"\xff" * made.slot + slots_of(head, numbers, records)
    ctypes.memmove(made.memory.cell, image, len(image))
    assert made.open() == "ok"
    assert made.records() == [(n, bytes(r)) for n, r in zip(numbers, records, strict=True)]
    assert (made.journal.stamp, made.journal.number, made.journal.generation) == (4, 7, 9)
    assert made.append(record_of(0)) == "ok"
    assert made.content().numbers.tolist() == [3, 5, 6, 7]


# ---- what cannot be a journal


@pytest.mark.parametrize("program_size", [0, 3, 12, 24, 255, 257, 512, 65535])
def test_program_sizes_that_are_none(log, program_size):
    made = log()
    made.storage.block_size = 24 * program_size * 40 or 4096
    made.storage.program_size = program_size
    assert made.library.twin_journal_slot(ctypes.byref(made.storage), SIZE) == 0
    assert made.open() == "store"
    assert made.move(stamp=0) == made.clear() == "store"
    assert made._call("append") == made._call("next", None) == "store"


@pytest.mark.parametrize("name", ["read", "program", "erase"])
def test_a_function_that_is_missing(log, name):
    made = log()
    setattr(made.storage, name, None)
    assert made.open() == "store"


@pytest.mark.parametrize("size", [0, 16, 19, 21, 22, 23, 26, 65533])
def test_records_that_are_too_small_or_no_words(log, size):
    made = log(program_size=4)
    assert made.library.twin_journal_slot(ctypes.byref(made.storage), size) == 0
    assert made.open(size=size) == "store"


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


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_memory_that_is_not_aligned(log, shift):
    made = log()
    assert made.open(shift=shift) == "store"
    assert made.open() == "ok"


# ---- full, other, unreadable


def test_a_full_journal_says_so_without_wear_until_records_are_removed(log):
    made = log(slots=7)
    held = fill(made, 4)
    before = made.memory.changes
    for _ in range(3):
        assert made.append(record_of(9), move=False) == "full"
    assert made.memory.changes == before
    assert made.open() == "ok"
    assert made.append(record_of(9), move=False) == "full"
    assert made.records() == held
    assert made.move(lambda number, record: number != 1) == "ok"
    assert made.append(record_of(4)) == "ok"
    assert [number for number, _ in made.records()] == [0, 2, 3, 4]


def test_numbers_end(log):
    made = log()
    head = Head(1, OWNER, 0, made.slot, SIZE, 2**32 - 2, HEADS, 0)
    ctypes.memmove(made.memory.cell, head.to_bytes() * 2, 2 * made.slot)
    assert made.open() == "ok"
    assert made.append(record_of(0)) == "ok"
    assert made.records() == [(2**32 - 2, record_of(0))]
    assert made.append(record_of(1)) == "full"
    assert made.open() == "ok"
    assert made.append(record_of(1)) == "full"


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
    assert made.append(record_of(7)) == "ok"
    assert made.open(OWNER) == "other"
    assert made.open(OWNER + 1) == "ok"
    assert made.records() == [(0, record_of(7))]


@pytest.mark.parametrize("program_size", [1, 64])
def test_an_interrupted_takeover_leaves_the_other_journal_or_an_empty_one(log, flash, program_size):
    seen = set()
    for cut in range(3):
        for seed in range(100):
            made = log(program_size=program_size, seed=seed + 1)
            held = fill(made, 3)
            assert made.open(OWNER + 1) == "other"
            made.memory.cut = made.memory.changes + cut
            answer = made.clear()
            assert answer == ("ok" if cut == 2 else "storage")
            made.memory.dead, made.memory.cut = 0, flash.NEVER
            answer = made.open(OWNER + 1)
            seen.add((cut, answer))
            if answer == "ok":
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
        answer = made.open()
        if made.memory.calls <= made.memory.error:
            break
        assert answer == "storage"
        assert made.append(record_of(0), move=False) == made.move() == made.clear() == "storage"
    made.memory.error = flash.NEVER
    assert calls > 20
    assert answer == "ok"
    assert made.records() == held


def test_a_read_that_fails_once_is_tried_again(log):
    made = log()
    held = fill(made, 3)
    for calls in range(3):
        made.memory.error = made.memory.calls + calls
        found = []
        answer = ["more"]
        while answer[0] != "ok":
            answer = made.next()
            if answer[0] == "more":
                found.append(answer[1:])
        assert found == held
    made.memory.error = made.memory.calls + 2  # the second word that is read back
    assert made.append(record_of(3)) == "ok"
    assert made.journal.damaged == 1
    assert made.open() == "ok"
    assert made.records() == [*held, (3, record_of(3))]
    assert made.journal.damaged == made.content().damaged == 1


# ---- drivers and memories that fail


def test_bytes_that_landed_though_the_driver_says_no_count_once(log):
    """A driver that reports a timeout after the bytes landed, in any slot."""
    for at in range(18):
        made = log()
        made.memory.lie = at * made.slot
        held = fill(made, 4)
        assert made.open() == "ok"
        assert made.records() == held
        held += fill(made, 1, first=4)
        assert made.records() == held
        assert made.clear() == "ok"


@pytest.mark.parametrize("way", ["fail", "skip"])
def test_a_slot_that_is_not_programmed_is_passed_over(log, way):
    for at in range(18):
        made = log()
        setattr(made.memory, way, at * made.slot)
        held = fill(made, 4)
        assert made.open() == "ok"
        assert made.records() == held
        held += fill(made, 1, first=4)
        assert made.records() == held
        bad = at - made.journal.block // made.slot
        assert made.journal.damaged == made.content().damaged == (HEADS <= bad < HEADS + 5)


def test_a_block_that_cannot_be_erased_costs_nothing(log):
    made = log()
    held = fill(made, 3)
    made.memory.stuck = made.storage.block_size - made.journal.block
    assert made.move(lambda number, record: False) == "storage"
    assert made.records() == held
    assert made.append(record_of(3)) == "storage"
    made.memory.stuck = -1
    assert made.append(record_of(3)) == "ok"
    assert made.records() == [*held, (3, record_of(3))]


def test_a_move_that_fails_at_the_head_is_made_again(log):
    """No slot takes a head: then the records stay where they are, and later calls try again."""
    made = log()
    held = fill(made, 3)
    other = made.storage.block_size - made.journal.block
    for slot in range(HEADS):
        made.library.flash_wear(ctypes.byref(made.memory), other + slot * made.slot + 9, 255, 0)
    assert made.move(lambda number, record: False) == "storage"
    assert made.records() == held
    assert made.append(record_of(3)) == "storage"
    assert made.open() == "ok"
    assert made.records() == held


@pytest.mark.parametrize("program_size", [1, 16])
@pytest.mark.parametrize("kind", ["erased to 255", "erased to 0", "encrypted"])
def test_a_stuck_bit_stops_nothing(native, log, kind, program_size):
    made = log(kind=kind, program_size=program_size, slots=8 if program_size == 1 else 6)
    passed = ctypes.c_uint32()
    fault = made.library.journal_wear(
        ctypes.byref(made.memory), ctypes.byref(made.storage), SIZE, ctypes.byref(passed)
    )
    assert fault == 0, f"journal_trial.c:{fault}"
    assert passed.value > 1000


def test_a_bit_that_flips_costs_one_record_at_most(log):
    for program_size in (1, 64):
        fresh = log(program_size=program_size)
        held = fill(fresh, 5)
        start, slot = fresh.journal.block, fresh.slot
        for at in range(start, start + fresh.storage.block_size):
            for mask in (1, 64):
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


@pytest.mark.parametrize("kind", ["erased to 255", "erased to 0", "encrypted"])
def test_two_power_cuts_keep_what_was_confirmed(log, flash, kind):
    for cut in range(60):
        made = log(kind=kind, seed=cut + 1, slots=12)
        held = fill(made, 6)
        for _ in range(2):
            assert made.open() == "ok"
            made.memory.cut = made.memory.changes + cut % 10
            made.append(record_of(6))
            made.memory.dead, made.memory.cut = 0, flash.NEVER
        assert made.open() == "ok"
        assert made.append(record_of(9)) == "ok"
        assert made.records()[:6] == held
        assert {record for _, record in made.records()[6:]} <= {record_of(6), record_of(9)}


# ---- the code


def test_it_is_small_and_needs_nothing_of_twins(native, tmp_path):
    source = native.FIRMWARE / "src" / "twin_journal.c"
    for cpu, most in (("cortex-m0", 1500), ("cortex-m4", 1400)):
        output = tmp_path / f"{cpu}.o"
        options = (f"-mcpu={cpu}", "-mthumb", "-Os", "-c")
        native.compile_c(output, *options, compiler="arm-none-eabi-gcc", sources=[source])
        text, data, bss = native.run("arm-none-eabi-size", output).splitlines()[1].split()[:3]
        assert int(text) < most
        assert (data, bss) == ("0", "0")
        answer = native.run("arm-none-eabi-nm", "--undefined-only", output)
        needed = {line.split()[-1] for line in answer.splitlines()}
        assert needed <= {"__aeabi_uidiv"}


@pytest.mark.parametrize("language", ["c", "c++"])
def test_it_can_be_left_out(native, tmp_path, language):
    source, output = native.FIRMWARE / "src" / "twin_journal.c", tmp_path / "journal.o"
    words = ("-c", *native.WARNINGS, *native.INCLUDES, "-DTWIN_STORE=0", f"-x{language}", source)
    native.run("gcc", *words, "-o", output)
    assert native.run("nm", output) == ""


def test_avr_has_it_where_it_is_asked_for(native, tmp_path):
    source, output = native.FIRMWARE / "src" / "twin_journal.c", tmp_path / "journal.o"
    options = ("-mmcu=atmega328p", "-Os", "-c", "-DTWIN_STORE=1", "-Wno-pedantic")
    words = (*native.WARNINGS, *options, *native.INCLUDES, source, "-o", output)
    native.run("avr-gcc", "-std=gnu99", *words)
    assert "twin_journal_open" in native.run("avr-nm", "--defined-only", output)


def test_words_that_a_machine_has_the_other_way_round(native, tmp_path):
    """A compiler that does not tell the order of bytes gets code for either."""
    source = native.FIRMWARE / "src" / "twin_journal.c"
    for name in ("before", "after"):
        text = (native.FIRMWARE / "src" / "twin_words.h").read_text()
        if name == "after":
            text = text.replace("__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__", "0")
            assert "(0)" in text
        (tmp_path / "twin_words.h").write_text(text)
        (tmp_path / "twin_journal.c").write_text(source.read_text())
        (tmp_path / "main.c").write_text(ORDER_PROGRAM)
        program = tmp_path / name
        native.compile_c(program, "-O1", sources=[tmp_path / "twin_journal.c", tmp_path / "main.c"])
    assert native.run(tmp_path / "before") == native.run(tmp_path / "after") != ""


ORDER_PROGRAM = r"""
#include "twin_journal.h"
#include <stdio.h>
#include <string.h>
static uint8_t cells[512];
static int get(void *c, uint32_t at, void *to, uint32_t n) {
    (void)c;
    memcpy(to, cells + at, n);
    return 0;
}
static int put(void *c, uint32_t at, const void *from, uint32_t n) {
    (void)c;
    memcpy(cells + at, from, n);
    return 0;
}
static int wipe(void *c, uint32_t at) { (void)c; memset(cells + at, 255, 256); return 0; }
int main(void) {
    twin_storage storage = {get, put, wipe, 0, 256, 1};
    uint32_t buffer[8], i;
    twin_journal journal;
    memset(buffer, 0, sizeof buffer);
    memset(cells, 255, sizeof cells);
    if (twin_journal_open(&journal, &storage, 5, 24, buffer))
        return 1;
    for (i = 0; i < 7; i++) {
        memset(journal.record, (int)i, 24);
        if (twin_journal_append(&journal) != TWIN_OK &&
            twin_journal_move(&journal, 0, 0, 9) != TWIN_OK)
            return 2;
    }
    for (i = 0; i < sizeof cells; i++)
        printf("%02x", cells[i]);
    return 0;
}
"""


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
