"""Programs printed in docs/learning.md: the one that learns does, and resumes."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.loading import load

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"
PROGRAMS = re.findall(r"(?ms)^```c\n(.*?)^```", PAGE.read_text())


@pytest.fixture(scope="module")
def program(native, tmp_path_factory):
    folder = tmp_path_factory.mktemp("learn")
    (folder / "program.c").write_text(PROGRAMS[0])
    sources = [folder / "program.c", *native.SOURCES]
    return native.compile_c(folder / "learn", *native.SANITIZED, "-DTWIN_HOST=0", sources=sources)


@pytest.fixture
def pack(cases, packs):
    pack = cases.draw(packs, "neighbors", scaled=True)
    return replace(pack, intervals=replace(pack.intervals, trust=40000))


def lines(rows):
    return "".join(",".join(f"{value:.9g}" for value in row) + "\n" for row in rows)


def test_the_printed_program_learns_as_a_device_in_python_does(native, program, pack, tmp_path):
    file, points = tmp_path / "model.twin", tmp_path / "points.store"
    file.write_bytes(write_pack(pack))
    rng = np.random.default_rng(0)
    reach = 20000 / pack.x_gain.astype(float)
    x = (pack.x_offset + reach * rng.uniform(-1, 1, (60, pack.features))).astype(np.float32)
    device = load(file)
    y = (device.predict(x) + 3 * pack.y_gain * rng.normal(size=60)).astype(np.float32)
    expected = []
    for query, target in zip(x, y, strict=True):
        expected.append(device.predict(query[None])[0])
        if device.learnt == 32:
            device.forget(keep=24)
        device.learn(query[None], [target])
    rows = np.column_stack([x, y]).tolist()
    said = native.run(program, file, points, input=lines(rows[:25]))
    said += native.run(program, file, points, input=lines(rows[25:]))  # resumes
    found = [float(line.split()[0]) for line in said.splitlines()]
    assert found == pytest.approx(expected, rel=1e-5)
    assert load(file, store=points).learnt == device.learnt


def test_points_outlive_the_pack(native, program, pack, tmp_path):
    points = tmp_path / "points.store"
    row = [*pack.x_offset.tolist(), float(pack.y_offset)]
    for count, trust in enumerate((1000, 60000), 1):
        file = tmp_path / f"{trust}.twin"
        changed = replace(pack, intervals=replace(pack.intervals, trust=trust))
        file.write_bytes(write_pack(changed))
        native.run(program, file, points, input=lines([row]))
        assert load(file, store=points).learnt == count
    file.write_bytes(write_pack(replace(pack, schema=pack.schema ^ 1)))
    before = points.read_bytes()
    with pytest.raises(AssertionError, match="points: the points in the store have other columns"):
        native.run(program, file, points, input=lines([row]))
    assert points.read_bytes() == before


def test_a_line_that_is_refused_does_not_stop_the_next_one(native, program, pack, tmp_path):
    fill = np.full(pack.features, NO_FILL, np.int16)
    pack = replace(pack, domain=replace(pack.domain, fill=fill))
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    good, target = pack.x_offset.tolist(), float(pack.y_offset)
    rows = [
        [np.nan, *good[1:], target],
        [np.inf] * pack.features,
        [*good, np.inf],
        [*good, np.nan],
        [1.0],
        [*good, target],
        good,
    ]
    files = tmp_path / "model.twin", tmp_path / "points.store"
    done = native.attempt(program, *files, input=lines(rows))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 5
    assert len(done.stderr.splitlines()) == 4
    assert load(files[0], store=files[1]).learnt == 1


SENDER = """
#include "twin_store.h"
#include <stdio.h>
{code}
static uint8_t dump[1 << 16];
static int read_at(void *unused, uint32_t address, void *bytes, uint32_t size) {{
    (void)unused;
    while (size--)
        ((uint8_t *)bytes)[size] = dump[address + size];
    return 0;
}}
static void put(char character) {{ putchar(character); }}
int main(void) {{
    twin_storage storage = {{read_at, NULL, NULL, NULL, 0, 1}};
    storage.block_size = (uint32_t)fread(dump, 1, sizeof dump, stdin) / 2;
    send_store(&storage, put);
    return 0;
}}
"""


def test_what_the_printed_lines_send_is_the_store(native, program, pack, tmp_path):
    (code,) = [one for one in PROGRAMS if "send_store" in one]
    (tmp_path / "sender.c").write_text(SENDER.format(code=code))
    options = ("-O1", "-Wno-missing-prototypes")
    sender = native.compile_c(tmp_path / "sender", *options, sources=[tmp_path / "sender.c"])
    file, points = tmp_path / "model.twin", tmp_path / "points.store"
    file.write_bytes(write_pack(pack))
    row = [*pack.x_offset.tolist(), float(pack.y_offset)]
    native.run(program, file, points, input=lines([row]))
    with points.open("rb") as stream:
        sent = subprocess.run([sender], stdin=stream, capture_output=True, check=True).stdout
    dump = tmp_path / "dump.bin"
    dump.write_bytes(bytes.fromhex(sent.decode()))
    assert dump.read_bytes() == points.read_bytes()
    assert load(file, store=dump).learnt == 1


def test_the_functions_for_avr_compile(native, tmp_path):
    (code,) = [one for one in PROGRAMS if "eeprom" in one]
    source = tmp_path / "eeprom.c"
    source.write_text(code)
    options = ("-std=c99", "-Os", "-Wall", "-Wextra", "-Werror", "-mmcu=atmega328p")
    knobs = ("-DTWIN_STORE=1", "-DTWIN_INTERVALS=1")
    native.run("avr-gcc", *options, *knobs, *native.INCLUDES, "-c", source, "-o", tmp_path / "e.o")
