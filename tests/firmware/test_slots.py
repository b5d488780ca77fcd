"""Two banks: an update proves itself or is undone, and no file that is wrong gets that far."""

import ctypes
import re
import struct
import zlib
from dataclasses import replace

import pytest

from twinedge.runtime.journal import Head, read_journal

SCRATCH = 1 << 14


@pytest.fixture(scope="module")
def pack(packs, cases):
    return cases.draw(packs, "one-anchor-one-feature", scaled=True)


@pytest.fixture(scope="module")
def first(releases, pack):
    """The release that came with the program."""
    return releases.release(pack, 5)


@pytest.fixture(scope="module")
def other(releases, pack):
    """A later release of the same schema: ``other(counter)``."""

    def make(counter, **more):
        moved = replace(pack, targets=pack.targets // 2 + counter)
        return releases.release(moved, counter, **more)

    return make


@pytest.fixture
def device(native, flash, releases, library, first):
    """Make a device that is switched on for the first time."""

    def make(**given):
        made = releases.Device(native, flash, library, first, **given)
        assert made.start() == "ok"
        assert made.in_use() == first
        return made

    return make


# ---- an update that succeeds, and one that does not


def test_an_update_is_tried_confirmed_and_stays(device, other, first):
    made = device()
    assert made.state() == (0, 0, 0, 0, 0)
    assert made.update(other(6)) == "ok"
    assert made.in_use() == first  # until the next start
    assert made.state() == (0, 4, 0, 1, 0)
    assert made.start() == "ok"
    assert (made.in_use(), made.slots.on_trial) == (other(6), 1)
    assert made.call("confirm") == "ok"
    assert made.state() == (1, 0, 6, 1, 0)
    for counter in (7, 8, 9):  # and so on, from bank to bank
        assert made.update(other(counter)) == "ok"
        assert made.start() == "ok"
        assert made.call("confirm") == "ok"
        assert made.start() == "ok"
        assert (made.in_use(), made.slots.on_trial) == (other(counter), 0)
    assert made.state() == (0, 0, 9, 4, 0)


@pytest.mark.parametrize("starts", [1, 2, 255])
def test_a_trial_that_nobody_confirms_is_undone(device, other, first, starts):
    made = device()
    assert made.update(other(6), starts=starts) == "ok"
    for left in range(starts, 0, -1):
        assert made.start() == "ok"
        assert (made.in_use(), made.state()) == (other(6), (0, left, 0, 1, 0))
    for _ in range(2):
        assert made.start() == "ok"
        assert (made.in_use(), made.slots.on_trial) == (first, 0)
        assert made.state() == (0, 0, 0, 1, 1)
    assert made.update(other(6)) == "ok"  # another try is possible


def test_a_trial_can_be_ended_at_once(device, other, first):
    made = device()
    assert made.call("undo") == "trial"
    assert made.update(other(6)) == "ok"
    assert made.call("undo") == "ok"  # even before the first start
    assert made.update(other(6)) == "ok"
    assert made.start() == "ok"
    assert made.call("undo") == "ok"
    assert (made.slots.bank, made.slots.on_trial) == (0, 0)
    assert made.call("confirm") == "early"  # the pack in use now was not checked
    assert made.start() == "ok"
    assert made.in_use() == first
    assert made.state() == (0, 0, 0, 2, 2)


def test_a_pack_on_trial_that_is_damaged_is_undone_at_start(device, other, first):
    made = device()
    assert made.update(other(6)) == "ok"
    made.memory.cell[made.size + 200] ^= 4
    assert made.start() == "ok"
    assert made.in_use() == first
    assert made.state() == (0, 0, 0, 1, 1)


def test_a_pack_in_use_that_is_damaged_is_not_used(device):
    made = device()
    made.memory.cell[200] ^= 4
    assert made.start() == "signature"
    assert made.start(verify=False) == "body_crc"


def test_the_first_release_can_be_confirmed_too(device, other):
    made = device()
    assert made.call("confirm") == "ok"
    assert made.state() == (0, 0, 5, 0, 0)
    assert made.update(other(4)) == "counter"
    assert made.update(other(5)) == "ok"


def test_a_device_without_a_pack_takes_any_schema(native, flash, releases, library, other):
    made = releases.Device(native, flash, library, b"")
    assert made.start() == "unsigned" or made.start() in {"magic", "truncated"}
    assert made.call("confirm") == "early"
    assert made.update(other(6, schema=b"something else..")) == "ok"
    assert made.start() == "ok"
    assert made.call("confirm") == "ok"
    assert made.state() == (1, 0, 6, 1, 0)


def test_without_a_verifier_packs_need_no_signature(device, releases, pack, first):
    made = device()
    plain = releases.released(pack, 6)
    assert made.update(plain) == "unsigned"
    assert made.update(plain, verify=False) == "ok"
    assert made.start() == "ok"  # the trial ended, as a verifier was there at start
    assert made.in_use() == first
    assert made.update(plain, verify=False) == "ok"
    assert made.start(verify=False) == "ok"
    assert made.in_use() == plain


@pytest.mark.parametrize("piece", [1, 3, 16, 64, 100, 4096])
@pytest.mark.parametrize("unit", [1, 4, 16, 256])
def test_pieces_may_have_any_size(device, other, piece, unit):
    made = device(unit=unit)
    data = other(6)
    assert made.update(data, piece=piece) == "ok"
    assert made.bank(1)[: len(data)] == data
    assert made.memory.changes == 1 + -(-len(data) // unit)
    beyond = -(-len(data) // unit) * unit
    assert set(made.bank(1)[beyond:]) == {255}


def test_a_check_goes_in_steps_of_any_size(device, other):
    made = device()
    assert made.send(other(6)) == "ok"
    steps = []
    for step in (1, 64, 4096):
        made.steps = 0
        assert made.check(1, step=step) == "ok"
        steps.append(made.steps)
    assert steps[0] > 4 * steps[1] > 4 * steps[2]
    assert steps[2] >= 1 + 3  # one for each query
    assert made.call("try", 1) == "ok"


# ---- in which order


def test_calls_out_of_order_are_refused(device, other, first):
    made = device()
    data = other(6)
    assert made.call("write", data, 4) == made.call("finish") == made.call("try", 3) == "early"
    assert made.call("begin") == "ok"
    assert made.check(1) == "early"  # not finished
    assert made.call("try", 3) == "early"
    assert made.send(data) == "ok"
    assert made.call("write", data, 4) == made.call("finish") == "early"
    assert made.call("try", 3) == "early"  # not checked
    assert made.check(1) == "ok"
    assert made.call("try", 0) == "value"
    made.log.error = made.log.calls
    assert made.call("try", 1) == "storage"
    assert made.call("try", 1) == "ok"
    assert made.state() == (0, 2, 0, 1, 0)  # one trial
    assert made.call("try", 1) == "early"
    assert made.call("confirm") == "trial"  # it has not started yet
    assert made.call("begin") == made.update(other(7)) == "trial"
    assert made.start() == "ok"
    assert made.call("begin") == "trial"
    assert made.call("confirm") == "ok"
    assert made.bank(0)[: len(first)] == first  # until the next update begins
    assert made.call("begin") == "ok"
    assert set(made.bank(0)) == {255}


def test_an_update_larger_than_the_bank_is_refused(device, other, first):
    made = device(bank=1 << 11)
    data = other(6)
    assert made.update(data + bytes((1 << 11) - len(data) + 16)) == "length"
    assert made.call("write", b"1234", 4) == "early"
    assert made.start() == "ok"
    assert made.in_use() == first
    assert made.update(data) == "ok"


def test_a_model_needs_its_scratch(device, other):
    made = device()
    assert made.send(other(6)) == "ok"
    assert made.check(1, scratch=8) == "scratch"
    assert made.call("try", 3) == "early"
    assert made.check(1) == "ok"


def test_storage_and_memory_that_cannot_serve(device):
    made = device()
    for what in (made.banks, made.storage):
        for name in ("program", "erase"):
            function = getattr(what, name)
            setattr(what, name, None)
            assert made.open() == "store"
            setattr(what, name, function)
        for unit in (0, 3, 24, 512):
            before, what.program_size = what.program_size, unit
            assert made.open() == "store"
            what.program_size = before
    for size in (2**31, 100):
        before, made.banks.block_size = made.banks.block_size, size
        assert made.open() == "store"
        made.banks.block_size = before
    made.storage.block_size = 3 * 28
    assert made.open() == "store"
    for call in ("begin", "confirm", "undo"):
        assert made.call(call) in {"store", "early", "trial"}
    made.storage.block_size = 4 * 32
    assert made.open(shift=1) == "store"
    made.banks.read = None
    assert made.open() == "ok"


def test_memory_that_is_zero_is_refused(native, library, releases):
    slots, check, model = releases.SlotsInC(), native.Run(), native.Model()
    ctypes.memset(ctypes.byref(check), 0, ctypes.sizeof(check))
    where = ctypes.byref(slots)
    calls = {
        "begin": library.twin_slots_begin(where),
        "write": library.twin_slots_write(where, b"1234", 4),
        "finish": library.twin_slots_finish(where),
        "try": library.twin_slots_try(where, 1),
        "confirm": library.twin_slots_confirm(where),
        "undo": library.twin_slots_undo(where),
        "step": library.twin_check_step(ctypes.byref(check), 16, None, 0),
        "check": library.twin_check_begin(
            ctypes.byref(check), where, ctypes.byref(model), None, None, None
        ),
    }
    named = {name: native.name_of(status) for name, status in calls.items()}
    assert named == {
        "begin": "store",
        **dict.fromkeys(["write", "finish", "try", "confirm"], "early"),
        "undo": "trial",
        "step": "model",
        "check": "store",
    }


# ---- the journal


def test_the_journal_has_the_bytes_of_the_page(device, other):
    made = device()
    assert made.update(other(6), starts=2) == "ok"
    found = read_journal(made.log.content())
    assert found.head.owner == int.from_bytes(b"BANK", "little")
    assert [bytes(one) for one in found.records] == [struct.pack("<5I", 0, 3, 0, 1, 0)]
    assert made.start() == "ok"
    assert made.call("confirm") == "ok"
    states = [struct.unpack("<5I", one) for one in read_journal(made.log.content()).records]
    assert states[-1] == (1, 0, 6, 1, 0)


def test_a_journal_that_names_no_bank_names_one_of_them(device, flash, other):
    """With right checksums, and if the records behind it cannot be read."""
    made = device()
    assert made.update(other(6), starts=2) == "ok"
    content = made.log.content()
    at = content.index(struct.pack("<5I", 0, 3, 0, 1, 0))
    record = bytearray(content[at - 8 : at + 20])
    struct.pack_into("<I", record, 8, 7)
    generation = read_journal(content).head.generation
    struct.pack_into("<I", record, 0, zlib.crc32(struct.pack("<I", generation) + record[4:]))
    ctypes.memmove(ctypes.byref(made.log.cell, at - 8), bytes(record), len(record))
    for call in range(40):
        made.log.error = made.log.calls + call
        made.open()
        assert made.slots.bank in (0, 1)
        made.call("undo")
        assert made.slots.bank in (0, 1)
        made.log.error = flash.NEVER
        ctypes.memmove(made.log.cell, bytes(content), len(content))
        ctypes.memmove(ctypes.byref(made.log.cell, at - 8), bytes(record), len(record))


def test_a_journal_whose_numbers_have_ended_takes_no_update(device, other, first):
    made = device()
    head = Head(1, int.from_bytes(b"BANK", "little"), 0, 28, 20, 2**32 - 1)
    ctypes.memmove(made.log.cell, 2 * head.to_bytes(), 2 * head.slot)
    assert made.start() == "ok"
    assert made.update(other(6)) == "storage"
    assert made.in_use() == made.bank(0)[: len(first)] == first
    assert set(made.bank(1)) == {255}


def test_records_that_are_gone_when_they_are_read_are_no_new_device(device, other):
    """A block that cuts left half erased may look whole at opening, and lack its record later."""
    made = device()
    assert made.update(other(6)) == "ok"
    assert made.start() == "ok"
    assert made.call("confirm") == made.call("confirm") == "ok"  # now both blocks have it
    state, start = made.state(), made.slots.journal.block
    assert state == (1, 0, 6, 1, 0)
    for at in range(start + 28, start + 56):  # the second head
        made.log.cell[at] = 255
    made.log.weak[start + 3 * 28 + 8] = 1  # of the record
    held, found = made.log.content(), set()
    for _ in range(100):
        status = made.open()
        found.add(status)
        assert status == "storage" or made.state() == state
        assert made.log.content() == held
    assert found == {"ok", "storage"}


def test_another_journal_is_not_touched(native, flash, logs, device, tmp_path_factory):
    made = device()
    library = logs.load(native, flash, tmp_path_factory.mktemp("journal"))
    log = logs.Log(native, flash, library)
    assert log.open() == "ok"
    assert log.append(bytes(24)) == "ok"
    ctypes.memmove(made.log.cell, log.memory.content(), 4 * 32)
    held = made.log.content()
    assert made.open() in {"other", "ok"}
    if made.open() == "other":
        assert made.call("begin") == "other"
        assert made.log.content() == held


@pytest.mark.parametrize("slots", [4, 5, 9])
def test_a_journal_of_any_size_goes_on_for_ever(
    native, flash, releases, library, first, other, slots
):
    made = releases.Device(native, flash, library, first)
    made.storage.block_size = made.log.block_size = slots * 28
    for counter in range(6, 40):
        assert made.start() == "ok"
        assert made.update(other(counter)) == "ok"
        assert made.start() == "ok"
        assert made.call("confirm" if counter % 3 else "undo") == "ok"
    assert made.state()[2:] == (38, 34, 12)


def test_storage_that_fails_changes_nothing_that_cannot_be_repeated(device, flash, other, first):
    """Let each call of the journal's storage fail once, in each change."""
    for call in range(60):
        made = device()
        made.log.error = made.log.calls + call
        for _ in range(4):
            status = made.update(other(6))
            if status == "trial":  # it may have been written all the same
                assert made.call("undo") in {"ok", "storage"}
            elif status == "ok":
                break
            else:
                assert status == "storage"
        assert status == "ok"
        opened = made.open()
        if opened == "storage" and not made.slots.trial:
            assert made.slots.bank == 0  # nothing could be read, so nothing can be changed
            assert made.call("begin") == "storage"
        elif opened == "storage":  # the start could not be counted, so it is not one
            assert (made.slots.bank, made.slots.on_trial) == (0, 0)
        if opened == "storage":
            assert made.start() == "ok"
        else:
            assert made.check(made.slots.bank) == "ok"
        assert made.in_use() == other(6)
        if made.call("confirm") != "ok":
            assert made.call("confirm") == "ok"
        made.log.error = flash.NEVER
        assert made.start() == "ok"
        assert (made.in_use(), made.state()[:3]) == (other(6), (1, 0, 6))


def test_banks_that_cannot_be_written_keep_the_pack_in_use(device, flash, other, first):
    data = other(6)
    for call in range(1 + -(-len(data) // 64)):
        made = device()
        made.memory.error = made.memory.calls + call
        assert made.update(data) == "storage"
        assert made.call("finish") == made.call("try", 1) == "early"
        made.memory.error = flash.NEVER
        assert made.start() == "ok"
        assert made.in_use() == first
        assert made.update(data) == "ok"


# What a reader of the header would supply.
AROUND = """
#include "twin_slots.h"
#include "twin_watch.h"
extern const twin_storage journal, banks;
extern const void *const BANKS[2];
extern uint32_t memory[64], scratch[512];
extern twin_slots slots; extern twin_check check; extern twin_model model, other;
extern twin_watch watch; extern void *keys; extern uint8_t piece[64]; extern uint32_t count;
int verify(void *context, const twin_signed *part); uint32_t receive(uint8_t *to);
void do_without_it(void); void feed_the_watchdog(void); void restart(void);
void report(const char *text); twin_status example(twin_status status);
twin_status example(twin_status status) {
%s
    return status;
}
"""


def test_the_examples_of_the_header_compile(native, tmp_path):
    header = (native.FIRMWARE / "include" / "twin_slots.h").read_text()
    found = re.findall(r"(?m)(?:^ \*     .*\n)+", header)
    assert len(found) == 3
    for number, code in enumerate(found):
        source = tmp_path / f"example{number}.c"
        source.write_text(AROUND % re.sub(r"(?m)^ \* ?", "", code))
        native.compile_c(tmp_path / "example.o", "-O2", "-c", sources=[source])
