"""The WebAssembly in the repository is what its sources make, byte for byte."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "export" / "twinedge_export" / "report" / "templates" / "twin.wasm"
MOST_BYTES = 16_000


def made_with():
    """The compiler that a file of WebAssembly names: "14.0.6"."""
    return re.search(rb"clang\W+(\d+\.\d+\.\d+)", BUILT.read_bytes())[1].decode()


def clang():
    """The compiler that is here, or nothing."""
    if not (shutil.which("clang") and shutil.which("wasm-ld")):
        return None
    said = subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True)
    return re.search(r"version (\d+\.\d+\.\d+)", said.stdout)[1]


def test_the_same_sources_give_the_same_bytes(tmp_path):
    here = clang()
    if os.environ.get("CI") != "true":
        if here is None:
            pytest.skip("clang and lld are not installed: apt-get install clang lld")
        if here != made_with():
            pytest.skip(f"the file was made with clang {made_with()}, and this is {here}")
    assert here == made_with(), f"made with clang {made_with()}, here is {here}: make wasm"
    sources = tmp_path / "elsewhere" / "firmware_ref"
    shutil.copytree(ROOT / "firmware_ref", sources, ignore=shutil.ignore_patterns("build", "test"))
    command = ["make", "--silent", "-C", sources, "wasm", "OPTIONS=", f"BUILD={tmp_path}/built"]
    subprocess.run(command, check=True, capture_output=True)
    same = (tmp_path / "built" / "twin.wasm").read_bytes() == BUILT.read_bytes()
    assert same, "the sources have changed since it was built: make wasm"


def test_it_is_small_and_asks_for_nothing():
    data = BUILT.read_bytes()
    assert data[:8] == b"\0asm\1\0\0\0"
    assert len(data) < MOST_BYTES
    sections = set()
    at = 8
    while at < len(data):
        kind, at = data[at], at + 1
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        sections.add(kind)
        at += length
    assert 2 not in sections  # imports: the page has nothing to lend it
    assert str(ROOT).encode() not in data
