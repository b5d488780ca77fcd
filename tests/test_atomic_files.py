"""Folders of results: what is replaced, what is refused, what stays, and what a kill leaves."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from twinedge import atomic_files
from twinedge.atomic_files import (
    EXPORT,
    EarlierFiles,
    check_file,
    check_folder,
    write_file,
    write_folder,
)
from twinedge.errors import InputError

PACK_AND_C = {"model.twin": "pack", "c/main.c": "main", "c/src/a.c": "a", "c/src/b.c": "b"}


def writer(files):
    def write(folder):
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return {"about": "a test"}

    return write


def texts(folder):
    found = {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
    del found["export.json"]
    return found


@pytest.fixture
def out(tmp_path):
    """A folder that was written once, alone in its parent."""
    write_folder(tmp_path / "out", EXPORT, writer(PACK_AND_C))
    return tmp_path / "out"


def write(out, files, **options):
    """Place once more; in any case nothing is left next to the folder."""
    try:
        return write_folder(out, EXPORT, writer(files), **options)
    finally:
        assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_the_record_has_a_checksum_of_every_file_and_of_itself(out):
    record = json.loads((out / "export.json").read_text())
    assert record["about"] == "a test"
    assert record["sha256"].keys() == {*PACK_AND_C, "export.json"}
    assert record["sha256"]["c/main.c"] == atomic_files.digest(out / "c/main.c")


def test_what_nobody_changed_is_replaced(out):
    check_folder(out, EXPORT)
    assert write(out, {**PACK_AND_C, "c/main.c": "new"}) == EarlierFiles()
    assert texts(out) == {**PACK_AND_C, "c/main.c": "new"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"c/main.c": "mine"}, "out: c/main.c was changed since it was written;"),
        (
            {"c/main.c": "mine", "model.twin": "mine"},
            "out: c/main.c and model.twin were changed since they were written;",
        ),
        ({"c/mycode.c": ""}, "out: c/mycode.c is not part of the export;"),
        (
            {"c/build/a.o": "", "c/build/deep/b.o": "", "notes.txt": ""},
            "out: c/build/ and notes.txt are not part of the export;",
        ),
        (
            {"c/main.c": "mine", "notes.txt": ""},
            "c/main.c was changed since it was written, and notes.txt is not part of the export;",
        ),
        (dict.fromkeys("uvwxyz", ""), "out: u, v, w, x and 2 more are not part of the export;"),
    ],
    ids=str,
)
def test_what_was_changed_or_is_of_others_is_refused_by_name(out, complaint, changes, says):
    writer(changes)(out)
    for refused in (check_folder, write_folder):
        arguments = [] if refused is check_folder else [writer(PACK_AND_C)]
        message = complaint(refused, out, EXPORT, *arguments)
        assert says in message
        assert "overwrite=True" in message
    assert texts(out) == {**PACK_AND_C, **changes}
    check_folder(out, EXPORT, overwrite=True)


def test_a_record_that_was_changed_is_refused(out, complaint):
    record = json.loads((out / "export.json").read_text())
    (out / "export.json").write_text(json.dumps({**record, "about": "a sensor"}))
    assert "export.json was changed since" in complaint(check_folder, out, EXPORT)


def test_a_record_that_was_only_laid_out_anew_is_as_it_was(out):
    record = json.loads((out / "export.json").read_text())
    (out / "export.json").write_text(json.dumps(record, indent=4))
    check_folder(out, EXPORT)


def test_a_folder_without_checksums_holds_nothing_that_may_be_replaced(out, complaint):
    (out / "export.json").write_text('{"anchors": 8}')
    message = complaint(check_folder, out, EXPORT)
    assert "export.json was changed since it was written, and c/ and model.twin are not" in message
    done = write(out, {"model.twin": "new"}, overwrite=True)
    assert done.replaced == ("export.json", "model.twin")
    assert texts(out) == {**PACK_AND_C, "model.twin": "new"}


def test_overwriting_replaces_what_was_changed_and_keeps_what_is_of_others(out):
    others = {"c/build/a.o": "built", "notes.txt": "mine", "c/src/c.c": "in the way"}
    writer({"c/main.c": "mine", "c/src/a.c": "mine, too", **others})(out)
    (out / "c" / "empty").mkdir(mode=0o700)
    (out / "latest").symlink_to("notes.txt")
    (out / "notes.txt").chmod(0o600)
    done = write(out, {"c/main.c": "new", "c/src/c.c": "new"}, overwrite=True)
    assert done == EarlierFiles(
        stale=("model.twin",), removed=("c/src/b.c",), replaced=("c/main.c", "c/src/c.c")
    )
    expected = {"model.twin": "pack", **others, "c/main.c": "new", "c/src/c.c": "new"}
    assert texts(out) == {**expected, "c/src/a.c": "mine, too", "latest": "mine"}
    assert (out / "latest").readlink() == Path("notes.txt")
    assert (out / "notes.txt").stat().st_mode & 0o777 == 0o600
    assert (out / "c" / "empty").stat().st_mode & 0o777 == 0o700


def test_files_of_an_earlier_time_are_stale_and_still_known_later(out, complaint):
    write(out, {"model.onnx": "graph", "model.twin": "pack"})
    assert texts(out) == {**PACK_AND_C, "model.onnx": "graph"}
    done = write(out, {"model.twin": "new"})
    assert done == EarlierFiles(stale=("c/", "model.onnx"))
    assert json.loads((out / "export.json").read_text())["stale"] == ["c/", "model.onnx"]
    assert write(out, {**PACK_AND_C, "model.onnx": "graph"}) == EarlierFiles()
    write(out, {"model.twin": "new"})
    (out / "model.onnx").write_text("mine")
    assert "model.onnx was changed" in complaint(check_folder, out, EXPORT)


def test_a_project_that_is_written_anew_has_no_sources_of_before(out):
    done = write(out, {"model.twin": "pack", "c/main.c": "main", "c/twin.c": "one file"})
    assert done == EarlierFiles(removed=("c/src/",))
    assert texts(out).keys() == {"model.twin", "c/main.c", "c/twin.c"}


def test_a_folder_of_others_where_a_file_goes_is_left_alone(out, complaint):
    writer({"model.onnx/mine.txt": "mine"})(out)
    files = {**PACK_AND_C, "model.onnx": "graph"}
    message = complaint(write_folder, out, EXPORT, writer(files), overwrite=True)
    assert "model.onnx is a folder" in message
    assert texts(out) == {**PACK_AND_C, "model.onnx/mine.txt": "mine"}


def test_a_file_of_others_where_a_folder_goes_is_replaced(tmp_path):
    write_folder(tmp_path / "out", EXPORT, writer({"model.twin": "pack"}))
    (tmp_path / "out" / "c").write_text("mine")
    assert write(tmp_path / "out", PACK_AND_C, overwrite=True).replaced == ("c",)
    assert texts(tmp_path / "out") == PACK_AND_C


def test_where_there_are_no_links_files_of_others_are_copied(out, monkeypatch):
    def none(*arguments, **options):
        raise PermissionError(1, "Operation not permitted")

    writer({"notes.txt": "mine"})(out)
    (out / "latest").symlink_to("notes.txt")
    monkeypatch.setattr(os, "link", none)
    write(out, PACK_AND_C, overwrite=True)
    assert texts(out) == {**PACK_AND_C, "notes.txt": "mine", "latest": "mine"}
    assert (out / "latest").readlink() == Path("notes.txt")


def test_what_others_put_there_meanwhile_is_kept(out, monkeypatch):
    swap = atomic_files._swap

    def late(new, target, old):
        (target / "notes.txt").write_text("mine")
        (target / "logs").mkdir()
        (target / "logs" / "today.txt").write_text("mine, too")
        swap(new, target, old)

    monkeypatch.setattr(atomic_files, "_swap", late)
    write(out, PACK_AND_C)
    assert texts(out) == {**PACK_AND_C, "notes.txt": "mine", "logs/today.txt": "mine, too"}


def test_what_a_living_process_is_writing_is_left_alone(out):
    seen = []

    def write(folder):
        code = "import sys; from twinedge.atomic_files import *; from pathlib import Path\n"
        code += "check_folder(Path(sys.argv[1]), EXPORT)"
        subprocess.run([sys.executable, "-c", code, out], check=True)
        seen.append(folder.exists())
        return writer({"model.twin": "new"})(folder)

    write_folder(out, EXPORT, write)
    assert seen == [True]
    assert texts(out)["model.twin"] == "new"


def test_a_folder_that_was_left_aside_is_brought_back(out):
    out.rename(out.with_name(".out.123.old"))
    check_folder(out, EXPORT)
    assert texts(out) == PACK_AND_C
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_what_is_nowhere_else_stays_in_a_folder_that_was_left_aside(out):
    """The folder was recreated before anyone looked for the old one."""
    aside = shutil.copytree(out, out.with_name(".out.123.old"))
    (aside / "notes.txt").write_text("mine")
    check_folder(out, EXPORT)
    assert (aside / "notes.txt").read_text() == "mine"
    assert not (aside / "model.twin").exists()


@pytest.mark.parametrize(
    ("way", "scene"),
    [
        pytest.param(way, scene, marks=[pytest.mark.slow] * ((way, scene) != ("exchange", "mixed")))
        for way in ("exchange", "renames")
        for scene in ("first", "clean", "mixed")
    ],
)
def test_a_kill_at_any_moment_leaves_one_whole_result_and_every_file_of_others(
    tmp_path, way, scene
):
    script = Path(__file__).with_name("kill_atomic_files.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path / "home", way, scene], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert found["killed"] > 15
    if scene == "first":
        assert found["at_once"].keys() == {"nothing"}
    else:
        assert found["repaired"].keys() == {"old", "new"}
        missing = {"nothing"} if way == "renames" else set()
        assert found["at_once"].keys() == {"old", "new"} | missing


@pytest.fixture
def small_files():
    """Let no file grow beyond a few bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_reported_with_the_path(out, small_files, complaint):
    before = texts(out)
    message = complaint(write_folder, out, EXPORT, writer({"model.twin": 100 * "x"}))
    assert message == f"cannot write {out}: File too large"
    message = complaint(write_file, out / "model.onnx", b"x" * 100)
    assert message == f"cannot write {out / 'model.onnx'}: File too large"
    assert texts(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_file_that_cannot_be_opened_is_named_where_it_was_to_be(out, complaint):
    def write(folder):
        (folder / "model.twin").mkdir()
        (folder / "model.twin").write_text("")

    message = complaint(write_folder, out, EXPORT, write)
    assert message == f"cannot write {out / 'model.twin'}: Is a directory"


def test_the_path_of_a_file_is_checked_beforehand(tmp_path):
    check_file(tmp_path / "new.svg")
    with pytest.raises(InputError, match="is a folder: name a file"):
        check_file(tmp_path)
    with pytest.raises(InputError, match=r"there is no folder .*none"):
        check_file(tmp_path / "none" / "new.svg")


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch, complaint):
    path = tmp_path / "table.json"
    write_file(path, "before")

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in complaint(write_file, path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, done = tmp_path / "table.txt", []
    path.write_text("before")
    sync = os.fsync

    def noted(number):
        done.append((Path(f"/proc/self/fd/{number}").readlink(), path.read_text()))
        sync(number)

    monkeypatch.setattr(os, "fsync", noted)
    write_file(path, "größer\n")
    (file, first), (folder, second) = done
    assert (file.parent, first) == (tmp_path, "before")
    assert (folder, second) == (tmp_path, "größer\n")
    assert path.read_bytes() == "größer\n".encode()
