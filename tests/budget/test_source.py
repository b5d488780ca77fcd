"""Models that exist: packs and runs."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model, twin_bytes
from twinedge.budget.model import from_pack, from_run
from twinedge.pack import write_pack


@pytest.mark.parametrize("seed", range(5))
def test_a_pack_says_what_it_is(packs, tmp_path, seed):
    pack = packs.random_pack(np.random.default_rng(seed))
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(pack))
    model, size = from_pack(path)
    assert size == path.stat().st_size
    assert model.members == pack.members
    assert model.intervals == (pack.intervals is not None)
    assert twin_bytes(model) == len(write_pack(pack, metadata=False))


def test_a_pack_says_how_many_levels_it_has(packs, tmp_path):
    pack = packs.random_pack(np.random.default_rng(0), scaled=True)
    path = tmp_path / "model.twin"
    for levels in (1, 4, 15):
        quantiles = {level: level for level in range(1, levels + 1)}
        path.write_bytes(
            write_pack(replace(pack, intervals=replace(pack.intervals, quantiles=quantiles)))
        )
        assert from_pack(path)[0].levels == levels


def test_a_run_says_what_it_is(tiny_run, tiny_twin):
    model = from_run(tiny_run, anchors=16, weights="int16")
    expected = Model.of(3, (8,), 16, activation=tiny_twin.activation_, weights="int16")
    assert model == replace(expected, intervals=True)
    assert model.levels == 4  # 20 rows do not support 99 %
    assert from_run(tiny_run, anchors=16, weights="int16", intervals=False) == expected


def test_the_pack_of_a_run_is_as_long_as_predicted(tiny_run, tmp_path):
    from twinedge_export.deploy import export

    for intervals in (True, False):
        folder = tmp_path / str(intervals)
        options = {"anchors": 16, "formats": ("twin",), "intervals": intervals}
        file = export(tiny_run, folder, **options).files[0]
        predicted = from_run(tiny_run, anchors=16, intervals=intervals)
        packed, _ = from_pack(folder / file.path.name)
        assert (packed, packed.levels) == (predicted, predicted.levels)
        assert twin_bytes(packed) == twin_bytes(predicted)


def test_a_run_without_intervals_has_a_pack_without(tiny_run, tmp_path):
    folder = changed(tiny_run, tmp_path, "calibration", None)
    assert not from_run(folder).intervals


def test_a_run_of_neighbors_predicts_with_neighbors(tiny_run, tmp_path):
    folder = changed(tiny_run, tmp_path, "parameters", {"pairs": "neighbors", "neighbors": 5})
    assert from_run(folder, anchors=16).members == 5
    folder = changed(tiny_run, tmp_path, "parameters", {"twins": 4})
    assert from_run(folder, anchors=16).counts == (4, 4, 4, 4)


def changed(run, tmp_path, key, values):
    folder = tmp_path / "run"
    shutil.copytree(run, folder, dirs_exist_ok=True)
    record = json.loads((run / "run.json").read_text())
    record[key] = record[key] | values if isinstance(values, dict) else values
    (folder / "run.json").write_text(json.dumps(record))
    return folder


BAD_RUNS = [
    ("format", "other", "was not written by twinedge"),
    ("version", 2, "version 2"),
    ("parameters", None, "does not say what was trained"),
    ("parameters", {"hidden": None}, "does not say what was trained"),
    ("parameters", {"twins": "four"}, "does not say what was trained"),
    ("feature_names", [], "0 features"),
    ("chosen", {"activation": "tanh"}, "relu or silu"),
    ("calibration", 5, "does not say what was trained"),
    ("calibration", {"quantiles": None}, "does not say what was trained"),
]


@pytest.mark.parametrize(
    ("key", "value", "says"), BAD_RUNS, ids=[f"{k} {v}" for k, v, _ in BAD_RUNS]
)
def test_a_run_that_is_not_ours_is_refused(complaint, tiny_run, tmp_path, key, value, says):
    folder = changed(tiny_run, tmp_path, key, value)
    assert says in complaint(from_run, folder)


def test_what_is_no_run_is_refused(complaint, tmp_path):
    assert "is not a run folder" in complaint(from_run, tmp_path)
    assert "does not exist" in complaint(from_run, tmp_path / "none")
    for text in ("{", "[" * 100_000):
        (tmp_path / "run.json").write_text(text)
        assert "not JSON" in complaint(from_run, tmp_path)
    (tmp_path / "run.json").write_text("[]")
    assert "was not written by twinedge" in complaint(from_run, tmp_path)


def test_what_is_no_pack_is_refused(complaint, tmp_path):
    path = tmp_path / "model.twin"
    assert "cannot read" in complaint(from_pack, path)
    path.write_bytes(b"TWIN")
    message = complaint(from_pack, path)
    assert "too few" in message
    assert str(path) in message
