"""Printed examples run as they stand, check their calls, and outlive a query that is refused."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference

ROOT = Path(__file__).parents[2]
PAGES = ("docs/embedding.md", "docs/security.md", "docs/updates.md", "firmware_ref/README.md")
HEADERS = ("twin.h", "twin_release.h", "twin_watch.h", "twin_store.h")
GOOD = (0.5, -1.25)
FAR = (1e30, -1e30)
QUERIES = np.array(
    [(np.nan, 0), FAR, (np.inf, -np.inf), (0, np.nan), GOOD, (np.nan, np.nan), GOOD], np.float32
)
ANSWERED = QUERIES[~np.isnan(QUERIES).any(axis=1)]

# What a reader would supply.
AROUND = """
#include "twin_host.h"
#include "twin_release.h"
#include "twin_store.h"
#include "twin_watch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {{ REFUSED = 1, FEATURES = 2, QUERIES = {count} }};
static const union {{ unsigned char bytes[{size}]; uint32_t word; }} file = {{{{ {content} }}}};
#define pack file.bytes
static const unsigned char *const bank = file.bytes;
static const float queries[QUERIES][FEATURES] = {queries};
static const int16_t quantised[QUERIES][FEATURES] = {quantised};
static uint8_t blocks[2 * 2048];
static uint32_t scratch[1024], size = sizeof pack;
static int served;
static float x[FEATURES], target, y;
static int16_t query[FEATURES];
static twin_signed part;
static twin_model model;
static {prediction} out;
static twin_run run;
static twin_opening opening;
static twin_status status;

static int read_at(void *to, uint32_t at, void *bytes, uint32_t length) {{
    memcpy(bytes, (uint8_t *)to + at, length);
    return 0;
}}
static int program_at(void *to, uint32_t at, const void *bytes, uint32_t length) {{
    memcpy((uint8_t *)to + at, bytes, length);
    return 0;
}}
static int erase_at(void *to, uint32_t at) {{
    memset((uint8_t *)to + at, 255, 2048);
    return 0;
}}
static const twin_storage storage = {{read_at, program_at, erase_at, blocks, 2048, 4}};

static int next_query(float *to) {{
    if (served == QUERIES)
        return 0;
    memcpy(to, queries[served], sizeof queries[served]);
    memcpy(query, quantised[served++], sizeof query);
    return 1;
}}
static int measure(float *to) {{
    *to = 1.5f;
    return 1;
}}
static uint32_t now(void) {{ return (uint32_t)served; }}
static void use(double first, double second) {{ printf("use %.9g %.9g\\n", first, second); }}
static void report(const char *why) {{ printf("report %s\\n", why); }}
static void do_without_it(void) {{ puts("nothing"); }}
static void call_for_help(void) {{ }}
static void control_loop(void) {{ }}
static void do_something_else(void) {{ }}
static void feed_the_watchdog(void) {{ }}
static int signature_is_good(const void *at, uint32_t bytes, const void *by) {{
    return at != NULL && bytes > 0 && by;
}}

static int example(void) {{
{code}
return 0;
}}

int main(void) {{
    status = twin_open(&model, pack, sizeof pack);
    while (status == TWIN_OK && ({loops} || next_query(x)))
        if (example() || {loops})
            break;
    return status != TWIN_OK;
}}
"""


def blocks():
    """Pairs of a name and code: those of pages, and those in comments of headers."""
    for page in PAGES:
        text = (ROOT / page).read_text()
        for number, code in enumerate(re.findall(r"(?ms)^```c\n(.*?)^```", text)):
            yield f"{page} {number}", code
    for name in HEADERS:
        header = (ROOT / "firmware_ref" / "include" / name).read_text()
        comments = re.findall(r"(?m)(?:^ \*     .*\n(?: \*\n(?= \*     ))?)+", header)
        for number, code in enumerate(comments):
            yield f"{name} {number}", re.sub(r"(?m)^ \* ?", "", code)


EXAMPLES = dict(blocks())


@pytest.fixture(scope="module")
def pack(cases, packs):
    """A pack with intervals of 90 % that fills in nothing."""
    pack = cases.draw(packs, "some-of-everything", scaled=True)
    fill = np.full(pack.features, NO_FILL, np.int16)
    return replace(
        pack,
        domain=replace(pack.domain, fill=fill),
        intervals=replace(pack.intervals, quantiles={900: 2 * 65536}),
    )


def table(rows, word):
    return "{" + ", ".join("{" + ", ".join(map(word, row)) + "}" for row in rows.tolist()) + "}"


def number(value):
    return f"(float){'NAN' if np.isnan(value) else 'INFINITY' if value > 3e38 else value}"


@pytest.fixture
def printed(native, objects, releases, pack, tmp_path):
    """Compile an example with what it needs, and run it: ``printed(code)`` are its lines."""

    def run(code):
        code = re.sub(r"#include.*\n|static uint32_t scratch\[1024\];\n", "", code)
        content = releases.release(pack)
        q = np.where(np.isnan(QUERIES), NO_FILL, reference.quantise(pack, np.nan_to_num(QUERIES)))
        source = tmp_path / "example.c"
        source.write_text(
            AROUND.format(
                count=len(QUERIES),
                size=len(content),
                content=", ".join(map(str, content)),
                queries=table(QUERIES, number).replace("(float)-inf", "-INFINITY"),
                quantised=table(q.astype(int), str),
                prediction="twin_raw" if "_raw(" in code else "twin_prediction",
                code=code,
                loops=int("next_query" in code),
            )
        )
        # Host kernels need more scratch than the examples have, and only this one is about them.
        host = "twin_prepare" in code
        options = native.USUAL if host else native.SANITIZED
        program = [source, *objects(*options, host=host)]
        options = (*options, *([] if host else ["-DTWIN_HOST=0"]))
        unused = ("-Wno-unused", "-Wno-unused-function", "-Wno-shadow", "-Wno-conversion")
        made = native.compile_c(tmp_path / "example", *options, *unused, sources=program)
        return native.run(made).splitlines()

    return run


def test_there_are_examples():
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_printed_example_answers_every_good_query(printed, pack, name):
    code = EXAMPLES[name]
    lines = printed(code)
    assert "nothing" not in lines
    used = [list(map(float, line.split()[1:])) for line in lines if line.startswith("use")]
    if "use(" not in code:
        assert lines == []
        return
    assert len(used) == len(ANSWERED)
    if "use(out.mean, out.spread)" in code:
        found = reference.evaluate(pack, ANSWERED)
        assert np.float32(used).T.tolist() == [found.mean.tolist(), found.spread.tolist()]
    if "report(" in code and "twin_learn" not in code:
        assert len(lines) == len(QUERIES)  # one for each that is refused


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_status_is_dropped(name):
    calls = (
        r"(?:^|[;{}]|\*/|\)\n)\s*(twin_(?:open|predict|begin|read|store|learn|keep|forget)\w*)\("
    )
    assert re.findall(calls, EXAMPLES[name]) == []
