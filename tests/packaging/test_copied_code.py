"""Code that customers copy goes on after a query that is refused: a NaN, an outlier, a good one."""

import re
import runpy
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import twinedge
from twinedge.pack import read_pack
from twinedge.pack.layout import Kind
from twinedge.pack.sections import join, split
from twinedge.runtime import reference

# As much of Arduino as the sketches use, on standard output.
ARDUINO_H = """
#include <cmath>
#include <cstdio>
static struct {
    void begin(long) {}
    void print(char letter) { std::putchar(letter); }
    void print(const char *text) { std::fputs(text, stdout); }
    void print(double number, int digits) { std::printf("%.*f", digits, number); }
    void println(const char *text) { std::puts(text); }
    void println(double number, int digits) { std::printf("%.*f\\n", digits, number); }
    void println(int number) { std::printf("%d\\n", number); }
} Serial;
static void delay(unsigned long) {}
"""
# The sketch, in a program that changes one of its features between two calls of loop().
PROGRAM = """
#include "Arduino.h"
#include "{sketch}"
int main() {{
    const float good = {feature};
    const float values[] = {{NAN, 1e30f, -INFINITY, NAN, good}};
    setup();
    for (float value : values) {{
        {feature} = value;
        loop();
    }}
    return 0;
}}
"""
HOST = """
#include "board.h"
#include <stdio.h>
#include <stdlib.h>
void board_write(const char *text) { fputs(text, stdout); }
void board_exit(int status) { exit(status); }
"""
NOT_A_NUMBER, DAMAGED, UNSOUND = "error -15", "error -6", "error -28"
TYPED = r"(static const float x\[MODEL_FEATURES\] = \{)[^,]*"


@pytest.fixture(scope="module")
def build(native, tmp_path_factory):
    """Compile C and C++ under the sanitizers: ``build(program, runtime, *options)``.

    The options are for files of the program; the runtime is compiled once.
    """

    @cache
    def compiled(path, *options):
        made = tmp_path_factory.mktemp("object") / f"{path.stem}.o"
        language = ("g++", "-std=c++17") if path.suffix == ".cpp" else ("gcc", "-std=c99")
        common = (*native.SANITIZED, "-DTWIN_HOST=0", "-Wall", "-Wextra", "-Werror")
        native.run(*language, *common, *options, "-c", path, "-o", made)
        return made

    def linked(program, runtime, *options):
        made = tmp_path_factory.mktemp("copied") / "program"
        includes = native.INCLUDES if runtime == native.SOURCES else ()
        objects = [compiled(path, *options) for path in program]
        objects += [compiled(path, *includes) for path in runtime]
        native.run("g++", *native.SANITIZED, *objects, "-o", made)
        return made

    return linked


@pytest.fixture(scope="module")
def sketch(build, native, tmp_path_factory):
    """Run a sketch: ``sketch(file, feature, runtime, *more)`` are the lines that it sends."""

    def run(file, feature, runtime, *more):
        folder = tmp_path_factory.mktemp("sketch")
        (folder / "Arduino.h").write_text(ARDUINO_H)
        program = folder / "program.cpp"
        program.write_text(PROGRAM.format(sketch=file, feature=feature))
        options = (f"-I{folder}", f"-I{file.parent}", *native.INCLUDES)
        return native.run(build([program, *more], runtime, *options)).splitlines()

    return run


@pytest.fixture(scope="module")
def plain_export(tiny_twin, tmp_path_factory):
    """An export of a table of numbers."""
    folder = tmp_path_factory.mktemp("exports") / "plain"
    twinedge.export(tiny_twin, folder, anchors=8, formats=["twin", "c"], weights="int16")
    return folder


def check_sketch(lines, answer):
    """Lines for NaN, two outliers, NaN and the query of the README."""
    assert [lines[0], lines[3]] == [NOT_A_NUMBER] * 2
    assert [line.split()[-1] for line in lines[1:3]] == ["outside"] * 2
    *numbers, side = lines[4].split()
    *promised, inside = answer.split()
    assert list(map(float, numbers)) == pytest.approx(list(map(float, promised)), abs=1e-6)
    assert side == inside


@pytest.mark.slow
def test_the_sketch_of_an_export_goes_on(sketch, plain_export, promised):
    project = plain_export / "c"
    runtime = sorted((project / "model").rglob("*.c"))
    lines = sketch(project / "model" / "model.ino", "x[0]", runtime)
    check_sketch(lines, promised(project))


@pytest.mark.slow
def test_the_sketch_for_rows_of_a_table_goes_on(sketch, stones_export, promised):
    project = stones_export / "c"
    runtime = sorted((project / "model").rglob("*.c"))
    lines = sketch(project / "model" / "model.ino", "row.depth", runtime)
    assert lines[0] == lines[3]  # filled in
    check_sketch([NOT_A_NUMBER, *lines[1:3], NOT_A_NUMBER, lines[4]], promised(project))


@pytest.mark.slow
def test_the_example_of_the_library_goes_on(sketch, native, firmware):
    folder = firmware / "examples" / "Predict"
    model = (folder / "model.c").read_text()
    pack = read_pack(bytes(map(int, re.findall(r"\d+(?=,)", model[model.index("= {") :]))))
    point = re.search(r"x\[MODEL_FEATURES\] = \{(.*)\}", (folder / "Predict.ino").read_text())[1]
    lines = sketch(folder / "Predict.ino", "x[0]", native.SOURCES, folder / "model.c")
    good = [float(word.rstrip("f")) for word in point.split(", ")]
    x = np.array([[1e30, *good[1:]], [-np.inf, *good[1:]], good], np.float32)
    found = reference.evaluate(pack, x)
    assert [lines[0], lines[3]] == [NOT_A_NUMBER] * 2
    sent = [list(map(float, lines[number].split())) for number in (1, 2, 4)]
    wanted = np.column_stack([found.mean, found.spread])
    assert np.array(sent) == pytest.approx(wanted, abs=1e-6)


def with_section(text, kind, change):
    """Let a section of the pack in ``model.c`` be another one of the same size."""
    start, end = text.index("= {") + 3, text.rindex("}")
    header, sections = split(bytes(map(int, re.findall(r"\d+(?=,)", text[start:end]))))
    (at,) = (place for place, one in enumerate(sections) if one.kind == kind)
    sections[at] = change(sections[at])
    array = "".join(f"{byte}, " for byte in join(header, sections))
    return f"{text[:start]}{array}{text[end:]}"


@pytest.mark.slow
def test_a_sketch_whose_pack_fails_its_self_test_says_so_each_time(
    sketch, native, firmware, tmp_path
):
    folder = firmware / "examples" / "Predict"
    text = with_section(
        (folder / "model.c").read_text(),
        Kind.SELF_TEST,
        lambda one: one._replace(data=one.data[:-1] + bytes([one.data[-1] ^ 1])),
    )
    (tmp_path / "model.c").write_text(text)
    lines = sketch(folder / "Predict.ino", "x[0]", native.SOURCES, tmp_path / "model.c")
    assert lines == [UNSOUND] * 5


def test_a_sketch_predicts_with_an_older_pack(sketch, native, firmware, tmp_path):
    folder = firmware / "examples" / "Predict"
    text = (folder / "model.c").read_text()
    other = with_section(text, Kind.SELF_TEST, lambda one: one._replace(kind=Kind.METADATA))
    (tmp_path / "model.c").write_text(other)
    usual, older = (
        sketch(folder / "Predict.ino", "x[0]", native.SOURCES, path / "model.c")
        for path in (folder, tmp_path)
    )
    assert older == usual
    assert NOT_A_NUMBER in usual


def test_a_sketch_whose_pack_is_damaged_says_so_each_time(sketch, native, firmware, tmp_path):
    folder = firmware / "examples" / "Predict"
    text = (folder / "model.c").read_text()
    end = text.rindex(",")
    start = max(text.rindex(mark, 0, end) for mark in (" ", "\n")) + 1
    (tmp_path / "model.c").write_text(f"{text[:start]}{int(text[start:end]) ^ 1}{text[end:]}")
    lines = sketch(folder / "Predict.ino", "x[0]", native.SOURCES, tmp_path / "model.c")
    assert lines == [DAMAGED] * 5


@pytest.mark.parametrize("value", ["NAN", "1e30f", "-INFINITY", None])
def test_the_program_of_an_export_answers_or_says_why_not(
    build, native, plain_export, promised, tmp_path, value
):
    project = plain_export / "c"
    code = (project / "main.c").read_text()
    if value:
        code, count = re.subn(TYPED, rf"\g<1>{value}", code)
        assert count == 1
    (tmp_path / "main.c").write_text(f"#include <math.h>\n{code}")
    runtime = sorted((project / "model").rglob("*.c"))
    done = native.attempt(build([tmp_path / "main.c"], runtime, f"-I{project}"))
    if value == "NAN":
        assert (done.returncode, done.stdout) == (1, "")
        assert "not a number" in done.stderr
    elif value:
        assert (done.returncode, done.stdout.split()[-1]) == (0, "outside")
    else:
        assert (done.returncode, done.stdout.strip()) == (0, promised(project))


def test_the_meter_for_concrete_goes_on(build, native, firmware, plain_export, curve, tmp_path):
    folder = firmware / "examples" / "concrete"
    script = SimpleNamespace(**runpy.run_path(str(folder / "concrete.py")))
    device = twinedge.load(plain_export / "model.twin")
    days, amounts = np.array([3, 7, 28]), curve[0][100, :2]
    strengths = device.predict(script.Mix(amounts, days, days).at(days)) + 1
    good = script.Mix(amounts, days, strengths)
    mixes = [
        good._replace(amounts=np.array([np.nan, amounts[1]])),
        good._replace(amounts=np.array([np.inf, -1e30])),
        good._replace(strengths=np.array([np.nan, np.inf, -3e38])),
        good,
    ]
    script.write_headers(tmp_path, device.pack, mixes)
    (tmp_path / "host.c").write_text(HOST)
    includes = (f"-I{tmp_path}", f"-I{firmware / 'ports' / 'harness'}", *native.INCLUDES)
    words = ('-Dnanf=__builtin_nanf("")', "-Dinff=__builtin_inff()")
    program = [folder / "main.c", tmp_path / "host.c"]
    lines = native.run(build(program, native.SOURCES, *includes, *words)).splitlines()
    at = [lines.index(f"mix {number}") for number in range(1, 5)]
    assert {line[:22] for line in lines[at[0] + 1 : at[1]]} == {"refused: a feature of "}
    assert all(" days " in line for line in lines[at[1] + 1 : at[2]])
    learnt = [line for line in lines[at[2] : at[3]] if line.startswith(("learnt", "refused"))]
    assert [line[:7] for line in learnt] == ["refused"] * 2
    assert any(line.endswith("measured ?") for line in lines[at[2] : at[3]])
    right = list(script.expected(device, [good]))
    assert lines[at[3] + 1 :] == right[1:]
