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
def program(native, objects, tmp_path_factory):
    folder = tmp_path_factory.mktemp("learn")
    (folder / "program.c").write_text(PROGRAMS[0])
    sources = [folder / "program.c", *objects(*native.SANITIZED)]
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
    output = native.run(program, file, points, input=lines(rows[:25]))
    output += native.run(program, file, points, input=lines(rows[25:]))  # resumes
    found = [float(line.split()[0]) for line in output.splitlines()]
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


# As much of each vendor's library as the printed functions call, on an array.
VENDORS = {
    "HAL_FLASH": """
#include <sys/mman.h>
typedef enum { HAL_OK, HAL_ERROR } HAL_StatusTypeDef;
typedef struct { uint32_t TypeErase, Banks, Page, NbPages; } FLASH_EraseInitTypeDef;
enum { FLASH_TYPEPROGRAM_DOUBLEWORD, FLASH_TYPEERASE_PAGES, FLASH_BANK_2 };
static int locked = 1;
static uint8_t *begin(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    return mmap((void *)0x080FF000u, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
}
static HAL_StatusTypeDef HAL_FLASH_Unlock(void) { locked = 0; return HAL_OK; }
static HAL_StatusTypeDef HAL_FLASH_Lock(void) { locked = 1; return HAL_OK; }
static HAL_StatusTypeDef HAL_FLASH_Program(int type, uint32_t at, uint64_t word) {
    if (locked || type != FLASH_TYPEPROGRAM_DOUBLEWORD || at % 8)
        return HAL_ERROR;
    memcpy((void *)(uintptr_t)at, &word, 8);
    return HAL_OK;
}
static HAL_StatusTypeDef HAL_FLASHEx_Erase(FLASH_EraseInitTypeDef *what, uint32_t *fault) {
    *fault = UINT32_MAX;
    if (locked || what->NbPages != 1)
        return HAL_ERROR;
    memset((void *)(uintptr_t)(0x08080000u + 2048 * what->Page), 255, 2048);
    return HAL_OK;
}
""",
    "flash_safe_execute": """
enum { PICO_FLASH_SIZE_BYTES = 65536, FLASH_SECTOR_SIZE = 4096, FLASH_PAGE_SIZE = 256 };
enum { PICO_OK = 0 };
static uint8_t flash[PICO_FLASH_SIZE_BYTES];
#define XIP_BASE flash
static uint8_t *begin(void) { return flash; }
static void flash_range_program(uint32_t at, const uint8_t *bytes, size_t size) {
    for (; size; size--)
        flash[at++] &= *bytes++;
}
static void flash_range_erase(uint32_t at, size_t size) { memset(flash + at, 255, size); }
static int flash_safe_execute(void (*call)(void *), void *with, uint32_t milliseconds) {
    (void)milliseconds;
    call(with);
    return PICO_OK;
}
""",
    "esp_partition": """
enum { ESP_OK = 0, BLOCK = 4096 };
typedef struct { uint8_t bytes[2 * BLOCK]; } esp_partition_t;
static esp_partition_t part;
static void *begin(void) { return &part; }
static int esp_partition_read(const esp_partition_t *from, size_t at, void *to, size_t size) {
    memcpy(to, from->bytes + at, size);
    return ESP_OK;
}
static int esp_partition_write(const esp_partition_t *to, size_t at, const void *from,
                               size_t size) {
    while (size--)
        ((esp_partition_t *)to)->bytes[at + size] &= ((const uint8_t *)from)[size];
    return ESP_OK;
}
static int esp_partition_erase_range(const esp_partition_t *what, size_t at, size_t size) {
    memset(((esp_partition_t *)what)->bytes + at, 255, size);
    return ESP_OK;
}
""",
    "flash_area": """
enum { BLOCK = 2048 };
struct flash_area { uint8_t bytes[2 * BLOCK]; };
static struct flash_area area;
static void *begin(void) { return &area; }
static int flash_area_read(const struct flash_area *from, long at, void *to, size_t size) {
    memcpy(to, from->bytes + at, size);
    return 0;
}
static int flash_area_write(const struct flash_area *to, long at, const void *from, size_t size) {
    while (size--)
        ((struct flash_area *)to)->bytes[(size_t)at + size] &= ((const uint8_t *)from)[size];
    return 0;
}
static int flash_area_erase(const struct flash_area *what, long at, size_t size) {
    memset(((struct flash_area *)what)->bytes + at, 255, size);
    return 0;
}
""",
}
DEVICE = """
#define _GNU_SOURCE
#include "twin_store.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
{vendor}
{functions}
static const union {{ uint8_t bytes[{size}]; uint32_t word; }} pack = {{{{ {content} }}}};
static uint32_t scratch[4096], memory[512];
int main(void) {{
    {storage}
    float x[{features}] = {{0}};
    unsigned n, answered = 0, refused = 0, learnt = 0;
    twin_prediction out;
    twin_model model;
    twin_store store;
    begin();
    (void)twin_open(&model, pack.bytes, sizeof pack.bytes);
    for (n = 0; n < 90; n++) {{
        const float value = n % 3 == 0 ? NAN : n % 3 == 1 ? INFINITY : (float)n;
        twin_status status = twin_store_open(&store, &model, pack.bytes, &storage, memory, 16);
        while (status == TWIN_MORE)
            status = twin_store_step(&store, scratch, sizeof scratch);
        x[0] = value;
        status = twin_predict_adapted(&store, scratch, sizeof scratch, x, &out);
        answered += status == TWIN_OK;
        refused += status == TWIN_ERROR_QUERY;
        status = twin_learn(&store, scratch, sizeof scratch, x, 1.5f, n);
        if (status == TWIN_ERROR_FULL && twin_keep_latest(&store, 8) == TWIN_OK)
            status = twin_learn(&store, scratch, sizeof scratch, x, 1.5f, n);
        learnt += status == TWIN_OK;
    }}
    printf("%u %u %u %u %u\\n", answered, refused, learnt, store.count, store.journal.damaged);
    return 0;
}}
"""


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_functions_for_a_vendor_keep_points(native, objects, pack, tmp_path, vendor):
    (functions,) = [one for one in PROGRAMS if vendor in one]
    fill = np.full(pack.features, NO_FILL, np.int16)
    content = write_pack(replace(pack, domain=replace(pack.domain, fill=fill)))
    own = "twin_storage storage" in re.sub(r"(?s)/\*.*?\*/", "", functions)
    made = "twin_storage storage = {read_at, program_at, erase_at, begin(), BLOCK, 4};"
    source = tmp_path / "device.c"
    source.write_text(
        DEVICE.format(
            vendor=VENDORS[vendor],
            functions=functions,
            size=len(content),
            content=", ".join(map(str, content)),
            features=pack.features,
            storage="" if own else made,
        )
    )
    quiet = ("unused-parameter", "int-to-pointer-cast", "conversion", "pedantic", "shadow")
    options = (*native.SANITIZED, "-DTWIN_HOST=0", *(f"-Wno-{one}" for one in quiet))
    sources = [source, *objects(*native.SANITIZED)]
    program = native.compile_c(tmp_path / "device", *options, sources=sources)
    answered, refused, learnt, kept, damaged = map(int, native.run(program).split())
    assert (answered, refused, learnt, damaged) == (60, 30, 60, 0)
    assert 8 <= kept <= 16


def test_the_functions_for_avr_compile(native, tmp_path):
    (code,) = [one for one in PROGRAMS if "eeprom" in one]
    source = tmp_path / "eeprom.c"
    source.write_text(code)
    options = ("-std=c99", "-Os", "-Wall", "-Wextra", "-Werror", "-mmcu=atmega328p")
    settings = ("-DTWIN_STORE=1", "-DTWIN_INTERVALS=1")
    native.run(
        "avr-gcc", *options, *settings, *native.INCLUDES, "-c", source, "-o", tmp_path / "e.o"
    )
