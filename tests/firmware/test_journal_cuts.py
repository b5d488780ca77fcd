"""The journal: no power cut costs a record that was confirmed, or leaves half a change."""

import ctypes

import numpy as np
import pytest

SHAPES = [(most, more) for most in (2, 5, 9) for more in (4, 5, 8)]  # records, slots beyond them


@pytest.fixture(scope="module")
def library(native, flash, logs, tmp_path_factory):
    return logs.load(native, flash, tmp_path_factory.mktemp("journal"))


def try_all(flash, library, program_size, rounds, changes):
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
            fault = library.journal_trial(*where, size, most, changes, nested, counts)
            assert fault == 0, f"journal_trial.c:{fault}, seed {start}, {most} + {more}, {kind}"
            total += counts
    return total


def assert_survived(total, cuts):
    assert total[0] > cuts
    assert total[1] > cuts / 10  # errors
    assert total[2] > cuts / 20  # the records of before
    assert total[3] > cuts / 100  # those of after


def test_a_power_cut_leaves_the_records_of_before_or_of_after(native, flash, library):
    total, share = np.zeros(4, int), 15 if native.EXTRA_OPTIONS else 1
    for program_size in flash.PROGRAM_SIZES:  # large slots take longer
        total += try_all(
            flash, library, program_size, 1, (90 if program_size < 32 else 26) // share
        )
    assert_survived(total, 100_000 if share == 1 else 5_000)


@pytest.mark.slow
@pytest.mark.parametrize("program_size", [2**i for i in range(9)])
def test_a_million_power_cuts(native, flash, library, program_size):
    if native.EXTRA_OPTIONS:
        pytest.skip("instrumented")
    total = try_all(flash, library, program_size, 20, 30)
    assert_survived(total, 1_000_000 / 9)


# What makes the journal safe; without it, a trial fails. Some faults take two cuts in a row.
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


@pytest.mark.parametrize("why", BROKEN)
def test_the_trial_finds_a_journal_that_is_not_safe(native, flash, logs, tmp_path, why):
    if native.EXTRA_OPTIONS:
        pytest.skip("instrumented")
    right, wrong = BROKEN[why]
    code = (native.FIRMWARE / "src" / "twin_journal.c").read_text()
    assert code.count(right) == 1
    library = logs.load(native, flash, tmp_path, code.replace(right, wrong))
    sizes = flash.PROGRAM_SIZES[:4] * 10
    with pytest.raises(AssertionError, match=r"journal_trial\.c:"):
        sum(try_all(flash, library, program_size, 2, 20) for program_size in sizes)
