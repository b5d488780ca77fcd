"""The C project of a model of several targets predicts and prints all of them."""

import re

import numpy as np
import pytest

from twinedge import TwinRegressor, export, load

NAMES = ("NOX", "CO */ 2")
BRIEF = {"hidden": (8, 6), "learning_rate": 0.01, "weight_decay": 0.003, "steps": 200}


@pytest.fixture(scope="module", params=["one file", pytest.param("files", marks=pytest.mark.slow)])
def project(request, tmp_path_factory):
    """The folder of a C project of two targets."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 3))
    Y = pd.DataFrame({NAMES[0]: X[:, 0] + X[:, 1] ** 2, NAMES[1]: 50 * X[:, 1] - 9})
    Y.iloc[::4, 1] = np.nan
    model = TwinRegressor(**BRIEF, activation="relu", random_state=0).fit(X, Y)
    folder = tmp_path_factory.mktemp("project") / "out"
    done = {"formats": ("twin", "c"), "tolerance": 0.5, "qat": False}
    export(model, folder, anchors=6, single_file=request.param == "one file", **done)
    return folder / "c"


def promised(project):
    """Return the lines that the README promises."""
    text = (project / "README.md").read_text().partition("It prints a line for each target")[2]
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


def test_the_program_prints_a_line_for_each_target(project, run, tmp_path):
    sources = project / "main.c", *project.glob("model/**/*.c")
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-DTWIN_HOST=0"]
    run("cc", *options, *sources, "-o", tmp_path / "model")
    lines = run(tmp_path / "model").splitlines()
    assert lines == promised(project)
    query = re.search(r"x\[MODEL_FEATURES\] = \{(.*)\}", (project / "main.c").read_text())[1]
    x = np.array([[float(word.rstrip("f")) for word in query.split(", ")]], np.float32)
    device = load(project.parent / "model.twin", "numpy")
    means, ends = device.predict(x)[0], device.predict_interval(x, 0.9)[0]
    for line, mean, (low, high) in zip(lines, means, ends, strict=True):
        assert line == f"{mean:.9g} {low:.9g} {high:.9g} inside"


def test_the_sketch_prints_them_on_an_uno(project, uno, first_line):
    sent = first_line(uno(project / "model" / "model.ino")).split()
    wanted = promised(project)[0].split()
    assert np.array(sent[:3], float) == pytest.approx(
        np.array(wanted[:3], float), rel=1e-6, abs=1e-6
    )


def test_the_header_names_the_targets(project):
    header = (project / "model" / "model.h").read_text()
    assert "#define MODEL_TARGETS  2 /* NOX, CO * / 2 */" in header
    settings = project / "model" / "twin.h"
    if not settings.exists():
        settings = project / "model/src/twinedge/include/twin_config.h"
    assert "#define TWIN_TARGETS 2" in settings.read_text()
    readme = (project / "README.md").read_text()
    assert readme.startswith("# NOX, CO * / 2, on a device")
    assert re.search(r"RMSE \| [\d.]+, [\d.]+;", readme)


@pytest.mark.slow
def test_scratch_suffices_on_every_kind_of_device(project, run, tmp_path):
    (tmp_path / "sizes.c").write_text(
        '#include "model.h"\n#include <stdio.h>\n'
        "int main(void) { twin_model m; if (twin_open(&m, model_twin, MODEL_SIZE)) return 1;"
        ' printf("%u %u\\n", (unsigned)(MODEL_SCRATCH), (unsigned)twin_scratch_size(&m));'
        " return 0; }\n"
    )
    sources = tmp_path / "sizes.c", *project.glob("model/**/*.c")
    for flags in ([], ["-DTWIN_HOST=0"], ["-DTWIN_HOST=0", "-DTWIN_BLOCK=1"]):
        command = ["cc", "-std=c99", f"-I{project / 'model'}", *flags, *sources]
        run(*command, "-o", tmp_path / "sizes")
        enough, needed = map(int, run(tmp_path / "sizes").split())
        assert needed <= enough
