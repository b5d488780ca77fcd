"""A store for each of many devices, in a folder."""

import numpy as np
import pytest

from twinedge.runtime.adaptation import MOST_POINTS
from twinedge.runtime.loading import load
from twinedge.runtime.store_folder import StoreFolder

PACK = "firmware_ref/test/corpus/scaled_relu.twin"


@pytest.fixture
def model(request):
    return load(request.config.rootpath / PACK)


@pytest.fixture
def point(model):
    """Some point, and a target that the model can learn there."""
    x = model.ranges.mean(axis=0)
    answer = model.predict_all(x)
    return x, [float(answer.mean[0] + answer.scale[0])]


def test_each_device_learns_for_itself(model, point, tmp_path):
    stores = StoreFolder(model, tmp_path / "stores")
    x, y = point
    assert stores.device("a") is None
    assert not (tmp_path / "stores").exists()
    for n in range(3):
        stores.learn("a", x, y, n)
    stores.learn("b", x, y, 0)
    assert (stores.device("a").learnt, stores.device("b").learnt) == (3, 1)
    assert model.learnt == 0
    again = StoreFolder(model, tmp_path / "stores").device("a")
    assert again.points.times.tolist() == [0, 1, 2]
    assert again.predict(x) == stores.device("a").predict(x) != model.predict(x)
    load(model.info["file"], store=stores.path("a")).learn([x], y)  # no lock is left


def test_names_become_files_of_one_folder(model, tmp_path):
    stores = StoreFolder(model, tmp_path)
    names = ["", ".", "..", "a/b", "a\\b", "/etc", ".hidden", "a%2Fb", "Halle 3", "é\0"]
    paths = [stores.path(name) for name in names]
    assert len(set(paths)) == len(names)
    assert {one.parent for one in paths} == {tmp_path}
    assert not any(one.name.startswith(".") for one in paths)
    assert stores.path("Halle 3").name == "Halle 3.store"


def test_of_a_full_store_the_oldest_quarter_goes(model, point, tmp_path):
    x, y = point
    with_points = load(model.info["file"], store=tmp_path / "a.store")
    with_points.learn(np.tile(x, (MOST_POINTS, 1)), np.full(MOST_POINTS, y[0]), range(MOST_POINTS))
    with_points.store.journal.close()
    device = StoreFolder(model, tmp_path).learn("a", x, y, 5000)
    assert device.points.times.tolist() == [*range(MOST_POINTS // 4, MOST_POINTS), 5000]


def test_only_so_many_are_kept_in_memory(model, point, tmp_path):
    stores = StoreFolder(model, tmp_path, most_open=2)
    for name in "abc":
        stores.learn(name, *point, 0)
    first, last = stores.device("c"), stores.device("b")
    assert stores.device("a").learnt == 1
    assert stores.device("b") is last
    assert stores.device("c") is not first


def test_bad_stores_and_names_are_refused(model, point, tmp_path, complaint, request):
    (tmp_path / "bad.store").write_text("no store")
    stores = StoreFolder(model, tmp_path)
    complaint(stores.device, "bad")
    complaint(stores.learn, "bad", *point, 0)
    assert "too long" in complaint(stores.device, 100 * "é")
    assert "not a folder" in complaint(StoreFolder, model, tmp_path / "bad.store")
    plain = load(request.config.rootpath / "firmware_ref/test/corpus/small.twin")
    assert "cannot learn" in complaint(StoreFolder, plain, tmp_path)
    assert "cannot make" in complaint(StoreFolder(model, "/proc/stores").learn, "a", *point, 0)
