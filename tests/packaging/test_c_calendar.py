"""Times in C: the same bits as in Python, whatever the compiler makes of the code."""

import ctypes
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from twinedge.calendars import Calendar, waves
from twinedge.categories import Category
from twinedge.encoding import Encoding
from twinedge.pack import read_pack
from twinedge.runtime.loading import load
from twinedge.times import Notation
from twinedge_export.boards import Workshop, port_named
from twinedge_export.boards.build import left_out
from twinedge_export.c_columns import CColumns

WARNINGS = "-Wall -Wextra -Werror -pedantic -Wconversion -Wshadow".split()
YEAR = 31_556_952
MIXED = [
    ("load", None),
    ("class", Calendar(Notation(), 0, YEAR)),
    ("cut", Category(("Fair", "Ideal"))),
    ("sine", Calendar(Notation(), 0, YEAR)),
]


def program(encoding, body=""):
    source = CColumns(encoding, np.zeros(len(encoding.inputs), bool))
    opening, closing = ("#ifdef __cplusplus\n" + one + "\n#endif" for one in ('extern "C" {', "}"))
    named = "#include <math.h>" if any(encoding.categories) else ""
    return f"""\
#include <stdint.h>
{named}
#define MODEL_FEATURES {len(encoding.inputs)}
{source.declarations}
{opening}
{source.prototype}
{closing}
{source.encoder}
{body}"""


@pytest.fixture(
    scope="module",
    params=[
        "cc -std=c99 -O0",
        "cc -std=c99 -O2 -ffp-contract=off",
        "cc -O3 -ffast-math -ffp-contract=fast",
        "g++ -x c++ -O2",
        "clang -std=c99 -O3 -ffast-math",
    ],
)
def encode(request, run, tmp_path_factory):
    """Return ``model_encode`` for one calendar, by its time."""
    home = tmp_path_factory.mktemp("calendar")
    (home / "model.c").write_text(program(Encoding([("when", Calendar())])))
    words = request.param.split()
    run(*words, *WARNINGS, "-fPIC", "-shared", home / "model.c", "-o", home / "model.so")
    call = ctypes.CDLL(str(home / "model.so")).model_encode

    def encoded(seconds):
        x = np.empty(6, np.float32)
        when = ctypes.c_int64(seconds)
        assert call(ctypes.byref(when), x.ctypes.data_as(ctypes.POINTER(ctypes.c_float))) == 0
        return x

    return encoded


@settings(max_examples=1000, deadline=None)
@given(st.integers(-2_208_988_800, 7_258_118_400) | st.integers(-(2**63), 2**63 - 1))
@example(0)
@example(-1)
@example(-259_200)
@example(-(2**63))
@example(2**63 - 1)
@example(YEAR - 1)
@example(21_600)
def test_every_time_has_the_bits_of_python(encode, seconds):
    expected = waves([seconds])[0].astype(np.float32)
    assert encode(seconds).tobytes() == expected.tobytes()


@pytest.mark.parametrize("compiler", ["cc -std=c99", "g++ -x c++", "avr-gcc -std=gnu11 -c"])
def test_columns_of_all_kinds_are_encoded_side_by_side(compiler, run, tmp_path):
    encoding = Encoding(MIXED)
    when = [1_709_532_000, -86_399]
    x = np.concatenate([[0.5], waves(when[:1])[0], [0, 1], waves(when[1:])[0]])
    row = CColumns(encoding, np.zeros(len(x), bool)).row(x.astype(np.float32))
    bits = ", ".join(f"{word}u" for word in x.astype(np.float32).view(np.uint32).tolist())
    body = f"""
static const struct model_row row = {{{row}}};
int main(void) {{
    static const uint32_t expected[MODEL_FEATURES] = {{{bits}}};
    union {{ float value; uint32_t word; }} one;
    float x[MODEL_FEATURES];
    int k, wrong = model_encode(&row, x);
    for (k = 0; k < MODEL_FEATURES; k++) {{
        one.value = x[k];
        wrong += one.word != expected[k];
    }}
    return wrong;
}}
"""
    (tmp_path / "model.c").write_text(program(encoding, body))
    warnings = WARNINGS[:4] if "-x" in compiler else WARNINGS
    run(*compiler.split(), *warnings, tmp_path / "model.c", "-o", tmp_path / "model")
    if "avr" not in compiler:
        run(tmp_path / "model")


# -- a model of daily and weekly cycles, from the table to the device ---------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Ten weeks, hour by hour: a target that follows the day, is lower on weekends, and a load."""
    path = tmp_path_factory.mktemp("tables") / "hours.csv"
    rng = np.random.default_rng(0)
    start = np.datetime64("2024-01-01T00:00")
    lines = ["when,load,power"]
    for k in range(10 * 7 * 24):
        hour, day, load = k % 24, k // 24 % 7, rng.uniform(0, 1)
        power = 10 * np.sin(2 * np.pi * (hour - 7) / 24) - 5 * (day >= 5) + 3 * load
        lines.append(f"{start + np.timedelta64(k, 'h')},{load:.4f},{power:.4f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def exported(table, cli, tmp_path_factory):
    home = tmp_path_factory.mktemp("hours")
    tiny = "--hidden 12,12 --twins 2 --steps 1500 --activation silu --learning-rate 0.01"
    options = f"--target power --time when --calendar when {tiny} --weight-decay 0.01"
    trained = cli("train", table, *options.split(), "-o", home / "run", "--json")
    made = cli(
        *("export", home / "run", "--anchors", "16", "--formats", "twin,c,tflite,onnx"),
        *("--tolerance", "10", "-o", home / "out", "--json"),
    )
    assert made["out"] == str(home / "out")
    return home, trained


@pytest.fixture(scope="session")
def cli():
    """Run a command in a process of its own, and return what it prints as JSON."""

    def call(*words, **options):
        command = [sys.executable, "-m", "twinedge", *map(str, words), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in words else done.stdout

    return call
