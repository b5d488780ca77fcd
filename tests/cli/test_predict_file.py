"""``twinedge predict`` with exported files, and answering lines."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from twinedge.pack import read_pack
from twinedge.runtime.reference import evaluate


@pytest.fixture(scope="session")
def exported(tiny_run, tmp_path_factory):
    """Folder of an export with a ``.twin``."""
    from twinedge_export import export

    folder = tmp_path_factory.mktemp("exported") / "out"
    export(tiny_run, folder, anchors=8, select="xy", formats=("twin",), weights="int16")
    return folder


@pytest.fixture
def pack(exported):
    return exported / "model.twin"


def test_a_table_gets_the_bits_of_the_reference(cli, pack, curve, curve_csv):
    answer = cli("predict", pack, curve_csv, "--json")
    assert answer.code == 0
    found = evaluate(read_pack(pack.read_bytes()), curve[0])
    assert answer.json["target"] == "level"
    np.testing.assert_array_equal(answer.json["prediction"], found.mean)
    np.testing.assert_array_equal(answer.json["spread"], found.spread)
    assert answer.json["file"] == str(pack)


def test_features_outside_the_training_range_are_named(cli, pack, tmp_path):
    (tmp_path / "new.csv").write_text("idle,angle,offset\n-20,0.5,6\n1e9,0.5,-99\n")
    answer = cli("predict", pack, "new.csv")
    head, plain, far = answer.out.splitlines()
    assert head == "level,spread,outside"
    assert plain.endswith(",")
    assert far.endswith(",offset|idle")


def test_neighbours_may_be_fewer(cli, pack, curve_csv):
    every = cli("predict", pack, curve_csv, "--json").json["prediction"]
    near = cli("predict", pack, curve_csv, "--neighbors", "2", "--json").json["prediction"]
    assert near != every


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{pack}", "nowhere.csv"], ["nowhere.csv"]),
        (["{pack}", "{csv}", "--anchors", "4"], ["--anchors", "exported"]),
        (["{pack}", "{csv}", "--backend", "onnx"], ["onnx"]),
        (["{pack}", "{csv}", "--backend", "magic"], ["--backend", "'magic'"]),
        (["nowhere.twin", "{csv}"], ["nowhere.twin"]),
        (["{csv}", "{csv}"], [".twin"]),
        (["{run}", "-"], ["exported files"]),
    ],
    ids=str,
)
def test_wrong_words_are_refused(refused, pack, tiny_run, curve_csv, arguments, says):
    names = {"pack": pack, "csv": curve_csv, "run": tiny_run}
    refused("predict", *(word.format(**names) for word in arguments), says=says)


def test_a_damaged_pack_is_refused(refused, pack, tmp_path, curve_csv):
    content = bytearray(pack.read_bytes())
    content[200] ^= 1
    (tmp_path / "model.twin").write_bytes(content)
    refused("predict", "model.twin", curve_csv, says=["model.twin"])


def lines(pack):
    command = [sys.executable, "-m", "twinedge", "predict", str(pack), "-"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_lines_are_answered_as_they_come_and_bad_ones_survived(pack):
    with lines(pack) as process:
        for line in ("0.5,6,-20", "oops", '{"angle": 0.5, "offset": 6, "idle": -20}'):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert ("error" in answer) == (line == "oops")
        rest, err = process.communicate()
    assert (process.returncode, rest, err) == (0, "", "")


def test_ctrl_c_ends_it_quietly(pack):
    with lines(pack) as process:
        process.stdin.write("0.5,6,-20\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (process.returncode, err) == (130, "")


def test_a_reader_that_went_away_ends_it_quietly(pack):
    with lines(pack) as process:
        process.stdout.close()
        process.stdin.write("0.5,6,-20\n")
        process.stdin.close()
        process.wait()
        assert (process.returncode, process.stderr.read()) == (0, "")
