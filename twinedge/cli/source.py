"""Tables that commands read: what ``train`` learns from, and points for a model that is there."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from twinedge.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from twinedge.data import Split
    from twinedge.learn.run import Run

    Points = tuple[NDArray[np.float64], NDArray[np.float64]]


class Source(NamedTuple):
    """A table with its split, and what a person should know about it."""

    name: str
    X: "NDArray[np.float64]"
    y: "NDArray[np.float64]"
    feature_names: tuple[str, ...]
    target_name: str
    rows: "Split"
    fill_values: "NDArray[np.float64] | None" = None
    remarks: tuple[str, ...] = ()
    groups: "NDArray[np.str_] | None" = None

    def part(self, rows: "NDArray[np.int64]") -> "Points":
        """Features and targets of some rows."""
        return self.X[rows], self.y[rows]


def read_points(
    table: Path,
    names: tuple[str, ...],
    fillable: "NDArray[np.bool_]",
    *,
    target: str | None = None,
    quiet: bool = False,
) -> "Points":
    """Read points for a model with these features, and their targets if a target is named.

    A value that is missing, and may be, is NaN. Without a target there are no targets either.
    """
    import numpy as np

    from twinedge.cli.output import note_filled
    from twinedge.data import read_features

    # No cell is infinite, so this marks what is to be filled in.
    marks = np.where(fillable, np.inf, np.nan)
    points = read_features(table, names, target=target, impute_values=marks)
    note_filled(table, points.imputed, quiet=quiet)
    y = np.empty(0) if points.y is None else points.y
    return np.where(np.isinf(points.X), np.nan, points.X), y


def read_run_points(
    table: Path, run: "Run", *, target: bool = False, quiet: bool = False
) -> "tuple[Points, NDArray[np.bool_]]":
    """Read points for a run, filled in where it has values for what is missing; and which were."""
    import numpy as np

    names, values = run.feature_names, run.fill_values
    values = np.full(len(names), np.nan) if values is None else values
    column = run.target_name if target else None
    x, y = read_points(table, names, np.isfinite(values), target=column, quiet=quiet)
    missing = np.isnan(x)
    return (np.where(missing, values, x), y), missing


def from_catalogue(name: str, split: int) -> Source:
    """Take one of the paper's data sets with one of its 25 splits."""
    from twinedge import data

    rows = data.splits(name, split)
    known = data.load(name)
    return Source(known.name, known.X, known.y, known.feature_names, known.target_name, rows)


def from_file(
    path: Path,
    target: str,
    drop: list[str],
    impute: str | None,
    split: int,
    group: str | None = None,
) -> Source:
    """Read a table and split it by the paper's recipe, or group by group."""
    from twinedge import data
    from twinedge.data.wording import place, plural

    table = data.read_table(path, target=target, drop=drop, impute=impute, group=group)
    assert table.y is not None
    assert table.target_name is not None
    try:
        if table.groups is None:
            rows = data.split_rows(len(table.y), split)
        else:
            rows = data.split_groups(table.groups, split)
    except InputError as error:
        raise InputError(f"{place(path)}: {error}") from error
    remarks = []
    if table.imputed:
        remarks.append(f"{place(path)}: filled in {plural(table.imputed, 'missing value')}")
    if table.duplicates:
        repeats = plural(table.duplicates, "row") + " like an earlier one"
        remarks.append(f"{place(path)}: {repeats}; the test error may look better than it is")
    if table.groups is not None:
        train, val, test = (len(set(table.groups[part])) for part in rows)
        remarks.append(
            f"{place(path)}: {train + val + test} groups of rows: {train} to train, {val} to "
            f"validate, {test} to test"
        )
    return Source(
        path.name,
        table.X,
        table.y,
        table.feature_names,
        table.target_name,
        rows,
        table.fill_values,
        tuple(remarks),
        table.groups,
    )


def read_source(
    path: Path | None,
    target: str | None,
    drop: list[str],
    impute: str | None,
    dataset: str | None,
    split: int,
    group: str | None = None,
) -> Source:
    """Take the table that a command names: a file with its options, or one of the paper's sets."""
    if path is not None and dataset is not None:
        raise InputError(f"{path} and --dataset {dataset}: name one of the two, not both")
    if dataset is not None:
        if target is not None or drop or impute is not None:
            raise InputError("--target, --drop and --impute are for a DATA.csv, not a --dataset")
        if group is not None:
            raise InputError("--group is for a DATA.csv, not a --dataset")
        return from_catalogue(dataset, split)
    if path is None:
        raise InputError("nothing to train on: name a DATA.csv or a --dataset")
    if target is None:
        raise InputError("--target is missing: the column to predict, by name or position")
    return from_file(path, target, drop, impute, split, group)
