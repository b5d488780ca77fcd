"""Emulators that fail: each is reported in one line, and none hangs a run."""

import sys
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge_export.boards.board import Port
from twinedge_export.boards.build import Image, Sizes, count_query
from twinedge_export.boards.run import run_program

WORDS = {"open": 2, "done": 0}

LINK_MAP = """Linker script and memory map

 .text.twin_predict
                0x0000000000001000       0x40 twin_predict.o
"""
# An emulator's log of a block of two instructions, executed once per query.
LOG = """IN: twin_predict
0x00001000:  e0800001  add r0, r0, r1
0x00001004:  e12fff1e  bx lr

Trace 0: 0x7f00 [00000000/00001000/00000000/ff000000] twin_predict
"""


@pytest.fixture
def emulated(tmp_path):
    """A board whose emulator is a piece of Python, and its image: ``emulated(code)``."""

    def make(code):
        program = tmp_path / "emulator"
        program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
        program.chmod(0o755)
        words = dict.fromkeys(("flags", "sources", "link"), ())
        places = {"name": "toy", "folder": tmp_path, "title": "A toy", "core": "toy"}
        run = (str(program), "{image}")
        board = Port(**places, **words, compiler="cc", run=run, needs={})
        (tmp_path / "image.map").write_text(LINK_MAP)
        return board, Image(tmp_path / "image.elf", Sizes(0, 0, 0, 0), 0, ())

    return make


class Prepared:
    """A builder with a ready image."""

    def __init__(self, board, image):
        self.board, self.folder, self._image = board, image.path.parent, image

    def image(self, content, queries):
        (self.folder / "queries").write_text(str(len(queries)))
        return self._image


def counted(board, image, seconds=20):
    """Return or raise the result of counting; fail if it hangs."""
    query = np.zeros((1, 2))
    result = ThreadPoolExecutor(1).submit(count_query, Prepared(board, image), b"", query, seconds)
    if not wait([result], 30).done:
        (image.path.parent / "executed").write_bytes(b"")  # lets the reader go, and the thread
        pytest.fail("the run hangs")
    return result.result()


def test_instructions_are_counted_from_the_log(emulated):
    code = f"""
from pathlib import Path
piece, executed = {LOG!r}.split("\\n\\n")
times = int((Path(sys.argv[-1]).parent / "queries").read_text())
with open(sys.argv[sys.argv.index("-D") + 1], "w") as log:
    log.write(piece + "\\n\\n" + times * executed)
"""
    assert counted(*emulated(code)) == 2


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("sys.exit('no such machine')", "emulator ended with 1 after: no such machine"),
        ("sys.exit(3)", "emulator ended with 3 after: silence"),
        ("pass", "emulator logged no instruction of the runtime"),
    ],
)
def test_an_emulator_that_dies_before_it_logs_ends_the_run(emulated, tmp_path, code, says):
    with pytest.raises(InputError) as refused:
        counted(*emulated(code))
    assert str(refused.value).startswith("toy: ")
    assert str(refused.value).endswith(says)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "executed").exists()


def test_an_emulator_that_never_logs_is_stopped(emulated):
    with pytest.raises(InputError, match=r"^toy: the emulation did not end in 1 s$"):
        counted(*emulated("import time; time.sleep(60)"), seconds=1)


def test_blank_lines_of_a_harness_are_passed_over(emulated):
    output = run_program(*emulated("print('\\n  \\nopen 1 ff\\n\\ndone\\n\\n')"), WORDS, 20)
    assert output == {"open": [[1, 255]], "done": [[]]}


def test_the_last_line_of_output_is_no_blank_line(emulated):
    with pytest.raises(InputError, match=r"ended with 0 after: open 1 ff$"):
        run_program(*emulated("print('open 1 ff\\n\\n')"), WORDS, 20)


@pytest.mark.parametrize("line", ["open 1", "open 1 tea", "open 1 2 3"])
def test_a_garbled_line_is_shown(emulated, line):
    with pytest.raises(InputError, match=f"^toy: cannot read this line of the harness: {line}$"):
        run_program(*emulated(f"print('{line}\\ndone')"), WORDS, 20)
