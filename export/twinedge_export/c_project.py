"""The C project of an export: the pack as an array, the runtime, and an example to build."""

import shutil
from collections.abc import Iterator
from importlib.resources import files
from math import ceil
from string import Template

import numpy as np

from twinedge.pack import Pack, read_pack, write_pack
from twinedge.runtime.reference import evaluate
from twinedge_export.firmware import firmware_folder
from twinedge_export.job import File, Job

FOLDER = "c"
_TEMPLATES = ("main.c", "model.h", "model.c", "CMakeLists.txt", "README.md")


class _Page(Template):
    delimiter = "@"  # CMake and make use the dollar


def c_project(job: Job, pack_file: File) -> File:
    """Write the folder; it compiles as it is."""
    folder = job.folder / FOLDER
    folder.mkdir()
    words = _words(job, pack_file, read_pack(pack_file.path.read_bytes()))
    for name in _TEMPLATES:
        text = (files("twinedge_export") / "c_template" / f"{name}.in").read_text("utf-8")
        (folder / name).write_text(_Page(text).substitute(words), "utf-8")
    for part in ("include", "src"):
        shutil.copytree(firmware_folder() / part, folder / "twinedge" / part)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return File("c", folder, size, pack_file.made, pack_file.score)


def _scratch(pack: Pack) -> tuple[int, int]:
    """Bytes of scratch that are enough anywhere: fixed, and for each anchor side by side."""
    wide = [ceil(width / 16) * 16 for width in pack.hidden]
    blocks = wide[0] + max(wide[1:-1], default=0)  # of the last layer nothing is stored
    nearest = 16 * int(pack.counts.max())
    return 256 + 8 * wide[0] + 2 * (pack.features + 16) + nearest, 4 * blocks


def _words(job: Job, pack_file: File, pack: Pack) -> dict[str, str]:
    content = write_pack(pack, metadata=False)
    features, judge = job.metadata["features"], job.judge
    x = judge.validation[0][:1].astype(np.float32)
    answer = evaluate(pack, x)
    scratch, scratch_of_anchor = _scratch(pack)
    twins, hidden = len(pack.twins), "-".join(map(str, pack.hidden))
    networks = "One twin" if twins == 1 else f"{twins} twins"
    return {
        "target": job.metadata["target"],
        "features": ", ".join(_plain(one["name"]) for one in features),
        "query": ", ".join(_literal(value) for value in x[0].tolist()),
        "summary": f"{networks} of {hidden} {pack.activation}, {pack.weight_bits}-bit weights, "
        f"{len(pack.targets)} anchors",
        "feature_count": str(pack.features),
        "members": str(pack.members),
        "size": str(len(content)),
        "scratch": str(scratch),
        "scratch_of_anchor": str(scratch_of_anchor),
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
