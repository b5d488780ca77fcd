"""The C code is clean under the compilers and checkers it names; `make lint` adds cppcheck."""

import pytest


@pytest.fixture(scope="module")
def programs(native):
    """All C files that are not part of a board."""
    more = [native.FIRMWARE / "example" / "main.c", *(native.FIRMWARE / "test").glob("*.c")]
    return [*native.SOURCES, *sorted(more)]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warning_as_c99(native, programs, compiler):
    options = ("-std=c99", *native.WARNINGS, *native.INCLUDES, "-O2", "-fsyntax-only")
    assert native.run(compiler, *options, *programs) == ""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_no_warning_as_cpp17(native, compiler):
    options = ("-std=c++17", *native.WARNINGS, *native.INCLUDES, "-x", "c++", "-fsyntax-only")
    assert native.run(compiler, *options, *native.SOURCES) == ""


def test_headers_stand_alone(native, tmp_path):
    for header in native.HEADERS:
        if header.parent.name == "kernels":
            continue  # a kernel file defines its layout first
        source = tmp_path / f"{header.stem}.c"
        source.write_text(f'#include "{header.name}"\n#include "{header.name}"\nint twin_none;\n')
        options = ("-std=c99", *native.WARNINGS, *native.INCLUDES, "-fsyntax-only")
        native.run("gcc", *options, source)


def test_cpp_and_c_meet(native, tmp_path):
    # A C++ program links with the library compiled as C.
    source = tmp_path / "main.cpp"
    source.write_text(
        '#include "twin.h"\n#include <cstddef>\n'
        "int main() { twin_model model; return twin_open(&model, NULL, 0) + 1; }\n"
    )
    objects = []
    for path in native.SOURCES:
        objects.append(tmp_path / f"{path.stem}.o")
        native.compile_c(objects[-1], "-c", sources=[path])
    native.run("g++", *native.INCLUDES, source, *objects, "-o", tmp_path / "main")
    native.run(tmp_path / "main")


@pytest.mark.slow
def test_clang_tidy_is_content(native, programs):
    native.run("clang-tidy", "--quiet", *programs, "--", "-std=c99", *native.INCLUDES)
