"""C files joined into one: private things stay private, and shared ones appear once."""

import re
import subprocess

import pytest

from twinedge.errors import InputError
from twinedge_export.amalgamation import amalgamate, firmware_folder, write_amalgamation

STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
LOOSE = ("-std=c++17", "-xc++", "-Wall", "-Wextra", "-Wshadow", "-Werror")

CONFIG_H = """
#ifndef TWIN_CONFIG_H
#define TWIN_CONFIG_H
#ifndef TWIN_LARGE
#define TWIN_LARGE 1
#endif
#endif
"""
TWIN_H = """
/* What a program may call. */
#ifndef TWIN_H
#define TWIN_H
#include "twin_config.h"
#ifdef __cplusplus
extern "C" {
#endif
int twin_red(int a);
int twin_blue(int a);
#ifdef __cplusplus
}
#endif
#endif
"""
SHARED_H = """
#ifndef TWIN_SHARED_H
#define TWIN_SHARED_H
#include "twin.h"
#define TWIN_INTERNAL
typedef struct twini_colour {
    int (*mix)(int);
    int shade, load;
} twini_colour;
TWIN_INTERNAL extern const twini_colour twini_of_red;
TWIN_INTERNAL int twini_mix(int a, int b);
#endif
"""
# Both files use this header with definitions of their own, so it is repeated in each.
TEMPLATE_H = """
#ifndef TWIN_TEMPLATE_H
#define TWIN_TEMPLATE_H
#include "twin_shared.h"
enum { DEPTH = FACTOR * 10 };
typedef struct pair {
    int load, count; /* fields with the names of functions */
    int (*way)(int a);
} pair;
static int load(int a) {
    pair both = {0, 0, 0}, *at = &both;
    both.load = a;
    at->count = DEPTH;
    return at->load + both.count; /* not load() */
}
#define LOADED(a) (load(a) * FACTOR)
#endif
"""
RED_C = """
/* Red by itself. */
#include "twin_shared.h"
#define FACTOR 2
#include "template.h"
static const char name[] = "load";
static int mix(int a) {
    int both = LOADED(a);
    return twini_mix(both, name[0] == 'l');
}
const twini_colour twini_of_red = {mix, 1, 1};
"""
BLUE_C = """
#include "twin_shared.h"
#define FACTOR 3
#include "template.h"
#if TWIN_LARGE
#include <limits.h>
#elif defined(__AVR__) || defined(__XTENSA__)
#include <stddef.h>
#else
#include <stdint.h>
#endif
enum shade { LIGHT = 1, DARK };
static int mix(int a) { return LOADED(a) + (int)DARK; }
int twin_blue(int a) { return CHAR_BIT == 8 ? mix(a) : 0; }
"""
MIX_C = """
#include "twin_shared.h"
int twin_red(int a) { return twini_of_red.mix(a); }
TWIN_INTERNAL int twini_mix(int a, int b) { return a + 1000 * b; }
"""
FILES = {
    "include/twin_config.h": CONFIG_H,
    "include/twin.h": TWIN_H,
    "src/twin_shared.h": SHARED_H,
    "src/kernels/template.h": TEMPLATE_H,
    "src/kernels/kernel_red.c": RED_C,
    "src/kernels/kernel_blue.c": BLUE_C,
    "src/twin_mix.c": MIX_C,
}
MAIN_C = """
#include "twin.h"
#include <stdio.h>
int main(void) { return printf("%d %d", twin_red(7), twin_blue(7)) < 0; }
"""
ANSWER = f"{(7 + 20) * 2 + 1000} {(7 + 30) * 3 + 2}"


@pytest.fixture
def join(tmp_path):
    """Join files, some of them replaced: ``join({path: text})``."""

    def make(**replaced):
        for path, text in {**FILES, **replaced.get("files", {})}.items():
            file = tmp_path / "firmware" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return amalgamate(tmp_path / "firmware")

    return make


@pytest.fixture
def build(tmp_path):
    """Compile the joined files with a program; return its output."""

    def make(made, *options):
        for name, text in (("twin.h", made.header), ("twin.c", made.source), ("main.c", MAIN_C)):
            (tmp_path / name).write_text(text)
        command = ["gcc", *options, "twin.c", "main.c", "-o", "program"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return subprocess.run([tmp_path / "program"], capture_output=True, text=True).stdout

    return make


@pytest.mark.parametrize("options", [STRICT, LOOSE, (*STRICT, "-DTWIN_LARGE=0", "-DCHAR_BIT=8")])
def test_names_of_two_files_do_not_meet(join, build, options):
    assert build(join(), *options) == ANSWER


def test_only_public_names_are_shown(join, build, tmp_path):
    build(join())
    for options in (("gcc",), ("g++", "-xc++")):
        subprocess.run([*options, "-c", "twin.c"], cwd=tmp_path, check=True)
        said = subprocess.run(
            ["nm", "-g", "--defined-only", "--format=posix", "twin.o"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert [line.split()[0] for line in said.stdout.splitlines()] == ["twin_blue", "twin_red"]


def test_a_name_tells_its_file(join):
    source = join().source
    assert "static int red_mix(int a)" in source
    assert "enum blue_shade { BLUE_LIGHT = 1, BLUE_DARK };" in source
    assert "int load, count; /* fields with the names of functions */" in source
    assert "return at->load + both.count; /* not load() */" in source
    assert 'static const char red_name[] = "load";' in source
    assert "#define LOADED(a) (red_load(a) * FACTOR)" in source


def test_what_is_shared_comes_once_and_a_template_with_each(join):
    source = join().source
    assert len(re.findall("struct twini_colour", source)) == 1
    assert len(re.findall("==== src/kernels/template.h", source)) == 2
    assert "struct red_pair" in source
    assert "struct blue_pair" in source


def test_macros_end_with_their_file(join, build, tmp_path):
    build(join())
    said = subprocess.run(
        ["gcc", "-E", "-dM", "twin.c"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not re.findall(r"#define (?:FACTOR|LOADED)\b", said.stdout)


def test_headers_of_the_compiler_keep_their_conditions(join):
    source = join().source
    system = source[: source.index("kernel_red.c")]
    assert "#if TWIN_LARGE\n#include <limits.h>\n#endif" in system
    either = "(defined(__AVR__) || defined(__XTENSA__))"
    assert f"#if !(TWIN_LARGE) && {either}\n#include <stddef.h>\n#endif" in system
    other = "!(defined(__AVR__) || defined(__XTENSA__))"
    assert f"#if !(TWIN_LARGE) && {other}\n#include <stdint.h>" in system


def test_what_has_no_c_is_not_static(join):
    made = join(files={"src/twin_mix.c": MIX_C + "TWIN_INTERNAL void twini_in_assembly(void);\n"})
    assert "\nTWIN_INTERNAL void twini_in_assembly(void);" in made.source
    assert "\nstatic int twini_mix(int a, int b);" in made.source


def test_a_header_may_be_named_by_a_macro(join, build):
    named = BLUE_C.replace('"template.h"', "TEMPLATE").replace(
        "#define FACTOR", '#define TEMPLATE "template.h"\n#define FACTOR'
    )
    made = join(files={"src/kernels/kernel_blue.c": named})
    assert "#include TEMPLATE" not in made.source
    assert build(made, *STRICT) == ANSWER


def test_a_header_that_is_not_there_is_named(join):
    with pytest.raises(InputError, match=r"kernel_red\.c: includes template\.hh, which"):
        join(files={"src/kernels/kernel_red.c": RED_C.replace("template.h", "template.hh")})


def test_a_header_under_two_conditions_is_refused(join):
    twice = '#if TWIN_LARGE\n#include "template.h"\n#endif\n#include "template.h"'
    with pytest.raises(InputError, match="under a different condition"):
        join(files={"src/kernels/kernel_red.c": RED_C.replace('#include "template.h"', twice)})


def test_a_name_that_would_be_taken_is_refused(join):
    taken = RED_C + "static int unused(int blue_load) { return blue_load; }\n"
    with pytest.raises(InputError, match="blue_load would name two things"):
        join(files={"src/kernels/kernel_red.c": taken})


def test_braces_that_do_not_match_are_refused(join):
    with pytest.raises(InputError, match="do not match"):
        join(files={"src/twin_mix.c": MIX_C + "static int f(void) {\n"})


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


def test_nothing_else_is_included(made):
    assert re.findall("#include [^<].*", made.header) == []
    assert re.findall("#include [^<].*", made.source) == ['#include "twin.h"']


def test_make_writes_the_same_bytes_each_time(made, tmp_path):
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        command = ["make", "--no-print-directory", "amalgamation", f"OUT={folder}"]
        here = firmware_folder().parent
        said = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
        assert said.stdout.split() == [f"{folder}/twin.h", f"{folder}/twin.c"]
        assert (folder / "twin.h").read_text() == made.header
        assert (folder / "twin.c").read_text() == made.source


def test_both_files_are_where_they_were_wanted(made, tmp_path):
    paths = write_amalgamation(tmp_path / "a" / "b")
    assert paths == (tmp_path / "a/b/twin.h", tmp_path / "a/b/twin.c")
    assert paths.source.read_text() == made.source
