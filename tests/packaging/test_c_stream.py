"""A C project of a model with derived inputs: samples in, the bits of Python out."""

import numpy as np
import pytest

import twinedge
from twinedge.encoding.windows import window_bytes

ROWS = 200

# Reads samples as a time, bits of both numbers and the number of a name; prints whether the window
# is full, and the bits of all features and of the prediction. A time of 0 resets it.
PUSH_C = """
#include "board.h"
#include "model.h"

#define SAMPLES %d
static const uint32_t samples[SAMPLES][4] = {
%s
};
static uint32_t scratch[MODEL_SCRATCH / 4];

union word {
    uint32_t bits;
    float number;
};

static float number(uint32_t bits) {
    union word word;
    word.bits = bits;
    return word.number;
}

static void print_bits(uint32_t bits) {
    char text[10];
    int k;
    for (k = 0; k < 8; k++)
        text[k] = "0123456789abcdef"[(bits >> (28 - 4 * k)) & 15u];
    text[8] = ' ';
    text[9] = 0;
    board_write(text);
}

static void print_number(float value) {
    union word word;
    word.number = value;
    print_bits(word.bits);
}

int main(void) {
    twin_model model;
    twin_prediction out;
    struct model_row row;
    float x[MODEL_FEATURES];
    uint32_t k, i, full;
    if (twin_open(&model, model_twin, MODEL_SIZE) != TWIN_OK)
        board_exit(1);
    if (model_ready() || twin_window_size(&model_windows) != MODEL_WINDOW)
        board_exit(2);
    for (k = 0; k < SAMPLES; k++) {
        if (!samples[k][0]) {
            model_reset();
            continue;
        }
        row.temp = number(samples[k][1]);
        row.flow = number(samples[k][2]);
        row.mode = samples[k][3] ? MODEL_MODE_FULL : MODEL_MODE_ECO;
        full = (uint32_t)model_push(&row, samples[k][0], x);
        if ((int)full != model_ready())
            board_exit(3);
        print_bits(full);
        for (i = 0; i < MODEL_FEATURES; i++)
            print_number(x[i]);
        if (full) {
            if (twin_predict(&model, scratch, sizeof scratch, x, &out, 0) != TWIN_OK)
                board_exit(4);
            print_number(out.mean);
            print_number(out.low);
            print_number(out.high);
        }
        board_write("\\n");
    }
    board_exit(0);
    return 0;
}
"""


@pytest.fixture(scope="module")
def samples(stream_log):
    """Times in ticks, both numbers, and whether the mode is full; None for a reset."""
    rows = [line.split(",") for line in stream_log.read_text().splitlines()[1:261]]
    found = [
        (int(at) * 1000 % 2**32, float(temp or "nan"), float(flow), mode == "full")
        for at, _, temp, flow, mode, _ in rows[30 : 30 + ROWS]
    ]
    found[20] = (found[19][0] - 1, *found[20][1:])  # back in time
    found[60] = (*found[60][:1], 1e9, -1e9, True)  # beyond all that was seen
    return [*found[:40], None, *found[40:]]


@pytest.fixture(scope="module")
def expected(stream_export, samples):
    """Lines that push.c has to print, by Python."""
    device = twinedge.load(stream_export)
    stream, lines, gone_by = device.stream(), [], 0
    names = device.encoding.measured.names
    for sample in samples:
        if sample is None:
            stream.reset()
            gone_by = 0
            continue
        when, temp, flow, is_full = sample
        given = {"temp": np.float32(temp), "flow": flow, "mode": "full" if is_full else "eco"}
        assert set(given) == set(names)
        x = device.encoding.measured.encode(given)[0]
        query, lacks = stream._streams.push(x.tolist(), when / 1000)
        words = [np.uint32(lacks == 0), *np.array(query, np.float32).view(np.uint32)]
        if not lacks:
            found = device.predict_all(np.array([query]))
            ends = np.array([found.mean[0], found.low[0], found.high[0]], np.float32)
            words += [*ends.view(np.uint32)]
            gone_by += 1
        lines.append(" ".join(f"{word:08x}" for word in words))
    assert gone_by > 50
    return lines


@pytest.fixture(scope="module")
def push_c(samples):
    rows = []
    for sample in samples:
        when, *numbers, is_full = sample or (0, 0.0, 0.0, False)
        bits = [when, *np.array(numbers, np.float32).view(np.uint32).tolist(), int(is_full)]
        rows.append("    {" + ", ".join(f"{one}u" for one in bits) + "},")
    return PUSH_C % (len(samples), "\n".join(rows))


@pytest.fixture(scope="module")
def built(stream_export, push_c, built_beside):
    return built_beside(stream_export / "c", push_c)


def test_every_sample_gives_the_bits_of_python(built, expected, run):
    assert [line.strip() for line in run(built / "beside").splitlines()] == expected


def test_the_example_prints_what_the_readme_says(stream_export, built, run, promised):
    assert run(built / "model").strip() == promised(stream_export / "c")


@pytest.mark.slow
def test_every_sample_gives_the_same_bits_on_a_board(stream_export, push_c, expected, on_a_board):
    assert on_a_board(stream_export, push_c) == expected


def test_the_header_says_what_a_stream_takes(stream_export):
    header = (stream_export / "c" / "model" / "model.h").read_text()
    derived = twinedge.load(stream_export).encoding.derived
    assert f"#define MODEL_WINDOW {window_bytes(derived)}u" in header
    for line in ("#define MODEL_PERIOD  60000u", "#define MODEL_SAMPLES 6u", "than 90000 ticks"):
        assert line in header
    assert "struct model_row {\n    float temp;" in header


@pytest.mark.slow
def test_the_single_file_form_has_it_too(stream_run, promised, run, tmp_path):
    twinedge.export(
        stream_run,
        tmp_path / "out",
        anchors=4,
        formats=("twin", "c"),
        tolerance=10.0,
        single_file=True,
    )
    home = tmp_path / "out" / "c"
    files = [home / "main.c", home / "model" / "model.c", home / "model" / "twin.c"]
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-DTWIN_HOST=0"]
    run("cc", *options, "-ffp-contract=off", *files, "-o", tmp_path / "model")
    assert run(tmp_path / "model").strip() == promised(home)
