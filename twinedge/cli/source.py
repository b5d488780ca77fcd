"""Tables that commands read: what ``train`` learns from, and points for a model that is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from twinedge.cli.output import note_filled, saying
from twinedge.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from twinedge.data import Split
    from twinedge.data.table import Prepared
    from twinedge.encoding import Encoding
    from twinedge.learn.run import Run

    Points = tuple[NDArray[np.float64], NDArray[np.float64]]


class Reading(NamedTuple):
    """How a person wants a table to be read; named as in ``twinedge.data.read_table``."""

    target: str | None
    drop: list[str] | None = None
    impute: str | None = None
    categorical: list[str] | None = None
    drop_missing_target: bool = False
    group: str | None = None

    def given(self) -> dict[str, Any]:
        """Return what was asked for, and nothing that was not."""
        return {name: one for name, one in self._asdict().items() if one not in (None, False)}


class Source(NamedTuple):
    """A table with its split, and what a person should know about it."""

    name: str
    X: "NDArray[np.float64]"
    y: "NDArray[np.float64]"
    encoding: "Encoding"
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
    encoding: "Encoding",
    fillable: "NDArray[np.bool_]",
    *,
    target: str | None = None,
    quiet: bool = False,
) -> "Points":
    """Read points for a model with these columns, and their targets if a target is named.

    A value that is missing, and may be, is NaN. Without a target there are no targets either.
    """
    import numpy as np

    from twinedge.data import read_features

    x, y = read_features(table, encoding, target=target, fillable=fillable)
    note_filled(table, int(encoding.by_column(np.isnan(x)).sum()), quiet=quiet)
    return x, np.empty(0) if y is None else y


def read_run_points(
    table: Path, run: "Run", *, target: bool = False, quiet: bool = False
) -> "tuple[Points, NDArray[np.bool_]]":
    """Read points for a run, filled in where it has values for what is missing; and which were."""
    import numpy as np

    encoding, values = run.encoding, run.fill_values
    values = np.full(len(encoding.inputs), np.nan) if values is None else values
    column = run.target_name if target else None
    x, y = read_points(table, encoding, np.isfinite(values), target=column, quiet=quiet)
    missing = np.isnan(x)
    return (np.where(missing, values, x), y), missing


def from_catalogue(name: str, split: int) -> Source:
    """Take one of the paper's data sets with one of its 25 splits."""
    from twinedge import data
    from twinedge.encoding import Encoding

    rows = data.splits(name, split)
    known = data.load(name)
    encoding = Encoding.plain(known.feature_names)
    return Source(known.name, known.X, known.y, encoding, known.target_name, rows)


def from_file(path: Path, reading: Reading, split: int) -> Source:
    """Read a table, split it by the paper's recipe or group by group, and prepare it."""
    from twinedge import data
    from twinedge.errors import place, plural

    table = data.read_table(path, **reading.given())
    assert table.y is not None
    assert table.target_name is not None
    try:
        if table.groups is None:
            rows = data.split_rows(len(table.y), split)
        else:
            rows = data.split_groups(table.groups, split)
    except InputError as error:
        raise InputError(f"{place(path)}: {error}") from error
    prepared = table.prepare(rows.train)
    remarks = [*table.remarks, *_of_categories(prepared, path)]
    if table.missing:
        remarks.append(f"{place(path)}: filled in {plural(table.missing, 'missing value')}")
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
        prepared.X,
        table.y,
        prepared.encoding,
        table.target_name,
        rows,
        prepared.fill_values,
        tuple(remarks),
        table.groups,
    )


def _of_categories(prepared: "Prepared", path: Path) -> list[str]:
    """Say which columns are categories, and what became of their levels."""
    from twinedge.errors import place, plural, quoted

    encoding, said = prepared.encoding, []
    unknown = encoding.by_column(encoding.unknown(prepared.X)).sum(axis=0)
    for name, one, count in zip(encoding.names, encoding.categories, unknown, strict=True):
        if one is None:
            continue
        words = f"column {quoted(name)} is a category of {plural(len(one.levels), 'level')}"
        if one.others:
            words += f" and, as one more, {plural(len(one.others), 'rare one')}"
        if count:
            words += f"; {plural(int(count), 'row')} to validate or test with another"
        said.append(f"{place(path)}: {words}")
    return said


def read_source(
    path: Path | None, reading: Reading, dataset: str | None, split: int, *, quiet: bool = False
) -> Source:
    """Take the table that a command names: a file with its options, or one of the paper's sets."""
    if path is not None and dataset is not None:
        raise InputError(f"{path} and --dataset {dataset}: name one of the two, not both")
    if dataset is not None:
        for name in reading.given():
            raise InputError(f"--{name.replace('_', '-')} is for a DATA.csv, not a --dataset")
        return from_catalogue(dataset, split)
    if path is None:
        raise InputError("nothing to train on: name a DATA.csv or a --dataset")
    if reading.target is None:
        raise InputError("--target is missing: the column to predict, by name or position")
    with saying("Reading the table", quiet=quiet):
        return from_file(path, reading, split)
