import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.training.trainer import Checkpoint, discard

OWNER = {"data": "abc", "seed": 3, "steps": "100"}
STAGE = "final round"


def state(value):
    """Arrays of two stacks, as a training keeps them."""
    return [
        {"weights": np.full((c, 5), value, np.float32), "best": np.full(c, value), "step": value}
        for c in (1, 2)
    ]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])


@pytest.fixture
def folder(tmp_path):
    """A checkpoint with one saved round."""
    path = tmp_path / "model.checkpoint"
    Checkpoint(path, OWNER).save(STAGE, state(7))
    return path


def test_what_is_saved_is_loaded_by_one_who_resumes(folder):
    assert_same(Checkpoint(folder, OWNER, resume=True).load(STAGE, state(0)), state(7))


def test_one_who_does_not_resume_starts_afresh(folder):
    assert_same(Checkpoint(folder, OWNER).load(STAGE, state(0)), state(0))


def test_a_save_that_fails_midway_leaves_the_last_whole_state(folder, monkeypatch):
    def full_disk(number):
        raise OSError(28, "No space left on device")

    before = sorted(folder.iterdir())
    mine = Checkpoint(folder, OWNER, resume=True)
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match=r"model\.checkpoint/.*: No space"):
        mine.save(STAGE, state(8))
    assert sorted(folder.iterdir()) == before
    assert_same(Checkpoint(folder, OWNER, resume=True).load(STAGE, state(0)), state(7))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({**OWNER, "data": "xyz"}, "with other data:"),
        ({**OWNER, "steps": "5", "seed": 4}, "with other values of seed, steps:"),
        ({"data": "abc", "seed": 3}, "another value of steps:"),
        ({**OWNER, "twins": "2"}, "another value of twins:"),
        ({**OWNER, "data": "xyz", "seed": 4}, "with other data and another value of seed:"),
    ],
)
def test_a_checkpoint_of_other_data_or_settings_is_refused_by_name(complaint, folder, other, named):
    assert named in complaint(Checkpoint, folder, other, resume=True)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "\x00"], ids=repr)
def test_a_damaged_owner_is_refused(complaint, folder, text):
    (folder / "owner.json").write_text(text)
    assert "no training to resume" in complaint(Checkpoint, folder, OWNER, resume=True)


def test_resuming_what_was_never_begun_is_refused(complaint, tmp_path):
    assert "no training" in complaint(Checkpoint, tmp_path / "none", OWNER, resume=True)


def test_a_folder_with_something_else_in_it_is_left_alone(complaint, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "not a checkpoint" in complaint(Checkpoint, tmp_path, OWNER)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_files_of_others_in_a_checkpoint_stay(folder):
    (folder / "notes.txt").write_text("slower with 8 threads")
    Checkpoint(folder, OWNER)
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "owner.json"]
    discard(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_file_in_place_of_the_folder_is_refused(complaint, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    assert "cannot write" in complaint(Checkpoint, path, OWNER)
    assert "cannot write" in complaint(Checkpoint, path / "below", OWNER)


def test_stacks_of_other_shapes_are_refused(complaint, folder):
    mine = Checkpoint(folder, OWNER, resume=True)
    assert "cores" in complaint(mine.load, STAGE, state(0)[:1] + state(0)[:1])
    assert "cores" in complaint(mine.load, STAGE, [*state(0), *state(0)])


@settings(max_examples=20)
@given(data=st.data())
def test_a_truncated_file_is_refused(folder, tmp_path, data):
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    path = copy / f"{STAGE}.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(InputError, match=r"damaged.*without resume=True$"):
        Checkpoint(copy, OWNER, resume=True).load(STAGE, state(0))


@settings(max_examples=50)
@given(data=st.data())
def test_a_flipped_bit_is_refused_or_does_no_harm(folder, tmp_path, data):
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    path = copy / f"{STAGE}.npz"
    damaged = bytearray(path.read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    try:
        found = Checkpoint(copy, OWNER, resume=True).load(STAGE, state(0))
    except InputError:
        return
    assert_same(found, state(7))
