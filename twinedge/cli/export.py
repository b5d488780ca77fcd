"""``twinedge export``: the files that devices run."""

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli import options
from twinedge.cli.output import format_value, note, print_json, print_table, print_text
from twinedge.cli.values import ModelPath, Several, Whole
from twinedge.defaults import OUTPUT
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.atomic_files import EarlierFiles
    from twinedge_export.deploy import Export

_RUNS = Path("runs")
_FORMATS = ("twin", "tflite", "onnx", "c")
_LINE = 100  # characters


@options.command(
    "export",
    "export --anchors 32",
    "export runs/sensor --anchors 8 --select xy -o firmware/model",
    "export runs/sensor --anchors fewest --formats twin,c --json",
)
@options.argument(
    "run", "[RUN]", "Run folder; by default the latest in runs/.", type=ModelPath("run")
)
@options.anchors(
    "Training points that travel, of all twins together: a number, the fewest within "
    "1 % of all, or all.",
)
@options.select(f"How to choose them: {', '.join(options.METHODS)}; or a file of row numbers.")
@options.folder_option("--output", "-o", default=Path(OUTPUT), text="Folder to write.")
@options.overwrite
@options.value(
    "--formats",
    ",".join(_FORMATS),
    Several(click.Choice(_FORMATS), "twin,c"),
    default=",".join(_FORMATS),
    text="What to write; the .twin is always written, since the others take their anchors from it. "
    "It is for Python and the firmware command; c is for microcontrollers, tflite and onnx for "
    "these runtimes. By default all.",
)
@options.weights
@options.flag(
    "--qat/--no-qat",
    default=None,
    text="Fine-tune to the rounding of the weights; by default only if rounding costs more than "
    "the tolerance.",
)
@options.flag("--float-io", text="TFLite files that take and return floats.")
@options.flag("--single-file", text="C project with the runtime as one twin.c and one twin.h.")
@options.value(
    "--neighbors", "N", Whole(0), text="Predict with only this many nearest anchors of each twin."
)
@options.tolerance
@options.flag(
    "--intervals/--no-intervals",
    default=True,
    text="Intervals, ranges of the features and values for missing ones in the files.",
)
@options.file_option(
    "--parent",
    metavar="OLD.twin",
    text="Pack that this one replaces; its id goes into the new one.",
)
@options.counter("By default that of --parent, or 0.")
@options.seed
@options.as_json
@options.quiet
def export(
    run: Path | None,
    output: Path,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    **chosen: Any,
) -> None:
    """Write a run as files for devices, each checked.

    A .twin pack, TFLite, ONNX and a C project are compared with the float model. If one costs more
    than the tolerance, the export fails and leaves the folder as it was.

    An existing export is replaced if its files are unchanged. If the folder holds anything else,
    nothing is written unless you use --overwrite. Files of an earlier export in formats that are
    not written now stay, and are named as stale.
    """
    from twinedge.atomic_files import EXPORT, check_folder

    check_folder(output, EXPORT, overwrite=overwrite)
    if run is None:
        run = _latest()
        note(f"Exporting {run}", quiet=quiet)
    from twinedge_export.deploy import write_export
    from twinedge_export.settings import ExportSettings

    settings = ExportSettings(overwrite=overwrite, verbose=not quiet, **chosen)
    result = write_export(run, output, settings)
    note_earlier(result.folder, result.placed, quiet=quiet)
    for remark in result.remarks:
        note(remark, quiet=quiet)
    if as_json:
        print_json({"run": str(run), **result.record()})
    else:
        _print_summary(result)


def _latest() -> Path:
    """Find the latest run folder in runs/."""
    from twinedge.atomic_files import RUN, recover_below

    try:
        recover_below(_RUNS, RUN)
        folders = [path.parent for path in _RUNS.glob("*/run.json")]
        found = [folder for folder in folders if not folder.name.startswith(".")]
    except OSError as error:
        raise InputError(f"{_RUNS}: {error.strerror}") from error
    if not found:
        raise InputError(
            f"there is no run in {_RUNS}/ to export: train one with 'twinedge train DATA.csv "
            "--target COLUMN', or name its folder with 'twinedge export RUN'"
        )
    return max(found, key=lambda folder: (folder / "run.json").stat().st_mtime)


def note_earlier(folder: Path, placed: "EarlierFiles", *, quiet: bool = False) -> None:
    """Say what became of the files of an earlier export."""
    remarks = {
        "Stale, from an earlier export:": placed.stale,
        "Removed, from an earlier export:": placed.removed,
        "Replaced, as --overwrite allows:": placed.replaced,
    }
    for remark, paths in remarks.items():
        if paths:
            note(f"{remark} {', '.join(str(folder / path) for path in paths)}", quiet=quiet)


def _two_digits(number: Any) -> str:
    """Write a number, or one for each of several targets."""
    return ", ".join(f"{one:.2g}" for one in (number if isinstance(number, tuple) else [number]))


def _print_summary(result: "Export") -> None:
    evaluator, everything = result.evaluator, result.evaluator.all_anchors
    error = "RMSE" if evaluator.name == "validation" else "training error"
    print_table(
        ("file", "bytes", "numbers", error, "to float", "largest deviation"),
        [
            [
                str(file.path),
                str(file.bytes if file.kind != "c" else file.flash_bytes or "-"),
                file.made,
                format_value(file.score.rmse),
                f"{file.score.ratio_to_float:.3f}",
                _two_digits(file.score.largest_deviation),
            ]
            for file in result.files
        ],
    )
    print_text("")
    print_table(("file", "for"), [[str(file.path), file.purpose] for file in result.files])
    pack = result.files[0].bytes
    flash = any(file.flash_bytes for file in result.files)
    print_text(
        "",
        *["Bytes of the C project are flash on a Cortex-M4: pack, runtime and a minimal program."]
        * flash,
        *wrap(
            f"{len(result.rows)} anchors ({result.method}). RMSE on the {evaluator.name} points; "
            f"the float model has {format_value(everything.rmse)} {everything.words}, which is "
            f"what 'to float' divides by, and {format_value(evaluator.exported_rmse)} with these. "
            "Deviations are from the latter.",
            _LINE,
        ),
        f"An ensemble of {len(result.rows)} ordinary networks would take "
        f"{result.ann_ensemble_bytes:,} bytes, {result.ann_ensemble_bytes / pack:.1f} times the "
        ".twin.",
    )
