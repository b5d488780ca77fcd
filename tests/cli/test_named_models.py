"""Models by their names: runs, packs, and the folders of exports, each where it is meant."""

import shutil

import pytest


@pytest.fixture(scope="module")
def exported(tiny_run, tmp_path_factory):
    """Folder of an export with a pack and an ONNX file."""
    from twinedge_export import export

    folder = tmp_path_factory.mktemp("exported") / "out"
    formats = ("twin", "onnx")
    export(tiny_run, folder, anchors=8, select="xy", formats=formats, tolerance=10.0)
    return folder


@pytest.fixture
def out(exported, tmp_path):
    """A private copy of it."""
    shutil.copytree(exported, tmp_path / "out")
    return "out"


@pytest.mark.parametrize(
    "command",
    [
        "predict {} {table} --json",
        "evaluate {} {table} --json",
        "inspect {} --json",
        "budget {} --json",
        "budget show {} -b uno --json",
        "adapt {} {table} -o new.twin --json",
        "calibrate {} {table} -o new.twin --json",
    ],
)
def test_the_folder_of_an_export_means_its_pack(cli, out, curve_csv, command):
    of_folder, of_pack = (
        cli(*command.format(name, table=curve_csv).split()).json for name in (out, "out/model.twin")
    )
    assert of_folder == of_pack


def test_a_backend_reads_its_own_file_of_an_export(cli, refused, out, curve_csv):
    answer = cli("predict", out, curve_csv, "--backend", "onnx", "--json")
    assert answer.json["file"] == "out/model.onnx"
    assert cli("evaluate", out, curve_csv, "--backend", "numpy", "--json").json["file"] == (
        "out/model.twin"
    )
    says = ["--backend tflite reads .tflite files, but out/model.twin is not one"]
    refused("predict", out, curve_csv, "--backend", "tflite", says=says)


def test_firmware_is_built_of_an_export(refused, out, tiny_run):
    # The pack was read, since it is the board that is refused.
    for command in (("build", "-o", "image.elf"), ("run",)):
        name, *more = command
        says = ["'moon'", "board"]
        refused("firmware", name, out, "--board", "moon", *more, says=says)
        says = [f"{tiny_run} is a run, and firmware {name} reads a pack"]
        refused("firmware", name, tiny_run, "--board", "uno", *more, says=says)


@pytest.mark.parametrize(
    "command", ["inspect {}", "adapt {} t.csv -o a.twin", "calibrate {} t.csv"]
)
def test_a_run_where_a_pack_is_meant(refused, tiny_run, command):
    name = command.split()[0]
    says = [
        f"{tiny_run} is a run, and {name} reads a pack",
        f"'twinedge export {tiny_run}'",
        "Runs are read by export, anchors, predict, evaluate, report and budget",
        "troubleshooting.md#this-is-a-run-not-a-pack",
    ]
    refused(*command.format(tiny_run).split(), says=says)


@pytest.mark.parametrize("command", ["export {} -o there", "anchors {}"])
def test_a_pack_where_a_run_is_meant(refused, out, command):
    name = command.split()[0]
    for model, kind in ((out, "an export"), ("out/model.twin", "a pack")):
        says = [
            f"{model} is {kind}, and {name} reads a run: name the folder that train wrote",
            "Packs are read by predict, evaluate, inspect, calibrate, adapt, report, budget and",
        ]
        refused(*command.format(model).split(), says=says)
