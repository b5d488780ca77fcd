"""``twinedge adapt``: learn points measured on site, into a store or a pack."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import (
    note,
    note_beyond,
    note_faults,
    print_by_target,
    print_json,
    print_record,
    print_result,
    print_text,
)
from twinedge.cli.reading import read_device_points
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.data.features import SideColumn
    from twinedge.pack.contents import Array
    from twinedge.runtime.store_summary import PointErrors


@options.command(
    "adapt",
    "adapt out/model.twin site.csv --store site.store",
    "predict out/model.twin new.csv --store site.store",
    "adapt out/model.twin log.csv --store site.store --time measured_at",
    "adapt out/model.twin site.csv -o adapted.twin",
)
@options.pack_file
@options.argument(
    "table", "SITE.csv", "Points measured on site, with the model's columns and target."
)
@options.file_option("--output", "-o", text="Pack to write, which knows these points.")
@options.file_option("--store", text="Store to add these points to; created if it does not exist.")
@options.column(
    "--time",
    text="When each point was measured: a date, a time, or a whole number. Kept in the store, so "
    "that old points can be forgotten.",
)
@options.missing
@options.skip_bad_rows
@options.as_json
@options.quiet
def adapt(
    pack: Path,
    table: Path,
    output: Path | None,
    store: Path | None,
    time: str | None,
    missing: tuple[str, ...],
    skip_bad_rows: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Let a pack learn from points measured on site.

    Predictions are shifted by what the pack gets wrong at the points. How far was learnt in
    training, from rows that belong together if there were any (train --group). A store leaves the
    pack as it is and travels with it, even to a microcontroller; points that it knows already are
    not learnt twice. A pack that knows the points runs everywhere, but shifts all predictions
    alike.

    The printed errors are those of all points learnt so far: as shipped, and as adapted, each
    predicted from the others. Points that are suspect, because they are far from what the others
    and the pack allow, do not count.
    """
    from twinedge.atomic_files import check_file, write_file
    from twinedge.data.features import SideColumn
    from twinedge.pack import joined, write_pack
    from twinedge.runtime.adaptation import adapted_pack
    from twinedge.runtime.loading import load_pack_device
    from twinedge.runtime.self_test import identified

    if (output is None) == (store is None):
        raise InputError("name what to write: -o for a pack, or --store for a store")
    if output is not None:
        check_file(output)
    device = load_pack_device(pack)
    clock = None if time is None else SideColumn(time)
    x, y = read_device_points(
        table, device, missing=missing, skip_bad_rows=skip_bad_rows, time=clock, quiet=quiet
    )
    times = None if clock is None else _whole(clock, table)
    if store is not None:
        device.keep(store)
    if device.store is not None:
        note_faults(device.store.journal, quiet=quiet)
    new = ~device.has_learnt(x, y, times)
    try:
        device.learn(x[new], y[new], None if times is None else times[new])
    except InputError as error:
        raise InputError(f"{table}: {error}") from error
    result = {
        ("pack" if store is None else "store"): str(output or store),
        "learnt": int(new.sum()),
        "known": int((~new).sum()),
        "points": device.learnt,
    }
    errors = {name: device.errors(k) for k, name in enumerate(device.target_names)}
    about = {name: _summary(one) for name, one in errors.items()}
    if output is not None:
        points = [device.points.single(target) for target in range(device.targets)]
        made = joined(
            [
                adapted_pack(one, own.errors, own.scores)
                for one, own in zip(device.pack.singles, points, strict=True)
            ]
        )
        learnt = {"file": table.name, "points": len(y)}
        metadata = {**made.metadata, "adapted_to": learnt}
        made = identified(replace(made, metadata=metadata), parent=device.pack)
        write_file(output, write_pack(made))
        note(
            f"{output} shifts all predictions alike; with a store, those that expect smaller "
            "errors are shifted less",
            quiet=quiet,
        )
    note_beyond(errors, quiet=quiet)
    if device.targets == 1:
        print_result({**result, **about[device.target_name]}, as_json)
    elif as_json:
        print_json({**result, "targets": about})
    else:
        print_record(result)
        print_text("")
        print_by_target(about)


def _summary(errors: "PointErrors") -> dict[str, Any]:
    """Return how far off a pack is at the points of one target."""
    scores = errors.scores()
    found = {key: scores[key] for key in ("rmse_shipped", "rmse_adapted")}
    return {"suspect": int(errors.suspect.sum()), **found}


def _whole(clock: "SideColumn", table: Path) -> "Array":
    """Return times as a store keeps them: whole seconds since 1970, or any whole numbers."""
    import numpy as np

    from twinedge.runtime.store import LARGEST_TIME

    seconds: Array = np.floor(clock.values)
    if not (seconds.min() >= 0 and seconds.max() <= LARGEST_TIME):
        raise InputError(
            f"{table}: a store keeps times from 1970 to 2106, and column {clock.name!r} has others"
        )
    return seconds
