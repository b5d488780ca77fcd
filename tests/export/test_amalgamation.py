"""C files joined into one: shared headers appear once, templates with each file, macros end."""

import re
import subprocess

import pytest

from twinedge.errors import InputError
from twinedge_export.amalgamation import amalgamate, firmware_folder

STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
LOOSE = ("-std=c++17", "-xc++", "-Wall", "-Wextra", "-Wshadow", "-Werror")

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
#ifdef TWIN_SINGLE_FILE
#define TWIN_INTERNAL static
#else
#define TWIN_INTERNAL
#endif
#define TWICE(a) (2 * (a))
TWIN_INTERNAL int twini_mix(int a, int b);
#endif
"""
# Both files use this header with definitions of their own, so it is repeated in each.
TEMPLATE_H = """
typedef struct NAME(pair) {
    int load, count;
} NAME(pair);
static int NAME(load)(int a) {
    NAME(pair) both = {0, FACTOR * 10};
    both.load = a;
    return (both.load + both.count) * FACTOR;
}
"""
RED_C = """
#include "../twin_shared.h"
#define NAME(word) red_##word
#define FACTOR 2
#include "template.h"
int twin_red(int a) { return twini_mix(red_load(a), 1); }
"""
BLUE_C = RED_C.replace("red", "blue").replace("FACTOR 2", "FACTOR 3").replace("blue.h", "red.h")
FILES = {
    "include/twin_config.h": "#ifndef TWIN_CONFIG_H\n#define TWIN_CONFIG_H\n#endif\n",
    "include/twin.h": TWIN_H,
    "src/twin_shared.h": SHARED_H,
    "src/kernels/template.h": TEMPLATE_H,
    "src/kernels/kernel_red.c": RED_C,
    "src/kernels/kernel_blue.c": BLUE_C.replace("twin_shablue", "twin_shared"),
    "src/twin_mix.c": """
#include "twin_shared.h"
#define FACTOR 1000
TWIN_INTERNAL int twini_mix(int a, int b) { return a + TWICE(FACTOR) * b; }
""",
}
MAIN_C = """
#include "twin.h"
#include <stdio.h>
int main(void) { return printf("%d %d", twin_red(7), twin_blue(7)) < 0; }
"""


@pytest.fixture
def join(tmp_path):
    """Join files, some of them replaced: ``join({path: text})``."""

    def make(replaced):
        for path, text in {**FILES, **replaced}.items():
            file = tmp_path / "firmware" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return amalgamate(tmp_path / "firmware")

    return make


@pytest.mark.parametrize("options", [STRICT, LOOSE])
def test_the_joined_files_compile_and_show_public_names_only(join, tmp_path, options):
    made = join({})
    for name, text in (("twin.h", made.header), ("twin.c", made.source), ("main.c", MAIN_C)):
        (tmp_path / name).write_text(text)

    def run(*words):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    run("gcc", *options, "twin.c", "main.c", "-o", "program")
    assert run("./program") == f"{(7 + 20) * 2 + 2000} {(7 + 30) * 3 + 2000}"
    run("gcc", *options, "-c", "twin.c")
    names = run("nm", "-g", "--defined-only", "--format=posix", "twin.o").splitlines()
    assert [line.split()[0] for line in names] == ["twin_blue", "twin_red"]
    macros = run("gcc", "-E", "-dM", "twin.c")
    assert not re.findall(r"#define (?:FACTOR|NAME)\b", macros)
    assert re.findall(r"#define TWICE\b", macros)


def test_a_header_with_a_guard_comes_once_and_a_template_with_each_file(join):
    source = join({}).source
    assert len(re.findall("==== src/twin_shared.h =", source)) == 1
    assert len(re.findall("==== src/kernels/template.h =", source)) == 2


def test_a_header_that_is_not_there_is_named(join):
    with pytest.raises(InputError, match=r"kernel_red\.c: includes template\.hh, which"):
        join({"src/kernels/kernel_red.c": RED_C.replace("template.h", "template.hh")})


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
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [f"{folder}/twin.h", f"{folder}/twin.c"]
        assert (folder / "twin.h").read_text() == made.header
        assert (folder / "twin.c").read_text() == made.source
