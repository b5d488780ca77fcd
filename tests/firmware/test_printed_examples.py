"""Examples in the documentation compile as printed, and check their calls."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Context that a reader would supply.
AROUND = """
#include "twin_host.h"
#include <stddef.h>
#include <stdlib.h>
extern const unsigned char pack[1000], bank[1000];
extern const float x[8];
extern const int16_t query[8];
extern uint32_t size;
extern const void *signature;
enum {{ REFUSED = 1 }};
void use(double mean, double spread);
void report(const char *why);
void control_loop(void);
void do_something_else(void);
void do_without_it(void);
void feed_the_watchdog(void);
int signature_is_good(const void *at, uint32_t size, const void *signature);
int example(void);
static uint32_t scratch[1024];
{variables}
int example(void) {{
{code}
return scratch[0] != 0;
}}
"""
VARIABLES = {
    "model": "extern twin_model model;",
    "out": "extern {prediction} out;",
    "run": "extern twin_run run;",
    "opening": "extern twin_opening opening;",
    "status": "extern twin_status status;",
}


def blocks():
    """Pairs of a name and code: those of pages, and those in comments of twin.h."""
    for page in ("docs/embedding.md", "docs/security.md"):
        text = (ROOT / page).read_text()
        for number, code in enumerate(re.findall(r"(?ms)^```c\n(.*?)^```", text)):
            yield f"{page} {number}", code
    header = (ROOT / "firmware_ref" / "include" / "twin.h").read_text()
    for number, code in enumerate(
        re.findall(r"(?m)(?:^ \*     .*\n(?: \*\n(?= \*     ))?)+", header)
    ):
        yield f"twin.h {number}", re.sub(r"(?m)^ \* ?", "", code)


EXAMPLES = dict(blocks())


def test_there_are_examples():
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_printed_example_compiles(native, tmp_path, name):
    code = re.sub(r"#include.*\n|static uint32_t scratch\[1024\];\n", "", EXAMPLES[name])
    raw = "twin_predict_raw" in code or "_raw(" in code
    declared = [
        line.format(prediction="twin_raw" if raw else "twin_prediction")
        for variable, line in VARIABLES.items()
        if re.search(rf"\b{variable}\b", code) and not re.search(rf"\btwin_\w+ {variable}\b", code)
    ]
    source = tmp_path / "example.c"
    source.write_text(AROUND.format(variables="\n".join(declared), code=code))
    native.compile_c(tmp_path / "example.o", "-O2", "-c", "-Wno-conversion", sources=[source])


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_status_is_dropped(name):
    calls = r"(?:^|[;{}]|\*/)\s*(twin_(?:open|predict|begin|read)\w*)\("
    assert re.findall(calls, EXAMPLES[name]) == []
