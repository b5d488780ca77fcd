"""``twinedge predict``: answers for a table, or line by line."""

import signal
import sys
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import check_output, note, note_faults, print_csv, print_json, stream_out
from twinedge.cli.reading import check_state, check_store, read_points, read_run_points
from twinedge.cli.sign import require_signature
from twinedge.cli.values import PATH_OR_DASH, SHARE, Whole, WordOr, exported_for
from twinedge.defaults import COVERAGE
from twinedge.errors import InputError
from twinedge.wording import plural, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from twinedge.encoding.encoder import Encoding
    from twinedge.runtime.device import Device
    from twinedge.runtime.streaming import Streaming


@options.command(
    "predict",
    "predict runs/latest new.csv > predictions.csv",
    "predict runs/latest new.csv --anchors 32 --json",
    "predict out/model.twin new.csv -o predictions.csv",
    "predict out/model.twin new.csv --coverage 0.95",
    "predict model-7.twin new.csv --require-key product.pub",
    "predict out/model.twin - --store site.store < /dev/ttyUSB0",
    "predict out - --json --keep time --state last.json < /dev/ttyUSB0",
    "predict out - --group sensor --store stores < log.csv",
)
@options.model_file
@options.argument(
    "table",
    "DATA.csv",
    "Table with the model's columns; - answers lines as they come.",
    type=PATH_OR_DASH,
)
@options.file_option("--output", "-o", text="File to write, instead of standard output.")
@options.value(
    "--anchors",
    "auto|all|N",
    WordOr(Whole(1), "auto", "all"),
    default="auto",
    text="Anchors of a run to estimate from: all (auto: 256 if there are thousands), or N at "
    "random.",
)
@options.value("--neighbors", "N", Whole(1), text="Use only the N anchors nearest to each point.")
@options.value(
    "--coverage",
    f"{COVERAGE}|SHARE",
    SHARE,
    text="How often the true value is between low and high.",
)
@options.missing
@options.keep_columns
@options.file_option(
    "--store", text="Store with points measured on site; with --group a folder, of one for each."
)
@options.flag("--create-store", text="With - for a table: begin the store if it does not exist.")
@options.column(
    "--group",
    text="With - for a table: which sensor a line is from. Each has its own store, and its own "
    "window if inputs are derived from samples.",
)
@options.state_file
@options.flag(
    "--watch",
    text="With - for a table: adapt low and high to true values (=VALUE), so that they keep their "
    "coverage, and flag drift.",
)
@options.backend
@options.file_option(
    "--require-key",
    metavar="KEY",
    text="Refuse a model that is no pack signed by the owner of this key.",
)
@options.lowest_counter
@options.as_json
@options.quiet
def predict(
    model: Path,
    table: Path,
    output: Path | None,
    anchors: Any,
    neighbors: int | None,
    coverage: float | None,
    missing: tuple[str, ...],
    keep: tuple[str, ...],
    store: Path | None,
    create_store: bool,
    group: str | None,
    state: Path | None,
    watch: bool,
    backend: str,
    require_key: Path | None,
    lowest_counter: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Predict each row of a table.

    Prints CSV with the prediction, under the name of the target, and its spread: the standard
    deviation of the estimates of all anchors, in units of the target. Columns of the table are
    found by name; others are ignored. Features outside their training range, where a prediction
    means little, are named. A model for several targets has these columns for each, as NOX_spread,
    and then names features once.

    A calibrated model adds scale, the size of the error to expect, and low and high. The true value
    is between these as often as --coverage says: by default 0.9, or the highest level below that
    the model has. Empty cells are filled in if the model has values for them, and their columns
    named as missing.

    With - for a table, each line of standard input (CSV, or JSON) is answered at once by a line
    with the same fields, or by an error. A line that ends in =VALUE (in JSON: has a key "=")
    carries its true value, and is learnt from after it is answered. --store keeps what is learnt;
    predictions for a table use it, too. It has to exist, so that a misspelt name is not an empty
    store: 'adapt' makes one from a table, and --create-store one that lines fill.

    A model that was trained with --derive takes samples: rows or lines of the columns that were
    measured, with the time and the group of training; a line without a time counts as measured
    now. Samples without a full window before them are answered by empty cells, in JSON by how many
    samples the window lacks. --state keeps the windows between two runs. With --json, lines are
    answered in JSON, one object each.

    --watch widens and narrows low and high by the true values that lines carry, so that they keep
    their coverage under drift. A last field, flags, names what has changed since calibration:
    queries outside the range, a larger scale, errors above or below, or worse. --state keeps what
    the watch knows.
    """
    lines = str(table) == "-"
    keep = tuple(dict.fromkeys(name for word in keep for name in word.split(",")))
    if not lines and (group is not None or state is not None or watch):
        raise InputError("--group, --state and --watch are for lines, with - for a table")
    if create_store and not (lines and store is not None):
        raise InputError("--create-store is for lines, with - for a table, and --store")
    if lines and missing:
        raise InputError("--missing is for a table: in lines, leave out what is missing")
    model = exported_for(model, backend)
    if output is not None and lines:
        raise InputError("--output is for a table: lines are answered on standard output")
    if output is not None:
        check_output(output, model, table)
    if lowest_counter and require_key is None:
        raise InputError("--lowest-counter is for signed packs: name the key with --require-key")
    verified = None
    if require_key is not None:
        verified = require_signature(model, require_key, lowest_counter)
    if model.is_dir() or not model.suffix:
        if lines or backend != "auto" or store is not None:
            raise InputError(
                f"{model}: lines, stores and backends are for exported files, not a run"
            )
        _with_run(
            *(model, table, output, anchors, neighbors, coverage, missing, keep, as_json, quiet)
        )
        return
    if anchors != "auto":
        raise InputError(f"{model}: --anchors is for runs; a file has those it was exported with")
    from twinedge.data.features import SideColumn
    from twinedge.runtime.loading import load
    from twinedge.runtime.pack_device import PackDevice
    from twinedge.runtime.self_test import id_of
    from twinedge.runtime.streaming import Streaming

    if store is not None and not (lines and create_store):
        check_store(store, "; --create-store begins a new one" if lines else "")
    threads = None if lines and model.suffix == ".twin" else 1  # others slow down on single lines
    folder = store if group is not None or (store is not None and store.is_dir()) else None
    device = load(model, backend, store=None if folder else store, threads=threads)
    own = device.pack if isinstance(device, PackDevice) else None
    if verified is not None and not (own and own.release and own.release.whole == verified):
        raise InputError(f"{model} was replaced while it was read: try again")
    if device.store is not None:
        note_faults(device.store.journal, quiet=quiet)
    coverage = _coverage(coverage, device.coverages, quiet)
    if coverage is not None:
        device.check_coverage(coverage)
        _note_others(neighbors not in (None, device.info.get("neighbors")), quiet)
    if lines:
        how = Streaming(neighbors, coverage, keep, as_json, group)
        _answer_lines(device, how, folder, state, watch)
        return
    if folder is not None:
        raise InputError(f"{folder} is a folder of stores: name the store of one device")
    ready, kept = SideColumn(""), {name: list[str]() for name in keep}
    x, _ = read_points(
        table,
        device.encoding,
        device.fillable,
        target_name=device.target_name,
        missing=missing,
        ready=ready,
        keep=kept,
        quiet=quiet,
    )
    predicted = device.predict_all(x[ready.values], coverage, neighbors)
    columns: dict[str, Any] = {"prediction": predicted.mean}
    for name in device.fields[1:]:
        column = getattr(predicted, name)
        columns[name] = _named(column, device.encoding) if column.dtype == bool else column
    result: dict[str, Any] = {"file": str(model)}
    if as_json and own is not None:
        result["id"] = id_of(own).hex()
    columns = _of_all_rows(columns, ready.values)
    _note_unready(table, ready.values, device.encoding, quiet)
    _print(result, device.target_names, coverage, columns, kept, output, as_json, quiet)


def _answer_lines(
    device: "Device", how: "Streaming", folder: Path | None, state: Path | None, watch: bool
) -> None:
    """Answer standard input, with the windows, stores and watches of each group."""
    from twinedge.runtime.sample_streams import KeptState, SampleStreams
    from twinedge.runtime.store_folder import StoreFolder
    from twinedge.runtime.streaming import serve
    from twinedge.runtime.watch import Watches

    if folder is not None:
        how = how._replace(stores=StoreFolder(device, folder))
    if watch:
        how = how._replace(watches=Watches(device, how.coverage))
    if state is None:
        serve(device, sys.stdin.fileno(), stream_out, **how._asdict())
        return
    if not watch:
        check_state(state, device)
    streams = SampleStreams(device.encoding)
    kept = KeptState(state, streams, how.watches)

    def write(lines: str) -> None:
        stream_out(lines)
        kept.tick()

    before = signal.signal(signal.SIGTERM, _end)
    try:
        serve(device, sys.stdin.fileno(), write, **how._replace(streams=streams)._asdict())
    finally:
        kept.write()
        signal.signal(signal.SIGTERM, before)


def _end(number: int, _frame: Any) -> None:
    """End the program as a signal would, but write what is kept first."""
    raise SystemExit(128 + number)


def _with_run(
    folder: Path,
    table: Path,
    output: Path | None,
    anchors: Any,
    neighbors: int | None,
    coverage: float | None,
    missing: tuple[str, ...],
    keep: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    from twinedge.data.features import SideColumn
    from twinedge.run_folder import load_run

    trained = load_run(folder)
    ready, kept = SideColumn(""), {name: list[str]() for name in keep}
    (x, _), absent = read_run_points(
        table, trained, missing=missing, ready=ready, keep=kept, quiet=quiet
    )
    x, absent = x[ready.values], absent[ready.values]
    model, options = trained.model, {"anchors": anchors, "neighbors": neighbors}
    mean, std = model.predict(x, return_std=True, **options)
    outside = _named(model.outside(x) & ~absent, trained.encoding)
    columns = {"prediction": mean, "spread": std, "outside": outside}
    result: dict[str, Any] = {"run": str(folder)}
    coverage = _coverage(coverage, tuple(model.coverages), quiet)
    if coverage is not None:
        ends = model.predict_interval(x, coverage, **options)
        columns["spread"] = model.spread(x, **options)
        columns |= {"scale": std, "low": ends[..., 0], "high": ends[..., 1]}
        _note_others(anchors != "auto" or neighbors is not None, quiet)
    if trained.fill_values is not None:
        columns["missing"] = _named(absent, trained.encoding)
    names = model.target_names_ if model.targets_ > 1 else (trained.target_name,)
    columns = _of_all_rows(columns, ready.values)
    _note_unready(table, ready.values, trained.encoding, quiet)
    _print(result, names, coverage, columns, kept, output, as_json, quiet)


def _of_all_rows(columns: dict[str, Any], ready: "NDArray[np.bool_]") -> dict[str, Any]:
    """Put predictions where their rows are; NaN and nothing for rows without a full window."""
    import numpy as np

    if ready.all():
        return columns
    found: dict[str, Any] = {}
    for name, one in columns.items():
        if isinstance(one, list):
            flags = iter(one)
            found[name] = [next(flags) if is_ready else [] for is_ready in ready]
        else:
            found[name] = np.full((len(ready), *one.shape[1:]), np.nan)
            found[name][ready] = one
    return found


def _note_unready(
    table: Path, ready: "NDArray[np.bool_]", encoding: "Encoding", quiet: bool
) -> None:
    if not ready.all():
        from twinedge.data.streams import unready

        words = unready(ready, encoding.longest)
        note(f"{shown(table)}: {words}: no prediction for them", quiet=quiet)


def _named(flags: Any, encoding: "Encoding") -> list[list[str]]:
    """Names of the flagged columns, row by row, from flags of features ``(n, f)``."""
    return [list(compress(encoding.names, row)) for row in encoding.by_column(flags)]


def _coverage(requested: float | None, coverages: tuple[float, ...], quiet: bool) -> float | None:
    """Return the coverage of low and high: the one requested, else the default if there is any."""
    if requested is not None or not coverages:
        return requested
    usual = max((one for one in coverages if one <= COVERAGE), default=min(coverages))
    if usual != COVERAGE:
        note(f"low and high are for a coverage of {usual:g}: there is no {COVERAGE:g}", quiet=quiet)
    return usual


def _note_others(others: bool, quiet: bool) -> None:
    if others:
        note("low and high were calibrated for different anchors", quiet=quiet)


def _print(
    result: dict[str, Any],
    targets: "Sequence[str]",
    coverage: float | None,
    columns: dict[str, Any],
    kept: dict[str, list[str]],
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print columns, the prediction first: arrays of numbers, or lists of names.

    For several targets, numbers are ``(n, m)``. What is ``kept`` of the table comes before them.
    """
    rows = len(columns["prediction"])
    result |= {"target": targets[0]} if len(targets) == 1 else {"targets": list(targets)}
    result |= {} if coverage is None else {"coverage": coverage}
    if as_json:
        lists = {name: _plain(one, targets) for name, one in columns.items()}
        print_json({**result, "rows": rows, **({"kept": kept} if kept else {}), **lists}, output)
    else:
        # The networks compute in single precision: more digits mean nothing.
        named = list(_in_csv(columns, targets))
        words = (
            [_cell(one) for one in row]
            for row in zip(*kept.values(), *(column for _, column in named), strict=True)
        )
        print_csv([*kept, *(name for name, _ in named)], words, output)
    if output is not None:
        note(f"{plural(rows, 'prediction')} in {output}", quiet=quiet)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "|".join(value)
    return "" if value != value else f"{value:.7g}"


def _plain(column: Any, targets: "Sequence[str]") -> Any:
    """Turn a column into values for JSON: of several targets, by name."""
    if isinstance(column, list):
        return column
    if column.ndim == 1:
        return column.tolist()
    return dict(zip(targets, column.T.tolist(), strict=True))


def _in_csv(columns: dict[str, Any], targets: "Sequence[str]") -> "Iterator[tuple[str, Any]]":
    """Name columns as in a table; several targets have each its own, before what is of all."""
    if len(targets) == 1:
        yield targets[0], columns["prediction"]
        yield from list(columns.items())[1:]
        return
    for number, target in enumerate(targets):
        for name, one in columns.items():
            if not isinstance(one, list):
                yield target if name == "prediction" else f"{target}_{name}", one[:, number]
    yield from ((name, one) for name, one in columns.items() if isinstance(one, list))
