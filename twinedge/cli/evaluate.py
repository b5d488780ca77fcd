"""``twinedge evaluate``: how good a model is on a table with known targets."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from twinedge.cli import options
from twinedge.cli.output import (
    note,
    note_faults,
    print_blocks,
    print_groups,
    print_json,
    print_record,
    print_table,
    print_text,
)
from twinedge.cli.reading import check_store, read_device_points, read_run_points
from twinedge.cli.values import exported_for
from twinedge.defaults import COVERAGE
from twinedge.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinedge.data.features import SideColumn
    from twinedge.pack.contents import Array
    from twinedge.provenance import Known
    from twinedge.runtime.device import Device
    from twinedge.scoring.scores import Scores


class _Evaluated(NamedTuple):
    """Scores, and how many of the rows the model is known to have been trained on."""

    target: str
    scores: "Scores"
    known: "Known | None"
    over_time: dict[str, Any]
    groups: list[dict[str, Any]]


@options.command(
    "evaluate",
    "evaluate runs/latest measured.csv",
    "evaluate out/model.twin measured.csv",
    "evaluate out/model.tflite measured.csv --json",
    "evaluate runs/latest log.csv --time timestamp",
    "evaluate out/model.twin measured.csv --group machine",
    "evaluate out/model.twin measured.csv --store site.store",
)
@options.model_file
@options.argument("table", "DATA.csv", "Table with the model's columns and target.")
@options.missing
@options.skip_bad_rows
@options.column(
    "--time",
    text="When each row was measured: errors are also shown along time, in up to five blocks, "
    "beside those of the last known value.",
)
@options.column(
    "--group",
    text="Rows with the same value here belong together: errors are also shown for each group.",
)
@options.store_file
@options.backend
@options.as_json
@options.quiet
def evaluate(
    model: Path,
    table: Path,
    missing: tuple[str, ...],
    skip_bad_rows: bool,
    time: str | None,
    group: str | None,
    store: Path | None,
    backend: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare predictions and intervals with the targets in a table.

    Errors, spread, scale and widths are in units of the target; r2 is the share of its variance
    explained; the baseline is a model that always predicts the mean. The interval score is the
    width plus 2 / (1 - coverage) times how far an interval misses: lower is better. With --store,
    predictions are those of a device that has learnt these points. Each of several targets is
    compared at the rows that have it.
    """
    from twinedge.data.features import SideColumn

    reading = {
        "missing": missing,
        "skip_bad_rows": skip_bad_rows,
        "quiet": quiet,
        "time": None if time is None else SideColumn(time),
        "group": None if group is None else SideColumn(group),
    }
    model = exported_for(model, backend)
    if model.is_dir() or not model.suffix:
        if backend != "auto" or store is not None:
            raise InputError(f"{model}: stores and backends are for exported files, not a run")
        found = _of_run(model, table, reading)
    else:
        from twinedge.runtime.loading import load

        if store is not None:
            check_store(store)
        device = load(model, backend, store=store)
        if device.store is not None:
            note_faults(device.store.journal, quiet=quiet)
        found = _of_device(device, table, reading)
    name = "run" if model.is_dir() else "file"
    known = found[0].known
    if known is not None and known.rows:
        rows = max(one.scores.rows for one in found)
        note(f"{known.describe(rows)}: errors on new rows will be larger", quiet=quiet)
    if len(found) == 1:
        _print_one({name: str(model), **_result(found[0])}, found[0], as_json)
    else:
        _print_several({name: str(model)}, found, as_json)


def _result(found: _Evaluated) -> dict[str, Any]:
    """Return the results for a target, as values for JSON."""
    scores = found.scores._asdict()
    del scores["intervals"]
    known = found.known
    result = {
        "target": found.target,
        **scores,
        "trained_on": None if known is None else known.rows,
        "trained_on_exact": None if known is None else known.exact,
        **found.over_time,
    }
    return result | ({"groups": found.groups} if found.groups else {})


def _print_one(result: dict[str, Any], found: _Evaluated, as_json: bool) -> None:
    from twinedge.scoring.scores import describe_scores

    words = describe_scores(found.scores)
    if as_json:
        intervals = [one._asdict() for one in found.scores.intervals]
        print_json({**result, "intervals": intervals, "in_words": words})
        return
    blocks, groups, _ = (result.pop(key, None) for key in ("by_time", "groups", "trained_on_exact"))
    print_record({key: value for key, value in result.items() if value is not None or key == "r2"})
    if found.scores.intervals:
        print_text("")
        print_table(
            ("claimed", "covered", "mean width", "interval score"),
            [
                (f"{one.claimed:g}", f"{one.covered:.3f}", *(f"{part:.5g}" for part in one[2:]))
                for one in found.scores.intervals
            ],
        )
    if blocks:
        print_blocks(blocks)
    if groups:
        print_groups(groups)
    print_text("", words)


def _print_several(result: dict[str, Any], found: list[_Evaluated], as_json: bool) -> None:
    """Print the results of several targets, one after the other."""
    from twinedge.scoring.scores import describe_scores

    if as_json:
        targets = {
            one.target: _result(one)
            | {
                "intervals": [level._asdict() for level in one.scores.intervals],
                "in_words": describe_scores(one.scores),
            }
            for one in found
        }
        print_json({**result, "targets": targets})
        return
    for number, one in enumerate(found):
        if number:
            print_text("")
        _print_one({**result, **_result(one)}, one, as_json)


def _of_run(folder: Path, table: Path, reading: dict[str, Any]) -> list[_Evaluated]:
    import numpy as np

    from twinedge.encoding.times import Notation
    from twinedge.provenance import Known
    from twinedge.run_folder import load_run

    trained = load_run(folder)
    model, clock = trained.model, reading["time"]
    if clock is not None and trained.source.get("time") == clock.name:
        clock.notation = Notation(**trained.source["time_notation"])
    (x, y), _ = read_run_points(table, trained, target=True, **reading)
    trained_on = np.column_stack([model.anchor_X_, model.anchor_y_]).astype(float)
    seen = {row.tobytes() for row in trained_on}
    rows = np.column_stack([x, y]).astype(float)
    known = Known(sum(row.tobytes() in seen for row in rows), True)
    names = model.target_names_ if model.targets_ > 1 else (trained.target_name,)
    return _evaluate(model, names, model.coverages, x, y, known, reading)


def _of_device(device: "Device", table: Path, reading: dict[str, Any]) -> list[_Evaluated]:
    from twinedge.provenance import DIGEST, TrainingRows
    from twinedge.runtime.pack_device import PackDevice

    x, y = read_device_points(table, device, **reading)
    metadata = device.pack.metadata if isinstance(device, PackDevice) else {}
    digest = TrainingRows.read(metadata.get(DIGEST))
    known = None if digest is None else digest.known(x, y)
    return _evaluate(device, device.target_names, device.coverages, x, y, known, reading)


def _evaluate(
    model: Any,
    targets: "Sequence[str]",
    levels: "Sequence[float]",
    x: "Array",
    y: "Array",
    known: "Known | None",
    reading: dict[str, Any],
) -> list[_Evaluated]:
    """Score each target of a run or a device, which predict alike, where it was measured."""
    import numpy as np

    from twinedge.scoring.scores import score

    mean, std = model.predict(x, return_std=True)
    spread = model.spread(x)
    every = model.predict_interval(x, levels) if levels else None
    found = []
    for number, target in enumerate(targets):
        own: Any = ... if len(targets) == 1 else (slice(None), number)
        rows: Any = slice(None) if len(targets) == 1 else ~np.isnan(y[own])
        true, predicted, sizes, scale = (one[own][rows] for one in (y, mean, spread, std))
        if not len(true):
            raise InputError(f"no row has a value of the target {target}")
        ends = (
            {}
            if every is None
            else {level: every[own][rows][..., k] for k, level in enumerate(levels)}
        )
        scores = score(true, predicted, sizes, scale if levels else None, ends)
        over_time = _over_time(reading["time"], rows, true, predicted)
        groups = _of_groups(reading["group"], rows, true, predicted, ends)
        found.append(_Evaluated(target, scores, known, over_time, groups))
    return found


def _over_time(clock: "SideColumn | None", rows: Any, y: "Array", mean: "Array") -> dict[str, Any]:
    """Return the errors in blocks of time, and of the naive forecast, if the rows have times."""
    import numpy as np

    from twinedge.evaluation.forecasting import naive_forecast, score_blocks
    from twinedge.scoring.scores import rmse

    if clock is None or clock.notation is None:
        return {}
    times = clock.values[rows]
    naive = naive_forecast(times, y) - y
    known = np.isfinite(naive)
    return {
        "rmse_naive": rmse(naive[known]) if known.any() else None,
        "by_time": score_blocks(times, clock.notation, mean - y, naive),
    }


def _of_groups(
    column: "SideColumn | None", rows: Any, y: "Array", mean: "Array", ends: "dict[float, Array]"
) -> list[dict[str, Any]]:
    """Return the scores of each group, if the rows have any."""
    from twinedge.scoring.scores import score_groups

    if column is None:
        return []
    usual = min(ends, key=lambda level: abs(level - COVERAGE), default=None)
    covered = None
    if usual is not None:
        low, high = ends[usual].T
        covered = (low <= y) & (y <= high)
    return score_groups(column.values[rows], mean - y, covered)
