"""Times in C: the same bits as in Python, whatever the compiler makes of the code."""

import ctypes

import numpy as np
import pytest

from twinedge.encoding.calendars import Calendar, waves
from twinedge.encoding.categories import Category
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.times import Notation
from twinedge.runtime.loading import load
from twinedge_export.c_columns import CColumns

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow"]
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
        "cc -O3 -ffast-math -ffp-contract=fast",
        "g++ -x c++ -O2",
        pytest.param("cc -std=c99 -O0", marks=pytest.mark.slow),
        pytest.param("clang -std=c99 -O3 -ffast-math", marks=pytest.mark.slow),
    ],
)
def encode(request, run, tmp_path_factory):
    """Return ``model_encode`` for one calendar, by its time."""
    home = tmp_path_factory.mktemp("calendar")
    (home / "model.c").write_text(program(Encoding([("when", Calendar())])))
    words = request.param.split()
    run(*words, *WARNINGS, "-fPIC", "-c", home / "model.c", "-o", home / "model.o")
    # Linked without -ffast-math, which would make the whole process round subnormal numbers to 0.
    run("cc", "-shared", home / "model.o", "-o", home / "model.so")
    call = ctypes.CDLL(str(home / "model.so")).model_encode

    def encoded(seconds):
        x = np.empty(6, np.float32)
        when = ctypes.c_int64(seconds)
        assert call(ctypes.byref(when), x.ctypes.data_as(ctypes.POINTER(ctypes.c_float))) == 0
        return x

    return encoded


def test_every_time_has_the_bits_of_python(encode):
    rng = np.random.default_rng(0)
    known = [0, -1, -259_200, -(2**63), 2**63 - 1, YEAR - 1, 21_600]
    centuries = rng.integers(-2_208_988_800, 7_258_118_400, 5_000)
    powers = 2.0 ** rng.uniform(0, 63, 5_000) * rng.choice([-1, 1], 5_000)
    times = np.concatenate([np.array(known, np.int64), centuries, powers.astype(np.int64)])
    expected = waves(times).astype(np.float32)
    found = np.array([encode(one) for one in times.tolist()])
    wrong = (found.view(np.uint32) != expected.view(np.uint32)).any(axis=1)
    assert times[wrong].tolist() == []


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
def exported(table, tmp_path_factory):
    """A model of that table as a pack and as a C project."""
    import twinedge

    folder = tmp_path_factory.mktemp("hours")
    tiny = {"hidden": (12, 12), "twins": 2, "steps": 200, "activation": "silu"}
    tiny |= {"learning_rate": 0.01, "weight_decay": 0.01, "random_state": 0}
    run = folder / "run"
    options = {"target": "power", "time": "when", "calendar": "when"}
    twinedge.fit_csv(table, **options, run=run, **tiny)
    twinedge.export(run, folder / "out", anchors=16, formats=("twin", "c"), tolerance=10.0)
    return folder / "out"


MAIN = """\
#include "board.h"
#include "model.h"

static const int64_t times[] = {%s};

static void write_bits(float value) {
    union {
        float value;
        uint32_t word;
    } bits;
    char text[10];
    int k;
    bits.value = value;
    for (k = 0; k < 8; k++)
        text[k] = "0123456789abcdef"[bits.word >> (28 - 4 * k) & 15];
    text[8] = ' ';
    text[9] = 0;
    board_write(text);
}

int main(void) {
    static twin_model model;
    static uint32_t scratch[MODEL_SCRATCH / 4];
    twin_prediction out;
    float x[MODEL_FEATURES];
    struct model_row row;
    int i, k;
    if (twin_open(&model, model_twin, MODEL_SIZE) != TWIN_OK)
        return 1;
    for (i = 0; i < (int)(sizeof times / sizeof times[0]); i++) {
        row.when = times[i];
        row.load = 0.5f;
        if (model_encode(&row, x))
            return 1;
        if (twin_predict(&model, scratch, sizeof scratch, x, &out, NULL) != TWIN_OK || out.outside)
            return 1;
        for (k = 0; k < MODEL_FEATURES; k++)
            write_bits(x[k]);
        write_bits(out.mean);
        write_bits(out.low);
        write_bits(out.high);
        board_write("\\n");
    }
    return 0;
}
"""
TIMES = [*range(1_709_000_000, 1_711_000_000, 12_345), -1, 0, -(2**62), 2**62, 4_102_444_800]


@pytest.fixture(scope="module")
def expected(exported):
    """Bits of inputs, predictions and intervals, by Python."""
    device = load(exported / "model.twin", "native")
    assert device.feature_names[0] == "when:day sin"
    x = np.column_stack([waves(TIMES), np.full(len(TIMES), 0.5)]).astype(np.float32)
    usable = [[one, 0.5] for one in TIMES if abs(one) < 2**50]
    encoded = device.encoding.encode(np.array(usable, np.float64))
    assert np.array_equal(encoded[: len(TIMES) - 5], x[: len(TIMES) - 5])
    found = device.predict_all(x)
    assert not found.outside.any()
    words = np.column_stack([x, found.mean, found.low, found.high]).astype(np.float32)
    return [" ".join(f"{one:08x}" for one in row) for row in words.view(np.uint32).tolist()]


@pytest.fixture(scope="module")
def code():
    return MAIN % ", ".join(f"{one}LL" for one in TIMES)


@pytest.mark.slow  # test_c_columns.py does the same with another encoder
def test_c_on_this_machine_gives_the_bits_of_the_pack(
    exported, expected, code, built_beside, promised, run
):
    built = built_beside(exported / "c", code)
    assert [line.strip() for line in run(built / "beside").splitlines()] == expected
    assert run(built / "model").strip() == promised(exported / "c")


@pytest.mark.slow
def test_a_board_gives_the_bits_of_the_pack(exported, expected, code, on_a_board):
    assert on_a_board(exported, code) == expected


@pytest.mark.slow
def test_the_sketch_encodes_its_time_on_an_uno(exported, uno, first_line, promised):
    sent = first_line(uno(exported / "c" / "model" / "model.ino")).split()
    numbers = promised(exported / "c").split()
    assert list(map(float, sent[:3])) == pytest.approx(
        list(map(float, numbers[:3])), rel=2e-7, abs=1e-6
    )


def test_the_project_says_what_a_time_is(exported):
    readme = (exported / "c" / "README.md").read_text("utf-8")
    assert "1. when: 1704067200 to 170" in readme
    assert "seconds since 1970, UTC\n2. load" in readme
    header = (exported / "c" / "model" / "model.h").read_text("utf-8")
    assert "    int64_t when; /* when: seconds since 1970, UTC */" in header
    assert "math.h" not in (exported / "c" / "model" / "model.c").read_text("utf-8")
