"""``twinedge predict`` with exported files, and answering lines."""

import json
import runpy
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import Domain, read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.loading import load
from twinedge.runtime.reference import evaluate, quantise

PACKS = runpy.run_path(str(Path(__file__).parents[1] / "pack" / "random_packs.py"))
HEADER = "level,spread,outside,scale,low,high,missing"


@pytest.fixture(scope="session")
def exported(tiny_run, tmp_path_factory):
    """Folder of an export with a ``.twin``."""
    from twinedge_export import export

    folder = tmp_path_factory.mktemp("exported") / "out"
    export(tiny_run, folder, anchors=8, select="xy", formats=("twin",), weights="int16")
    return folder


@pytest.fixture(scope="session")
def pack(exported, tmp_path_factory):
    """Its pack in version 1: without intervals and domain."""
    found = read_pack((exported / "model.twin").read_bytes())
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in found.twins)
    path = tmp_path_factory.mktemp("plain") / "model.twin"
    path.write_bytes(write_pack(replace(found, twins=twins, intervals=None, domain=None)))
    return path


@pytest.fixture(scope="session")
def calibrated(pack, tmp_path_factory):
    """The same with intervals, and with fill values for offset and idle."""
    pack = read_pack(pack.read_bytes())
    least, most = quantise(pack, [[-1.0, -5.0, -120.0], [1.0, 15.0, 80.0]])
    drawn = PACKS["with_intervals"](np.random.default_rng(0), pack)
    intervals = replace(
        drawn.intervals,
        constant=16000,
        quantiles={500: 44000, 800: 84000, 900: 108000, 950: 130000},
    )
    fill = np.append(np.int16(NO_FILL), quantise(pack, [[0.0, 6.0, -20.0]])[0, 1:])
    pack = replace(drawn, intervals=intervals, domain=Domain(least, most, fill))
    path = tmp_path_factory.mktemp("calibrated") / "model.twin"
    path.write_bytes(write_pack(pack))
    return path


def test_a_table_gets_the_bits_of_the_reference(cli, pack, curve, curve_csv):
    answer = cli("predict", pack, curve_csv, "--json")
    assert answer.code == 0
    found = evaluate(read_pack(pack.read_bytes()), curve[0])
    assert answer.json["target"] == "level"
    np.testing.assert_array_equal(answer.json["prediction"], found.mean)
    np.testing.assert_array_equal(answer.json["spread"], found.spread)
    assert answer.json["file"] == str(pack)
    assert cli("predict", pack, curve_csv).out.startswith("level,spread,outside\n")


@pytest.mark.parametrize(("coverage", "backend"), [(None, "native"), (0.5, "numpy")])
def test_intervals_are_those_of_the_device(cli, calibrated, curve, curve_csv, coverage, backend):
    options = [] if coverage is None else ["--coverage", coverage]
    answer = cli("predict", calibrated, curve_csv, "--json", "--backend", backend, *options)
    assert (answer.code, answer.err) == (0, "")
    expected = load(calibrated).predict_all(curve[0], coverage)
    assert list(answer.json) == [
        "file",
        "id",
        "target",
        "coverage",
        "rows",
        "prediction",
        *HEADER.split(",")[1:],
    ]
    assert answer.json["coverage"] == (coverage or 0.9)
    assert answer.json["rows"] == 120
    np.testing.assert_array_equal(answer.json["prediction"], expected.mean)
    for name in ("spread", "scale", "low", "high"):
        np.testing.assert_array_equal(answer.json[name], getattr(expected, name))
    assert answer.json["missing"] == answer.json["outside"] == [[]] * 120


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_pack_with_curves_gets_its_golden_bits(cli, tmp_path, backend):
    golden = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "vectors.py"))["load"]()
    case = next(one for one in golden if one.name == "map-and-target-curve")
    (tmp_path / "model.twin").write_bytes(case.pack)
    rows = ~np.isinf(case.queries).any(axis=1) & (np.abs(case.queries) < 1e30).all(axis=1)
    rows |= np.isnan(case.queries).any(axis=1)
    cells = [["" if one != one else repr(float(one)) for one in row] for row in case.queries[rows]]
    (tmp_path / "new.csv").write_text("\n".join(map(",".join, [["x0", "x1", "x2", "x3"], *cells])))
    found = cli("predict", "model.twin", "new.csv", "--json", "--backend", backend).json
    assert rows.sum() > 10
    assert any(found["missing"])
    right = {"prediction": case.mean, "spread": case.spread}
    right |= {name: getattr(case.bounds, name) for name in ("scale", "low", "high")}
    for name, bits in right.items():
        np.testing.assert_array_equal(np.float32(found[name]).view(np.uint32), bits[rows], name)


def test_what_was_outside_or_missing_is_named(cli, calibrated, pack, tmp_path):
    (tmp_path / "new.csv").write_text(
        "idle,angle,offset\n-20,0.5,6\n1e9,0.5,-99\n-20,0.5,\nNA,7,?\n"
    )
    answer = cli("predict", calibrated, "new.csv")
    assert (answer.code, answer.err) == (0, "new.csv: filled in 3 missing values\n")
    head, *rows = answer.out.splitlines()
    assert head == HEADER
    cells = [row.split(",") for row in rows]
    assert [(row[2], row[6]) for row in cells] == [
        ("", ""),
        ("offset|idle", ""),
        ("", "offset"),
        ("angle", "offset|idle"),
    ]
    assert cells[0][:2] == cells[2][:2]  # the fill value equals the first row's
    assert cells[0][3:6] == cells[2][3:6]
    numbers = np.array([row[:2] + row[3:6] for row in cells], float)
    assert (numbers[:, 3] < numbers[:, 0]).all()
    assert (numbers[:, 0] < numbers[:, 4]).all()
    assert cli("predict", calibrated, "new.csv", "--quiet").err == ""
    report = cli("predict", calibrated, "new.csv", "--json").json
    assert report["missing"] == [[], [], ["offset"], ["offset", "idle"]]
    assert report["outside"] == [[], ["offset", "idle"], [], ["angle"]]
    (tmp_path / "far.csv").write_text("idle,angle,offset\n-20,0.5,6\n1e9,0.5,-99\n")
    assert cli("predict", pack, "far.csv", "--json").json["outside"] == report["outside"][:2]


def test_what_may_not_be_missing_is_refused_with_its_place(refused, calibrated, pack, tmp_path):
    (tmp_path / "new.csv").write_text("angle,offset,idle\n0.5,6,-20\n,6,-20\n")
    for file in (calibrated, pack):
        refused("predict", file, "new.csv", says=["new.csv", "row 3", "'angle'", "missing value"])
    (tmp_path / "other.csv").write_text("angle,offset,idle\n0.5,,-20\n")
    refused("predict", pack, "other.csv", says=["other.csv", "row 2", "'offset'"])


def test_without_ninety_percent_the_highest_below_is_used_with_a_remark(
    cli, refused, calibrated, curve_csv, tmp_path
):
    pack = read_pack(calibrated.read_bytes())
    intervals = replace(pack.intervals, quantiles={500: 44000, 800: 84000})
    (tmp_path / "few.twin").write_bytes(write_pack(replace(pack, intervals=intervals)))
    answer = cli("predict", "few.twin", curve_csv, "--json")
    assert answer.json["coverage"] == 0.8
    assert answer.err == "low and high are for a coverage of 0.8: there is no 0.9\n"
    assert cli("predict", "few.twin", curve_csv, "--json", "--quiet").err == ""
    assert cli("predict", "few.twin", curve_csv, "--coverage", "0.8").err == ""
    more = ["few.twin has no intervals of coverage 0.9, it has 0.5, 0.8; its calibration rows"]
    refused("predict", "few.twin", curve_csv, "--coverage", "0.9", says=more)


def test_other_neighbors_than_it_was_calibrated_for_are_remarked(cli, calibrated, curve_csv):
    answer = cli("predict", calibrated, curve_csv, "--neighbors", "2")
    assert answer.err == "low and high were calibrated for different anchors\n"
    assert answer.out.startswith(HEADER)


@pytest.mark.parametrize(
    ("file", "coverage", "says"),
    [
        ("calibrated", "0.9005", ["no intervals of coverage 0.9005, it has 0.5, 0.8, 0.9, 0.95"]),
        ("calibrated", "90", ["--coverage", "90.0 is not in the range 0<x<1"]),
        ("pack", "0.9", ["model.twin has no intervals"]),
    ],
)
def test_a_coverage_that_is_not_there_is_refused(refused, request, curve_csv, file, coverage, says):
    for where in ("-", curve_csv):
        model = request.getfixturevalue(file)
        refused("predict", model, where, "--coverage", coverage, says=says)


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


def lines(pack, *options):
    command = [sys.executable, "-m", "twinedge", "predict", str(pack), "-", *options]
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


def test_lines_are_answered_like_a_table(cli, calibrated, tmp_path):
    options = ("--coverage", "0.5")
    text = "angle,offset,idle\n0.5,6,-20\n0.5,,-20\n9,6,NA\n-0.25,11.5,31\n"
    (tmp_path / "new.csv").write_text(text)
    table = cli("predict", calibrated, "new.csv", *options).out
    with lines(calibrated, *options) as process:
        out, err = process.communicate(text)
    assert (out, err) == (table, "")
    report = cli("predict", calibrated, "new.csv", "--json", *options).json
    with lines(calibrated, *options) as process:
        out, _ = process.communicate("[0.5, 6, -20]\n[0.5, null, -20]\n")
    names = ["prediction", *HEADER.split(",")[1:]]
    for number, answer in enumerate(map(json.loads, out.splitlines())):
        assert list(answer) == names
        assert answer["missing"] == report["missing"][number]
        for name in ("prediction", "spread", "scale", "low", "high"):
            assert answer[name] == float(f"{report[name][number]:.7g}")


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
