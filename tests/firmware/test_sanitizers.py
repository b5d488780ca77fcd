"""The other tests once more, with a library that checks its memory and arithmetic."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SUBJECTS = ("bits", "refusals", "api", "misuse", "store", "journal", "journal_cuts")
WATCH = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")


@pytest.mark.slow  # `make fuzz` is the quick check
def test_the_tests_pass_under_address_and_undefined_behaviour_sanitizers(native):
    preload = native.run("gcc", "-print-file-name=libasan.so").strip()
    environment = os.environ | {
        "TWIN_TEST_OPTIONS": " ".join(WATCH),
        "TWIN_TEST_QUERIES": "100",
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps some memory for ever
    }
    files = [HERE / f"test_{subject}.py" for subject in SUBJECTS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files],
        env=environment,
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_replay_with_memory_that_ends_where_it_should(short_replay):
    wrong, _ = short_replay.mismatches(short_replay.build(*WATCH, compiler="clang"))
    assert wrong == 0
