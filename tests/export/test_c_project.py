import shutil
import subprocess

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge_export.c_project import c_project
from twinedge_export.job import Job
from twinedge_export.judge import Judge
from twinedge_export.twin_file import twin_file


@pytest.fixture(scope="module", params=["one twin", "four twins", "neighbours"])
def project(request, tiny_twin, four_twins, curve, tmp_path_factory):
    """The folder of a C project."""
    X, y = curve
    model = four_twins if request.param == "four twins" else tiny_twin
    neighbors = 3 if request.param == "neighbours" else 0
    twins = len(model.weights_)
    rows = np.arange(0, 60, 5)
    names = ("angle */ 1", "offset\nof it", "idle /* it")
    features = [{"name": name, "min": -1.0, "max": 1.0} for name in names]
    job = Job(
        model,
        tuple(rows[t::twins] for t in range(twins)),
        neighbors,
        Judge.of(model, rows, neighbors, (X[80:100], y[80:100]), None),
        0.1,
        tmp_path_factory.mktemp("project"),
        {"features": features, "target": "level", "select": "hand"},
        lambda message: None,
    )
    pack, job = twin_file(job, weights="int16", qat=False, seed=0)
    return c_project(job, pack).path


def expected(project):
    """What the README promises: the first indented line behind the word "prints"."""
    promise = (project / "README.md").read_text().partition("It prints")[2]
    return next(line.strip() for line in promise.splitlines() if line.startswith("    "))


def test_cmake_builds_it_as_it_is_and_the_example_prints_what_the_readme_says(project, tmp_path):
    shutil.copytree(project, tmp_path / "c")
    for command in (
        ["cmake", "-B", "build", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror -pedantic"],
        ["cmake", "--build", "build"],
    ):
        done = subprocess.run(command, cwd=tmp_path / "c", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["build/model"], cwd=tmp_path / "c", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == expected(project)


def array(project):
    text = (project / "model.c").read_text()
    body = text[text.index("= {") + 3 : text.rindex("}")]
    return bytes(int(word) for word in body.split(",") if word.strip())


def test_the_array_is_the_pack_without_what_is_for_people(project):
    whole = read_pack((project.parent / "model.twin").read_bytes())
    assert array(project) == write_pack(whole, metadata=False)


def test_the_example_is_short_enough_to_read_at_a_glance(project):
    assert len((project / "main.c").read_text().splitlines()) <= 30


def test_the_readme_names_the_features_and_the_size(project):
    text = (project / "README.md").read_text()
    for word in ("1. angle * / 1: -1 to 1", "2. offset of it", "level"):
        assert word in text
    assert f"{len(array(project))} bytes" in text
