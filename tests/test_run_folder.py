"""A run folder holds a whole model, survives what happens to files, and is refused if damaged."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from twinedge import TwinRegressor, atomic_files
from twinedge.atomic_files import digest
from twinedge.errors import InputError
from twinedge.run_folder import Run, check_writable, load_run
from twinedge.run_record import FORMAT, VERSION

FILES = ("run.json", "points.npz")


@pytest.fixture(scope="module")
def another(curve):
    """A run of another model, trained on other rows, without test points."""
    X, y = curve
    model = TwinRegressor(
        hidden=(8,),
        activation="silu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=50,
        twins=2,
        anchors=np.array([4, 2]),
        pairs=np.int64(7),
    )
    model.fit(X[20:60], y[20:60], validation=(X[:20], y[:20]))
    model.fill_values_ = np.arange(3.0)
    return Run(model, ("a", "b", "c"), "y", (X[:20], y[:20]), (X[:0], y[:0]))


def test_a_loaded_model_predicts_the_same_bits(tiny_twin, tiny_run, curve):
    X, _ = curve
    model = load_run(tiny_run).model
    assert model.weights_.tobytes() == tiny_twin.weights_.tobytes()
    for found, expected in zip(
        model.predict(X, return_std=True), tiny_twin.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.loop_violation(X), tiny_twin.loop_violation(X))


def test_everything_about_a_run_comes_back(tiny_run, tiny_twin, curve):
    X, y = curve
    run = load_run(tiny_run)
    assert run.feature_names == ("angle", "offset", "idle")
    assert run.target_name == "level"
    assert run.source == {"dataset": "curve", "split": 0, "rows": 120}
    assert run.scores == {"rmse_val": tiny_twin.validation_rmse_}
    assert run.fill_values is None
    stored = X[80:100], y[80:100], X[100:], y[100:]
    for found, expected in zip((*run.validation, *run.test), stored, strict=True):
        np.testing.assert_array_equal(found, expected)
    model = run.model
    np.testing.assert_array_equal(model.anchor_X_, tiny_twin.anchor_X_)
    np.testing.assert_array_equal(model.anchor_y_, tiny_twin.anchor_y_)
    assert model.architecture_ == tiny_twin.architecture_
    assert model.get_params() == {**tiny_twin.get_params(), "twins": 1}
    for name in ("activation_", "learning_rate_", "weight_decay_", "steps_", "trials_"):
        assert getattr(model, name) == getattr(tiny_twin, name)
    assert (model.interrupted_, model.n_features_in_) == (False, 3)
    assert model.validation_rmse_ == tiny_twin.validation_rmse_


def test_a_loaded_model_can_be_trained_again(tiny_run, curve):
    model = load_run(tiny_run).model.set_params(steps=20)
    assert np.isfinite(model.fit(*curve).predict(curve[0])).all()


def test_saving_again_replaces_the_whole_run(another, tiny_run, tmp_path, curve):
    folder = tmp_path / "runs" / "latest"
    load_run(tiny_run).save(folder)
    another.save(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["points.npz", "run.json"]
    assert [path.name for path in folder.parent.iterdir()] == ["latest"]
    run = load_run(folder)
    np.testing.assert_array_equal(run.model.predict(curve[0]), another.model.predict(curve[0]))
    assert run.model.estimates(curve[0]).shape == (120, 2)
    np.testing.assert_array_equal(run.fill_values, [0, 1, 2])
    assert len(run.test[1]) == 0


def test_a_link_keeps_pointing_to_the_run_saved_through_it(another, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "latest").symlink_to("real")
    another.save(tmp_path / "latest")
    another.save(tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert load_run(tmp_path / "real").target_name == "y"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "real"]


def test_a_generator_and_numbers_of_numpy_are_stored_as_plain_ones(tiny_run, tmp_path):
    run = load_run(tiny_run)
    run.model.set_params(random_state=np.random.RandomState(0))
    odd = replace(run, scores={"rmse_val": np.float32(0.5)}, source={"rows": np.array([1, 2])})
    odd.save(tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["scores"] == {"rmse_val": 0.5}
    assert record["source"] == {"rows": [1, 2]}
    assert load_run(tmp_path / "run").model.random_state is None


@pytest.fixture(scope="module")
def bowed(curve, tiny_twin, tmp_path_factory):
    """A run of a model that learnt a curve, and the model."""
    X, y = curve
    model = clone(tiny_twin).set_params(target_curve="log").fit(X[:100], np.exp(y[:100] / 10))
    folder = tmp_path_factory.mktemp("bowed") / "run"
    Run(model, ("a", "b", "c"), "y", model.validation_, (X[100:], np.exp(y[100:] / 10))).save(
        folder
    )
    return folder, model


def test_a_target_curve_is_kept(bowed, curve):
    folder, model = bowed
    loaded = load_run(folder).model
    assert loaded.scaling_.curve == model.scaling_.curve
    assert loaded.target_curve_ == "log"
    assert loaded.resolved().target_curve == "log"
    assert loaded.curve_choice_ is None
    np.testing.assert_array_equal(loaded.predict(curve[0]), model.predict(curve[0]))
    np.testing.assert_array_equal(
        loaded.predict_interval(curve[0]), model.predict_interval(curve[0])
    )


def test_runs_from_before_curves_load_as_they_were(tiny_run, tiny_twin, curve, tmp_path):
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    for part, name in (("parameters", "target_curve"), ("chosen", "target_curve")):
        del record[part][name]
    del record["curve_choice"]
    (folder / "run.json").write_text(json.dumps(record))
    model = load_run(folder).model
    assert model.scaling_.curve is None
    np.testing.assert_array_equal(model.predict(curve[0]), tiny_twin.predict(curve[0]))


@pytest.mark.parametrize("kind", ["cube", "auto", None, 3, ["log"]])
def test_a_curve_that_does_not_exist_is_refused(bowed, complaint, tmp_path, kind):
    folder = shutil.copytree(bowed[0], tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    record["chosen"]["target_curve"] = kind
    (folder / "run.json").write_text(json.dumps(record))
    assert "is not a run of twinedge" in complaint(load_run, folder)


# Damage.


@pytest.fixture
def run(tiny_run, tmp_path):
    """A copy to damage."""
    return shutil.copytree(tiny_run, tmp_path / "run")


@pytest.fixture
def edit(run):
    """Change the record, with the checksum of the points as they are now."""

    def change(**entries):
        record = json.loads((run / "run.json").read_text())
        record["sha256"] = {"points.npz": digest(run / "points.npz")}
        record.update(entries)
        record = {key: value for key, value in record.items() if value is not ...}
        (run / "run.json").write_text(json.dumps(record))
        return run

    return change


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_or_a_folder_in_its_place_is_named(complaint, run, name):
    (run / name).unlink()
    message = complaint(load_run, run)
    assert name in message
    assert str(run) in message
    (run / name).mkdir()
    assert name in complaint(load_run, run)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole + b"{",
        lambda whole: bytes(len(whole)),
    ],
    ids=["empty", "half", "longer", "zeros"],
)
def test_a_damaged_file_is_named(complaint, run, name, damage):
    path = run / name
    path.write_bytes(damage(path.read_bytes()))
    assert f"{path} is damaged" in complaint(load_run, run)


@settings(max_examples=20)
@given(data=st.data())
def test_any_flipped_bit_is_found(complaint, tiny_run, run, data):
    damaged = bytearray((tiny_run / "points.npz").read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    (run / "points.npz").write_bytes(damaged)
    assert f"{run / 'points.npz'} is damaged" in complaint(load_run, run)


@pytest.mark.parametrize(
    "text", ["no JSON", '{"format": ', "\x00", "\ud800", "[" * 100_000], ids=lambda one: one[:5]
)
def test_a_record_that_is_not_json_is_refused(complaint, run, text):
    (run / "run.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert "run.json is damaged (not JSON)" in complaint(load_run, run)


@pytest.mark.parametrize("record", [[], None, {}, {"format": "another tool"}], ids=repr)
def test_a_record_of_something_else_is_refused(complaint, run, record):
    (run / "run.json").write_text(json.dumps(record))
    assert "not written by twinedge" in complaint(load_run, run)


@pytest.mark.parametrize("version", [VERSION + 1, "1", ...])
def test_another_version_is_refused_with_both_numbers(complaint, edit, version):
    message = complaint(load_run, edit(version=version))
    assert f"has version {None if version is ... else version}, " in message
    assert message.endswith(f"reads {VERSION}")


@pytest.mark.parametrize(
    "key", ["sha256", "parameters", "chosen", "feature_names", "target_name", "source", "scores"]
)
def test_a_record_with_an_entry_missing_or_of_another_kind_is_refused(complaint, edit, key):
    complaint(load_run, edit(**{key: ...}))
    if key not in ("target_name", "source"):
        complaint(load_run, edit(**{key: 7}))


def test_a_record_with_an_unknown_parameter_is_refused(complaint, edit):
    entries = {"hidden": [8], "twins": 1, "colour": "red"}
    assert "is not a run of twinedge" in complaint(load_run, edit(parameters=entries))


def test_points_of_another_kind_are_refused_whatever_their_checksum(complaint, run, edit):
    with np.load(run / "points.npz") as file:
        points = {name: file[name] for name in file.files}
    np.savez(run / "points.npz", **{**points, "weights": points["weights"][:, 1:]})
    assert "weights of shape" in complaint(load_run, edit())
    np.savez(run / "points.npz", **{name: points[name] for name in points if name != "x_scale"})
    assert "x_scale" in complaint(load_run, edit())
    for content in (b"", b"PK\x03\x04", b"\x93NUMPY"):
        (run / "points.npz").write_bytes(content)
        assert "is not a run of twinedge" in complaint(load_run, edit())


def test_what_is_no_run_is_refused_with_a_way_out(complaint, tmp_path):
    (tmp_path / "holiday.jpg").write_bytes(b"")
    assert "no run.json" in complaint(load_run, tmp_path)
    assert "holiday.jpg" in complaint(load_run, tmp_path / "holiday.jpg")
    assert "twinedge train" in complaint(load_run, tmp_path / "none")


def test_the_format_is_what_the_record_names(tiny_run):
    record = json.loads((tiny_run / "run.json").read_text())
    assert (record["format"], record["version"]) == (FORMAT, VERSION) == ("twinedge run", 1)


# Saving.


@pytest.fixture
def old(tiny_run, tmp_path):
    """A run in its own folder."""
    return shutil.copytree(tiny_run, tmp_path / "runs" / "latest")


@pytest.fixture
def new(old):
    """Another run, to be saved in its place."""
    return replace(load_run(old), target_name="another")


def assert_only_the_old_run(old, tiny_twin, curve):
    assert [path.name for path in old.parent.iterdir()] == ["latest"]
    run = load_run(old)
    assert run.target_name == "level"
    np.testing.assert_array_equal(run.model.predict(curve[0]), tiny_twin.predict(curve[0]))


def no_space(*args, **kwargs):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("name", ["run_folder.np.savez_compressed", "atomic_files._carry"])
def test_a_save_that_fails_midway_leaves_the_old_run_and_nothing_else(
    old, new, tiny_twin, curve, monkeypatch, name
):
    with monkeypatch.context() as patch:
        patch.setattr(f"twinedge.{name}", no_space)
        with pytest.raises(InputError, match=f"^cannot write {old}: No space left on device$"):
            new.save(old)
    assert_only_the_old_run(old, tiny_twin, curve)


@pytest.mark.parametrize(
    ("error", "seen"),
    [(OSError(5, "Input/output error"), InputError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_a_save_that_fails_in_its_last_move_leaves_the_old_run_and_nothing_else(
    old, new, tiny_twin, curve, monkeypatch, error, seen
):
    rename = Path.rename

    def failing(self, target):
        if self.name.endswith(".partial"):
            raise error
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "_exchange", lambda one, other: False)
        patch.setattr(Path, "rename", failing)
        with pytest.raises(seen):
            new.save(old)
    assert_only_the_old_run(old, tiny_twin, curve)


def test_scores_that_cannot_be_stored_leave_the_old_run_and_nothing_else(
    old, new, tiny_twin, curve
):
    with pytest.raises(TypeError, match="cannot be stored"):
        replace(new, scores={"rmse_val": object()}).save(old)
    assert_only_the_old_run(old, tiny_twin, curve)


def test_a_first_save_that_fails_leaves_nothing(new, tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "_swap", no_space)
    with pytest.raises(InputError, match="fresh/run: No space"):
        new.save(tmp_path / "fresh" / "run")
    assert not list((tmp_path / "fresh").iterdir())


def test_what_a_killed_process_of_the_same_number_left_is_cleared_away(old, new):
    folder = old.with_name(f".latest.{os.getpid()}.partial")
    folder.mkdir()
    (folder / "points.npz").write_bytes(b"half")
    shutil.copytree(old, old.with_name(f".latest.{os.getpid()}.old"))
    new.save(old)
    assert [path.name for path in old.parent.iterdir()] == ["latest"]
    assert load_run(old).target_name == "another"


def test_a_place_that_will_do_is_left_as_it_is(old, tmp_path):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in old.iterdir())
    check_writable(old)
    check_writable(tmp_path / "new" / "run")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in old.iterdir()) == before
    assert not list((tmp_path / "new").iterdir())


def test_a_place_that_will_not_do_is_refused_and_left_alone(complaint, new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("years of work")
    assert "is a file" in complaint(check_writable, tmp_path / "file")
    assert "cannot write to" in complaint(check_writable, tmp_path / "file" / "deeper" / "run")
    assert "not a run" in complaint(check_writable, tmp_path)
    assert "not a run" in complaint(new.save, tmp_path)
    assert "cannot write to" in complaint(check_writable, tmp_path / ("x" * 250))
    for place in (".", "..", "/", "a/.."):
        assert "name a folder" in complaint(check_writable, Path(place))
    assert (tmp_path / "file").read_text() == "years of work"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_place_where_nothing_can_be_created_is_refused_even_for_root(complaint):
    assert "cannot write to /proc" in complaint(check_writable, Path("/proc/run"))


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write")
def test_a_folder_without_permission_is_refused(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    script = (
        "import sys; from pathlib import Path; from twinedge.errors import InputError\n"
        "from twinedge.run_folder import check_writable\n"
        "try: check_writable(Path(sys.argv[1]))\n"
        "except InputError as error: print(error)"
    )
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    command = [*drop, sys.executable, "-c", script, locked / "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write to {locked}: Permission denied\n"
