"""The C project of an export works as it is: with CMake, as a sketch, with PlatformIO."""

import ast
import re
import shutil

import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.pack import read_pack, write_pack
from twinedge.progress import Progress
from twinedge.runtime.loading import load
from twinedge_export.amalgamation import write_amalgamation
from twinedge_export.c_project import _set, c_project
from twinedge_export.deviations import Evaluator
from twinedge_export.files import Job
from twinedge_export.settings import ExportSettings
from twinedge_export.twin_file import twin_file

WARNINGS = "-Wall -Wextra -Werror -pedantic"


@pytest.fixture(
    scope="module",
    params=[
        "one file",  # test_c_columns.py has separate files
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("one twin", "four twins", "neighbors", "map and curve")
        ),
    ],
)
def project(request, tiny_twin, four_twins, curve, tmp_path_factory):
    """The folder of a C project, all but one with intervals."""
    X, y = curve
    model = four_twins if request.param == "four twins" else tiny_twin
    if request.param == "map and curve":
        bent = {"input_map": 4, "target_curve": "log"}
        model = TwinRegressor(**tiny_twin.get_params() | bent)
        model.fit(X[:80], y[:80], validation=(X[80:100], y[80:100]))
    neighbors = 3 if request.param in ("neighbors", "one file") else 0
    twins = len(model.weights_)
    rows = np.arange(0, 60, 5)
    names = ("angle */ 1", "offset\nof it", "idle /* it")
    features = [{"name": name, "min": -1.0, "max": 1.0} for name in names]
    settings = ExportSettings(
        weights="int8" if request.param == "four twins" else "int16",
        qat=False,
        single_file=request.param == "one file",
        tolerance=0.1,
    )
    job = Job(
        model,
        tuple(rows[t::twins] for t in range(twins)),
        neighbors,
        Evaluator.of(model, rows, neighbors, (X[80:100], y[80:100]), None),
        settings,
        tmp_path_factory.mktemp("project"),
        {"features": features, "target": "level */", "select": "hand"},
        Progress(),
        intervals=request.param != "neighbors",
    )
    pack, job = twin_file(job)
    return c_project(job, pack).path


@pytest.mark.slow
def test_cmake_builds_it_as_it_is_and_the_example_prints_what_the_readme_says(
    project, run, promised, tmp_path
):
    shutil.copytree(project, tmp_path / "c")
    options = (f"-DCMAKE_C_FLAGS={WARNINGS}", "-DCMAKE_C_FLAGS_RELEASE=-O0")  # compiles quickly
    run("cmake", "-B", "build", *options, cwd=tmp_path / "c")
    run("cmake", "--build", "build", cwd=tmp_path / "c")
    assert run(tmp_path / "c/build/model").strip() == promised(project)


def test_a_compiler_alone_builds_it_and_too_little_scratch_is_reported(
    project, run, promised, tmp_path
):
    home = shutil.copytree(project, tmp_path / "c")
    run("cc", "-DTWIN_HOST=0", "-c", *home.glob("model/**/*.c"), cwd=tmp_path)
    program = (
        "cc",
        "-DTWIN_HOST=0",
        home / "main.c",
        *tmp_path.glob("*.o"),
        "-o",
        tmp_path / "model",
    )
    run(*program)
    assert run(tmp_path / "model").strip() == promised(project)
    header = home / "model" / "model.h"
    header.write_text(re.sub(r"(MODEL_SCRATCH) .*", r"\1 8u", header.read_text()))
    run(*program)
    output = run("sh", "-c", f"{tmp_path / 'model'} || echo refused")
    assert "scratch" in output
    assert "refused" in output


def test_the_sketch_runs_on_an_uno_as_it_is(project, uno, first_line, promised):
    sent = first_line(uno(project / "model" / "model.ino")).split()
    # Arduino prints six decimals by float arithmetic, which costs the last of seven digits.
    wanted = promised(project).split()
    numbers = 3 if "side" in wanted[-1] else 2
    for words in (sent, wanted):
        words[:numbers] = map(float, words[:numbers])
    assert sent[:numbers] == pytest.approx(wanted[:numbers], rel=2e-7, abs=1e-6)
    assert sent[numbers:] == wanted[numbers:]


def test_it_prints_the_interval_where_there_is_one(project, promised):
    pack = read_pack((project.parent / "model.twin").read_bytes())
    query = re.search(r"x\[MODEL_FEATURES\] = \{(.*)\}", (project / "main.c").read_text())[1]
    x = np.array([[float(word.rstrip("f")) for word in query.split(", ")]], np.float32)
    device = load(project.parent / "model.twin", "numpy")
    text = (project / "README.md").read_text()
    mean = f"{device.predict(x)[0]:.9g}"
    if pack.intervals is None:
        assert promised(project).split() == [mean, f"{device.spread(x)[0]:.9g}"]
        assert "| intervals | none |" in text
        return
    low, high = device.predict_interval(x, 0.9)[0]
    assert promised(project).split() == [mean, f"{low:.9g}", f"{high:.9g}", "inside"]
    levels = "50 %, 80 %, 90 %, 95 %"  # of 20 validation rows
    assert f"| intervals | of 90 %; `twin_set_coverage` takes one of {levels} |" in text


def test_the_runtime_is_where_the_readme_says(project):
    text = (project / "README.md").read_text()
    is_one_file = (project / "model" / "twin.c").exists()
    assert (project / "model" / "twin.h").exists() == is_one_file
    assert (project / "model" / "src").exists() != is_one_file
    assert ("`twin.c` and `twin.h`" in text) == is_one_file
    assert ("src/twinedge" in text) != is_one_file
    assert (project / re.search("`(.*twin.h)` is the documentation", text)[1]).is_file()


def test_code_that_the_pack_does_not_need_is_left_out(project):
    pack = read_pack((project.parent / "model.twin").read_bytes())
    places = ("twin.h", "src/twinedge/include/twin_config.h")
    header = next(file for name in places if (file := project / "model" / name).exists())
    header = header.read_text()
    needs = {
        "SILU": pack.activation == "silu",
        "INT16": pack.weight_bits == 16,
        "NEIGHBORS": bool(pack.neighbors),
        "INTERVALS": pack.intervals is not None,
        "MAP": pack.map is not None,
        "TARGET_CURVE": pack.target_curve is not None,
    }
    for name, needed in needs.items():
        assert re.findall(rf"^#define TWIN_{name} (\d)$", header, re.M) == [str(int(needed))]
        assert (f"`TWIN_{name}=0`" in (project / "README.md").read_text()) != needed


@pytest.fixture(scope="module")
def headers(firmware, tmp_path_factory):
    """Text of the settings in both forms of the runtime."""
    one = write_amalgamation(tmp_path_factory.mktemp("one")).header
    return [file.read_text() for file in (firmware / "include" / "twin_config.h", one)]


@pytest.mark.parametrize("value", ["0", "1"])
@pytest.mark.parametrize("board", ["this", "AVR"])
def test_intervals_are_in_or_out_whatever_the_board(headers, run, tmp_path, board, value):
    header = tmp_path / "settings.h"
    for text in headers:
        header.write_text(text)
        _set(header, {"TWIN_INTERVALS": value, "TWIN_SILU": "0"})
        flags = ["-D__AVR__"] if board == "AVR" else []
        defined = run("cc", *flags, "-E", "-dM", header).splitlines()
        assert f"#define TWIN_INTERVALS {value}" in defined
        assert "#define TWIN_SILU 0" in defined
        assert f"#define TWIN_TEXT {int(not flags)}" in defined  # as it was


def test_a_header_without_the_setting_is_refused(headers, complaint, tmp_path):
    header = tmp_path / "twin_config.h"
    header.write_text(headers[0].replace("TWIN_INTERVALS", "TWIN_MOON"))
    assert "twin_config.h has no TWIN_INTERVALS" in complaint(_set, header, {"TWIN_INTERVALS": "1"})


def array(project):
    text = (project / "model" / "model.c").read_text()
    body = text[text.index("= {") + 3 : text.rindex("}")]
    return bytes(int(word) for word in body.split(",") if word.strip())


def test_the_array_is_the_pack_without_what_is_for_people(project):
    whole = read_pack((project.parent / "model.twin").read_bytes())
    assert array(project) == write_pack(whole, metadata=False)


@pytest.mark.parametrize("name", ["main.c", "model/model.ino"])
def test_the_programs_are_short_enough_to_read_at_a_glance(project, name):
    assert len((project / name).read_text().splitlines()) <= 32


@pytest.mark.slow
def test_platformio_finds_nothing_wrong_with_its_project(project, tools, run):
    output = run(tools / "pio", "project", "config", "--lint", "--json-output", cwd=project)
    verdict = output.splitlines()[-1]  # after a banner, the first time
    assert ast.literal_eval(verdict) == {"errors": [], "warnings": []}


def test_the_readme_names_the_features_and_the_size(project):
    text = (project / "README.md").read_text()
    for word in ("1. angle * / 1: -1 to 1", "2. offset of it", "level"):
        assert word in text
    assert f"{len(array(project))} bytes" in text
