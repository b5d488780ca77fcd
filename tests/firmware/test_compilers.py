"""The bits do not depend on the compiler, on how hard it tries, or on the size of a block."""

import pytest


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_and_levels(replay, compiler, level):
    wrong, total = replay.mismatches(replay.build(level, compiler=compiler))
    assert wrong == 0
    assert total > 100_000


@pytest.mark.parametrize(
    "options",
    [
        ("-DTWIN_BLOCK=1",),
        ("-DTWIN_BLOCK=2",),
        ("-DTWIN_BLOCK=3", "-DTWIN_PARTIAL=0"),
        ("-ffp-contract=fast", "-std=gnu99"),
        ("-ffreestanding", "-DTWIN_BLOCK=2"),
    ],
    ids=" ".join,
)
def test_blocks_and_flags(short_replay, options):
    wrong, _ = short_replay.mismatches(short_replay.build("-O2", *options))
    assert wrong == 0


def test_bytes_are_composed_where_loads_are_not_known_to_fit(short_replay):
    # As on a big-endian machine.
    program = short_replay.build("-O2", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321")
    wrong, _ = short_replay.mismatches(program)
    assert wrong == 0


def test_fast_math_is_refused(short_replay):
    with pytest.raises(AssertionError, match="ffast-math"):
        short_replay.build("-O2", "-ffast-math")
