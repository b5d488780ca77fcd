import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.atomic_files import digest
from twinedge.run_folder import load_run
from twinedge.run_record import FORMAT, VERSION

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

FILES = ("run.json", "twin.keras", "points.npz")


@pytest.fixture
def run(tiny_run, tmp_path):
    """A copy to damage."""
    return shutil.copytree(tiny_run, tmp_path / "run")


@pytest.fixture
def edit(run):
    """Change the record, with the checksums of the files as they are now."""

    def change(**entries):
        record = json.loads((run / "run.json").read_text())
        record["sha256"] = {name: digest(run / name) for name in FILES[1:]}
        record.update(entries)
        record = {key: value for key, value in record.items() if value is not ...}
        (run / "run.json").write_text(json.dumps(record))
        return run

    return change


def without_weights(run):
    """A run from before networks were stored as an array."""
    with np.load(run / "points.npz") as file:
        points = {name: file[name] for name in file.files if name != "weights"}
    np.savez(run / "points.npz", **points)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(complaint, run, name):
    (run / name).unlink()
    message = complaint(load_run, run)
    assert name in message
    assert str(run) in message


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_place_of_a_file_is_refused(complaint, run, name):
    (run / name).unlink()
    (run / name).mkdir()
    assert name in complaint(load_run, run)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:1],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-3],
        lambda whole: whole + b"{",
        lambda whole: whole[::-1],
        lambda whole: bytes(len(whole)),
    ],
    ids=["empty", "one byte", "half", "cut", "longer", "reversed", "zeros"],
)
def test_a_damaged_file_is_named(complaint, run, name, damage):
    path = run / name
    path.write_bytes(damage(path.read_bytes()))
    message = complaint(load_run, run)
    assert f"{path} is damaged" in message


@pytest.mark.parametrize("name", FILES[1:])
@settings(max_examples=40)
@given(data=st.data())
def test_any_flipped_bit_is_found(complaint, tiny_run, run, name, data):
    damaged = bytearray((tiny_run / name).read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    (run / name).write_bytes(damaged)
    assert f"{run / name} is damaged" in complaint(load_run, run)


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "{", '{"format": ', "\x00", "\ud800", "[" * 100_000],
    ids=["empty", "text", "open", "cut", "null byte", "no unicode", "deep"],
)
def test_a_record_that_is_not_json_is_refused(complaint, run, text):
    (run / "run.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert "run.json is damaged (not JSON)" in complaint(load_run, run)


@pytest.mark.parametrize("record", [[], None, 3, "run", {}, {"format": "another tool"}], ids=repr)
def test_a_record_of_something_else_is_refused(complaint, run, record):
    (run / "run.json").write_text(json.dumps(record))
    assert "not written by twinedge" in complaint(load_run, run)


@pytest.mark.parametrize("version", [VERSION + 1, 0, "1", None, ...])
def test_another_version_is_refused_with_both_numbers(complaint, edit, version):
    message = complaint(load_run, edit(version=version))
    assert f"has version {None if version is ... else version}, " in message
    assert message.endswith(f"reads {VERSION}")


@pytest.mark.parametrize(
    "key", ["sha256", "parameters", "chosen", "feature_names", "target_name", "source", "scores"]
)
def test_a_record_with_an_entry_missing_is_refused(complaint, edit, key):
    complaint(load_run, edit(**{key: ...}))


@pytest.mark.parametrize("key", ["sha256", "parameters", "chosen", "feature_names", "scores"])
@pytest.mark.parametrize("value", [None, 7])
def test_a_record_with_an_entry_of_another_kind_is_refused(complaint, edit, key, value):
    complaint(load_run, edit(**{key: value}))


@pytest.mark.parametrize("entries", [{"twins": 1, "colour": "red"}, {"hidden": [8], "": 0}])
def test_a_record_with_an_unknown_parameter_is_refused(complaint, edit, entries):
    assert "is not a run of twinedge" in complaint(load_run, edit(parameters=entries))


@pytest.mark.parametrize("name", FILES[1:])
def test_a_record_without_one_of_the_checksums_is_refused(complaint, edit, run, name):
    other = next(one for one in FILES[1:] if one != name)
    complaint(load_run, edit(sha256={other: digest(run / other)}))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"text"], ids=repr)
@pytest.mark.parametrize("name", FILES[1:])
def test_a_file_that_never_was_one_of_ours_is_refused_whatever_its_checksum(
    complaint, run, edit, name, content
):
    without_weights(run)  # otherwise the Keras file is not read
    (run / name).write_bytes(content)
    assert "is not a run of twinedge" in complaint(load_run, edit())


def test_points_without_an_entry_are_refused_whatever_their_checksum(complaint, run, edit):
    with np.load(run / "points.npz") as file:
        points = {name: file[name] for name in file.files if name != "x_scale"}
    np.savez(run / "points.npz", **points)
    assert "x_scale" in complaint(load_run, edit())


def test_weights_of_another_shape_are_refused_whatever_their_checksum(complaint, run, edit):
    with np.load(run / "points.npz") as file:
        points = {name: file[name] for name in file.files}
    np.savez(run / "points.npz", **{**points, "weights": points["weights"][:, 1:]})
    assert "weights of shape" in complaint(load_run, edit())


def test_a_run_without_weights_takes_them_from_keras(run, edit):
    before = load_run(run).model
    without_weights(run)
    after = load_run(edit()).model
    assert after.architecture_ == before.architecture_
    np.testing.assert_array_equal(after.weights_, before.weights_)


def test_a_keras_model_of_someone_else_is_refused_whatever_its_checksum(complaint, run, edit):
    from twinedge.training.network import tf

    without_weights(run)
    tf.keras.Sequential([tf.keras.layers.Input((6,)), tf.keras.layers.Dense(1)]).save(
        run / "twin.keras"
    )
    assert "no twins" in complaint(load_run, edit())


def test_a_foreign_folder_is_refused(complaint, tmp_path):
    (tmp_path / "holiday.jpg").write_bytes(b"")
    assert "no run.json" in complaint(load_run, tmp_path)


def test_a_file_instead_of_a_folder_is_refused(complaint, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    assert str(path) in complaint(load_run, path)


def test_a_folder_that_is_not_there_is_refused_with_a_way_out(complaint, tmp_path):
    assert "twinedge train" in complaint(load_run, tmp_path / "none")


def test_the_format_is_what_the_record_says(tiny_run):
    record = json.loads((tiny_run / "run.json").read_text())
    assert (record["format"], record["version"]) == (FORMAT, VERSION) == ("twinedge run", 1)
