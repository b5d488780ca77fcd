"""``twinedge adapt``: learn points measured on site, into a pack or a store."""

from dataclasses import replace
from pathlib import Path

from twinedge.cli import options
from twinedge.cli.output import note_lost, print_json, print_record
from twinedge.cli.reading import read_device_points
from twinedge.errors import InputError


@options.command(
    "adapt",
    "adapt out/model.twin site.csv -o adapted.twin",
    "adapt out/model.twin site.csv --store site.store",
    "predict out/model.twin new.csv --store site.store",
)
@options.pack_file
@options.argument(
    "table", "SITE.csv", "Points measured on site, with the model's columns and target."
)
@options.file_option("--output", "-o", text="Pack to write, with these points.")
@options.store_file
@options.missing
@options.skip_bad_rows
@options.as_json
@options.quiet
def adapt(
    pack: Path,
    table: Path,
    output: Path | None,
    store: Path | None,
    missing: tuple[str, ...],
    skip_bad_rows: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Let a pack learn from points measured on site.

    The points become anchors. How far to trust them was learnt in training, from rows that belong
    together if there were any (train --group). A store leaves the pack as it is and travels with
    it, even to a microcontroller; a pack with the points inside runs everywhere.

    The printed error is that of the old model, on these points.
    """
    import numpy as np

    from twinedge.pack import write_pack
    from twinedge.placing import place_file
    from twinedge.runtime.adaptation import adapted_pack
    from twinedge.runtime.pack_device import PackDevice, Reference, read_pack_file

    if pack.suffix != ".twin":
        raise InputError(f"{pack}: only a .twin pack can learn")
    if (output is None) == (store is None):
        raise InputError("name what to write: -o for a pack, or --store for a store")
    old = read_pack_file(pack)
    device = PackDevice(old, pack, Reference, "numpy")
    x, y = read_device_points(
        table, device, missing=missing, skip_bad_rows=skip_bad_rows, quiet=quiet
    )
    before = device.predict(x)
    if store is not None:
        device.keep(store)
        note_lost(store, device.lost, quiet=quiet)
    try:
        device.learn(x, y)
    except InputError as error:
        raise InputError(f"{table}: {error}") from error
    result = {
        ("pack" if store is None else "store"): str(output or store),
        "learnt": len(y),
        "points": device.learnt,
        "rmse_before": float(np.sqrt(np.mean(np.square(before - y)))),
    }
    if output is not None:
        new = adapted_pack(old, device.points.errors, device.points.scores)
        learnt = {"file": table.name, "points": len(y)}
        metadata = {**old.metadata, "adapted_to": learnt}
        place_file(output, write_pack(replace(new, metadata=metadata)))
        result["anchors"] = len(new.targets)
    if as_json:
        print_json(result)
    else:
        print_record(result)
