"""``twinedge adapt`` and ``--store``: points measured on site, for a pack or into a store."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from twinedge import export
from twinedge.pack import read_pack, write_pack
from twinedge.runtime.loading import load
from twinedge.runtime.store import Store

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def exported(tiny_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "out"
    export(tiny_run, folder, anchors=8, formats=("twin",))
    return folder / "model.twin"


@pytest.fixture
def pack(exported, tmp_path):
    """A pack with intervals, in the folder of the test."""
    return shutil.copy(exported, tmp_path / "model.twin")


def write(path, X, y):
    rows = np.column_stack([X, y])
    header = "angle,offset,idle,level"
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=header, comments="")
    return path


@pytest.fixture(scope="module")
def points(curve):
    """20 points from a site where everything is higher."""
    return curve[0][100:], curve[1][100:] + 2


@pytest.fixture
def site(points, tmp_path):
    return write(tmp_path / "site.csv", *points)


@pytest.fixture
def adapted(pack, points):
    """A device that has learnt the same points."""
    device = load(pack)
    device.learn(*points)
    return device


def test_a_store_is_written_and_the_pack_stays(cli, pack, site, points, adapted, tmp_path):
    before = pack.read_bytes()
    answer = cli("adapt", pack, site, "--store", "site.store", "--json")
    assert (answer.code, answer.err) == (0, "")
    plain = load(pack).predict(points[0])
    assert answer.json == {
        "store": "site.store",
        "learnt": 20,
        "points": 20,
        "rmse_before": pytest.approx(np.sqrt(np.mean((plain - points[1]) ** 2)), rel=1e-6),
    }
    assert pack.read_bytes() == before
    device = load(pack, store=tmp_path / "site.store")
    np.testing.assert_array_equal(device.predict(points[0]), adapted.predict(points[0]))


def test_a_store_grows_and_the_error_is_that_of_the_pack(cli, pack, site):
    first = cli("adapt", pack, site, "--store", "site.store", "--json").json
    second = cli("adapt", pack, site, "--store", "site.store", "--json").json
    assert (second["learnt"], second["points"]) == (20, 40)
    assert second["rmse_before"] == first["rmse_before"]


def test_a_pack_with_the_points_inside_is_written(cli, pack, site, adapted, curve, tmp_path):
    before = pack.read_bytes()
    answer = cli("adapt", pack, site, "-o", "adapted.twin", "--json")
    new = read_pack((tmp_path / "adapted.twin").read_bytes())
    assert answer.json.items() >= {"pack": "adapted.twin", "learnt": 20, "points": 20}.items()
    assert answer.json["anchors"] == len(new.targets) >= 28
    assert list(answer.json) == ["pack", "learnt", "points", "rmse_before", "anchors"]
    assert new.metadata["adapted_to"] == {"file": "site.csv", "points": 20}
    old = read_pack(before)
    assert {**new.metadata, "adapted_to": None} == {**old.metadata, "adapted_to": None}
    assert pack.read_bytes() == before
    x = curve[0]
    moved = adapted.predict(x) - load(pack).predict(x)
    apart = load(tmp_path / "adapted.twin").predict(x) - adapted.predict(x)
    assert moved.mean() > 1
    assert np.abs(apart).mean() < 0.25 * np.abs(moved).mean()


def test_a_pack_may_take_its_own_place(cli, pack, site):
    assert cli("adapt", pack, site, "-o", pack, "--quiet").code == 0
    assert len(read_pack(pack.read_bytes()).targets) > 8
    assert sorted(one.name for one in pack.parent.iterdir()) == ["model.twin", "site.csv"]


def test_a_person_reads_the_same_in_a_table(cli, pack, site):
    out = cli("adapt", pack, site, "--store", "site.store").out
    lines = {key: word.strip() for key, word in (row.split("  ", 1) for row in out.splitlines())}
    assert lines.items() >= {"store": "site.store", "learnt": "20", "points": "20"}.items()
    assert float(lines["rmse before"]) > 1
    out = cli("adapt", pack, site, "-o", "adapted.twin").out
    assert [row.split()[0] for row in out.splitlines()] == [
        *("pack", "learnt", "points", "rmse", "anchors")
    ]


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_table_is_predicted_with_what_a_store_holds(
    cli, pack, site, adapted, curve, curve_csv, backend
):
    cli("adapt", pack, site, "--store", "site.store")
    answer = cli(
        *("predict", pack, curve_csv, "--store", "site.store", "--json", "--backend", backend)
    )
    assert (answer.code, answer.err) == (0, "")
    said = adapted.predict_all(curve[0])
    np.testing.assert_array_equal(answer.json["prediction"], said.mean)
    for name in ("spread", "scale", "low", "high"):
        np.testing.assert_array_equal(answer.json[name], getattr(said, name))
    without = cli("predict", pack, curve_csv, "--json").json
    assert without["prediction"] != answer.json["prediction"]


def test_a_store_that_is_not_there_is_empty_and_predicting_makes_none(
    cli, pack, curve_csv, tmp_path
):
    plain = cli("predict", pack, curve_csv)
    assert cli("predict", pack, curve_csv, "--store", "none.store") == plain
    assert not (tmp_path / "none.store").exists()


def test_lines_are_learnt_into_a_store(cli, pack, points, tmp_path):
    command = [sys.executable, "-m", "twinedge", "predict", pack, "-", "--store", "lines.store"]
    rows = [",".join(map(repr, row)) for row in points[0].tolist()]
    lines = [f"{row},={y!r}" for row, y in zip(rows, points[1].tolist(), strict=True)]
    done = subprocess.run(
        command,
        input="\n".join([*lines, rows[0], "oops,=1"]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers = done.stdout.splitlines()
    assert len(answers) == 22
    assert answers[-1].startswith("error: ")
    device = load(pack, store=tmp_path / "lines.store")
    assert device.learnt == 20
    said = device.predict_all(points[0][:1])
    assert answers[20].startswith(f"{said.mean[0]:.7g},{said.spread[0]:.7g},")
    # A table learns the same points.
    write(tmp_path / "site.csv", *points)
    cli("adapt", pack, "site.csv", "--store", "table.store")
    other = load(pack, store=tmp_path / "table.store")
    np.testing.assert_array_equal(other.points.targets, device.points.targets)
    np.testing.assert_array_equal(other.points.features, device.points.features)


def test_further_columns_and_another_order_do_not_matter(cli, pack, points, tmp_path):
    X, y = points
    table = np.column_stack([y, X[:, [2, 0]], np.arange(20), X[:, 1]])
    header = "level;idle;angle;note;offset"
    np.savetxt(tmp_path / "b.csv", table, "%.17g", ";", header=header, comments="")
    write(tmp_path / "a.csv", X, y)
    for name in "ab":
        assert cli("adapt", pack, f"{name}.csv", "--store", f"{name}.store").code == 0
    assert (tmp_path / "a.store").read_bytes() == (tmp_path / "b.store").read_bytes()


def test_missing_features_are_filled_in_where_the_pack_has_values(cli, pack, tmp_path, exported):
    whole = read_pack(exported.read_bytes())
    fill = np.array([-32768, 100, -32768], np.int16)
    pack.write_bytes(write_pack(replace(whole, domain=replace(whole.domain, fill=fill))))
    (tmp_path / "site.csv").write_text("angle,offset,idle,level\n0.5,,-20,60\n0.1,6,-20,55\n")
    answer = cli("adapt", pack, "site.csv", "--store", "site.store", "--json")
    assert answer.err == "site.csv: filled in 1 missing value\n"
    assert answer.json["learnt"] == 2
    assert load(pack, store=tmp_path / "site.store").points.features[0, 1] == 100
    assert cli("adapt", pack, "site.csv", "-o", "a.twin", "--quiet").err == ""


def test_entries_that_were_lost_are_told(cli, pack, site, curve_csv, tmp_path):
    store = tmp_path / "site.store"
    cli("adapt", pack, site, "--store", store)
    content = bytearray(store.read_bytes())
    content[24 * 5 + 9] ^= 1
    store.write_bytes(content)
    told = f"{store}: 1 entry cannot be read: damaged, or cut short\n"
    assert cli("predict", pack, curve_csv, "--store", store).err == told
    assert cli("predict", pack, curve_csv, "--store", store, "--quiet").err == ""
    content[24 * 6 + 9] ^= 1
    store.write_bytes(content)
    answer = cli("adapt", pack, site, "--store", store, "--json")
    assert answer.err == told.replace("1 entry", "2 entries")
    assert answer.json["points"] == 38
    assert cli("predict", pack, curve_csv, "--store", store).err == ""  # they were cleared away


# Refusals.


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], ["name what to write", "-o", "--store"]),
        (["-o", "a.twin", "--store", "a.store"], ["name what to write"]),
        (["--store"], ["--store"]),
        (["--store", "a.store", "--backend", "numpy"], ["--backend"]),
    ],
    ids=["none", "both", "no file", "an option of others"],
)
def test_one_thing_is_to_be_written(refused, pack, site, options, says):
    refused("adapt", pack, site, *options, says=says)


BAD_TABLES = {
    "not there": (None, ["bad.csv"]),
    "empty": ("", ["bad.csv"]),
    "no rows": ("angle,offset,idle,level\n", ["bad.csv", "no rows"]),
    "no target": ("angle,offset,idle\n1,2,3\n", ["bad.csv", "no column 'level'"]),
    "no feature": ("angle,idle,level\n1,2,3\n", ["bad.csv", "missing 'offset'"]),
    "a word": ("angle,offset,idle,level\n1,2,3,high\n", ["bad.csv", "row 2", "'level'"]),
    "a missing target": ("angle,offset,idle,level\n1,2,3,\n", ["bad.csv", "row 2", "'level'"]),
    "a missing feature": ("angle,offset,idle,level\n1,,3,4\n", ["bad.csv", "row 2", "'offset'"]),
    "a huge target": (
        "angle,offset,idle,level\n1,2,3,50\n1,2,3,1e30\n",
        ["bad.csv: the target of point 2 is 1e+30"],
    ),
    "too many points": (
        "angle,offset,idle,level\n" + "0.5,6,-20,55\n" * 1025,
        ["bad.csv: 1025 new points are too many: 1024 at most"],
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
@pytest.mark.parametrize("how", [("-o", "a.twin"), ("--store", "a.store")], ids=["pack", "store"])
def test_a_table_that_does_not_do_is_refused_and_nothing_written(
    refused, pack, tmp_path, name, how
):
    text, says = BAD_TABLES[name]
    if text is not None:
        (tmp_path / "bad.csv").write_text(text)
    refused("adapt", pack, "bad.csv", *how, says=says)


@pytest.mark.parametrize("how", [("-o", "a.twin"), ("--store", "a.store")], ids=["pack", "store"])
def test_a_pack_that_does_not_do_is_refused(refused, pack, exported, tiny_run, site, tmp_path, how):
    refused("adapt", "nowhere.twin", site, *how, says=["nowhere.twin"])
    refused("adapt", tiny_run, site, *how, says=[f"{tiny_run} is a run, and adapt reads a pack"])
    (tmp_path / "model.onnx").write_bytes(b"x")
    refused("adapt", "model.onnx", site, *how, says=["model.onnx: only a .twin pack can learn"])
    content = bytearray(exported.read_bytes())
    content[200] ^= 1
    (tmp_path / "bad.twin").write_bytes(content)
    refused("adapt", "bad.twin", site, *how, says=["bad.twin"])
    export(tiny_run, tmp_path / "bare", anchors=8, formats=("twin",), intervals=False)
    refused("adapt", tmp_path / "bare" / "model.twin", site, *how, says=["no intervals"])


def test_neighbors_learn_into_a_store_alone(cli, refused, pack, exported, site, tmp_path):
    pack.write_bytes(write_pack(replace(read_pack(exported.read_bytes()), neighbors=3)))
    refused("adapt", pack, site, "-o", "a.twin", says=["nearest anchors", "store"])
    assert cli("adapt", pack, site, "--store", "a.store").code == 0
    assert (tmp_path / "a.store").exists()


@pytest.mark.parametrize("command", ["adapt", "predict"])
def test_a_file_that_is_no_store_of_this_pack_is_refused_and_left_alone(
    refused, pack, exported, site, tmp_path, command
):
    refused(command, pack, site, "--store", site, says=["site.csv is not a store"])
    other = replace(read_pack(exported.read_bytes()), neighbors=2)
    (tmp_path / "other.twin").write_bytes(write_pack(other))
    load(tmp_path / "other.twin", store=tmp_path / "other.store").learn([[0.5, 6, -20]], [55])
    refused(command, pack, site, "--store", "other.store", says=["points of another pack"])
    refused(command, pack, site, "--store", tmp_path, says=["is not a file"])


def test_a_store_in_a_folder_that_is_not_there_is_refused(refused, pack, site):
    refused("adapt", pack, site, "--store", "no/where", says=["cannot write no/where"])
    refused("adapt", pack, site, "-o", "no/where.twin", says=["cannot write no/where.twin"])


def test_a_store_that_another_program_writes_to_is_refused_but_may_be_read(
    cli, refused, pack, site, curve_csv, tmp_path
):
    cli("adapt", pack, site, "--store", "site.store")
    with Store(tmp_path / "site.store", read_pack(pack.read_bytes()), pack.read_bytes()) as store:
        store.lock()
        refused("adapt", pack, site, "--store", "site.store", says=["in use by another program"])
        assert cli("predict", pack, curve_csv, "--store", "site.store").code == 0
    assert cli("adapt", pack, site, "--store", "site.store").code == 0


def test_a_full_store_is_refused_and_stays(cli, refused, pack, points, tmp_path):
    X, y = (np.concatenate([one] * 51) for one in points)
    write(tmp_path / "many.csv", X, y)
    assert cli("adapt", pack, "many.csv", "--store", "a.store", "--json").json["points"] == 1020
    write(tmp_path / "few.csv", X[:5], y[:5])
    says = ["few.csv: 1020 learnt and 5 new points are too many, 1024 at most: forget some"]
    refused("adapt", pack, "few.csv", "--store", "a.store", says=says)
    write(tmp_path / "few.csv", X[:4], y[:4])
    assert cli("adapt", pack, "few.csv", "--store", "a.store", "--json").json["points"] == 1024


def test_stores_are_for_packs(refused, tiny_run, pack, site, exported, tmp_path):
    refused("predict", tiny_run, site, "--store", "a.store", says=["exported files, not a run"])
    bare = read_pack(exported.read_bytes())
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in bare.twins)
    bare = replace(bare, twins=twins, intervals=None, domain=None)
    (tmp_path / "bare.twin").write_bytes(write_pack(bare))
    refused("predict", "bare.twin", site, "--store", "a.store", says=["no intervals"])


def test_the_help_says_what_there_is(cli):
    answer = cli("adapt", "--help")
    assert answer.code == 0
    for word in ("MODEL.twin", "SITE.csv", "--output", "-o", "--store", "--json", "--quiet"):
        assert word in answer.out
    assert "--store" in cli("predict", "--help").out
    assert "--group" in cli("train", "--help").out


def test_json_is_one_object_even_where_a_store_was_damaged(cli, pack, site, tmp_path):
    cli("adapt", pack, site, "--store", "site.store")
    content = bytearray((tmp_path / "site.store").read_bytes())
    content[24 * 5 + 9] ^= 1
    (tmp_path / "site.store").write_bytes(content)
    answer = cli("adapt", pack, site, "--store", "site.store", "--json", "--quiet")
    assert json.loads(answer.out)["points"] == 39
    assert answer.err == ""
