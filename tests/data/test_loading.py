import shutil

import numpy as np
import pytest

from twinedge.data import fetch, load
from twinedge.data.catalogue import CATALOGUE
from twinedge.errors import InputError

WITH_FILE = ("bc", "bh", "cs", "ee", "rcl", "wn", "wsb", "yh")


@pytest.fixture
def no_network(monkeypatch):
    def refuse(entry):
        raise AssertionError(f"{entry.name} was fetched")

    monkeypatch.setattr(fetch, "fetch", refuse)


@pytest.fixture
def served(true_values, monkeypatch):
    """Fake a network that serves the true values; return the names requested."""
    requested = []

    def serve(entry):
        requested.append(entry.name)
        return true_values(entry.name), "https://example.org"

    monkeypatch.setattr(fetch, "fetch", serve)
    return requested


@pytest.mark.parametrize("name", WITH_FILE)
def test_a_set_in_the_data_folder_is_loaded_to_the_bit(name, true_folder, true_values, no_network):
    data = load(name)
    values = true_values(name)
    np.testing.assert_array_equal(data.X, values[:, :-1])
    np.testing.assert_array_equal(data.y, values[:, -1])
    entry = CATALOGUE[name]
    assert (data.rows, data.features) == (entry.rows, entry.features)
    assert data.feature_names == entry.feature_names
    assert (data.name, data.target_name, data.title) == (name, entry.target_name, entry.title)
    assert data.source == str(true_folder / f"{name}.csv")
    assert data.X.dtype == data.y.dtype == np.float64


def test_tf_is_made_even_where_a_file_has_its_name(tmp_path, monkeypatch):
    (tmp_path / "tf.csv").write_text("x1,x2,y\n1,2,3\n")
    monkeypatch.setenv("TWINEDGE_DATA", str(tmp_path))
    assert load("tf").X.shape == (1000, 2)


@pytest.mark.parametrize(("name", "rows"), [("rcl", 4000), ("wsb", 200)])
def test_generated_sets_are_made_where_there_is_no_file(name, rows, nowhere, no_network):
    data = load(name)
    assert data.X.shape == (rows, 6)
    assert "generated, variant published" in data.source
    assert not nowhere.exists()


@pytest.mark.parametrize(("name", "features"), [("rcl", 6), ("wsb", 4)])
def test_the_papers_text_is_always_made(name, features, true_folder, no_network):
    data = load(name, variant="paper")
    assert data.features == len(data.feature_names) == features
    assert "variant paper" in data.source


def test_a_variant_that_is_not_there_is_refused(complaint):
    assert "only rcl and wsb differ" in complaint(load, "cs", variant="paper")
    assert "'published' or 'paper'" in complaint(load, "rcl", variant="x")


def test_a_set_is_fetched_once_and_then_read_from_the_cache(nowhere, served, true_values):
    first = load("yh")
    assert [path.name for path in nowhere.iterdir()] == ["yh.csv"]
    second = load("yh")
    assert served == ["yh"]
    assert first.X.tobytes() == second.X.tobytes() == true_values("yh")[:, :-1].tobytes()
    assert first.y.tobytes() == second.y.tobytes()
    assert first.source == second.source == str(nowhere / "yh.csv")


def test_the_data_folder_goes_before_the_cache(true_folder, nowhere, monkeypatch, no_network):
    nowhere.mkdir()
    (nowhere / "yh.csv").write_text("broken")
    monkeypatch.setenv("TWINEDGE_DATA", str(true_folder))
    assert load("yh").source == str(true_folder / "yh.csv")


def test_a_data_folder_without_the_set_is_passed_over(tmp_path, nowhere, served, monkeypatch):
    monkeypatch.setenv("TWINEDGE_DATA", str(tmp_path / "nothing"))
    load("yh")
    assert served == ["yh"]


def test_what_fails_the_check_is_not_cached(nowhere, monkeypatch):
    def fetch(entry):
        raise InputError("not the set")

    monkeypatch.setattr("twinedge.data.fetch.fetch", fetch)
    with pytest.raises(InputError, match="not the set"):
        load("yh")
    assert not nowhere.exists()


def test_a_cache_that_cannot_be_written_costs_only_the_cache(
    tmp_path, monkeypatch, nowhere, served
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TWINEDGE_CACHE", str(tmp_path / "file" / "below"))
    assert load("yh").source == "https://example.org"


def test_nothing_half_written_stays_in_the_cache(nowhere, served, monkeypatch):
    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    load("yh")
    assert list(nowhere.iterdir()) == []


def test_a_wrong_file_is_refused_by_name(tmp_path, true_folder, monkeypatch, complaint):
    shutil.copy(true_folder / "yh.csv", tmp_path / "cs.csv")
    monkeypatch.setenv("TWINEDGE_DATA", str(tmp_path))
    message = complaint(load, "cs")
    assert message.startswith(str(tmp_path / "cs.csv"))
    assert "has 6 features" in message
    assert "has 8" in message


def test_a_header_with_other_names_is_refused(tmp_path, true_folder, monkeypatch, complaint):
    text = (true_folder / "yh.csv").read_text().replace("lcb", "LCB", 1)
    (tmp_path / "yh.csv").write_text(text)
    monkeypatch.setenv("TWINEDGE_DATA", str(tmp_path))
    assert f"header is not {CATALOGUE['yh'].header}" in complaint(load, "yh")


def test_a_cut_off_file_in_the_cache_may_be_deleted(nowhere, true_folder, complaint):
    nowhere.mkdir()
    lines = (true_folder / "yh.csv").read_text().splitlines(keepends=True)
    (nowhere / "yh.csv").write_text("".join(lines[:100]))
    message = complaint(load, "yh")
    assert "has 99 rows" in message
    assert "308" in message
    assert "delete it to download it again" in message


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("TWINEDGE_CACHE", str(tmp_path / "own"))
    assert fetch.cache_folder() == tmp_path / "own"
    monkeypatch.delenv("TWINEDGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert fetch.cache_folder() == tmp_path / "xdg" / "twinedge"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fetch.cache_folder() == tmp_path / ".cache" / "twinedge"
