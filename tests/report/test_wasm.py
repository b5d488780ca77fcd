"""The WebAssembly in the repository is what its sources compile to."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "export" / "twinedge_export" / "report" / "templates" / "twin.wasm"
MOST_BYTES = 16_000


def compiler(said):
    """The version of clang in a compiler's output, or in a file that it made."""
    return re.search(rb"clang\D+(\d+\.\d+\.\d+)", said)[1]


@pytest.fixture(scope="module")
def built_here(tmp_path_factory):
    """The file built by the local compiler, in a different folder."""
    if not (shutil.which("clang") and shutil.which("wasm-ld")):
        if os.environ.get("CI") != "true":
            pytest.skip("clang and lld are not installed: apt-get install clang lld")
        pytest.fail("clang and lld are not installed")
    folder = tmp_path_factory.mktemp("elsewhere")
    sources = folder / "firmware_ref"
    shutil.copytree(ROOT / "firmware_ref", sources, ignore=shutil.ignore_patterns("build", "test"))
    command = ["make", "--silent", "-C", sources, "wasm", "OPTIONS=", f"BUILD={folder}/built"]
    subprocess.run(command, check=True, capture_output=True)
    return (folder / "built" / "twin.wasm").read_bytes()


def sections_of(data):
    """Content of the sections of a module, by their kind."""
    assert data[:8] == b"\0asm\1\0\0\0"
    sections = {}
    at = 8
    while at < len(data):
        kind, (length, start) = data[at], number_at(data, at + 1)
        sections[kind] = data[start : start + length]
        at = start + length
    return sections


def number_at(data, at):
    """A LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def test_the_same_sources_give_the_same_bytes(built_here):
    shipped = BUILT.read_bytes()
    if compiler(built_here) != compiler(shipped):
        pytest.skip("another clang than this one made the file, so its bytes are others")
    assert built_here == shipped, "the sources have changed since it was built: make wasm"


def test_it_is_small_and_asks_for_nothing():
    data = BUILT.read_bytes()
    assert len(data) < MOST_BYTES
    assert 2 not in sections_of(data)  # imports: it needs nothing from the page
    assert str(ROOT).encode() not in data
