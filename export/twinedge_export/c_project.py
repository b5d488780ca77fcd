"""The C project of an export: the pack as an array, the runtime, and an example to build."""

import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from twinedge.errors import InputError
from twinedge.pack import Pack, read_pack, write_pack
from twinedge.runtime.reference import evaluate
from twinedge_export.boards.build import left_out
from twinedge_export.firmware import firmware_folder
from twinedge_export.job import File, Job
from twinedge_export.scratch import scratch_expression

FOLDER = "c"
_SKETCH = "model"  # Arduino wants a folder of the sketch's name, with all code below its src/
_PAGES = ("README.md", "CMakeLists.txt", "platformio.ini", "main.c")
_SKETCH_PAGES = ("model.ino", "model.h", "model.c")
_RUNTIME = Path("src", "twinedge")
_NOT_RUNTIME = ("Makefile", "*.md", ".*", "build", "example", "examples", "ports", "test")
_SETTINGS = Path("include", "twin_config.h")


class _Page(Template):
    delimiter = "@"  # CMake and make use the dollar


def c_project(job: Job, pack_file: File) -> File:
    """Write the folder: a CMake project, an Arduino sketch and a PlatformIO project as it is."""
    folder = job.folder / FOLDER
    sketch = folder / _SKETCH
    sketch.mkdir(parents=True)
    pack = read_pack(pack_file.path.read_bytes())
    words = _words(job, pack_file, pack)
    for home, pages in ((folder, _PAGES), (sketch, _SKETCH_PAGES)):
        for name in pages:
            (home / name).write_text(_page(name, words), "utf-8")
    _copy_runtime(sketch / _RUNTIME, pack)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return File("c", folder, size, pack_file.made, pack_file.score)


def _page(name: str, words: dict[str, str]) -> str:
    text = (files("twinedge_export") / "c_template" / f"{name}.in").read_text("utf-8")
    return _Page(text).substitute(words)


def _copy_runtime(to: Path, pack: Pack) -> None:
    """Copy the runtime with its manifests, and leave out what the pack does not need."""
    shutil.copytree(firmware_folder(), to, ignore=shutil.ignore_patterns(*_NOT_RUNTIME))
    settings = (to / _SETTINGS).read_text("utf-8")
    for name, value in _settings(pack).items():
        settings, count = re.subn(rf"(?m)^(#define {name}) 1$", rf"\1 {value}", settings)
        if count != 1:
            raise InputError(f"{_SETTINGS.name} has no {name}: install twinedge anew")
    (to / _SETTINGS).write_text(settings, "utf-8")


def _settings(pack: Pack) -> dict[str, str]:
    """Return settings of twin_config.h that fit the pack, where they are not the defaults."""
    return dict(flag.removeprefix("-D").split("=", 1) for flag in left_out(pack))


def _words(job: Job, pack_file: File, pack: Pack) -> dict[str, str]:
    content = write_pack(pack, metadata=False)
    features, judge = job.metadata["features"], job.judge
    x = judge.validation[0][:1].astype(np.float32)
    answer = evaluate(pack, x)
    twins, hidden = len(pack.twins), "-".join(map(str, pack.hidden))
    networks = "One twin" if twins == 1 else f"{twins} twins"
    return {
        "target": _plain(job.metadata["target"]),
        "features": ", ".join(_plain(one["name"]) for one in features),
        "query": ", ".join(_literal(value) for value in x[0].tolist()),
        "summary": f"{networks} of {hidden} {pack.activation}, {pack.weight_bits}-bit weights, "
        f"{len(pack.targets)} anchors",
        "feature_count": str(pack.features),
        "members": str(pack.members),
        "size": str(len(content)),
        "scratch": scratch_expression(pack),
        "twin_h": (_RUNTIME / "include" / "twin.h").as_posix(),
        "settings": ", ".join(f"`{name}={value}`" for name, value in _settings(pack).items())
        or "it needs all of the runtime",
        "bytes": "\n".join(_array(content)),
        "anchors": str(len(pack.targets)),
        "method": job.metadata["select"],
        "rmse_val": f"{pack_file.score.rmse_val:.5g}",
        "float_rmse_val": f"{judge.float_rmse_val:.5g}",
        "deviation": f"{pack_file.score.largest_deviation:.2g}",
        "ranges": "\n".join(
            f"{i}. {_plain(one['name'])}: {one['min']:.6g} to {one['max']:.6g}"
            for i, one in enumerate(features, start=1)
        ),
        "expected": f"{float(answer.mean[0]):.9g} {float(answer.spread[0]):.9g}",
    }


def _array(content: bytes) -> Iterator[str]:
    for start in range(0, len(content), 16):
        yield "    " + ", ".join(map(str, content[start : start + 16])) + ","


def _literal(value: float) -> str:
    """Write a float32 in C; nine digits bring back every bit."""
    word = f"{value:.9g}"
    return f"{word}f" if "." in word or "e" in word else f"{word}.0f"


def _plain(name: str) -> str:
    """Fit a column's name into one line of a C comment."""
    return " ".join(name.split()).replace("*/", "* /").replace("/*", "/ *")
