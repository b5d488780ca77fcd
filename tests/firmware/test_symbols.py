"""What the object files need and export: no allocation, two functions of libc, no state."""

import re

import pytest

ALLOWED = {"memcpy", "memset", "_GLOBAL_OFFSET_TABLE_"}
PLAIN = ("-fno-pic", "-fno-stack-protector")
BUILDS = {
    "device, -O0": (("-O0", "-DTWIN_HOST=0", *PLAIN), set()),
    "device, -O2": (("-O2", "-DTWIN_HOST=0", *PLAIN), set()),
    # On 64-bit Arm the system reports dot products; on x86-64 libgcc detects features.
    "host": (("-O2", *PLAIN), {"getauxval", "__cpu_model", "__cpu_features2"}),
}


@pytest.fixture(scope="module", params=BUILDS)
def build(request, native, tmp_path_factory):
    """Return all symbols of the objects as (type, name), and what they may need."""
    options, allowed = BUILDS[request.param]
    folder = tmp_path_factory.mktemp("objects")
    found = []
    for source in native.SOURCES:
        output = folder / f"{source.stem}.o"
        native.compile_c(output, *options, "-c", sources=[source])
        lines = native.run("nm", "--format=posix", output).splitlines()
        found += [(line.split()[1], line.split()[0]) for line in lines]
    return found, ALLOWED | allowed


@pytest.fixture(scope="module")
def declared(native):
    """Names of the functions that the public headers declare."""
    names = set()
    for header in (native.FIRMWARE / "include").glob("*.h"):
        code = re.sub(r"(?s)/\*.*?\*/", "", header.read_text())
        names |= set(re.findall(r"(?m)^[a-z][\w *]*?\b(twin_\w+)\(", code))
    assert "twin_open" in names
    return names


def test_nothing_is_needed_but_memcpy_and_memset(build):
    symbols, allowed = build
    defined = {name for kind, name in symbols if kind in "TDRB"}
    needed = {name for kind, name in symbols if kind == "U"}
    assert needed - defined <= allowed


def test_only_what_is_public_has_the_public_prefix(build, declared):
    symbols, _ = build
    exported = {name for kind, name in symbols if kind.isupper() and kind != "U"}
    public = {re.sub(r"_v\d+_.*", "", name) for name in exported if name.startswith("twin_")}
    assert "twin_open" in public
    assert public <= declared
    others = {name for name in exported if not name.startswith("twin_")}
    assert {name for name in others if not name.startswith("twini_")} == set()


def test_internals_are_hidden_in_a_shared_library(native, tmp_path, declared):
    path = native.compile_c(tmp_path / "lib.so", "-O0", "-fPIC", "-shared")
    lines = native.run("nm", "--dynamic", "--defined-only", "--format=posix", path).splitlines()
    shown = {re.sub(r"_v\d+_.*", "", line.split()[0]) for line in lines}
    assert shown <= declared
    assert {"twin_open", "twin_predict", "twin_kernel_name"} <= shown


def test_there_is_no_state(build):
    symbols, _ = build
    assert [name for kind, name in symbols if kind.upper() in "BDC"] == []


def test_headers_define_nothing_without_a_prefix(native, tmp_path):
    empty, all_of_it = tmp_path / "empty.c", tmp_path / "all.c"
    empty.write_text("#include <stdint.h>\n")
    headers = sorted(path.name for path in (native.FIRMWARE / "include").glob("*.h"))
    includes = "".join(f'#include "{name}"\n' for name in headers)
    all_of_it.write_text("#include <stdint.h>\n" + includes)
    macros = [
        set(native.run("gcc", "-dM", "-E", f"-I{native.FIRMWARE / 'include'}", path).splitlines())
        for path in (empty, all_of_it)
    ]
    names = {line.split()[1].partition("(")[0] for line in macros[1] - macros[0]}
    assert {name for name in names if not name.startswith(("TWIN_", "twin_"))} == set()
    # The only lower-case ones are functions whose names include the settings.
    calls = {"open", "open_begin", "watch_saw", "watch_saw_raw", "watch_told", "watch_told_raw"}
    calls |= {"begin", "begin_raw", "predict", "predict_raw", "read", "read_raw"}
    calls |= {"predict_adapted", "predict_adapted_raw"}
    assert {name for name in names if name.islower()} == {f"twin_{call}" for call in calls}


PROGRAM = """
#include "twin.h"
int main(void) { twin_model model; return twin_open(&model, 0, 0) != TWIN_ERROR_TRUNCATED; }
"""


@pytest.mark.parametrize("setting", ["TWIN_BLOCK=4", "TWIN_FLOAT=0", "TWIN_TEXT=0", "TWIN_HOST=0"])
def test_a_program_with_other_settings_does_not_link(native, tmp_path, setting):
    (tmp_path / "main.c").write_text(PROGRAM)
    fewer, more = ("-DTWIN_HOST=0", f"-D{setting}"), ("-DTWIN_HOST=0",)
    library = native.compile_c(tmp_path / "libtwin.so", "-O0", "-fPIC", "-shared", *fewer)
    link = ("gcc", *native.INCLUDES, tmp_path / "main.c", library, "-o", tmp_path / "main")
    native.run(*link, *fewer)
    native.run(tmp_path / "main")
    with pytest.raises(AssertionError, match="undefined reference to `twin_open_v0_1_block"):
        native.run(*link, *(more if setting != "TWIN_HOST=0" else ()))


# Files of a program besides the one that opens the pack: each would overflow memory of the others.
OTHER_FILES = {
    "predicts": "int other(const twin_model *m, void *s, const float *x, twin_prediction *out)\n"
    "{ return twin_predict(m, s, 99, x, out, 0); }",
    "reads": "int other(const twin_run *run, twin_prediction *out) { return twin_read(run, out); }",
    "begins": "int other(twin_run *run, const twin_model *m, void *s, const int16_t *q)\n"
    "{ return twin_begin_raw(run, m, s, 99, q, 0); }",
    "adapts": "int other(const twin_store *store, void *s, const float *x, twin_prediction *out)\n"
    "{ return twin_predict_adapted(store, s, 99, x, out); }",
    "watches": "void other(twin_watch *watch, const twin_model *m, const twin_prediction *given)\n"
    "{ twin_watch_saw(watch, m, given); }",
}
OTHERS = ("TWIN_BLOCK=4", "TWIN_NEIGHBORS=0")


@pytest.mark.parametrize("file", OTHER_FILES)
@pytest.mark.parametrize("setting", OTHERS)
def test_a_file_of_a_program_with_other_settings_does_not_link(native, tmp_path, file, setting):
    (tmp_path / "main.c").write_text(PROGRAM)
    headers = '#include "twin_store.h"\n#include "twin_watch.h"\n'
    (tmp_path / "other.c").write_text(headers + OTHER_FILES[file])
    objects = [
        native.compile_c(tmp_path / f"{name}.o", "-c", *flags, sources=[tmp_path / f"{name}.c"])
        for name, flags in (("main", ()), ("other", (f"-D{setting}",)))
    ]
    library = native.compile_c(tmp_path / "libtwin.so", "-O0", "-fPIC", "-shared")
    with pytest.raises(AssertionError, match=r"undefined reference to `twin_\w+_v0_1_block"):
        native.run("gcc", *objects, library, "-o", tmp_path / "main")
    native.compile_c(tmp_path / "other.o", "-c", sources=[tmp_path / "other.c"])
    native.run("gcc", *objects, library, "-o", tmp_path / "main")


def test_on_a_device_not_even_a_file_that_calls_nothing_links(native, tmp_path):
    program = PROGRAM.replace("int main", "extern twin_model shared;\nint main")
    program = program.replace(
        "twin_model model; return", "return (int)twin_scratch_size(&shared) +"
    )
    (tmp_path / "main.c").write_text(program.replace("&model", "&shared"))
    (tmp_path / "other.c").write_text('#include "twin.h"\ntwin_model shared;\n')
    flags = ("-mcpu=cortex-m4", "-mthumb", "-Os", "-ffunction-sections", "--specs=nosys.specs")

    def link(*settings):
        files = [*native.SOURCES, tmp_path / "main.c", tmp_path / "other.c"]
        made = [
            native.compile_c(
                tmp_path / f"{path.stem}.o",
                *("-c", *flags, *(settings if path.stem == "other" else ())),
                compiler="arm-none-eabi-gcc",
                sources=[path],
            )
            for path in files
        ]
        image = tmp_path / "image.elf"
        native.run("arm-none-eabi-gcc", *flags, "-Wl,--gc-sections", *made, "-o", image)
        return native.run("arm-none-eabi-size", "-A", image)

    assert ".debug_twin_settings" in link()
    with pytest.raises(AssertionError, match="undefined reference to `twin_settings_v0_1_block2"):
        link("-DTWIN_INTERVALS=0")


def test_a_program_of_another_version_does_not_link(native, tmp_path):
    (tmp_path / "main.c").write_text(PROGRAM)
    library = native.compile_c(tmp_path / "libtwin.so", "-O0", "-fPIC", "-shared", "-DTWIN_HOST=0")
    header = (native.FIRMWARE / "include" / "twin.h").read_text()
    (tmp_path / "twin.h").write_text(
        header.replace("#define TWIN_VERSION_MINOR 1", "#define TWIN_VERSION_MINOR 2")
    )
    includes = (f"-I{tmp_path}", *native.INCLUDES)
    with pytest.raises(AssertionError, match="undefined reference to `twin_open_v0_2"):
        native.run("gcc", *includes, tmp_path / "main.c", library, "-o", tmp_path / "main")
