"""What only a separate process shows: streams, pipes and loaded modules."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")  # a disk with no room left


@pytest.fixture
def run(tmp_path):
    """Run in an environment where nothing silences TensorFlow beforehand."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}

    def run(*arguments, python=("-m", "twinedge"), **options):
        return subprocess.run(
            [sys.executable, *python, *map(str, arguments)],
            **{"stdout": subprocess.PIPE, **options},
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env=environment,
        )

    return run


@pytest.fixture
def closed_pipe():
    """The writing end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def test_training_prints_its_result_and_nothing_else(run, curve_csv, trained, loud):
    given = ("train", curve_csv, "--target", "level", "-o", "run", "--json", *loud)
    done = run(*given, "--no-intervals")
    assert done.returncode == 0
    assert all("% done" in line for line in done.stderr.splitlines())
    assert json.loads(done.stdout)["rmse_test"] == trained[1]["rmse_test"]


def test_bad_input_is_one_line(run):
    done = run("train", "none.csv", "--target", "y")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("twinedge: none.csv: no such file; give the path of a CSV file")


def test_a_reader_may_leave_early(run, tiny_run, curve_csv, tmp_path):
    header, *rows = curve_csv.read_text().splitlines()
    (tmp_path / "long.csv").write_text("\n".join([header, *rows * 50]))
    command = f"{sys.executable} -m twinedge predict {tiny_run} long.csv --anchors 4 -q | head -1"
    done = run("-o", "pipefail", "-c", command, python=(), executable="bash")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("level,spread")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("arguments", ["", "data list --json"])
def test_a_reader_may_be_gone_already(run, closed_pipe, arguments):
    done = run(*arguments.split(), stdout=closed_pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(run):
    with FULL.open("w") as full:
        done = run("data", "list", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "twinedge: cannot write to standard output: No space left on device\n"


def test_only_training_needs_tensorflow_and_names_its_extra(run, tiny_run, curve_csv, tmp_path):
    code = """if True:
        import sys
        sys.modules["tensorflow"] = None
        from twinedge.cli import main
        few = ["--anchors", "8", "--quiet"]
        for words in (
            ["predict", *sys.argv[1:], *few],
            ["export", sys.argv[1], "--formats", "twin", *few],
            ["train", "--dataset", "tf", "-o", "run", "--quiet"],
        ):
            try:
                main(words)
            except SystemExit as stop:
                code = stop.code
                assert bool(code) == (words[0] == "train")
        sys.exit(code)
    """
    done = run("-c", code, tiny_run, curve_csv, python=())
    assert done.returncode == 2
    assert done.stdout.startswith("level,spread")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "model.twin").exists()
    assert done.stderr.count("\n") == 1
    message = "twinedge: tensorflow is not installed: pip install 'twinedge[train]'"
    assert done.stderr.startswith(message)


def test_light_commands_load_nothing_heavy(run, pack):
    code = """if True:
        import sys
        from twinedge.cli import main
        heavy = {"tensorflow", "keras", "sklearn", "scipy", "twinedge_export", "rich"}
        for line in ("train --help", "budget --features 8 --json", "inspect model.twin --json"):
            try:
                main(line.split())
            except SystemExit:
                print(sorted(heavy & set(sys.modules)), "help" in line and "numpy" in sys.modules)
    """
    lines = run("-c", code, python=()).stdout.splitlines()
    assert lines.count("[] False") == 3
