import inspect
import json
import re
from copy import copy
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.errors import InputError
from twinedge.pack import read_pack, write_pack
from twinedge.pack.release import UNKNOWN
from twinedge.run_folder import Run, load_run
from twinedge.runtime.loading import load
from twinedge.runtime.reference import evaluate
from twinedge.runtime.self_test import check_release
from twinedge.training import pairs
from twinedge_export import export
from twinedge_export.settings import ExportSettings

SMALL = {"formats": ("twin",), "weights": "int16", "select": "xy"}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.fixture(scope="module")
def run(tiny_run):
    return load_run(tiny_run)


@pytest.fixture(scope="module")
def done(run, tmp_path_factory):
    return export(run, tmp_path_factory.mktemp("export") / "out", anchors=8, **SMALL)


def test_the_pack_has_the_anchors_names_and_ranges_of_the_model(done, run):
    pack = read_pack((done.folder / "model.twin").read_bytes())
    X = run.test[0]
    expected = run.model.predict(X, anchors=done.rows)
    np.testing.assert_allclose(evaluate(pack, X).mean, expected, atol=0.01)
    np.testing.assert_array_equal(pack.ids, done.rows)
    features = pack.metadata["features"]
    assert [one["name"] for one in features] == list(run.feature_names)
    assert [one["min"] for one in features] == run.model.anchor_X_.min(axis=0).tolist()
    assert pack.metadata["target"] == "level"


def test_the_record_beside_the_files_says_what_was_returned(done):
    record = json.loads((done.folder / "export.json").read_text())
    sums = record.pop("sha256")
    assert record == json.loads(json.dumps(done.record()))
    assert sums.keys() == {"model.twin", "export.json"}
    assert sums["model.twin"] == sha256((done.folder / "model.twin").read_bytes()).hexdigest()
    assert record["anchors"] == 8
    assert record["method"] == "xy"
    twin = record["files"]["twin"]
    assert twin["bytes"] == (done.folder / "model.twin").stat().st_size
    assert twin["rmse_val"] == pytest.approx(
        twin["ratio_to_float"] * record["float_rmse_val"], rel=1e-9
    )
    assert record["ann_ensemble_bytes"] > 0


KINDS = {
    "twin": "model.twin",
    "tflite": "model.tflite",
    "tflite_twin": "model_twin.tflite",
    "onnx": "model.onnx",
    "onnx_twin": "model_twin.onnx",
    "onnx_float": "model_float.onnx",
    "onnx_float_twin": "model_float_twin.onnx",
    "c": "c",
}


def test_every_format_is_written_and_predicts_like_the_model(run, tmp_path):
    done = export(run, tmp_path / "out", anchors=8, select="xy", tolerance=0.05)
    record = done.record()["files"]
    assert {kind: entry["path"] for kind, entry in record.items()} == {
        kind: str(tmp_path / "out" / name) for kind, name in KINDS.items()
    }
    expected = run.model.predict(run.test[0], anchors=done.rows)
    spread = run.model.spread(run.test[0], anchors=done.rows)
    scale = run.model.anchor_y_.std()
    for kind, entry in record.items():
        assert entry["ratio_to_float"] == pytest.approx(
            done.evaluator.exported_rmse / done.evaluator.all_anchors.rmse, rel=0.06
        )
        if kind != "c":
            device = load(entry["path"])
            found, found_spread = device.predict(run.test[0]), device.spread(run.test[0])
            np.testing.assert_allclose(found, expected, atol=0.05 * scale)
            np.testing.assert_allclose(found_spread, spread, atol=0.05 * scale)


def test_fine_tuning_may_be_requested(run, tmp_path, monkeypatch):
    monkeypatch.setattr("twinedge_export.fine_tune._STEPS", 200)
    settings = {**SMALL, "weights": "int8", "qat": True, "tolerance": 0.1}
    done = export(run, tmp_path / "out", anchors=8, **settings)
    assert done.files[0].made == "int8, fine-tuned"


def test_a_run_folder_will_do_and_so_will_a_fitted_model(done, tiny_run, tiny_twin, tmp_path):
    again = export(str(tiny_run), tmp_path / "a", anchors=8, **SMALL)
    np.testing.assert_array_equal(again.rows, done.rows)
    assert (again.folder / "model.twin").read_bytes() == (done.folder / "model.twin").read_bytes()
    from_model = export(tiny_twin, tmp_path / "b", anchors=8, **SMALL)
    np.testing.assert_array_equal(from_model.rows, done.rows)
    assert from_model.evaluator.all_anchors_test is None


def test_a_model_that_held_nothing_out_has_a_training_error(curve, tmp_path):
    X, y = (part[:14] for part in curve)  # too few rows to hold any out
    tiny = {"activation": "relu", "learning_rate": 0.01, "weight_decay": 0.03, "steps": 100}
    model = TwinRegressor(hidden=8, random_state=0, **tiny).fit(X, y)
    done = export(model, tmp_path / "out", anchors=8, **SMALL)
    assert done.evaluator.name == "training"
    assert done.remarks == ("nothing was held out: errors are those of the training points",)
    record = done.record()
    assert record["float_rmse_train"] == pytest.approx(model.validation_rmse_, rel=1e-5)
    assert "rmse_val" not in json.dumps(record)
    for select in ("auto", "greedy"):  # both use the available points
        again = export(model, tmp_path / "out", anchors=4, **{**SMALL, "select": select})
        assert "validation" not in " ".join(again.remarks)


def test_the_page_and_the_settings_list_every_argument():
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    table = page.partition("| argument |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.M)
    arguments = inspect.signature(export).parameters
    assert listed == [name for name in arguments if name not in ("model", "folder")]
    defaults = {name: one.default for name, one in arguments.items() if name in listed}
    assert vars(ExportSettings()) == defaults


def test_the_page_lists_every_key_of_the_record(done):
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    table = page.partition("`done.record()` is")[2].partition("\n\n")[2].partition("\n\n")[0]
    listed = set(re.findall(r"`(\w+)`", table))
    record = done.record()
    assert {*record, *record["files"]["twin"]} <= listed


def test_rows_may_be_named(run, tmp_path):
    done = export(run, tmp_path / "out", anchors=[3, 1, 4, 15], **SMALL)
    assert done.rows.tolist() == [3, 1, 4, 15]
    listed = tmp_path / "rows.txt"
    listed.write_text("2\n7\n18 # and no more\n")
    done = export(run, tmp_path / "out", anchors=8, **{**SMALL, "select": str(listed)})
    assert done.rows.tolist() == [2, 7, 18]


def test_all_anchors_are_those_of_the_float_model(run, tmp_path):
    done = export(run, tmp_path / "out", anchors="all", **SMALL)
    assert len(done.rows) == len(run.model.anchor_y_)
    assert done.evaluator.exported_rmse == done.evaluator.all_anchors.rmse


def test_more_anchors_than_points_are_all_of_them(run, four_twins, tmp_path):
    done = export(run, tmp_path / "out", anchors=np.int64(200), **SMALL)
    assert sorted(done.rows) == list(range(80))
    record = json.loads((tmp_path / "out" / "export.json").read_text())
    assert (record["anchors"], record["anchors_asked"]) == (80, 200)
    assert "only 80 training points: all of them are used" in record["remarks"][0]
    # Of an odd number, four twins have equal shares.
    odd = copy(four_twins)
    odd.anchor_X_, odd.anchor_y_ = four_twins.anchor_X_[:9], four_twins.anchor_y_[:9]
    done = export(odd, tmp_path / "odd", anchors=32, **{**SMALL, "tolerance": 10.0})
    assert len(set(done.rows)) == 8
    pack = read_pack((tmp_path / "odd" / "model.twin").read_bytes())
    assert pack.counts.tolist() == [2, 2, 2, 2]
    np.testing.assert_array_equal(pack.ids, done.rows.reshape(2, 4).T.ravel())
    assert done.remarks[0].endswith(
        "9 training points: 8 are used, the same number for each of 4 twins"
    )


def test_the_fewest_anchors_within_a_percent(run, tmp_path):
    done = export(run, tmp_path / "out", anchors="fewest", **SMALL)
    assert done.requested == "fewest"
    assert not any("auto" in one for one in done.remarks)
    assert len(done.rows) < len(run.model.anchor_y_)
    fewer = export(run, tmp_path / "fewer", anchors=len(done.rows) // 2, **SMALL)
    assert done.evaluator.exported_rmse <= 1.01 * done.evaluator.all_anchors.rmse
    assert fewer.evaluator.exported_rmse > 1.01 * done.evaluator.all_anchors.rmse
    # The name of earlier versions, which means something else to an estimator.
    before = export(run, tmp_path / "before", anchors="auto", **SMALL)
    assert before.rows.tolist() == done.rows.tolist()
    assert before.requested == "fewest"
    assert before.remarks[-1] == "for the number of anchors, 'auto' is called 'fewest' now"


def test_an_export_beyond_the_tolerance_leaves_the_old_one_in_place(run, tmp_path, complaint):
    folder = tmp_path / "out"
    export(run, folder, anchors=8, **SMALL)
    before = files(folder)
    rows = [3, 1, 4, 15]
    # Targets that the float model hits exactly: any change by rounding is too much.
    X = run.validation[0]
    exact = replace(run, validation=(X, run.model.predict(X, anchors=rows)))
    settings = {**SMALL, "weights": "int8", "qat": False}
    message = complaint(export, exact, folder, anchors=rows, **settings)
    for word in ("model.twin", "tolerance=0.02", "weights='int16'"):
        assert word in message
    assert files(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"anchors": 0}, "positive"),
        ({"anchors": "few"}, "'few'"),
        ({"anchors": [1, 1]}, "more than once"),
        ({"anchors": [80]}, "row 80"),
        ({"select": "colour"}, "'colour'"),
        ({"formats": ["elf"]}, "'elf'"),
        ({"formats": "twin"}, "'twin'"),
        ({"tolerance": -1}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"weights": "int4"}, "int4"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_and_nothing_is_written(
    run, tmp_path, complaint, settings, word
):
    assert word in complaint(export, run, tmp_path / "out", **{**SMALL, **settings})
    assert not list(tmp_path.iterdir())


def test_what_is_no_model_is_refused(tmp_path, complaint):
    assert "not fitted" in complaint(export, TwinRegressor(), tmp_path / "out")
    assert "dict" in complaint(export, {}, tmp_path / "out")
    assert "does not exist" in complaint(export, tmp_path / "nowhere", tmp_path / "out")


def test_a_folder_of_other_things_is_left_alone(run, tmp_path, complaint):
    (tmp_path / "letter.txt").write_text("dear")
    assert "not an export" in complaint(export, run, tmp_path, **SMALL)


def test_a_model_trained_on_neighbors_predicts_with_neighbors(curve, tmp_path, complaint):
    X, y = curve
    model = TwinRegressor(
        hidden=(8,),
        activation="relu",
        learning_rate=0.01,
        weight_decay=0.003,
        pairs="neighbors",
        neighbors=6,
        steps=300,
        random_state=0,
    ).fit(X[:80], y[:80], validation=(X[80:], y[80:]))
    done = export(model, tmp_path / "out", anchors=40, **SMALL)
    pack = read_pack((done.folder / "model.twin").read_bytes())
    assert pack.neighbors == 6
    assert pack.trained_on_neighbors
    for settings in ({"anchors": 6}, {"anchors": 40, "neighbors": 0}):
        message = complaint(export, model, tmp_path / "out", **{**SMALL, **settings})
        assert "near pairs only" in message


@pytest.mark.parametrize("rows", [0, 5])
def test_without_enough_points_to_calibrate_on_there_are_no_intervals(done, run, tmp_path, rows):
    assert read_pack((done.folder / "model.twin").read_bytes()).intervals is not None
    X, y = run.validation
    few = replace(run, validation=(X[:rows], y[:rows]))
    done = export(few, tmp_path / "out", anchors=8, **{**SMALL, "tolerance": 1.0})
    assert any(one.startswith("no intervals: ") for one in done.remarks) == (rows > 0)
    assert read_pack((done.folder / "model.twin").read_bytes()).intervals is None


@pytest.mark.slow
def test_an_export_of_thousands_of_rows_does_a_bounded_number_of_multiply_adds(
    tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (7000, 8))
    y = X[:, 0] + X[:, 1] ** 2
    settings = {"activation": "relu", "learning_rate": 0.01, "weight_decay": 0.03}
    model = TwinRegressor(**settings, steps=20, random_state=0)
    model.fit(X[:5000], y[:5000], validation=(X[5000:6000], y[5000:6000]))
    run = Run(model, model.encoding_.inputs, "y", model.validation_, (X[6000:], y[6000:]))
    work, evaluated = [], pairs._Pairs._evaluate

    def counted(self, *halves):
        hidden = evaluated(self, *halves)
        work.append(hidden[..., 0].size * model.architecture_.size)
        return hidden

    monkeypatch.setattr(pairs._Pairs, "_evaluate", counted)
    done = export(run, tmp_path / "out", anchors=32, formats=("twin",))
    assert done.evaluator.all_anchors.sample < done.evaluator.all_anchors.anchors == 5000
    # With all anchors it would be 3e11 for the errors alone, a minute; the choice takes 3e10.
    assert 1e10 < sum(work) < 8e10
    exact = np.sqrt(np.mean((model.predict(X[5000:5200], anchors="all") - y[5000:5200]) ** 2))
    sample = done.evaluator.all_anchors.sample
    some = np.sqrt(np.mean((model.predict(X[5000:5200], anchors=sample) - y[5000:5200]) ** 2))
    assert some == pytest.approx(exact, rel=0.005)


def test_an_export_knows_itself_and_what_it_replaces(tiny_run, tmp_path):
    def exported(name, **more):
        done = export(tiny_run, tmp_path / name, anchors=4, formats=("twin",), **more)
        pack = read_pack((done.folder / "model.twin").read_bytes())
        return pack, *check_release(pack)

    pack, first, test = exported("first", counter=3)
    assert (first.parent, first.counter, len(test.queries)) == (UNKNOWN, 3, 4)
    assert UNKNOWN not in (first.schema, first.table)
    grown = len(write_pack(pack)) - len(write_pack(replace(pack, release=None)))
    assert 0 < grown < 256
    _, second, _ = exported("second", parent=tmp_path / "first", intervals=False)
    assert (second.parent, second.counter) == (first.id, 3)
    assert (second.schema, second.table) == (first.schema, first.table)
    with pytest.raises(InputError, match="cannot read"):
        exported("third", parent=tmp_path / "none.twin")
    with pytest.raises(InputError, match="not a number from 0"):
        exported("third", counter=-1)
    assert not (tmp_path / "third").exists()
