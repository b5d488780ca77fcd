"""The other tests once more, with a library that checks its memory, arithmetic and threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinedge.pack import write_pack

HERE = Path(__file__).parent
SUBJECTS = ("bits", "refusals", "api", "misuse", "store", "journal")
CHECKED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")


@pytest.mark.slow  # `make fuzz` is the quick check
def test_the_tests_pass_under_address_and_undefined_behaviour_sanitizers(native):
    environment = os.environ | {
        "TWIN_TEST_OPTIONS": " ".join(CHECKED),
        "TWIN_TEST_QUERIES": "100",
        "LD_PRELOAD": native.run("gcc", "-print-file-name=libasan.so").strip(),
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


def test_replay_with_memory_that_ends_where_it_should(native, short_replay):
    wrong, _ = short_replay.mismatches(short_replay.build(*native.SANITIZED))
    assert wrong == 0


@pytest.mark.slow  # to compile; tests/runtime has threads without the sanitizer
def test_eight_threads_share_a_model_without_a_race(native, small, tmp_path):
    (tmp_path / "small.twin").write_bytes(write_pack(small))
    sources = [*native.SOURCES, native.FIRMWARE / "test" / "threads.c"]
    options = ("-Og", "-g", "-pthread", "-fsanitize=thread")
    program = native.compile_c(tmp_path / "threads", *options, sources=sources)
    # The sanitizer needs addresses that address space randomisation may have used.
    output = native.run("setarch", "--addr-no-randomize", program, tmp_path / "small.twin")
    assert output == "20000 predictions, 0 wrong, prepared\n"
