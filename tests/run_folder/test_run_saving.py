import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge import atomic_files
from twinedge.errors import InputError
from twinedge.run_folder import check_writable, load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


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


@pytest.mark.parametrize(
    "name", ["learn.run.to_keras", "learn.run.np.savez_compressed", "placing._carry"]
)
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
    (folder / "twin.keras").write_bytes(b"half")
    shutil.copytree(old, old.with_name(f".latest.{os.getpid()}.old"))
    new.save(old)
    assert [path.name for path in old.parent.iterdir()] == ["latest"]
    assert load_run(old).target_name == "another"


def test_a_place_that_will_do_is_left_as_it_is(old, tmp_path):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in old.iterdir())
    check_writable(old)
    check_writable(tmp_path / "new" / "run")
    (tmp_path / "empty").mkdir()
    check_writable(tmp_path / "empty")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in old.iterdir()) == before
    assert not list((tmp_path / "new").iterdir())


def test_a_file_in_place_of_the_folder_is_refused(complaint, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in complaint(check_writable, tmp_path / "file")


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(complaint, new, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "not a run" in complaint(check_writable, tmp_path)
    assert "not a run" in complaint(new.save, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_place_below_a_file_is_refused(complaint, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("file/run", "file/deeper/run"):
        assert "cannot write to" in complaint(check_writable, tmp_path / place)


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


@pytest.mark.parametrize("place", [".", "..", "/", "a/.."])
def test_a_place_without_a_name_is_refused(complaint, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    assert "name a folder" in complaint(check_writable, Path(place))


def test_a_name_too_long_for_the_file_system_is_refused(complaint, tmp_path):
    assert "cannot write to" in complaint(check_writable, tmp_path / ("x" * 250))
