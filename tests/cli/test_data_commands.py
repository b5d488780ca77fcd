import pytest

from twinedge.data import load, names


def test_list_names_every_set(cli):
    header, *lines = cli("data", "list").out.splitlines()
    assert header.split() == ["set", "title", "rows", "features", "target", "file"]
    assert [line.split()[0] for line in lines] == list(names())


def test_no_terminal_is_too_narrow_for_a_path(cli, monkeypatch, tmp_path):
    folder = tmp_path / ("a long name " * 10)
    folder.mkdir()
    (folder / "cs.csv").touch()
    monkeypatch.setenv("TWINEDGE_DATA", str(folder))
    monkeypatch.setenv("COLUMNS", "40")
    assert f"  {folder}/cs.csv\n" in cli("data", "list").out


def test_list_as_json(cli, monkeypatch, tmp_path):
    monkeypatch.delenv("TWINEDGE_DATA", raising=False)
    monkeypatch.setenv("TWINEDGE_CACHE", str(tmp_path))
    sets = {one["dataset"]: one for one in cli("data", "list", "--json").json["datasets"]}
    assert sets["cs"] == {
        "dataset": "cs",
        "title": "Concrete Strength",
        "rows": 1030,
        "features": 8,
        "target": "strength",
        "file": None,
    }


def test_show_gives_the_range_of_every_column(cli):
    answer = cli("data", "show", "tf")
    assert answer.err == ""
    title, *_, header, x1, x2, y = answer.out.splitlines()
    assert title == "Test Function: 1000 rows, 2 features; target y"
    assert header.split() == ["column", "min", "mean", "max"]
    assert [line.split()[0] for line in (x1, x2, y)] == ["x1", "x2", "y"]
    assert float(x1.split()[1]) == pytest.approx(load("tf").X[:, 0].min(), rel=1e-5)


def test_show_as_json(cli):
    report = cli("data", "show", "wsb", "--variant", "paper", "--json").json
    columns = report.pop("columns")
    assert report.keys() == {
        *("dataset", "title", "rows", "features", "target", "source", "origin", "licence", "note")
    }
    assert [one["column"] for one in columns][-1] == report["target"] == "voltage"
    assert columns[0]["max"] == load("wsb", "paper").X[:, 0].max()
