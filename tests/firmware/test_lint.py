"""The C code is clean under the compilers and checkers it names; `make lint` adds cppcheck."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
SIGNS = "-Wsign-conversion"


@pytest.fixture(scope="module")
def rules():
    """Return what ``tools/rules.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "rules.py")))


@pytest.fixture(scope="module")
def programs(native):
    """All C files that are not part of a board."""
    more = [native.FIRMWARE / "example" / "main.c", *(native.FIRMWARE / "test").glob("*.c")]
    return [*native.SOURCES, *sorted(more)]


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_no_warning_as_c99(native, programs, compiler):
    options = ("-std=c99", *native.WARNINGS, SIGNS, *native.INCLUDES, "-O2", "-fsyntax-only")
    assert native.run(compiler, *options, *programs) == ""


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_no_warning_as_cpp17(native, compiler):
    options = ("-std=c++17", *native.WARNINGS, SIGNS, *native.INCLUDES, "-x", "c++")
    assert native.run(compiler, *options, "-fsyntax-only", *native.SOURCES) == ""


@pytest.mark.slow
def test_the_analyzer_of_gcc_finds_nothing_in_the_core(native, rules, tmp_path):
    options = ("-std=c99", *native.WARNINGS, SIGNS, *native.INCLUDES, "-O2", "-fanalyzer", "-c")
    assert native.run("gcc", *options, *rules.CORE, cwd=tmp_path) == ""


@pytest.mark.parametrize("host", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_clang_warns_of_nothing_in_the_core_but_what_is_listed(native, rules, host):
    options = ("-std=c99", "-Weverything", "-Werror", f"-DTWIN_HOST={host}", *native.INCLUDES)
    off = [f"-Wno-{name}" for name in rules.read_rules()["clang"]]
    assert native.run("clang", *options, *off, "-fsyntax-only", *rules.CORE) == ""


def test_each_warning_that_is_off_would_be_given(native, rules):
    options = ("-std=c99", "-Weverything", *native.INCLUDES, "-fsyntax-only")
    output = native.attempt("clang", *options, *rules.CORE).stderr
    assert [name for name in rules.read_rules()["clang"] if f"[-W{name}]" not in output] == []


def test_a_rule_that_is_broken_must_be_listed_and_a_listed_one_broken(rules, tmp_path):
    # `make lint` compares the whole core with the list.
    source = tmp_path / "source.c"
    source.write_text(
        "int f(int a);\nint f(int a) {\n    if (a > 0)\n        a = 1;\n    return a;\n}\n"
    )
    found = rules.broken([source])
    assert found["15.6"] == [f"{source}:3"]
    assert set(found) == {"15.6", "17.8"}
    assert rules.complaints(found, ["15.6", "17.8"]) == []
    (line,) = rules.complaints(found, ["15.6"])
    assert line == f"MISRA 17.8 is broken and not listed: {source}:4"
    (line,) = rules.complaints(found, ["15.6", "17.8", "9.1"])
    assert line == "MISRA 9.1 is listed and not broken"


def test_what_cppcheck_cannot_read_is_no_success(rules, tmp_path):
    with pytest.raises(SystemExit, match="cppcheck"):
        rules.broken([tmp_path / "none.c"])


def test_the_page_has_the_rules_of_the_list(rules):
    text = (ROOT / "docs" / "security.md").read_text("utf-8")
    assert rules.with_tables(text, rules.read_rules()) == text
    for kind in rules.KINDS:
        for rule in rules.read_rules()[kind].values():
            assert set(rule) == {"about", "why"}
            assert f" {rule['why']} |" in text


def test_headers_stand_alone(native, tmp_path):
    for header in native.HEADERS:
        if header.parent.name == "kernels":
            continue  # a kernel file defines its layout first
        source = tmp_path / f"{header.stem}.c"
        source.write_text(f'#include "{header.name}"\n#include "{header.name}"\nint twin_none;\n')
        options = ("-std=c99", *native.WARNINGS, *native.INCLUDES, "-fsyntax-only")
        native.run("gcc", *options, source)


@pytest.mark.slow
def test_clang_tidy_is_content(native, programs):
    native.run("clang-tidy", "--quiet", *programs, "--", "-std=c99", *native.INCLUDES)
