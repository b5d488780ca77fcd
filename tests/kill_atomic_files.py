"""Kills writers of a folder before each disk access, and checks what they leave behind.

    kill_atomic_files.py FOLDER exchange|renames first|clean|mixed

Prints one JSON object: how many were killed, and how often each result was found afterwards.
"""

import json
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

from twinedge import atomic_files

KIND = atomic_files.EXPORT
OLD = {"model.twin": "old pack", "model.onnx": "old graph", "c/main.c": "old main", "c/old.c": "."}
NEW = {"model.twin": "new pack", "c/main.c": "new main", "c/new.c": "."}
OTHERS = {"notes.txt": "mine", "c/build/main.o": "built", "c/new.c": "in the way"}
ON_DISK = ("open", "os.", "shutil.", "ctypes.dlsym", "fcntl.")


def writer(files):
    def write(folder):
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return {"files": list(files)}

    return write


def prepare(home, scene):
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    if scene == "first":
        return
    atomic_files.write_folder(home / "out", KIND, writer(OLD))
    if scene == "mixed":
        for path, text in {**OTHERS, "c/main.c": "changed"}.items():
            (home / "out" / path).parent.mkdir(parents=True, exist_ok=True)
            (home / "out" / path).write_text(text)


def killed_at(number, home, scene):
    """Let a child place the new folder, and kill it before its ``number``-th access."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        seen += event.startswith(ON_DISK)
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    atomic_files.write_folder(home / "out", KIND, writer(NEW), overwrite=scene == "mixed")
    os._exit(0)


def texts(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def names(folder):
    return {path.name for path in folder.iterdir()}


def found(folder, scene):
    """Tell which result is in a folder; it must be complete, with all foreign files."""
    if not folder.exists():
        return "nothing"
    there = texts(folder)
    record = json.loads(there.pop("export.json"))
    assert record["sha256"].keys() - {"export.json"} <= there.keys()
    if record["files"] == list(OLD):
        expected = OLD | (OTHERS | {"c/main.c": "changed"} if scene == "mixed" else {})
        assert there == expected, there
        return "old"
    assert record["files"] == list(NEW)
    stale = {} if scene == "first" else {"model.onnx": OLD["model.onnx"]}
    assert there == {**(OTHERS if scene == "mixed" else {}), **NEW, **stale}, there
    assert not atomic_files._compare(folder, KIND).changed
    return "new"


def main(home, way, scene):
    if way == "renames":
        atomic_files._exchange = lambda one, other: False
    at_once, repaired, number = Counter(), Counter(), 1
    prepare(home, scene)
    while killed_at(number, home, scene):
        at_once[found(home / "out", scene)] += 1
        # What the next command does first.
        atomic_files.check_folder(home / "out", KIND, overwrite=scene == "mixed")
        repaired[found(home / "out", scene)] += 1
        assert names(home) <= {"out"}, names(home)
        atomic_files.write_folder(home / "out", KIND, writer(NEW), overwrite=scene == "mixed")
        assert found(home / "out", scene) == "new"
        assert names(home) == {"out"}
        number += 1
        prepare(home, scene)
    print(json.dumps({"killed": number - 1, "at_once": at_once, "repaired": repaired}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
