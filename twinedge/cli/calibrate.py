"""``twinedge calibrate``: recalibrate the intervals of a pack on fresh rows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import note, print_json, print_record, print_text
from twinedge.cli.reading import read_device_points
from twinedge.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@options.command(
    "calibrate",
    "calibrate out/model.twin fresh.csv",
    "calibrate out/model.twin fresh.csv -o site-7.twin",
)
@options.pack_file
@options.argument("table", "FRESH.csv", "Rows the model never saw, with its columns and target.")
@options.file_option("--output", "-o", text="Pack to write; by default the old one is replaced.")
@options.missing
@options.skip_bad_rows
@options.as_json
@options.quiet
def calibrate(
    pack: Path,
    table: Path,
    output: Path | None,
    missing: tuple[str, ...],
    skip_bad_rows: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Recalibrate the intervals of a pack on rows that it never saw.

    Networks, anchors and predictions stay as they are. A level that needs more rows is left out:
    10 rows, the minimum, support 90 %, 19 support 95 %, 99 support 99 %. Needs only numpy.
    """
    from twinedge.atomic_files import write_file
    from twinedge.pack import write_pack
    from twinedge.runtime.evaluator import reference_of
    from twinedge.runtime.pack_calibration import calibrate_targets
    from twinedge.runtime.pack_device import PackDevice, read_pack_file
    from twinedge.runtime.self_test import identified
    from twinedge.scoring.calibration import LEVELS

    if pack.suffix != ".twin":
        raise InputError(f"{pack}: only a .twin pack can be recalibrated; export it again")
    old, _ = read_pack_file(pack)
    device = PackDevice(old, pack, reference_of(old), "numpy")
    x, y = read_device_points(
        table, device, missing=missing, skip_bad_rows=skip_bad_rows, quiet=quiet
    )
    try:
        done = calibrate_targets(old, x, y)
    except InputError as error:
        raise InputError(f"{table}: {error}") from error
    metadata = {**done.metadata, "calibrated_on": {"file": table.name, "rows": len(y)}}
    target = output or pack
    done = identified(replace(done, metadata=metadata), parent=old)
    write_file(target, write_pack(done))
    assert done.intervals is not None
    there = [level / 1000 for level in done.intervals.quantiles]
    unsupported = [level for level in LEVELS if level not in there]
    _, scale = PackDevice(done, target, reference_of(done), "numpy").predict(x, return_std=True)
    result = {
        "pack": str(target),
        "rows": len(y),
        "coverages": there,
        "mean_scale": _of_targets(device.target_names, scale.mean(axis=0, dtype=float)),
        "outside": done.intervals.outside / 65536,
    }
    if as_json:
        print_json(result)
    else:
        print_record({**result, "coverages": ", ".join(f"{one:g}" for one in there)})
        if unsupported:
            left = ", ".join(f"{one:g}" for one in unsupported)
            print_text("", f"{len(y)} rows cannot support {left}: left out.")
    if output is None and (pack.parent / "c").is_dir():
        note(f"{pack.parent / 'c'} still holds the old intervals: export again for C", quiet=quiet)


def _of_targets(names: "Sequence[str]", values: Any) -> Any:
    """Return the value of the only target, or of each by name."""
    return float(values) if len(names) == 1 else dict(zip(names, values.tolist(), strict=True))
