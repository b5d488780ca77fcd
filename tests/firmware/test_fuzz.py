"""The fuzzer starts from sound packs, gets past the checks, and finds nothing."""

import re
import shutil
import subprocess

import pytest

from twinedge.pack import write_pack

# The kept corpus: a few kilobytes of packs that have one of everything between them.
CORPUS = {
    "some-of-everything": "small.twin",
    "one-anchor-one-feature": "least.twin",
    "odd-widths-int16": "int16.twin",
    "lowest-weights-int16": "lowest.twin",
    "neighbours-of-four-twins": "neighbours.twin",
    "more-neighbours-than-anchors": "all_neighbours.twin",
}


@pytest.fixture(scope="module")
def kept(native):
    return native.FIRMWARE / "test" / "corpus"


@pytest.fixture(scope="module")
def fuzzer(native, tmp_path_factory):
    sources = [*native.SOURCES, native.FIRMWARE / "test" / "fuzz_open.c"]
    options = ("-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
    path = tmp_path_factory.mktemp("fuzzer") / "fuzz_open"
    return native.compile_c(path, *options, compiler="clang", sources=sources)


def test_the_corpus_is_what_these_packs_are(kept, packs, cases):
    assert {path.name for path in kept.iterdir()} == set(CORPUS.values())
    for case, name in CORPUS.items():
        assert (kept / name).read_bytes() == write_pack(cases.draw(packs, case), metadata=False)


def fuzz(fuzzer, kept, folder, *limits):
    """Fuzz from a copy of the corpus; returns how much code was seen at first and in the end."""
    shutil.copytree(kept, folder / "corpus")
    done = subprocess.run(
        [fuzzer, "-seed=1", "-max_len=4096", "-timeout=10", *limits, folder / "corpus"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    seen = [int(number) for number in re.findall(r"cov: (\d+)", done.stderr)]
    return seen[0], seen[-1]


def test_some_fuzzing_finds_nothing(fuzzer, kept, tmp_path):
    start, end = fuzz(fuzzer, kept, tmp_path, "-runs=5000")
    # Sound packs are evaluated from the start; damaged ones lead to checks that were not seen yet.
    assert end > start > 200


@pytest.mark.slow
def test_a_minute_of_fuzzing_finds_nothing(fuzzer, kept, tmp_path):
    fuzz(fuzzer, kept, tmp_path, "-max_total_time=60")
