"""The C project of an export: the pack as an array, the runtime, and an example to build."""

import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from twinedge.budget import read_firmware, twin_bytes
from twinedge.budget.measurements import FEATURE, NEAREST, scratch_cells
from twinedge.budget.read_model import from_pack
from twinedge.encoding.calendars import Calendar
from twinedge.encoding.derived import Derived
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.pack import Pack, read_pack, write_pack
from twinedge.pack.contents import Array
from twinedge.runtime import reference
from twinedge.runtime.reference import fillable
from twinedge_export.amalgamation import firmware_folder, write_amalgamation
from twinedge_export.boards.build import flags_for
from twinedge_export.c_columns import CColumns, literal, plain
from twinedge_export.c_stream import EXAMPLE_CALL, c_stream, example_query
from twinedge_export.files import File, Job

# The most that any kernel asks for (src/twin_kernel.h), in bytes, per anchor of a block; the
# second line is what kernels with blocks of several anchors ask for on top.
_UNIT, _ALIGN, _STORED, _FEATURES, _PARTIAL = 4, 8, 4, 4, 8
_MORE_ALIGN, _MORE_STORED = 24, 8


def scratch_expression(pack: Pack) -> str:
    """Return sufficient bytes of scratch, as a C expression in macros of ``twin_config.h``.

    It follows ``twin_scratch_size``, with the most that any kernel asks for, and is a multiple of
    4. For a pack without neighbors it relies on ``TWIN_NEIGHBORS`` being 0.
    """
    # The last layer is folded; for several targets, its activations may be stored before.
    widths = (*pack.hidden, 0) if pack.others else pack.hidden
    inputs, first, layers = scratch_cells(pack.inputs, widths, _UNIT)
    stored, sections = sum(layers), len(layers) + 4
    nearest = NEAREST * int(pack.counts.max()) if pack.neighbors else 0
    fixed = nearest + FEATURE * inputs + _ALIGN * sections
    anchor = _STORED * stored + _FEATURES * inputs
    partial = _PARTIAL * first
    more = _MORE_STORED * stored + _MORE_ALIGN * sections
    lines = " + TWIN_SILU_BYTES" if pack.activation == "silu" else ""
    if pack.map is not None:  # a pointer and a number of each feature, where layers are later
        places = f"{2 * pack.features}u * sizeof(void *)"
        kept = f"{_STORED * stored}u * TWIN_BLOCK + {partial}u * TWIN_PARTIAL"
        lines += f" + ({kept} < {places} ? {places} : 0u)"
    return (
        f"({fixed}u + {anchor}u * TWIN_BLOCK + {partial}u * TWIN_PARTIAL + "
        f"{more}u * (TWIN_BLOCK > 1){lines} + TWIN_WORK_BYTES)"
    )


FOLDER = "c"
_SKETCH = "model"  # Arduino wants the sketch in a folder of its name, and code there or below src/
_PAGES = ("README.md", "CMakeLists.txt", "platformio.ini", "main.c")
_SKETCH_PAGES = ("model.ino", "model.h", "model.c")
_NOT_RUNTIME = (
    *("Makefile", "*.md", ".*"),
    *("build", "esphome", "example", "examples", "ports", "proof", "test"),
)


class _Form(NamedTuple):
    """The form of the runtime in a project: its place in the sketch, and how pages describe it."""

    home: str
    header: str
    release: str  # the header with the self-test
    window: str  # what includes twin_window.h
    settings: str  # the file that has them
    where: str
    switches: str
    elsewhere: str
    cmake: str


_AS_FILES = _Form(
    home="src/twinedge",
    header="src/twinedge/include/twin.h",
    release="src/twinedge/include/twin_release.h",
    window='#include "src/twinedge/include/twin_window.h"\n',
    settings="src/twinedge/include/twin_config.h",
    where="`src/twinedge`",
    switches="`twin_config.h` beside it has the\nswitches, set to fit this pack",
    elsewhere="""\
| ESP-IDF | `model/src/twinedge` is a component: put it into `components/` |
| Zephyr | it is a module: `-DZEPHYR_EXTRA_MODULES=.../model/src/twinedge`, `CONFIG_TWINEDGE=y` |
| anything else | compile `model/*.c`, `model/src/twinedge/src/*.c` and `.../src/kernels/*.c` |""",
    cmake="""\
add_subdirectory(model/src/twinedge twinedge)
add_executable(model main.c model/model.c)
target_link_libraries(model PRIVATE twinedge::twinedge)""",
)
_AS_ONE = _Form(
    home=".",
    header="twin.h",
    release="twin.h",
    window="",  # it is part of twin.h
    settings="twin.h",
    where="`twin.c` and `twin.h`",
    switches="Below `twin_config.h` in it are the\nswitches, set to fit this pack",
    elsewhere="| anything else | compile `model/*.c` |",
    cmake="add_executable(model main.c model/model.c model/twin.c)",
)


# What the programs print of a prediction, where `@` stands for it.
_MEAN_AND_SPREAD = {
    "beside": "spread",
    "coverage": "none",
    "printed": "prediction and spread for the point in `main.c`",
    "main_prints": """\
printf("%.9g %.9g\\n", (double)@.mean, (double)@.spread);""",
    "sketch_prints": """\
Serial.print(@.mean, 6);
Serial.print(' ');
Serial.println(@.spread, 6);""",
}
_MEAN_AND_INTERVAL = {
    "beside": "interval",
    "main_prints": """\
printf("%.9g %.9g %.9g %s\\n", (double)@.mean, (double)@.low, (double)@.high,
       @.outside ? "outside" : "inside");""",
    "sketch_prints": """\
Serial.print(@.mean, 6);
Serial.print(' ');
Serial.print(@.low, 6);
Serial.print(' ');
Serial.print(@.high, 6);
Serial.println(@.outside ? " outside" : " inside");""",
}
_PRINTS = {"main_prints": 4, "sketch_prints": 8}  # and how far they are indented
_ONE_TARGET = {
    "targets": "",
    "out": "out",
    "index": "",
    "predict": "twin_predict(&model, scratch, sizeof scratch, x, &out, NULL)",
}
_SEVERAL_TARGETS = {
    "out": "out[MODEL_TARGETS]",
    "index": "    int i;\n",
    "predict": "twin_predict_targets(&model, scratch, sizeof scratch, x, out, MODEL_TARGETS)",
}
_ENCODING = (
    "levels",
    "declared",
    "encoder",
    "includes",
    "encode",
)  # unless all are measured numbers
_MISSING = "\nA missing number is `NAN`{}, and is filled in as described above.\n"
# A setting that is the same everywhere, or one that depends on the board.
_KNOB = (
    r"(?m)^(#ifndef {0}\n)"
    r"(?:#define {0} 1\n|#if .*\n#define {0} \d\n#else\n#define {0} \d\n#endif\n)"
    r"(#endif)$"
)


class _Page(Template):
    delimiter = "@"  # CMake and make use the dollar


def c_project(job: Job, pack_file: File) -> File:
    """Write a folder that serves as CMake project, Arduino sketch and PlatformIO project."""
    form = _AS_ONE if job.settings.single_file else _AS_FILES
    folder = job.folder / FOLDER
    sketch = folder / _SKETCH
    sketch.mkdir(parents=True)
    pack = read_pack(pack_file.path.read_bytes())
    words = {**form._asdict(), **_words(job, pack_file, pack)}
    if not _encoding(job).derived:
        words["window"] = ""
    for home, pages in ((folder, _PAGES), (sketch, _SKETCH_PAGES)):
        for name in pages:
            text = (files("twinedge_export") / "c_template" / f"{name}.in").read_text("utf-8")
            (home / name).write_text(_Page(text).substitute(words), "utf-8")
    if form is _AS_ONE:
        write_amalgamation(sketch / form.home)
    else:
        ignore = shutil.ignore_patterns(*_NOT_RUNTIME)
        shutil.copytree(firmware_folder(), sketch / form.home, ignore=ignore)
    _set(sketch / form.settings, _settings(pack))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    flash = _flash_bytes(pack_file.path)
    return File("c", folder, size, pack_file.made, pack_file.score, flash)


def _flash_bytes(pack: Path) -> int | None:
    """Flash of pack, runtime and the least program around them on a Cortex-M4, as measured."""
    model, _ = from_pack(pack)
    runtime = read_firmware().get("cortex-m4")
    build = None if runtime is None else runtime.build(model)
    return None if build is None else build.flash_bytes + twin_bytes(model)


def _set(header: Path, settings: dict[str, str]) -> None:
    """Disable what the pack does not need and enable what it does, on every board."""
    text = header.read_text("utf-8")
    for name, value in settings.items():
        knob = _KNOB.format(name)
        text, count = re.subn(knob, rf"\1#define {name} {value}\n\2", text)
        if count != 1:
            raise InputError(f"{header.name} has no {name}: reinstall twinedge")
    header.write_text(text, "utf-8")


def _settings(pack: Pack) -> dict[str, str]:
    """Return settings of twin_config.h for the pack, where some default does not fit."""
    return dict(flag.removeprefix("-D").split("=", 1) for flag in flags_for(pack))


def _words(job: Job, pack_file: File, pack: Pack) -> dict[str, str]:
    content = write_pack(pack, metadata=False)
    evaluator, exact = job.evaluator, job.evaluator.all_anchors
    x = evaluator.points[0][:1].astype(np.float32)
    if (encoding := _encoding(job)).derived:
        measured = len(encoding.measured.inputs)
        x = example_query(encoding, x[0, :measured])[None].astype(np.float32)
    twins, hidden = len(pack.twins), "-".join(map(str, pack.hidden))
    networks = "One twin" if twins == 1 else f"{twins} twins"
    return {
        "target": ", ".join(_names(job)),
        "summary": f"{networks} of {hidden} {pack.activation}, {pack.weight_bits}-bit weights, "
        f"{len(pack.targets)} anchors",
        "feature_count": str(pack.features),
        "members": str(pack.members),
        "size": str(len(content)),
        "scratch": scratch_expression(pack),
        "left_out": ", ".join(f"`{name}={value}`" for name, value in _settings(pack).items()),
        "bytes": "\n".join(_array(content)),
        "anchors": str(len(pack.targets)),
        "method": job.metadata["select"],
        "scored_on": evaluator.name,
        "rmse": _of_each(pack_file.score.rmse, ".5g"),
        "float_rmse": f"{_of_each(exact.rmse, '.5g')} {exact.words}",
        "deviation": _of_each(pack_file.score.largest_deviation, ".2g"),
        **_columns(job, pack, x[0]),
        **_programs(_answer(pack, x), _names(job)),
    }


def _names(job: Job) -> list[str]:
    """Names of the targets, safe for a comment."""
    each = job.metadata.get("targets", [job.metadata])
    return [plain(one["target"]) for one in each]


def _of_each(numbers: Any, style: str) -> str:
    """Write a number, or one for each of several targets."""
    return ", ".join(f"{one:{style}}" for one in np.ravel(numbers))


def _programs(answer: dict[str, str], names: list[str]) -> dict[str, str]:
    """Write the code that predicts and prints, for one target or for each of several."""
    alone = len(names) == 1
    for name, width in _PRINTS.items():
        lines = answer[name].replace("@", "out" if alone else "out[i]")
        if not alone:
            several = "\n" in answer[name] and answer[name].count(";") > 1
            opening, closing = (" {", "\n}") if several else ("", "")
            head = f"for ({'int ' * (name == 'sketch_prints')}i = 0; i < MODEL_TARGETS; i++)"
            lines = f"{head}{opening}\n{indent(lines, 4 * ' ')}{closing}"
        answer[name] = indent(lines, width * " ")
    if alone:
        return answer | _ONE_TARGET | {"it_prints": f"It prints {answer['printed']}"}
    all_names = ", ".join(names)
    return answer | {
        **_SEVERAL_TARGETS,
        "targets": f"\n#define MODEL_TARGETS  {len(names)} /* {all_names} */",
        "it_prints": f"It prints a line for each target, {all_names}: {answer['printed']}",
    }


def _columns(job: Job, pack: Pack, x: Array) -> dict[str, str]:
    """Write the texts about the columns of the table, and about the point ``x`` ``(f,)``."""
    features, encoding = job.metadata["features"], _encoding(job)
    names = ", ".join(map(plain, encoding.names))
    filled, named = fillable(pack), any(encoding.categories)
    lines = []
    for i, (name, kind, part) in enumerate(
        zip(encoding.names, encoding.kinds, encoding.parts, strict=True), start=1
    ):
        one = features[part.start]
        if isinstance(kind, Calendar):
            words, value = f"{kind.first} to {kind.last} seconds since 1970, UTC", ""
        elif isinstance(kind, Derived | None):
            words = f"{one['min']:.6g} to {one['max']:.6g}"
            value = f"{_unquantised(pack, part)[0]:.6g}"
        else:
            words = ", ".join(
                f'"{plain(one)}"' if "," in one else plain(one) for one in kind.labels
            )
            value = plain(kind.labels[int(_unquantised(pack, part).argmax())])
        if filled[part].all():
            words += f"; {value} where it is missing"
        lines.append(f"{i}. {plain(name)}: {words}")
    missing = _MISSING.format(", a missing name `..._MISSING`" if named else "")
    texts = {"ranges": "\n".join(lines), "missing": missing if filled.any() else ""}
    if encoding.is_plain:
        query = ", ".join(literal(value) for value in x.tolist())
        point = f"""\
/* One number for each feature: {names}. */
static {{}}float x[MODEL_FEATURES] = {{{{{query}}}}};"""
        texts |= {"columns": "Features", **dict.fromkeys(_ENCODING, "")}
    else:
        measured = encoding.measured
        own = len(measured.inputs)
        source = CColumns(measured, filled[:own])
        names = ", ".join(map(plain, measured.names))
        point = f"""\
/* One value for each column: {names}. */
static {{}}struct model_row row = {{{{{source.row(x[:own])}}}}};
static float x[MODEL_FEATURES];"""
        texts |= {
            "columns": "Columns, as `struct model_row` has them for `model_encode`",
            "levels": source.declarations,
            "declared": source.prototype,
            "encoder": source.encoder,
            "includes": "#include <math.h> /* NAN */\n" if named else "",
            "encode": "    model_encode(&row, x);\n",
        }
    if encoding.derived:
        stream = c_stream(encoding)
        point += "\nstatic uint32_t when; /* in MODEL_TICKS, of the last sample */"
        texts["columns"] = (
            f"Columns, of which `struct model_row` has the first {len(encoding.measured.names)}: "
            "`model_push` takes\nthem as samples, and derives the others"
        )
        texts["levels"] += stream.declarations
        texts["declared"] += stream.prototypes
        texts["encoder"] += stream.definitions
        texts["encode"] = EXAMPLE_CALL
    return texts | {"constant_point": point.format("const "), "point": point.format("")}


def _encoding(job: Job) -> Encoding:
    names = [one["name"] for one in job.metadata["features"]]
    return Encoding.of(job.metadata.get("columns"), names)


def _unquantised(pack: Pack, part: slice) -> Array:
    """Values that stand for missing features, in the user's units."""
    if pack.domain is None:
        return np.zeros(part.stop - part.start)
    fill = pack.domain.fill[part].astype(np.float64)
    values: Array = fill / pack.x_gain[part] + pack.x_offset[part]
    return values


def _answer(pack: Pack, x: Array) -> dict[str, str]:
    """Say what the programs print, and the expected lines for ``x`` ``(1, f)``."""
    each = [(one, reference.evaluate(one, x)) for one in pack.singles]
    if pack.intervals is None:
        lines = [_numbers(found.mean, found.spread) for _, found in each]
        return {**_MEAN_AND_SPREAD, "expected": _INDENTED.join(lines)}
    usual = pack.intervals.usual_level
    outside = reference.outside(pack, reference.quantise(pack, x)).any()
    lines = []
    for one, found in each:
        bounds = reference.bounds(one, found, usual)
        ends = _numbers(found.mean, bounds.low, bounds.high)
        lines.append(f"{ends} {'outside' if outside else 'inside'}")
    levels = ", ".join(map(_percent, pack.intervals.quantiles))
    return {
        **_MEAN_AND_INTERVAL,
        "coverage": f"of {_percent(usual)}; `twin_set_coverage` takes one of {levels}",
        "printed": "the prediction for the point in `main.c`, the ends of its interval "
        f"of\n{_percent(usual)}, and whether a feature lies outside of its range in training",
        "expected": _INDENTED.join(lines),
    }


_INDENTED = "\n    "


def _numbers(*values: Array) -> str:
    return " ".join(f"{float(value[0]):.9g}" for value in values)


def _percent(level: int) -> str:
    return f"{level / 10:g} %"


def _array(content: bytes) -> Iterator[str]:
    for start in range(0, len(content), 16):
        yield "    " + ", ".join(map(str, content[start : start + 16])) + ","
