"""The runtime with CMake: installed and found, inside ESP-IDF, inside Zephyr."""

import numpy as np
import pytest

from twinedge.pack import read_pack
from twinedge.runtime.reference import evaluate
from twinedge.version import __version__

CONSUMER = """
cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(twinedge {version} REQUIRED)
add_executable(example {example})
target_link_libraries(example PRIVATE twinedge::twinedge)
file(GENERATE OUTPUT settings.txt
     CONTENT "$<TARGET_PROPERTY:twinedge::twinedge,INTERFACE_COMPILE_DEFINITIONS>")
"""

# What the frameworks do with a component or module, as far as needed here.
ESP_IDF = """
cmake_minimum_required(VERSION 3.16)
project(esp C)
set(ESP_PLATFORM 1)
set(COMPONENT_LIB component)
function(idf_component_register)
  cmake_parse_arguments(PARSE_ARGV 0 this "" "" "SRC_DIRS;INCLUDE_DIRS")
  foreach(folder ${this_SRC_DIRS})
    file(GLOB found ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c)
    list(APPEND sources ${found})
  endforeach()
  add_library(component STATIC ${sources})
  target_include_directories(component PUBLIC ${this_INCLUDE_DIRS})
endfunction()
"""
ZEPHYR = """
cmake_minimum_required(VERSION 3.20)
project(zephyr C)
add_library(component STATIC)
set_target_properties(component PROPERTIES LINKER_LANGUAGE C)
function(zephyr_include_directories)
  target_include_directories(component PUBLIC ${ARGV})
endfunction()
function(zephyr_compile_definitions)
  target_compile_definitions(component PUBLIC ${ARGV})
endfunction()
function(zephyr_library_named name)
endfunction()
function(zephyr_library_sources)
  target_sources(component PRIVATE ${ARGV})
endfunction()
"""
QUICKLY = "-DCMAKE_C_FLAGS_RELEASE=-O0"  # compile time matters here, speed does not
PACK = "test/corpus/small.twin"  # with neighbors, and two features
NO_ENDS = " nan nan"  # where an example would print an interval, as the pack has none
FRAMEWORKS = {"esp-idf": (ESP_IDF, "."), "zephyr": (ZEPHYR, "zephyr")}  # packages of these names
END = """
add_subdirectory({folder} component)
add_executable(example {example})
target_link_libraries(example PRIVATE component)
file(GENERATE OUTPUT settings.txt
     CONTENT "$<TARGET_PROPERTY:component,INTERFACE_COMPILE_DEFINITIONS>")
"""


@pytest.fixture(scope="module")
def build(run, firmware, tmp_path_factory):
    """Configure and build a project; returns its settings and what the example says."""

    def make(text, *options):
        here = tmp_path_factory.mktemp("project")
        (here / "CMakeLists.txt").write_text(text)
        run("cmake", "-S", here, "-B", here / "build", *options)
        run("cmake", "--build", here / "build")
        output = run("sh", "-c", f"{here}/build/example {firmware / PACK} 0.5 0.25 || true")
        return (here / "build" / "settings.txt").read_text(), output.strip().removesuffix(NO_ENDS)

    return make


@pytest.fixture(scope="module")
def expected(firmware):
    """Expected output of the example."""
    pack = read_pack((firmware / PACK).read_bytes())
    answer = evaluate(pack, np.array([[0.5, 0.25]], np.float32))
    return f"{answer.mean[0]:.9g} {answer.spread[0]:.9g}"


@pytest.fixture(scope="module")
def package(unpacked):
    return unpacked("cmake")


@pytest.fixture(scope="module")
def example(package):
    return package / "example" / "main.c"


@pytest.mark.parametrize(
    "settings", ["TWIN_BLOCK=4;TWIN_TEXT=1", pytest.param("", marks=pytest.mark.slow)]
)
def test_a_program_finds_the_installed_library(
    run, build, package, example, expected, tmp_path, settings
):
    place = tmp_path / "place"
    run(
        *("cmake", "-S", package, "-B", tmp_path / "build"),
        *(f"-DCMAKE_INSTALL_PREFIX={place}", f"-DTWINEDGE_SETTINGS={settings}", QUICKLY),
    )
    run("cmake", "--build", tmp_path / "build", "--target", "install")
    text = CONSUMER.format(version=__version__, example=example)
    found, output = build(text, f"-DCMAKE_PREFIX_PATH={place}")
    assert found == ";".join(filter(None, ["TWIN_HOST=1", settings]))
    assert output == expected


OPENING = """
#include "twin.h"
#include <stdio.h>
static uint32_t pack[1 << 10];
int main(int count, char **words) {
    FILE *file = count > 1 ? fopen(words[1], "rb") : NULL;
    twin_model model;
    if (file)
        puts(twin_text(twin_open(&model, pack, (uint32_t)fread(pack, 1, sizeof pack, file))));
    return 0;
}
"""
KERNELS = """
#include "twin_host.h"
#include <stdio.h>
static uint32_t pack[1 << 10];
int main(int count, char **words) {
    FILE *file = count > 1 ? fopen(words[1], "rb") : NULL;
    twin_model model;
    if (!file || twin_open(&model, pack, (uint32_t)fread(pack, 1, sizeof pack, file)))
        return 1;
    printf("%s %u", twin_kernel_name(&model, 0), (unsigned)twin_scratch_size(&model));
    return 0;
}
"""


@pytest.mark.slow
def test_hosts_have_their_kernels_by_default_and_can_do_without(
    run, build, package, example, tmp_path
):
    (tmp_path / "kernels.c").write_text(KERNELS)
    text = CONSUMER.format(version=__version__, example=tmp_path / "kernels.c")
    place = tmp_path / "place"
    install = ("--build", tmp_path / "build", "--target", "install")
    configure = ("-S", package, "-B", tmp_path / "build", f"-DCMAKE_INSTALL_PREFIX={place}")
    configure += (QUICKLY,)
    run("cmake", *configure)
    assert "CMAKE_BUILD_TYPE:STRING=Release" in (tmp_path / "build/CMakeCache.txt").read_text()
    run("cmake", *install)
    settings, output = build(text, f"-DCMAKE_PREFIX_PATH={place}")
    kernel, scratch = output.split()
    assert settings == "TWIN_HOST=1"
    assert kernel != "portable"
    run("cmake", *configure, "-DTWINEDGE_HOST=OFF")
    run("cmake", *install)
    text = CONSUMER.format(version=__version__, example=example)
    settings, output = build(text, f"-DCMAKE_PREFIX_PATH={place}")
    assert settings == "TWIN_HOST=0"
    assert len(output.split()) == 2
    assert int(scratch) > 1000


@pytest.mark.parametrize(
    ("compiler", "system", "host"),
    [
        ("arm-linux-gnueabihf-gcc", "Linux", "ON"),  # as twin_config.h: with NEON, 32 bits too
        ("arm-none-eabi-gcc", "Generic", "OFF"),
    ],
)
def test_a_cross_compiler_decides_about_host_kernels(
    run, package, tmp_path, compiler, system, host
):
    cross = (f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_SYSTEM_NAME={system}")
    cross += ("-DCMAKE_SYSTEM_PROCESSOR=arm", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY")
    run("cmake", "-S", package, "-B", tmp_path, *cross)
    assert f"TWINEDGE_HOST:BOOL={host}\n" in (tmp_path / "CMakeCache.txt").read_text()


@pytest.mark.slow  # quickly, test_how_to.py builds an application for Zephyr
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_gets_sources_headers_and_settings(
    build, unpacked, kconfig, tmp_path, framework
):
    start, folder = FRAMEWORKS[framework]
    (tmp_path / "opening.c").write_text(OPENING)
    text = start + END.format(folder=unpacked(framework) / folder, example=tmp_path / "opening.c")
    left_out = ("NEIGHBORS", "INTERVALS", "PARTIAL", "QUICK_OPEN")
    off = kconfig(**dict.fromkeys(left_out, ""), BLOCK="1", TARGETS="2")
    settings, output = build(text, "-DCONFIG_TWINEDGE=y", *off)
    assert settings == ";".join(
        ["TWIN_BLOCK=1", "TWIN_TARGETS=2", *(f"TWIN_{one}=0" for one in left_out)]
    )
    assert output == "the pack needs what twin_config.h leaves out"


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_has_everything_by_default(
    build, unpacked, kconfig, example, expected, framework
):
    start, folder = FRAMEWORKS[framework]
    text = start + END.format(folder=unpacked(framework) / folder, example=example)
    assert build(text, "-DCONFIG_TWINEDGE=y", *kconfig()) == (
        "TWIN_BLOCK=2;TWIN_TARGETS=1",
        expected,
    )
