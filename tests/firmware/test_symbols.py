"""What the object files need, export and weigh: no allocation, two functions of libc, no state."""

import re

import pytest

ALLOWED = {"memcpy", "memset", "_GLOBAL_OFFSET_TABLE_"}
BUILDS = {
    "device": set(),
    # On 64-bit Arm the system reports dot products; on x86-64 libgcc detects features.
    "host": {"getauxval", "__cpu_model", "__cpu_features2"},
}


@pytest.fixture(scope="module", params=BUILDS)
def build(request, native, objects):
    """Return all symbols of the objects as (type, name), and what they may need."""
    host = request.param == "host"
    made = objects(*native.USUAL, *([] if host else ["-fno-pic"]), host=host)
    lines = native.run("nm", "--format=sysv", *made).splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line.count("|") == 6]
    # Constants with addresses, in .data.rel.ro, are data only until they are linked.
    found = [(row[2] if ".rel.ro" not in row[6] else "rR"[row[2] == "D"], row[0]) for row in rows]
    return found, ALLOWED | BUILDS[request.param]


@pytest.fixture(scope="module")
def shared(native, objects, tmp_path_factory):
    """The runtime as a shared library for this machine."""
    path = tmp_path_factory.mktemp("shared") / "libtwin.so"
    return native.compile_c(path, "-shared", sources=objects(*native.USUAL, host=True))


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


def test_internals_are_hidden_in_a_shared_library(native, shared, declared):
    lines = native.run("nm", "--dynamic", "--defined-only", "--format=posix", shared).splitlines()
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
    # The only lower-case ones are functions whose names include the settings, and deprecated names.
    calls = {"predict", "read", "begin", "predict_adapted", "watch_add_prediction"}
    calls |= {"watch_add_target", "watch_saw", "watch_told"}
    calls |= {
        "read_target",
        *(f"{call}_targets" for call in ("read", "predict", "predict_adapted")),
    }
    calls |= {"open", "open_begin", "select_target", *(f"{call}_raw" for call in calls)}
    calls |= {"self_test", "self_test_step", "check_begin", "check_step"}
    assert {name for name in names if name.islower()} == {f"twin_{call}" for call in calls}


# ---- programs with other settings


PROGRAM = """
#include "twin.h"
int main(void) { twin_model model; return twin_open(&model, 0, 0) != TWIN_ERROR_TRUNCATED; }
"""


@pytest.fixture
def main(tmp_path):
    (tmp_path / "main.c").write_text(PROGRAM)
    return tmp_path / "main.c"


@pytest.mark.parametrize(
    "setting",
    [
        "TWIN_HOST=0",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("TWIN_BLOCK=4", "TWIN_FLOAT=0", "TWIN_TEXT=0")
        ),
    ],
)
def test_a_program_with_other_settings_does_not_link(native, objects, main, tmp_path, setting):
    host = setting == "TWIN_HOST=0"
    program = ("gcc", *native.INCLUDES, main, *objects(*(() if host else (f"-D{setting}",))))
    native.run(*program, f"-D{setting}", "-DTWIN_HOST=0", "-o", tmp_path / "main")
    native.run(tmp_path / "main")
    with pytest.raises(AssertionError, match="undefined reference to `twin_open_v0_1_block"):
        native.run(*program, *(() if host else ("-DTWIN_HOST=0",)), "-o", tmp_path / "main")


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
    "{ twin_watch_add_prediction(watch, m, given); }",
}
OTHERS = ("TWIN_BLOCK=4", "TWIN_NEIGHBORS=0")


@pytest.mark.parametrize("file", OTHER_FILES)
@pytest.mark.parametrize("setting", OTHERS)
def test_a_file_of_a_program_with_other_settings_does_not_link(
    native, shared, main, tmp_path, file, setting
):
    headers = '#include "twin_store.h"\n#include "twin_watch.h"\n'
    (tmp_path / "other.c").write_text(headers + OTHER_FILES[file])
    program = ("gcc", *native.INCLUDES, main, shared, "-o", tmp_path / "main")
    other = native.compile_c(
        tmp_path / "other.o", "-c", f"-D{setting}", sources=[tmp_path / "other.c"]
    )
    with pytest.raises(AssertionError, match=r"undefined reference to `twin_\w+_v0_1_block"):
        native.run(*program, other)
    native.run(*program, tmp_path / "other.c")


def test_on_a_device_not_even_a_file_that_calls_nothing_links(native, tmp_path):
    (tmp_path / "main.c").write_text(
        '#include "twin.h"\nextern twin_model shared;\n'
        "int main(void) { return (int)twin_scratch_size(&shared) + twin_open(&shared, 0, 0); }\n"
    )
    (tmp_path / "other.c").write_text('#include "twin.h"\ntwin_model shared;\n')
    flags = ("-mcpu=cortex-m4", "-mthumb", "-Os", "-ffunction-sections", "--specs=nosys.specs")
    compiler = ("arm-none-eabi-gcc", "-std=c99", *native.INCLUDES, *flags)
    native.run(*compiler, "-c", *native.SOURCES, tmp_path / "main.c", cwd=tmp_path)
    made = [*tmp_path.glob("*.o")]

    def link(*settings):
        image = ("-Wl,--gc-sections", "-o", tmp_path / "image.elf")
        native.run(*compiler, *settings, tmp_path / "other.c", *made, *image)
        return native.run("arm-none-eabi-size", "-A", tmp_path / "image.elf")

    assert ".debug_twin_settings" in link()
    with pytest.raises(AssertionError, match="undefined reference to `twin_settings_v0_1_block2"):
        link("-DTWIN_INTERVALS=0")


def test_a_program_of_another_version_does_not_link(native, shared, main, tmp_path):
    header = (native.FIRMWARE / "include" / "twin.h").read_text()
    (tmp_path / "twin.h").write_text(
        header.replace("#define TWIN_VERSION_MINOR 1", "#define TWIN_VERSION_MINOR 2")
    )
    includes = (f"-I{tmp_path}", *native.INCLUDES)
    with pytest.raises(AssertionError, match="undefined reference to `twin_open_v0_2"):
        native.run("gcc", *includes, main, shared, "-o", tmp_path / "main")


# ---- parts that a program may do without


def test_a_program_that_neither_learns_nor_watches_has_no_code_for_it(
    native, objects, main, tmp_path
):
    options = ("-DTWIN_HOST=0", *native.INCLUDES, "-Wl,--gc-sections")
    native.run("gcc", *options, main, *objects(*native.SHARED), "-o", tmp_path / "main")
    found = native.run("nm", tmp_path / "main")
    assert "twin_open" in found
    parts = "watch|store|learn|adapt|journal|point|slots|check_begin|self_test|identity|signature"
    assert re.findall(parts, found) == []


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        *(("store", f"TWIN_{one}") for one in ("STORE", "INTERVALS", "FLOAT")),
        ("journal", "TWIN_STORE"),
        ("slots", "TWIN_STORE"),
        ("watch", "TWIN_INTERVALS"),
    ],
)
def test_a_setting_leaves_nothing_of_a_part(native, tmp_path, name, setting):
    source = native.FIRMWARE / "src" / f"twin_{name}.c"
    for language in ("c", "c++"):
        options = ("-c", *native.WARNINGS, *native.INCLUDES, f"-D{setting}=0", f"-x{language}")
        native.run("gcc", *options, source, "-o", tmp_path / "part.o")
        assert native.run("nm", tmp_path / "part.o") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chip", "flash"),
    [
        ("atmega328p", 1),
        pytest.param("atmega2560", 1, marks=pytest.mark.slow),
        pytest.param("atmega2560", 2, marks=pytest.mark.slow),
    ],
)
def test_avr_has_a_store_where_it_is_wanted(native, tmp_path, chip, flash):
    settings = ("-DTWIN_STORE=1", "-DTWIN_INTERVALS=1", f"-DTWIN_FLASH={flash}")
    sources = [*native.PORTABLE, native.FIRMWARE / "src" / "kernels" / "kernel_avr.c"]
    options = (f"-mmcu={chip}", "-Os", "-c", *settings, "-Wno-pedantic", *native.INCLUDES)
    native.run("avr-gcc", "-std=gnu99", *native.WARNINGS, *options, *sources, cwd=tmp_path)
    found = native.run("avr-nm", "--defined-only", *tmp_path.glob("*.o"))
    assert "twin_predict_adapted" in found


# Most bytes of code on a Cortex-M0 and a Cortex-M4 with a float unit; the watch without floats.
MOST = {"store": (2004, 1872), "journal": (1468, 1392), "watch": (1499, 1499)}
MOST |= {"slots": (1220, 1196), "release": (788, 812)}
SIZES = """
#include "twin_slots.h"
#include "twin_store.h"
#include "twin_watch.h"
typedef char slots_are_small[sizeof(twin_slots) <= 120 ? 1 : -1];
typedef char check_is_small[sizeof(twin_check) <= 48 ? 1 : -1];
typedef char store_is_small[sizeof(twin_store) <= 80 ? 1 : -1];
typedef char point_is_small[sizeof(twin_point) <= 20 ? 1 : -1];
typedef char storage_is_small[sizeof(twin_storage) <= 24 ? 1 : -1];
typedef char watch_is_small[sizeof(twin_watch) == 64 ? 1 : -1];
"""


def test_structures_are_small(native, tmp_path):
    (tmp_path / "sizes.c").write_text(SIZES)
    options = ("-mcpu=cortex-m0", "-mthumb", "-fsyntax-only")
    compiler = "arm-none-eabi-gcc"
    sources = [tmp_path / "sizes.c"]
    native.compile_c(tmp_path / "none", *options, compiler=compiler, sources=sources)


@pytest.mark.parametrize("part", MOST)
def test_a_part_is_small(native, tmp_path, part):
    needed = []
    floats = ("-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
    cores = (("-mcpu=cortex-m0",), ("-mcpu=cortex-m4", *floats))
    for core, most in zip(cores, MOST[part], strict=True):
        options = (*core, "-mthumb", "-Os", "-c", *(["-DTWIN_FLOAT=0"] * (part == "watch")))
        output = tmp_path / "part.o"
        source = native.FIRMWARE / "src" / f"twin_{part}.c"
        native.compile_c(output, *options, compiler="arm-none-eabi-gcc", sources=[source])
        text, data, bss = native.run("arm-none-eabi-size", output).splitlines()[1].split()[:3]
        assert int(text) <= most
        assert (data, bss) == ("0", "0")
        undefined = native.run("arm-none-eabi-nm", "--undefined-only", output)
        needed.append({line.split()[-1] for line in undefined.splitlines()})
    # No division of 64 bits, and no float but what predictions have.
    small, large = needed
    assert all(name.startswith("twin") or name in ("memset", "memcpy") for name in large)
    helpers = {"__aeabi_lmul", "__aeabi_idiv", "__aeabi_uidiv", "__aeabi_uidivmod"}
    assert small - large <= helpers
    assert part != "journal" or not [name for name in small if name.startswith("twin")]


def test_a_cpp_program_opens_a_pack_and_a_store(native, objects, tmp_path):
    main = tmp_path / "main.cpp"
    main.write_text(
        '#include "twin_store.h"\n'
        "int main() {\n"
        "    twin_model model = {}; twin_storage storage = {}; twin_store store;\n"
        "    storage.program_size = 1;\n"
        "    return twin_open(&model, 0, 0) != TWIN_ERROR_TRUNCATED ||\n"
        "           twin_store_open(&store, &model, 0, &storage, 0, 5) != TWIN_ERROR_STORE ||\n"
        "           twin_forget(&store, 0, 0) != TWIN_ERROR_STORE;\n"
        "}\n"
    )
    words = ("-std=c++17", *native.WARNINGS, *native.INCLUDES, "-DTWIN_HOST=0")
    native.run("g++", *words, main, *objects(*native.SHARED), "-o", tmp_path / "main")
    native.run(tmp_path / "main")
