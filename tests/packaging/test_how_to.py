"""The pages about build systems: what they say to paste builds, and prints what Python predicts."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import twinedge

DOCS = Path(__file__).parents[2] / "docs"

# What the frameworks do with a project, as far as these pages need it.
PROJECT = """
set(components {})
function(idf_component_register)
  cmake_parse_arguments(PARSE_ARGV 0 this "" "" "SRCS;SRC_DIRS;INCLUDE_DIRS;REQUIRES")
  get_filename_component(name ${CMAKE_CURRENT_LIST_DIR} NAME)
  foreach(folder ${this_SRC_DIRS})
    file(GLOB found ${CMAKE_CURRENT_LIST_DIR}/${folder}/*.c)
    list(APPEND this_SRCS ${found})
  endforeach()
  add_library(${name} STATIC ${this_SRCS})
  target_include_directories(${name} PUBLIC ${this_INCLUDE_DIRS})
  target_link_libraries(${name} PUBLIC ${this_REQUIRES})
  set(COMPONENT_LIB ${name} PARENT_SCOPE)
  set(COMPONENT_LIB ${name})
endfunction()
set(ESP_PLATFORM 1)
macro(project name)
  _project(${name} C)
  foreach(folder ${EXTRA_COMPONENT_DIRS})
    set(COMPONENT_LIB twinedge)
    add_subdirectory(${folder}/twinedge)
  endforeach()
  add_subdirectory(main)
  file(WRITE ${CMAKE_BINARY_DIR}/start.c "void app_main(void); int main(void) { app_main(); }")
  add_executable(program ${CMAKE_BINARY_DIR}/start.c)
  target_link_libraries(program PRIVATE main)
endmacro()
"""
ZEPHYR = """
set(Zephyr_FOUND 1)
function(zephyr_include_directories)
  target_include_directories(app PRIVATE ${ARGV})
endfunction()
function(zephyr_compile_definitions)
  target_compile_definitions(app PRIVATE ${ARGV})
endfunction()
function(zephyr_library_named name)
endfunction()
function(zephyr_library_sources)
  target_sources(app PRIVATE ${ARGV})
endfunction()
macro(project name)
  _project(${name} C)
  add_executable(app)
  foreach(module ${ZEPHYR_EXTRA_MODULES})
    add_subdirectory(${module}/zephyr zephyr)
  endforeach()
endmacro()
"""


@pytest.fixture(scope="module")
def export(tiny_twin, tmp_path_factory):
    """Export a model: ``export(single_file=False)`` is a folder with ``out/c`` in it."""

    def make(**options):
        home = tmp_path_factory.mktemp("export")
        out = home / "out"
        twinedge.export(tiny_twin, out, anchors=8, formats=["c"], weights="int16", **options)
        return home

    return make


@pytest.fixture(scope="module")
def exported(export):
    return export()


def paste(page, home):
    """Run the commands of a page that make its project, and write the files that it shows."""
    text = (DOCS / page).read_text("utf-8")
    commands = re.search(r"(?ms)^```sh\n(.*?)^```", text)[1]
    for line in commands.splitlines():
        if line.startswith(("mkdir", "cp")):
            subprocess.run(line, shell=True, check=True, cwd=home)
    for name, content in re.findall(r"(?ms)`(meter/[\w./]+)`[^`]*?:\n\n```\w+\n(.*?)^```", text):
        (home / name).write_text(content)
    return text


def predicted(home, x):
    device = twinedge.load(home / "out" / "model.twin")
    (mean,), ((low, high),) = device.predict([x]), device.predict_interval([x], coverage=0.9)
    return np.array([mean, low, high])


def numbers(text):
    return np.array([float(one) for one in re.findall(r"-?\d+\.\d+", text)])


def build(run, project, *options):
    run("cmake", "-S", project, "-B", project / "build", *options)
    run("cmake", "--build", project / "build")


@pytest.mark.slow
def test_the_project_for_esp_idf_builds_and_predicts(run, exported, kconfig, tmp_path, monkeypatch):
    text = paste("esp-idf.md", exported)
    assert {"idf.py -C meter set-target esp32c3"} <= set(text.splitlines())
    (tmp_path / "tools" / "cmake").mkdir(parents=True)
    (tmp_path / "tools" / "cmake" / "project.cmake").write_text(PROJECT)
    monkeypatch.setenv("IDF_PATH", str(tmp_path))
    build(run, exported / "meter", *kconfig())
    found = numbers(run(exported / "meter" / "build" / "program"))
    assert found == pytest.approx(predicted(exported, [0.5, 0.5, 0]), abs=2e-5)


def test_the_application_for_zephyr_builds_and_predicts(run, export, kconfig, tmp_path):
    home = export()
    text = paste("zephyr.md", home)
    assert (home / "meter" / "prj.conf").read_text().startswith("CONFIG_TWINEDGE=y\n")
    module = re.search(r"-DZEPHYR_EXTRA_MODULES=\$PWD/(\S+)", text)[1]
    (tmp_path / "ZephyrConfig.cmake").write_text(ZEPHYR)
    build(
        run,
        home / "meter",
        *(f"-DZephyr_DIR={tmp_path}", f"-DZEPHYR_EXTRA_MODULES={home / module}"),
        *("-DCONFIG_TWINEDGE=y", *kconfig()),
    )
    found = numbers(run(home / "meter" / "build" / "app"))
    assert found == pytest.approx(predicted(home, [0.5, 0.5, 0]), abs=2e-5)


@pytest.mark.slow  # compiles kernels of hosts
@pytest.mark.parametrize(("page", "single"), [("cmake.md", False), ("one-file.md", True)])
def test_the_commands_of_a_page_print_the_line_of_the_export(export, page, single):
    home = export(single_file=single)
    text = (DOCS / page).read_text("utf-8")
    commands = re.search(r"(?ms)^```sh\n.*?^cd out/c\n(.*?)^```", text)[1]
    done = subprocess.run(
        commands, shell=True, check=True, cwd=home / "out" / "c", capture_output=True, text=True
    )
    wanted = re.search(r"(?m)^    (-?\d.*)$", (home / "out" / "c" / "README.md").read_text())[1]
    assert done.stdout.splitlines()[-1] == wanted


def test_pages_name_files_that_an_export_has(exported):
    for page in ("arduino.md", "platformio.md", "esp-idf.md", "zephyr.md", "cmake.md"):
        text = (DOCS / page).read_text("utf-8")
        for name in re.findall(r"out/c[/\w.]*\b", text):
            assert (exported / name).exists(), (page, name)
    sections = (exported / "out" / "c" / "platformio.ini").read_text()
    text = (DOCS / "platformio.md").read_text("utf-8")
    for name in re.findall(r"pio (?:run|device monitor) -e (\w+)", text):
        assert f"[env:{name}]" in sections
