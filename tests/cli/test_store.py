"""``twinedge store``: what devices learnt comes home, and goes where it should."""

import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge.runtime.journal_file import Journal, read_journal_file
from twinedge.runtime.loading import load
from twinedge.runtime.store import Points, owner_of, stamp_of

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture
def learnt(pack, points, tmp_path):
    """Let a device learn some of the points: ``learnt("a.store", slice(5), times)``."""

    def learn(name, rows=slice(None), times=None, shift=0.0):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        device = load(pack, store=path)
        device.learn(points[0][rows], points[1][rows] + shift, times)
        return path

    return learn


def dumped(path, pack, points, program, erased):
    """Write points as a microcontroller would, in slots of another size."""
    data = pack.read_bytes()
    whole = read_pack(data)
    device = load(pack, "numpy")
    device.learn(*points)
    size = 16 + 4 * whole.features
    slot = -(-(size + 8) // program) * program
    with Journal(path) as journal:
        journal.lay_out(owner_of(whole.schema, slot), size, 40, stamp_of(data))
        head = journal.content.head._replace(slot=slot)
        journal.content = replace(journal.content, head=head, block=64 * slot)
        journal.add(device.points.to_records())
    content = path.read_bytes()
    used = 64 * slot
    first = content[:used].rstrip(b"\xff")
    path.write_bytes(first.ljust(used, erased) + erased * used)
    return path


def table_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_a_dump_of_a_microcontroller_is_read_like_a_file(cli, pack, points, tmp_path, learnt):
    dump = dumped(tmp_path / "dump.bin", pack, points, 256, b"\0")
    learnt("dump.store")
    keys = ("points", "damaged", "used", "rmse_shipped", "rmse_adapted", "list")
    found, right = (
        cli("store", "show", name, "--pack", pack, "--json").json for name in (dump, "dump.store")
    )
    assert [found[key] for key in keys] == [right[key] for key in keys]


# Show.


def test_a_store_is_shown_without_a_pack(cli, learnt, points):
    path = learnt("site.store", slice(3), [0, 100, 4000])
    answer = cli("store", "show", path, "--json")
    assert (answer.code, answer.err) == (0, "")
    found = dict(answer.json)
    rows = found.pop("list")
    assert found == {
        "file": str(path),
        "device": "site",
        "points": 3,
        "room": 1088,
        "next_number": 3,
        "first_time": 100,
        "last_time": 4000,
        "damaged": 0,
        "cut_short": False,
        "generation": 1,
    }
    assert [one["number"] for one in rows] == [0, 1, 2]
    assert [one["time"] for one in rows] == [None, 100, 4000]
    for row, one in enumerate(rows):
        assert list(one["features"]) == ["x0", "x1", "x2"]
        np.testing.assert_allclose([*one["features"].values()], points[0][row], rtol=1e-6)
        assert one["target"] == pytest.approx(points[1][row], rel=1e-6)
    lines = cli("store", "show", path).out.splitlines()
    assert lines[0].split() == ["file", str(path)]
    assert lines[-4].split() == ["number", "time", "x0", "x1", "x2", "y"]
    assert lines[-3].split()[:2] == ["0", "-"]
    assert lines[-1].split()[:2] == ["2", "4000"]


def test_with_a_pack_errors_are_shown_as_shipped_and_as_adapted(cli, pack, learnt, points):
    X, y = points
    y = np.where(np.arange(20) == 6, -999, y)
    path = learnt("site.store", shift=y - points[1])
    answer = cli("store", "show", path, "--pack", pack, "--json")
    found = answer.json
    assert (found["used"], found["suspect"]) == (20, 1)
    plain = load(pack)
    shipped = y - plain.predict(X)
    counts = np.arange(20) != 6
    errors = np.array([[one["error_shipped"], one["error_adapted"]] for one in found["list"]])
    np.testing.assert_allclose(errors[:, 0], shipped, atol=2e-3)
    for row in range(20):
        device, others = load(pack), np.arange(20) != row
        device.learn(X[others], y[others])
        error = y[row] - device.predict(X[row : row + 1])[0]
        assert errors[row, 1] == pytest.approx(error, abs=2e-3)
    assert [one["suspect"] for one in found["list"]] == [row == 6 for row in range(20)]
    # The point that is suspect counts for nothing.
    for name, column in (("rmse_shipped", 0), ("rmse_adapted", 1)):
        right = np.sqrt(np.mean(errors[counts, column] ** 2))
        assert found[name] == pytest.approx(right)
    assert found["mean_error"] == pytest.approx(errors[counts, 0].mean())
    low, high = plain.predict_interval(X).T
    inside = (low <= y) & (y <= high)
    assert found["coverage_shipped"] == pytest.approx(inside[counts].mean(), abs=0.06)
    assert list(found["list"][0]["features"]) == ["angle", "offset", "idle"]
    lines = cli("store", "show", path, "--pack", pack).out.splitlines()
    title = ["number", "time", "angle", "offset", "idle", "level", "error", "shipped", "adapted"]
    assert lines[-21].split() == [*title, "suspect"]
    assert lines[-14].split()[-1] == "yes"


def test_the_latest_points_are_listed_unless_all_are_wanted(cli, pack, points, tmp_path):
    device = load(pack, store=tmp_path / "site.store")
    device.learn(np.tile(points[0], (2, 1)), np.tile(points[1], 2))
    out = cli("store", "show", "site.store").out.splitlines()
    assert "The latest 20 points; --points all lists all." in out
    assert [row.split()[0] for row in out[-20:]] == [str(one) for one in range(20, 40)]
    assert len(cli("store", "show", "site.store", "--points", "all").out.splitlines()) == 9 + 2 + 40
    assert len(cli("store", "show", "site.store", "--points", "0").out.splitlines()) == 9
    assert len(cli("store", "show", "site.store", "--json").json["list"]) == 40


def test_an_empty_store_is_shown_as_such(cli, pack, tmp_path):
    (tmp_path / "new.bin").write_bytes(b"\xff" * 4096)
    for options in ([], ["--pack", pack]):
        found = cli("store", "show", "new.bin", *options, "--json").json
        assert (found["points"], found["list"], found["generation"]) == (0, [], 0)
    assert cli("store", "show", "new.bin", "--pack", pack).code == 0


def test_damage_is_named_and_what_is_sound_is_shown(cli, pack, learnt):
    path = learnt("site.store")
    content = bytearray(path.read_bytes())
    content[36 * 5 + 9] ^= 1
    path.write_bytes(content)
    answer = cli("store", "show", path, "--pack", pack)
    assert answer.err == f"{path}: 1 entry cannot be read: damaged, or cut short\n"
    found = cli("store", "show", path, "--json", "--quiet").json
    assert (found["points"], found["damaged"]) == (19, 1)
    path.write_bytes(content[: 36 * 10])
    answer = cli("store", "show", path)
    assert answer.err.splitlines()[-1] == f"{path}: the end is missing, and it can only be read"
    assert cli("store", "show", path, "--json", "--quiet").json["cut_short"]


def test_what_is_no_store_of_the_model_is_refused(refused, pack, learnt, tmp_path):
    path = learnt("site.store", slice(2))
    whole = read_pack(pack.read_bytes())
    (tmp_path / "other.twin").write_bytes(write_pack(replace(whole, schema=5)))
    twins = tuple(replace(one, bias=0, difficulty=None) for one in whole.twins)
    bare = replace(whole, twins=twins, intervals=None, domain=None, schema=None)
    (tmp_path / "bare.twin").write_bytes(write_pack(bare))
    show = ("store", "show")
    refused(*show, path, "--pack", "other.twin", says=["points of another model"])
    refused(*show, path, "--pack", "bare.twin", says=["no intervals"])
    refused(*show, path, "--pack", "model.onnx", says=["only a .twin pack"])
    refused(*show, pack, says=["is not a store of twinedge"])
    refused(*show, "nowhere.store", says=["nowhere.store does not exist"])
    refused(*show, tmp_path, says=["is not a file"])
    refused(*show, path, "--points", "some", says=["--points"])


# Export.


def test_points_are_written_as_a_table_to_train_on(cli, pack, learnt, points, tmp_path):
    learnt("north.store", slice(4), [7, 8, 9, 10])
    learnt("south.store", slice(4, 6))
    command = ("store", "export", "north.store", "south.store", "--pack", pack, "-o", "p.csv")
    columns = ["angle", "offset", "idle", "level", "device"]
    found = {"output": "p.csv", "points": 6, "suspect": 0, "devices": 2, "columns": columns}
    assert cli(*command, "--json").json == found
    header, *rows = table_of(tmp_path / "p.csv")
    assert header == columns
    assert [row[4] for row in rows] == ["north"] * 4 + ["south"] * 2
    cli(*command, "--times")
    header, *timed = table_of(tmp_path / "p.csv")
    assert header == [*columns[:4], "time", "device"]
    assert [row[4] for row in timed] == ["7", "8", "9", "10", "", ""]
    numbers = np.array([row[:4] for row in rows], np.float32)
    right = np.column_stack([points[0], points[1]])[:6].astype(np.float32)
    np.testing.assert_array_equal(numbers, right)
    cli("store", "export", "north.store", "-o", "bare.csv")  # without a pack
    assert table_of(tmp_path / "bare.csv")[0] == ["x0", "x1", "x2", "y", "device"]
    # The same points are learnt from it again.
    assert cli("adapt", pack, "p.csv", "--store", "again.store", "--json").json["points"] == 6
    again = load(pack, store=tmp_path / "again.store").points
    np.testing.assert_array_equal(again.X, right[:, :3])


def test_a_glitch_is_left_out_unless_it_is_wanted(cli, refused, pack, learnt, points, tmp_path):
    learnt("north.store", slice(6))
    device = load(pack, store=tmp_path / "north.store")
    device.learn(points[0][6:7], [-999.0])
    command = ("store", "export", "north.store", "-o", "p.csv", "--json")
    answer = cli(*command).json
    assert (answer["points"], answer["suspect"]) == (6, 1)
    assert "-999.0" not in (tmp_path / "p.csv").read_text()
    answer = cli(*command, "--suspect").json
    assert (answer["points"], answer["suspect"]) == (7, 0)
    assert "-999.0" in (tmp_path / "p.csv").read_text()
    old = cli(*command, "--doubted")  # its name of before
    assert old.json == answer
    assert old.err == "--doubted is deprecated and goes with 0.3: use --suspect\n"
    load(pack, store=tmp_path / "odd.store").learn(points[0][:1], [-999.0])
    refused("store", "export", "odd.store", "-o", "q.csv", says=["all points are suspect"])


def test_the_same_point_of_a_device_is_written_once(cli, learnt, tmp_path):
    learnt("a.store", slice(4))
    (tmp_path / "june").mkdir()
    (tmp_path / "july").mkdir()
    shutil.copy(tmp_path / "a.store", tmp_path / "june" / "pump.store")
    with Journal(tmp_path / "a.store") as journal:
        journal.keep(np.arange(4) > 1)
    learnt("a.store", slice(4, 7))
    shutil.copy(tmp_path / "a.store", tmp_path / "july" / "pump.bin")
    answer = cli("store", "export", "june/pump.store", "july/pump.bin", "-o", "p.csv", "--json")
    assert (answer.json["points"], answer.json["devices"]) == (7, 1)
    assert answer.err == ""
    # Under another name it could be another device.
    answer = cli("store", "export", "june/pump.store", "a.store", "-o", "p.csv", "--json")
    assert (answer.json["points"], answer.json["devices"]) == (9, 2)
    assert "june/pump.store and a.store hold the same points" in answer.err
    assert answer.err.count("\n") == 1


def test_an_export_that_cannot_be_is_refused(refused, pack, learnt, tmp_path):
    path = learnt("site.store", slice(2))
    (tmp_path / "new.bin").write_bytes(b"\xff" * 4096)
    other = tmp_path / "other.store"
    with Journal(other) as journal:
        journal.lay_out(owner_of(9, 36), 28, 40)
        journal.add(Points.unscored(np.ones((1, 3)), np.ones(1)).to_records())
    command = ("store", "export")
    refused(*command, "-o", "p.csv", says=["Missing argument"])
    refused(*command, path, says=["--output"])
    refused(*command, path, "-o", path, says=["would replace what is read"])
    refused(*command, path, "-o", "no/where.csv", says=["no folder"])
    refused(*command, "new.bin", "-o", "p.csv", says=["there are no points"])
    refused(*command, path, other, "-o", "p.csv", says=["other.store", "another model than"])
    refused(*command, path, other, "--pack", pack, "-o", "p.csv", says=["points of another model"])
    refused(*command, path, "nowhere", "-o", "p.csv", says=["nowhere does not exist"])


# Forget.


@pytest.mark.parametrize(
    ("how", "left"),
    [
        (["--all"], []),
        (["--keep", 2], [4, 5]),
        (["--keep", 6], [0, 1, 2, 3, 4, 5]),
        (["--first", 1, "--last", 3], [0, 4, 5]),
        (["--number", 2, "--number", 5], [0, 1, 3, 4]),
        (["--before", 300], [0, 3, 4, 5]),
        (["--before", "1970-01-01T00:05:01Z"], [0, 4, 5]),
        (["--before", "2020-01-01"], [0]),
    ],
    ids=str,
)
def test_points_are_forgotten(cli, learnt, how, left):
    path = learnt("site.store", slice(6), [0, 100, 200, 300, 400, 500])
    answer = cli("store", "forget", path, *how, "--json")
    assert answer.json == {"file": str(path), "forgotten": 6 - len(left), "points": len(left)}
    assert read_journal_file(path).numbers.tolist() == left
    # Their numbers are not used again.
    learnt("site.store", slice(1))
    assert read_journal_file(path).numbers.tolist() == [*left, 6]


def test_a_dump_may_forget_and_goes_back_as_it_came(cli, pack, points, tmp_path):
    path = dumped(tmp_path / "dump.bin", pack, points, 64, b"\xff")
    before = read_journal_file(path)
    assert cli("store", "forget", path, "--keep", "5").out.split()[-1] == "5"
    after = read_journal_file(path)
    assert after.head.slot == before.head.slot == 64
    assert after.block == before.block
    assert load(pack, store=path).learnt == 5


FORGET = [
    ([], ["say which points"]),
    (["--all", "--keep", 3], ["say which points"]),
    (["--first", 3], ["--first and --last belong together"]),
    (["--first", 3, "--last", 2], ["3 is after 2"]),
    (["--number", 2, "--number", 77], ["has no point 77"]),
    (["--before", "soon"], ["--before soon", "not a time"]),
    (["--before", "1.5"], ["--before 1.5"]),
    (["--keep", -1], ["--keep"]),
]


def test_points_that_cannot_be_forgotten_are_refused(refused, pack, learnt):
    path = learnt("site.store", slice(6))
    for how, says in FORGET:
        refused("store", "forget", path, *how, says=says)
    refused("store", "forget", "nowhere.store", "--all", says=["nowhere.store does not exist"])
    refused("store", "forget", pack, "--all", says=["is not a store"])
    with Journal(path) as journal:
        journal.lock()
        refused("store", "forget", path, "--all", says=["in use by another program"])


# Merge.


def test_stores_are_merged(cli, pack, learnt, points, tmp_path):
    learnt("a.store", slice(3), [5, 900, 3])
    learnt("b.store", slice(3, 5), [1, 100])
    shutil.copy(tmp_path / "a.store", tmp_path / "c.store")
    answer = cli("store", "merge", "a.store", "b.store", "c.store", "-o", "all.store", "--json")
    assert answer.json == {"output": "all.store", "stores": 3, "points": 5}
    held = load(pack, store=tmp_path / "all.store").points
    assert held.numbers.tolist() == [0, 1, 2, 3, 4]
    assert held.times.tolist() == [1, 3, 5, 100, 900]
    np.testing.assert_array_equal(held.y, points[1][[3, 2, 0, 4, 1]].astype(np.float32))
    # Without times, the order is that of the files.
    learnt("d.store", slice(6, 8))
    cli("store", "merge", "d.store", "b.store", "-o", "some.store")
    merged = load(pack, store=tmp_path / "some.store").points
    np.testing.assert_array_equal(merged.y, points[1][[6, 7, 3, 4]].astype(np.float32))


def test_points_that_a_device_would_not_use_are_merged_with_a_remark(cli, learnt, monkeypatch):
    learnt("a.store", slice(3), [5, 900, 3])
    monkeypatch.setattr("twinedge.runtime.adaptation.MOST_POINTS", 2)
    answer = cli("store", "merge", "a.store", "-o", "all.store", "--json")
    assert answer.json["points"] == 3
    assert answer.err == "a device uses the latest 2 points\n"


def test_points_that_different_packs_scored_are_scored_again(
    cli, pack, exported_pack, learnt, tmp_path
):
    learnt("a.store", slice(3))
    whole = read_pack(exported_pack.read_bytes())
    pack.write_bytes(write_pack(replace(whole, metadata={})))
    learnt("b.store", slice(3, 5))
    cli("store", "merge", "a.store", "b.store", "-o", "all.store")
    for path in (pack, exported_pack):
        device, right = load(path, store=tmp_path / "all.store"), load(path)
        right.learn(device.points.X, device.points.y)
        assert device.learnt == 5
        np.testing.assert_array_equal(device.points.scores, right.points.scores)


def test_a_store_that_is_cut_short_is_mended_by_merging(cli, pack, learnt, tmp_path):
    path = learnt("site.store")
    with Journal(path) as journal:
        journal.keep(np.arange(20) != 3)  # to the second block
    path.write_bytes(path.read_bytes()[:-36])
    assert cli("adapt", pack, tmp_path / "nothing.csv", "--store", path).code == 2
    answer = cli("store", "merge", path, "-o", "sound.store")
    assert "the end is missing" in answer.err
    assert load(pack, store=tmp_path / "sound.store").learnt == 19
    assert not load(pack, store=tmp_path / "sound.store").store.journal.content.truncated


def test_a_merge_that_cannot_be_is_refused(refused, learnt, tmp_path):
    path = learnt("a.store", slice(3))
    (tmp_path / "new.bin").write_bytes(b"")
    refused("store", "merge", path, "-o", path, says=["exists already"])
    refused("store", "merge", "new.bin", "-o", "b.store", says=["there are no points"])
    refused("store", "merge", path, "-o", "no/where", says=["no folder"])
    refused("store", "merge", path, "nowhere", "-o", "b.store", says=["nowhere does not exist"])
