"""``twinedge inspect``: a pack as users see it."""

import re
import runpy
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from twinedge.extras import NO_COMPILED_RUNTIME
from twinedge.pack import read_pack, write_pack

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="session")
def golden():
    """Packs of the golden vectors, by name."""
    cases = runpy.run_path(str(GOLDEN / "vectors.py"))["load"]()
    return {case.name: case.pack for case in cases}


@pytest.fixture
def pack_file(golden, tmp_path):
    """Put a pack into a file: ``pack_file(name, data=...)``."""

    def write(name="odd-silu", data=None, **changes):
        data = golden[name] if data is None else data
        if changes:
            data = write_pack(replace(read_pack(data), **changes))
        (tmp_path / "model.twin").write_bytes(data)
        return data

    return write


def test_a_person_sees_where_each_byte_goes(cli, pack_file):
    data = pack_file("flagship")
    answer = cli("inspect", "model.twin")
    assert (answer.code, answer.err) == (0, "")
    record, sections, ranges, parts, uses = answer.out.split("\n\n")
    assert record.splitlines()[:2] == ["file          model.twin", f"bytes         {len(data)}"]
    assert "hidden        128, 128\n" in record
    assert "predict with  all anchors\n" in record
    assert record.count("right") == 2
    assert [line.split()[0] for line in sections.splitlines()] == [
        *("section", "scaling", "twins", "anchors")
    ]
    assert len(ranges.splitlines()) == 1 + 8 + 1
    places = [re.search(r" (\d+) +(\d+) +\d+  ", line) for line in parts.splitlines()[1:]]
    end = 0
    for place in places:
        assert int(place[1]) == end
        end += int(place[2])
    assert end == len(data)
    assert uses.splitlines()[-1].split() == ["all", str(len(data)), "100.0"]


def test_json_has_everything(cli, pack_file):
    data = pack_file()
    report = cli("inspect", "model.twin", "--json").json
    stored = [f"{crc:08x}" for crc in struct.unpack_from("<II", data, 12)]
    assert [one["stored"] for one in report["checksums"].values()] == stored
    assert [one["computed"] for one in report["checksums"].values()] == stored
    assert all(one["fits"] is True for one in report["checksums"].values())
    assert (report["file"], report["bytes"], report["length"]) == ("model.twin", len(data), 944)
    assert (report["sound"], report["refused"], report["version"]) == (True, None, 1)
    assert (report["features"], report["hidden"]) == (3, [7, 5])
    assert (report["activation"], report["kernel"], report["twins"]) == ("silu", "int8", 1)
    assert (report["anchors"], report["anchors_of_each_twin"], report["members"]) == (5, [5], 5)
    assert (report["neighbors"], report["trained_on_neighbors"]) == (0, False)
    assert [one["name"] for one in report["sections"]] == [
        *("scaling", "twins", "curve", "anchors", "ids", "kind 40000", "metadata")
    ]
    assert sum(one["size"] for one in report["parts"]) == len(data)
    assert [one["name"] for one in report["ranges"]] == ["x0", "x1", "x2", "target"]
    assert report["metadata"] == {"name": "odd-silu"}


def test_maps_and_target_curves_are_shown(cli, pack_file):
    data = pack_file("map-and-target-curve")
    record, sections, ranges, parts, uses = cli("inspect", "model.twin").out.split("\n\n")
    assert "version       3\n" in record
    assert "map           2 curves, 27 knots; the twins take 6 numbers of a point\n" in record
    assert "target curve  128 bins of 32768 estimate units\n" in record
    assert "map              208   234  curves of the features" in sections
    assert "target curve     448   524  curve from estimates to the target" in sections
    head, *rows = ranges.splitlines()
    assert head.split("  ")[-1].strip() == "bins of its curve"
    assert [row.split()[-1] for row in rows if row.split()[0] in ("x0", "x3", "target")] == [
        *("5", "20", "128")
    ]
    assert len(rows[1].split()) == 5  # no curve, and no features of anchors
    sizes = [int(re.search(r" (\d+) +(\d+) +\d+  ", line)[2]) for line in parts.splitlines()[1:]]
    assert sum(sizes) == len(data)
    for line in ("map           table ", "target curve  values "):
        assert line in parts
    assert re.search(r"^map +230 ", uses, re.M)
    report = cli("inspect", "model.twin", "--json").json
    assert report["map"] == {"outputs": 6, "bins": [5, 0, 0, 20]}
    assert report["target_curve"] == {
        "first": report["target_curve"]["first"],
        "step": 32768,
        "bins": 128,
    }
    assert [one["anchors_least"] for one in report["ranges"][:4]] == [None] * 4
    plain = pack_file() and cli("inspect", "model.twin", "--json").json
    assert (plain["map"], plain["target_curve"]) == (None, None)


def test_neighbors_and_uneven_twins_are_shown(cli, pack_file):
    pack_file("near-four")
    record = cli("inspect", "model.twin").out.partition("\n\n")[0]
    assert "anchors       40 (of each twin: 17, 1, 12, 10)\n" in record
    expected = "predict with  the 5 nearest anchors of each twin; trained on neighbors\n"
    assert expected in record


def test_names_and_metadata_are_shown_on_one_line_each(cli, pack_file):
    features = [{"name": name} for name in ("größe", "\x1b[2J", "two\nlines")]
    pack_file(metadata={"features": features, "target": "\ud800", "rmse_val": 0.25})
    answer = cli("inspect", "model.twin")
    assert answer.code == 0
    assert "größe" in answer.out
    assert "\x1b" not in answer.out
    for word in ('"\\u001b[2J"', '"two\\nlines"', '"\\ud800"', "rmse val  0.25\n"):
        assert word in answer.out
    assert cli("inspect", "model.twin", "--json").json["metadata"]["features"] == features


def test_metadata_of_features_and_targets_are_tables(cli, pack_file):
    features = [{"max": 2.5, "name": "\x1b[2J"}, {"name": "flow", "min": 0, "unit": "l/s"}]
    targets = [{"target": "NOX", "scores": {"rmse_test": 0.25}}, {"target": "CO"}]
    pack_file(metadata={"features": features, "targets": targets, "scores": {"rmse_val": 0.5}})
    answer = cli("inspect", "model.twin")
    last = [line.rstrip() for line in answer.out.splitlines()[-9:]]
    assert last == [
        "features: name  min  max  unit",
        '"\\u001b[2J"          2.5',
        "flow            0         l/s",
        "",
        "targets: target  scores, rmse test",
        "NOX              0.25",
        "CO",
        "",
        "scores, rmse val  0.5",
    ]


def test_columns_with_levels_are_shown_once_and_numbers_without_noise(cli, pack_file):
    side = {"name": "side", "levels": ["nord", "süd"], "others": []}
    columns = [side, {"name": "flow"}]
    names = ("side=nord", "side=süd", "flow")
    pack_file(
        metadata={
            "features": [{"name": name} for name in names],
            "columns": columns,
            "scores": {"rmse_val": 0.1 + 0.2, "origins": ["süd"]},
        }
    )
    answer = cli("inspect", "model.twin")
    assert "'nord', 'süd'" in answer.out
    assert "columns:" not in answer.out
    assert "scores, rmse val  0.3\n" in answer.out
    assert '["süd"]' in answer.out
    assert cli("inspect", "model.twin", "--json").json["metadata"]["columns"] == columns


@pytest.mark.parametrize(
    "odd", [[], [{}], [1, {"name": "x"}], {}, [[{"name": "x"}]], {"": {"": 0}}]
)
def test_metadata_may_be_anything(cli, pack_file, odd):
    pack_file(metadata={"features": odd, "columns_of": odd})
    answer = cli("inspect", "model.twin")
    assert answer.code == 0
    assert "features" in answer.out.splitlines()[-2] + answer.out.splitlines()[-1]


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_a_truncated_file_shows_its_header_and_is_refused(cli, pack_file, golden, more):
    length = 700
    pack_file(data=golden["odd-silu"][:length])
    answer = cli("inspect", "model.twin", *more)
    assert answer.code == 2
    assert answer.err == f"twinedge: model.twin: {length} bytes of 944: the end is missing\n"
    if more:
        report = answer.json
        assert report["refused"] == {
            "reason": "truncated",
            "message": f"{length} bytes of 944: the end is missing",
        }
        assert (report["sound"], report["length"], report["hidden"]) == (False, 944, [7, 5])
        assert report["checksums"]["header"]["fits"] is True
        assert not report.keys() & {"parts", "uses", "ranges", "metadata"}
    else:
        assert "bytes it should have  944\n" in answer.out
        assert "hidden                7, 5\n" in answer.out
        assert answer.out.count("right") == 1
        assert "anchors        784" in answer.out


@pytest.mark.parametrize("gone", ["identity", "self_test"])
def test_a_pack_may_have_an_identity_or_a_self_test_alone(cli, pack, gone):
    whole = cli("inspect", pack, "--json").json["release"]
    read = read_pack(pack.read_bytes())
    pack.write_bytes(write_pack(replace(read, release=replace(read.release, **{gone: None}))))
    left = cli("inspect", pack, "--json").json["release"]
    assert left.keys() == whole.keys() - {gone}


def test_without_the_compiled_runtime_it_says_so_and_works(cli, pack_file, monkeypatch):
    monkeypatch.setattr("twinedge.extras.find_spec", lambda name: None)
    pack_file()
    for command in (("inspect", "model.twin"), ("--version",)):
        answer = cli(*command)
        assert (answer.code, answer.err) == (0, f"{NO_COMPILED_RUNTIME}\n")
        assert answer.out


def test_a_damaged_body_shows_both_checksums(cli, pack_file, golden):
    data = bytearray(golden["odd-silu"])
    data[200] ^= 1
    pack_file(data=data)
    answer = cli("inspect", "model.twin")
    assert answer.code == 2
    assert answer.err.startswith("twinedge: model.twin: damaged: the checksum of the content")
    assert "body crc      0991dff7 stored, " in answer.out
    assert answer.out.count("wrong") == 1
    assert "section" in answer.out


def test_of_a_damaged_header_nothing_is_shown_but_its_checksums(cli, pack_file, golden):
    data = bytearray(golden["odd-silu"])
    data[20] ^= 1  # features
    pack_file(data=data)
    answer = cli("inspect", "model.twin")
    assert answer.code == 2
    assert "checksum of the header" in answer.err
    names = [line.split("  ")[0] for line in answer.out.splitlines()]
    assert names == ["file", "bytes", "header crc", "body crc"]
    report = cli("inspect", "model.twin", "--json").json
    assert "features" not in report
    assert report["sections"] == []


def test_without_all_of_the_header_its_checksums_cannot_be_computed(cli, pack_file, golden):
    pack_file(data=golden["odd-silu"][:60])
    answer = cli("inspect", "model.twin")
    assert answer.code == 2
    names = [line.partition("  ")[0] for line in answer.out.splitlines()]
    assert names == ["file", "bytes", "header crc", "body crc"]
    assert answer.out.count(" stored; the bytes it covers are missing\n") == 2


def test_another_version_is_named(cli, pack_file, golden):
    pack_file(data=golden["odd-silu"][:4] + b"\4\0" + golden["odd-silu"][6:])
    answer = cli("inspect", "model.twin")
    assert answer.code == 2
    assert answer.err == "twinedge: model.twin: version 4; this twinedge reads 1 to 3\n"
    assert [line.split()[:2] for line in answer.out.splitlines()][2:] == [["version", "4"]]


def test_what_is_no_pack_is_refused(refused, tmp_path):
    refused("inspect", "none.twin", says=["none.twin cannot be read", "No such file", ".twin file"])
    refused("inspect", ".", says=[". cannot be read", "directory", "name a .twin file"])
    refused("inspect", says=["Missing argument 'FILE.twin'", "twinedge inspect --help"])
    for content in (b"", b"TWIN", b"x,y\n1,2\n" * 20):
        (tmp_path / "table.csv").write_bytes(content)
        refused("inspect", "table.csv", says=["table.csv: "])
