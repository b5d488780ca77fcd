"""``twinedge adapt`` and ``--store``: points measured on site, for a pack or into a store."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from twinedge import export
from twinedge.pack import read_pack, write_pack
from twinedge.runtime.journal_file import Journal
from twinedge.runtime.loading import load

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture
def site(points, write_points, tmp_path):
    return write_points(tmp_path / "site.csv", *points)


@pytest.fixture
def adapted(pack, points):
    """A device that has learnt the same points."""
    device = load(pack)
    device.learn(*points)
    return device


def left_out(pack, X, y):
    """Root mean square of the errors of points that are each predicted from the others."""
    errors = []
    for one in range(len(y)):
        device, others = load(pack), np.arange(len(y)) != one
        device.learn(X[others], y[others])
        errors.append(device.predict(X[one : one + 1])[0] - y[one])
    return np.sqrt(np.mean(np.square(errors)))


def test_a_store_is_written_and_the_pack_stays(cli, pack, site, points, adapted, tmp_path):
    before = pack.read_bytes()
    answer = cli("adapt", pack, site, "--store", "site.store", "--json")
    assert (answer.code, answer.err) == (0, "")
    plain = load(pack).predict(points[0])
    assert answer.json == {
        "store": "site.store",
        "learnt": 20,
        "known": 0,
        "points": 20,
        "suspect": 0,
        "rmse_shipped": pytest.approx(np.sqrt(np.mean((plain - points[1]) ** 2)), rel=1e-4),
        "rmse_adapted": pytest.approx(left_out(pack, *points), rel=1e-4),
    }
    assert answer.json["rmse_adapted"] < 0.7 * answer.json["rmse_shipped"]
    assert pack.read_bytes() == before
    device = load(pack, store=tmp_path / "site.store")
    np.testing.assert_array_equal(device.predict(points[0]), adapted.predict(points[0]))


def test_points_in_other_units_are_noticed(cli, pack, points, write_points, tmp_path):
    """One wild value is suspect; if most agree on it, learning stops at a limit, and says so."""
    X, y = points
    says = "'level': most points are off by more than 32 times what the pack expects"
    for count, noted in ((1, 0), (9, 0), (11, 1), (20, 1)):
        site = write_points(tmp_path / "site.csv", X, np.where(np.arange(20) < count, 10 * y, y))
        store = f"{count}.store"
        answer = cli("adapt", pack, site, "--store", store)
        assert answer.code == 0
        assert answer.err.count(says) == noted, count
        assert cli("store", "show", store, "--pack", pack).err.count(says) == noted
        assert cli("adapt", pack, site, "--store", store, "--quiet").err == ""
    assert cli("store", "show", "20.store").err == ""


def test_points_that_are_known_are_not_learnt_twice(
    cli, pack, site, points, write_points, tmp_path
):
    first = cli("adapt", pack, site, "--store", "site.store", "--json").json
    content = (tmp_path / "site.store").read_bytes()
    second = cli("adapt", pack, site, "--store", "site.store", "--json").json
    assert second == {**first, "learnt": 0, "known": 20}
    assert (tmp_path / "site.store").read_bytes() == content
    X, y = points
    y = np.where(np.arange(20) < 3, y + 1, y)
    write_points(tmp_path / "site.csv", X, y)
    third = cli("adapt", pack, site, "--store", "site.store", "--json").json
    assert (third["learnt"], third["known"], third["points"]) == (3, 17, 23)
    # Equal rows of one table are points of their own: a table says what was measured.
    write_points(tmp_path / "site.csv", X[[0, 0, 0]] + 1, y[[0, 0, 0]])
    assert cli("adapt", pack, site, "--store", "site.store", "--json").json["learnt"] == 3


def test_points_keep_their_times(cli, refused, pack, points, tmp_path):
    def table(*times):
        rows = zip(times, *points[0].T[:, : len(times)], points[1], strict=False)
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / "log.csv").write_text("\n".join(["at,angle,offset,idle,level", *lines]))
        return "adapt", pack, "log.csv", "--store", "log.store", "--time", "at"

    assert cli(*table("1970-01-02", "2026-11-18T08:00:00Z")).code == 0
    assert load(pack, store=tmp_path / "log.store").points.times.tolist() == [86400, 1794988800]
    # The same point at another time is another point.
    answer = cli(*table("1970-01-02", "2026-11-19"), "--json").json
    assert (answer["learnt"], answer["known"]) == (1, 1)
    assert cli(*table("17", "18"), "--json").json["learnt"] == 2  # counters
    assert load(pack, store=tmp_path / "log.store").points.times.tolist()[3:] == [17, 18]
    refused(*table("1969-12-31", "1970-01-01"), says=["log.csv: a store keeps times from 1970"])
    refused(*table("2026-01-01", "soon"), says=["log.csv", "'soon'"])
    refused(*table("1", "2")[:-1], "when", says=["log.csv", "'when'"])


def test_an_adapted_pack_is_written(cli, pack, site, adapted, curve, tmp_path):
    before = pack.read_bytes()
    answer = cli("adapt", pack, site, "-o", "adapted.twin", "--json")
    assert "adapted.twin shifts all predictions alike" in answer.err
    assert answer.err.count("\n") == 1
    new = read_pack((tmp_path / "adapted.twin").read_bytes())
    assert list(answer.json) == [
        *("pack", "learnt", "known", "points", "suspect", "rmse_shipped", "rmse_adapted")
    ]
    assert answer.json.items() >= {"pack": "adapted.twin", "learnt": 20, "points": 20}.items()
    assert new.metadata["adapted_to"] == {"file": "site.csv", "points": 20}
    old = read_pack(before)
    assert {**new.metadata, "adapted_to": None} == {**old.metadata, "adapted_to": None}
    assert new.schema == old.schema
    assert pack.read_bytes() == before
    x = curve[0]
    moved = adapted.predict(x) - load(pack).predict(x)
    apart = load(tmp_path / "adapted.twin").predict(x) - adapted.predict(x)
    assert moved.mean() > 1
    assert np.abs(apart).mean() < 0.25 * np.abs(moved).mean()


def test_a_pack_may_take_its_own_place(cli, pack, site):
    before = read_pack(pack.read_bytes())
    assert cli("adapt", pack, site, "-o", pack, "--quiet").err == ""
    assert read_pack(pack.read_bytes()).y_offset > before.y_offset
    assert sorted(one.name for one in pack.parent.iterdir()) == ["model.twin", "site.csv"]


def test_a_table_is_predicted_with_what_a_store_holds(cli, pack, site, adapted, curve, curve_csv):
    cli("adapt", pack, site, "--store", "site.store")
    answer = cli("predict", pack, curve_csv, "--store", "site.store", "--json")
    assert (answer.code, answer.err) == (0, "")
    found = adapted.predict_all(curve[0])
    np.testing.assert_array_equal(answer.json["prediction"], found.mean)
    for name in ("spread", "scale", "low", "high"):
        np.testing.assert_array_equal(answer.json[name], getattr(found, name))
    without = cli("predict", pack, curve_csv, "--json").json
    assert without["prediction"] != answer.json["prediction"]


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_store_that_is_not_there_is_refused(refused, pack, site, command):
    says = ["typo.store does not exist", "adapt MODEL.twin SITE.csv --store typo.store"]
    refused(command, pack, site, "--store", "typo.store", says=says)


def test_a_model_is_evaluated_with_what_a_store_holds(cli, refused, pack, site, tiny_run, adapted):
    cli("adapt", pack, site, "--store", "site.store")
    shipped = cli("evaluate", pack, site, "--json").json
    answer = cli("evaluate", pack, site, "--store", "site.store", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["rmse"] < 0.7 * shipped["rmse"]
    table = np.loadtxt(site, delimiter=",", skiprows=1)
    right = adapted.predict(table[:, :3]) - table[:, 3]
    assert answer.json["rmse"] == pytest.approx(np.sqrt(np.mean(right**2)), rel=1e-5)
    for command in ("evaluate", "predict"):
        refused(command, tiny_run, site, "--store", "site.store", says=["not a run"])


def test_lines_begin_a_store_only_if_they_are_to(refused, pack, site):
    says = ["typo.store does not exist", "--create-store begins a new one"]
    refused("predict", pack, "-", "--store", "typo.store", says=says)
    for options in (("-",), (site, "--store", "a.store")):
        refused("predict", pack, *options, "--create-store", says=["--create-store is for lines"])


def test_lines_are_learnt_into_a_store(cli, pack, points, write_points, tmp_path):
    command = [sys.executable, "-m", "twinedge", "predict", pack, "-", "--store", "lines.store"]
    command.append("--create-store")
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
    found = device.predict_all(points[0][:1])
    assert answers[20].startswith(f"{found.mean[0]:.7g},{found.spread[0]:.7g},")
    # A table learns the same points.
    write_points(tmp_path / "site.csv", *points)
    cli("adapt", pack, "site.csv", "--store", "table.store")
    other = load(pack, store=tmp_path / "table.store")
    np.testing.assert_array_equal(other.points.y, device.points.y)
    np.testing.assert_array_equal(other.points.X, device.points.X)


def test_missing_features_are_filled_in_where_the_pack_has_values(
    cli, pack, tmp_path, exported_pack
):
    whole = read_pack(exported_pack.read_bytes())
    fill = np.array([-32768, 100, -32768], np.int16)
    pack.write_bytes(write_pack(replace(whole, domain=replace(whole.domain, fill=fill))))
    (tmp_path / "site.csv").write_text("angle,offset,idle,level\n0.5,,-20,60\n0.1,6,-20,55\n")
    answer = cli("adapt", pack, "site.csv", "--store", "site.store", "--json")
    assert answer.err == "site.csv: filled in 1 missing value\n"
    assert answer.json["learnt"] == 2
    learnt = load(pack, store=tmp_path / "site.store").points
    assert np.isnan(learnt.X[0, 1])
    assert np.isfinite(learnt.y).all()
    assert cli("adapt", pack, "site.csv", "-o", "a.twin", "--quiet").err == ""


def test_entries_that_were_lost_are_reported(cli, pack, site, curve_csv, tmp_path):
    store = tmp_path / "site.store"
    cli("adapt", pack, site, "--store", store)
    content = bytearray(store.read_bytes())
    content[36 * 5 + 9] ^= 1
    store.write_bytes(content)
    message = f"{store}: 1 entry cannot be read: damaged, or cut short\n"
    assert cli("predict", pack, curve_csv, "--store", store).err == message
    assert cli("predict", pack, curve_csv, "--store", store, "--quiet").err == ""
    content[36 * 6 + 9] ^= 1
    store.write_bytes(content)
    answer = cli("adapt", pack, site, "--store", store, "--json")
    assert answer.err == message.replace("1 entry", "2 entries")
    # The lost points were learnt again.
    assert (answer.json["learnt"], answer.json["points"]) == (2, 20)
    assert cli("predict", pack, curve_csv, "--store", store).err == ""  # they were cleared away


# Refusals.


def test_one_thing_is_to_be_written(refused, pack, site):
    for options, says in (
        ([], ["name what to write", "-o", "--store"]),
        (["-o", "a.twin", "--store", "a.store"], ["name what to write"]),
        (["--store"], ["--store"]),
        (["--store", "a.store", "--backend", "numpy"], ["--backend"]),
    ):
        refused("adapt", pack, site, *options, says=says)


HEADER = "angle,offset,idle,level\n"
BAD_TABLES = {
    "not there": (None, ["bad.csv"]),
    "no rows": (HEADER, ["bad.csv", "no rows"]),
    "no target": ("angle,offset,idle\n1,2,3\n", ["bad.csv", "no column 'level'"]),
    "a missing feature": (f"{HEADER}1,,3,4\n", ["bad.csv", "row 2", "'offset'"]),
    "a huge target": (
        f"{HEADER}1,2,3,50\n1,2,3,1e30\n",
        ["bad.csv: the target of point 2 is 1e+30"],
    ),
    "too many points": (
        HEADER + "0.5,6,-20,55\n" * 1025,
        ["bad.csv: 1025 new points are too many: 1024 at most"],
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_table_that_does_not_do_is_refused_and_nothing_written(refused, pack, tmp_path, name):
    text, says = BAD_TABLES[name]
    if text is not None:
        (tmp_path / "bad.csv").write_text(text)
    for how in (("-o", "a.twin"), ("--store", "a.store")):
        refused("adapt", pack, "bad.csv", *how, says=says)


def test_a_pack_that_does_not_do_is_refused(refused, exported_pack, tiny_run, site, tmp_path):
    def is_refused(pack, says):
        refused("adapt", pack, site, "--store", "a.store", says=[says])

    is_refused("nowhere.twin", "nowhere.twin")
    is_refused(tiny_run, f"{tiny_run} is a run, and adapt reads a pack")
    (tmp_path / "model.onnx").write_bytes(b"x")
    is_refused("model.onnx", "model.onnx: only a .twin pack can learn")
    content = bytearray(exported_pack.read_bytes())
    content[200] ^= 1
    (tmp_path / "bad.twin").write_bytes(content)
    is_refused("bad.twin", "bad.twin")
    export(tiny_run, tmp_path / "bare", anchors=8, formats=("twin",), intervals=False)
    is_refused(tmp_path / "bare" / "model.twin", "no intervals")


@pytest.mark.parametrize("command", ["adapt", "predict"])
def test_a_file_that_is_no_store_of_this_pack_is_refused_and_left_alone(
    refused, pack, exported_pack, site, tmp_path, command
):
    refused(command, pack, site, "--store", site, says=["site.csv is not a store"])
    other = replace(read_pack(exported_pack.read_bytes()), schema=2)
    (tmp_path / "other.twin").write_bytes(write_pack(other))
    load(tmp_path / "other.twin", store=tmp_path / "other.store").learn([[0.5, 6, -20]], [55])
    refused(command, pack, site, "--store", "other.store", says=["points of another model"])
    folder = {"adapt": "is not a file", "predict": "is a folder of stores"}[command]
    refused(command, pack, site, "--store", tmp_path, says=[folder])


def test_a_store_in_a_folder_that_is_not_there_is_refused(refused, pack, site):
    refused("adapt", pack, site, "--store", "no/where", says=["cannot write no/where"])
    refused("adapt", pack, site, "-o", "no/where.twin", says=["cannot write no/where.twin"])


def test_a_store_that_another_program_writes_to_is_refused_but_may_be_read(
    cli, refused, pack, site, curve, curve_csv, write_points, tmp_path
):
    cli("adapt", pack, site, "--store", "site.store")
    write_points(site, curve[0][:5], curve[1][:5])
    with Journal(tmp_path / "site.store") as journal:
        journal.lock()
        refused("adapt", pack, site, "--store", "site.store", says=["in use by another program"])
        assert cli("predict", pack, curve_csv, "--store", "site.store").code == 0
    assert cli("adapt", pack, site, "--store", "site.store").code == 0


def test_a_full_store_is_refused_and_stays(cli, refused, pack, points, write_points, tmp_path):
    X, y = (np.concatenate([one] * 51) for one in points)
    y = y + np.arange(1020) * 1e-3  # points that differ
    write_points(tmp_path / "many.csv", X, y)
    assert cli("adapt", pack, "many.csv", "--store", "a.store", "--json").json["points"] == 1020
    write_points(tmp_path / "few.csv", X[:5], y[:5] - 1)
    says = ["few.csv: 1020 learnt and 5 new points are too many, 1024 at most: forget some"]
    refused("adapt", pack, "few.csv", "--store", "a.store", says=says)
