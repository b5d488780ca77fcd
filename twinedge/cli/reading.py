"""Read the tables that commands name: to train on, or to apply an existing model to."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli.options import as_option
from twinedge.cli.output import note, note_filled
from twinedge.errors import InputError, Parameter
from twinedge.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from twinedge.data.source import Source
    from twinedge.encoding.encoder import Encoding
    from twinedge.run_folder import Run
    from twinedge.runtime.device import Device

    Points = tuple[NDArray[np.float64], NDArray[np.float64]]


def read_points(
    table: Path,
    encoding: "Encoding",
    fillable: "NDArray[np.bool_]",
    *,
    target: "str | Sequence[str] | None" = None,
    target_name: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> "Points":
    """Read points for a model with these columns, and their targets if a target is named.

    A missing value that can be filled in is NaN. Without ``target``, the targets are empty;
    ``target_name`` is that of the model then. ``options`` are those of ``read_features``; a command
    without the option to skip bad rows leaves that out.
    """
    import numpy as np

    from twinedge.data import read_features

    x, y = read_features(
        table,
        encoding,
        target=target,
        target_name=target_name or (target if isinstance(target, str) else None),
        fillable=fillable,
        say=lambda remark: note(remark, quiet=quiet),
        **options,
    )
    ready = options.get("ready")
    absent = np.isnan(x if ready is None else x[ready.values])
    note_filled(table, int(encoding.by_column(absent).sum()), quiet=quiet)
    return x, np.empty(0) if y is None else y


def read_device_points(table: Path, device: "Device", **options: Any) -> "Points":
    """Read points for an exported model, with their targets; ``options`` of ``read_points``."""
    target = device.target_name if device.targets == 1 else device.target_names
    return read_points(table, device.encoding, device.fillable, target=target, **options)


def read_run_points(
    table: Path, run: "Run", *, target: bool = False, **options: Any
) -> "tuple[Points, NDArray[np.bool_]]":
    """Read points for a run, with missing values filled in; also return which were missing.

    Without ``target``, there are no targets; ``options`` are those of ``read_points``.
    """
    import numpy as np

    encoding, values = run.encoding, run.fill_values
    values = np.full(len(encoding.inputs), np.nan) if values is None else values
    names: tuple[str, ...] = run.model.target_names_ if run.model.targets_ > 1 else ()
    options |= {
        "target": (names or run.target_name) if target else None,
        "target_name": run.target_name,
    }
    x, y = read_points(table, encoding, np.isfinite(values), **options)
    absent = np.isnan(x)
    return (np.where(absent, values, x), y), absent


def check_store(store: Path, more: str = "") -> None:
    """Refuse a store that does not exist; the message ends with what else would help."""
    if not store.exists():
        raise InputError(
            f"{store} does not exist: 'twinedge adapt MODEL.twin SITE.csv --store {store}' makes a "
            f"store from a table of points{more}"
        )


def check_state(state: Path | None, device: "Device") -> None:
    """Refuse a file for the last samples of a model that needs none."""
    if state is not None and not device.encoding.derived:
        file = device.info["file"]
        raise InputError(f"--state is for models with derived inputs, and {file} has none")


def check_named(paths: tuple[Path, ...], reading: dict[str, Any], dataset: str | None) -> None:
    """Refuse a command that names no table, or files and a set, or options that do not apply."""
    if paths and dataset is not None:
        raise InputError(f"{paths[0]} and --dataset {dataset}: name one of the two, not both")
    if dataset is not None:
        for name, one in reading.items():
            if one not in (None, False, ()):
                raise InputError(f"{as_option(Parameter(name))} is for a DATA.csv, not a --dataset")
    elif not paths:
        raise InputError("nothing to train on: name a DATA.csv or a --dataset")
    elif not reading["target"]:
        raise InputError("--target is missing: the column to predict, by name or position")


def read_source(
    paths: tuple[Path, ...],
    reading: dict[str, Any],
    dataset: str | None,
    split: int,
    *,
    quiet: bool = False,
) -> "Source":
    """Read what a command names: one or more files with options, or one of the paper's sets.

    ``reading`` holds options of ``twinedge.data.read_table``.
    """
    check_named(paths, reading, dataset)
    from twinedge.data.source import from_catalogue, from_table

    if not paths:
        return from_catalogue(str(dataset), split)
    with progress_bar(not quiet) as progress:
        progress.stage("Reading the table")
        return from_table(paths, split=split, **reading)
