"""C files joined into one: shared headers appear once, templates with each file, macros end.

That it compiles and computes the same bits is tested in tests/firmware/test_single_file.py.
"""

import re
import shutil
import subprocess

import pytest

from twinedge.errors import InputError
from twinedge_export.amalgamation import amalgamate, firmware_folder


@pytest.fixture(scope="module")
def made():
    return amalgamate()


def test_it_is_made_of_all_files_of_the_runtime(made):
    root = firmware_folder()
    for text, folder in ((made.header, "include"), (made.source, "src")):
        for path in sorted((root / folder).rglob("*.[ch]")):
            if folder == "src" and (root / "include" / path.name).exists():
                continue  # which is the other one
            assert f"/* ==== {path.relative_to(root).as_posix()} =" in text
            first = re.search(r"(?s)/\*.*?\*/", path.read_text())[0]
            assert first in text


def test_a_header_with_a_guard_comes_once_and_a_template_with_each_file(made):
    root = firmware_folder()
    counts = {False: set(), True: set()}
    for path in (root / "src").rglob("*.h"):
        if (root / "include" / path.name).exists():
            continue  # which leads to the other one
        guarded = re.search(r"^#ifndef \w+_H$", path.read_text(), re.M) is not None
        counts[guarded].add(made.source.count(f"==== {path.relative_to(root).as_posix()} ="))
    assert counts[True] == {1}
    assert min(counts[False]) >= 1
    assert max(counts[False]) > 1


def test_macros_of_a_file_end_with_it(made):
    parts = re.split(r"/\* ==== (src/\S+\.c) =+ \*/", made.source)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        own = (firmware_folder() / name).read_text()
        for macro in re.findall(r"^#define (\w+)", own, re.M):
            assert f"\n#undef {macro}\n" in text, (name, macro)


def test_a_header_that_is_not_there_is_named(tmp_path):
    for folder in ("include", "src"):
        shutil.copytree(firmware_folder() / folder, tmp_path / folder)
    (tmp_path / "src" / "kernels" / "layers.h").unlink()
    with pytest.raises(InputError, match=r"\.[ch]: includes layers\.h, which does not exist"):
        amalgamate(tmp_path)


def test_without_the_sources_of_the_runtime_it_says_what_to_do(complaint, monkeypatch, tmp_path):
    monkeypatch.setattr("twinedge_export.amalgamation._HOMES", (tmp_path,))
    assert complaint(firmware_folder).endswith("are not installed: reinstall twinedge")


def test_nothing_else_is_included(made):
    assert re.findall("#include [^<].*", made.header) == []
    assert re.findall("#include [^<].*", made.source) == ['#include "twin.h"']


def test_make_writes_the_same_bytes(made, tmp_path):
    folder = tmp_path / "new" / "folder"
    command = ["make", "--no-print-directory", "amalgamation", f"OUT={folder}"]
    here = firmware_folder().parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{folder}/twin.h", f"{folder}/twin.c"]
    assert (folder / "twin.h").read_text() == made.header
    assert (folder / "twin.c").read_text() == made.source
