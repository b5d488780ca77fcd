"""From a table to a run: read, split, fit, score on held-out rows, and write the run folder.

Functions import the heavy packages, so that a table that cannot be read is refused at once.
"""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from twinedge.data.source import Source, from_catalogue, from_table
from twinedge.data.table import Missing
from twinedge.defaults import NEIGHBORS
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.progress import Progress, progress_bar
from twinedge.wording import quoted

if TYPE_CHECKING:
    from twinedge.estimators.twin import TwinRegressor
    from twinedge.evaluation.held_out import HeldOut
    from twinedge.run_folder import Run

Report = Callable[[str], None]

_LONG = 60.0  # seconds of each training in folds: they take equally long
# What follows the training.
_TESTING, _WRITING = "Comparing with other models on the test rows", "Writing the run"


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a twin is trained, and where its run is written.

    All fields but the last four are parameters of ``TwinRegressor``, with the same defaults, except
    that training uses all cores.

    Parameters
    ----------
    run : path, optional
        Run folder to write. Checkpoints are kept beside it, to resume from.
    resume : bool
        Continue a training that was stopped; needs ``run``.
    overwrite : bool
        Replace files of the folder even if they were changed since they were written.
    report : function, optional
        Called with each remark on the table and the training.
    """

    twins: int | str = "auto"
    hidden: int | tuple[int, ...] | str = "auto"
    activation: str = "auto"
    input_map: int | str = "auto"
    pairs: str | int = "all"
    neighbors: int = NEIGHBORS
    anchors: Any = "auto"
    loop_weight: float = 0.0
    learning_rate: float | str = "auto"
    weight_decay: float | str = "auto"
    effort: str = "normal"
    steps: int | str = "auto"
    teachers: Any = "auto"
    target_curve: str = "none"
    intervals: bool = True
    impute: str | None = None
    validation_fraction: float = 0.125
    n_jobs: int | None = -1
    random_state: Any = None
    verbose: bool = False
    run: str | Path | None = None
    resume: bool = False
    overwrite: bool = False
    report: Report | None = None

    def __post_init__(self) -> None:
        if self.resume and self.run is None:
            raise ParameterError(
                Parameter("resume", True), " needs the folder of the run: give ", Parameter("run")
            )

    @property
    def folder(self) -> Path | None:
        """The run folder to write; None for none."""
        return None if self.run is None else Path(self.run)

    def model(self) -> "TwinRegressor":
        """Return an unfitted twin with these settings."""
        from twinedge.estimators.twin import TwinRegressor

        names = [field.name for field in fields(self)]
        return TwinRegressor(**{name: getattr(self, name) for name in names[: names.index("run")]})


def fit_csv(
    path: Any,
    *,
    target: str | int | Sequence[str | int],
    drop: str | Sequence[str] = (),
    impute: str | None = None,
    categorical: str | Sequence[str] = (),
    calendar: str | Sequence[str] = (),
    drop_missing_target: bool = False,
    skip_bad_rows: bool = False,
    missing: Missing = (),
    group: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    derive: str | Sequence[str] = (),
    gap: str | float | None = None,
    split: int = 0,
    folds: int | None = None,
    test: Any = None,
    run: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    say: Report | None = None,
    **settings: Any,
) -> "Run":
    r"""Fit a twin to a table, as ``twinedge train`` does.

    Rows are split into 70 % to train, 10 % to choose settings and calibrate intervals, and 20 % to
    test.

    Parameters
    ----------
    path : path or data frame, or a list of these
        CSV, Parquet or Excel file, or a data frame, with one row per point. Several have the same
        columns, in any order, and their rows are joined.
    target : str or int, or sequence of these
        Column to predict, by name or position: 0 is the first, -1 the last. Up to 8, also as
        ``"a,b"``, are predicted together: cells of several targets may be missing.
    drop : str or sequence of str
        Columns to leave out.
    impute : {None, "median"}
        Fill in missing features with the median of the training rows, or their most frequent name;
        None refuses them.
    categorical : str or sequence of str
        Columns whose values are names, though they look like numbers.
    calendar : str or sequence of str
        Columns of dates and times of any usual form, or of seconds since 1970, to learn from: hour
        of the day, day of the week, and season. That of ``time`` may be one of them.
    drop_missing_target : bool
        Leave out rows without a target; otherwise they are refused.
    skip_bad_rows : bool
        Leave out rows that cannot be read; otherwise one of them refuses the table.
    missing : number, str, or sequence of these
        What stands for a missing value in every column, besides empty cells, ``NA`` and the like,
        such as -9999.
    group : str, optional
        Column of groups, whose rows belong together. They are held out together. Rows of one of
        several tables that lacks it are groups of their own.
    time : str, optional
        Column of times at which rows were measured: dates and times of any usual form, or numbers;
        it is not a feature. The model is trained on the oldest rows, chosen on the next ones, and
        tested on the newest, so that its scores hold for the future. Not with ``group``, unless
        there is ``derive``.
    weight : str, optional
        Column of weights: how much each row counts, in training, in intervals and in all errors; it
        is not a feature. Rows of weight 0 are left out; those of one of several tables that lacks
        the column count 1.
    derive : str or sequence of str
        Inputs from the last samples of a stream, in the order of ``time``: ``"temp@6"`` is the
        value of six samples ago, ``"mean(temp, 12)"`` that over the last twelve; there are ``min``,
        ``max``, ``std``, ``slope`` and ``delta``. In an evenly sampled table, numbers may be spans
        of time: ``"mean(temp, 10 min)"``. ``group`` then says which stream a row is of. Rows
        without a full window are left out, and so are those whose window reaches back over the
        split between training, validation and test.
    gap : str or float, optional
        The longest step between two samples of a window: a span such as ``"90 s"``, or a number of
        usual steps; by default 1.5 in an evenly sampled table, otherwise 10.
    split : int
        Which random split.
    folds : int, optional
        Cross-validate: train this many models, at least 2, each tested on rows that it did not see,
        of whole groups or in blocks of time if these are given. ``rmse_test`` and the other test
        scores are then of all rows, and the model that is returned is trained with none set aside:
        its ``test`` is empty.
    test : path or data frame, optional
        A table of your own to test on, with the same columns. All rows of the other are then for
        training, seven eighths, and validation. Not with ``folds``.
    run : path, optional
        Run folder to write. Checkpoints are kept beside it, to resume from.
    resume : bool
        Continue a training that was stopped; needs ``run``.
    overwrite : bool
        Replace files of the folder even if they were changed since they were written.
    say : function, optional
        Called with each remark on the table and the training.
    **settings
        Parameters of ``TwinRegressor``. Training uses all cores by default.

    Returns
    -------
    Run
        The model with its validation and test points and its scores, in units of the target.
        ``run.model.interrupted_`` is True if Ctrl-C ended the training early.

    Raises
    ------
    InputError
        If the table, the folder or a parameter cannot be used.
    KeyboardInterrupt
        If Ctrl-C came before there was a network to keep.

    Examples
    --------
    >>> import twinedge
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "table.csv"
    ...     lines = [f"{k % 10},{k // 10},{k % 10 * (k // 10)}" for k in range(100)]
    ...     _ = table.write_text("\n".join(["width,height,area", *lines]))
    ...     run = twinedge.fit_csv(table, target="area", hidden=8, steps=200, random_state=0)
    >>> run.feature_names, run.target_name, len(run.test[1])
    (('width', 'height'), 'area', 20)
    >>> run.model.predict([[2, 3]]).shape
    (1,)
    """
    train = TrainSettings(
        impute=impute, run=run, resume=resume, overwrite=overwrite, report=say, **settings
    )
    with progress_bar(train.verbose) as progress:
        progress.stage("Reading the table")
        source = from_table(
            path,
            target=target,
            drop=[drop] if isinstance(drop, str) else drop,
            impute=impute,
            categorical=[categorical] if isinstance(categorical, str) else categorical,
            calendar=[calendar] if isinstance(calendar, str) else calendar,
            drop_missing_target=drop_missing_target,
            skip_bad_rows=skip_bad_rows,
            missing=missing,
            group=group,
            time=time,
            weight=weight,
            derive=derive,
            gap=gap,
            split=split,
            folds=folds,
            test=test,
        )
        return fit_source(source, train)


def fit_dataset(name: str, settings: TrainSettings, *, split: int = 0) -> "Run":
    """Fit a twin to one of the paper's data sets, on one of its 25 splits."""
    return fit_source(from_catalogue(name, split), settings)


def fit_source(source: Source, settings: TrainSettings) -> "Run":
    """Fit a twin to a table that has been read, and write its run if it has a folder."""
    from twinedge.evaluation.comparison import few_rows
    from twinedge.evaluation.held_out import run_scores
    from twinedge.run_folder import Run, check_writable, checkpoint_of
    from twinedge.scoring.weights import effective_rows, of_rows, relative

    check_curve(source, settings.target_curve)
    report, folder, checkpoint = settings.report or _ignore, settings.folder, None
    if folder is not None:
        check_writable(folder, overwrite=settings.overwrite)
        checkpoint = checkpoint_of(folder)
    for remark in source.remarks:
        report(remark)
    start = perf_counter()
    with progress_bar(settings.verbose) as progress:
        count = len(source.folds)
        stages = {f"Fold {k} of {count}": _LONG for k in range(1, count + 1)}
        stages |= {"Training": _LONG} if stages else {}
        progress.plan({**stages, _TESTING: 3 + len(source.y) / 500, _WRITING: 1})
        folds = _cross_validated(source, settings, progress, checkpoint)
        with progress.part("Training"):
            model = _fit(source, settings, checkpoint, settings.resume, settings.report)
        validation, test = source.part(source.rows.val), source.part(source.rows.test)
        scores: dict[str, Any] = {}
        if not source.targets:
            scores["rmse_val"] = model.validation_rmse_
        try:
            progress.stage(_TESTING)
            scores |= run_scores(model, source, folds)
        except KeyboardInterrupt:  # the model is kept, without its test scores
            model.interrupted_ = True
        scores["seconds"] = round(perf_counter() - start, 2)
        tested = source.rows.test if len(source.rows.test) else slice(None)
        weights = of_rows(source.weights, tested)
        few = few_rows(
            int(effective_rows(weights, len(source.y[tested]))),
            int(effective_rows(model.validation_weights_, len(validation[1]))),
        )
        if few:
            report(few)
        done = Run(
            model,
            source.encoding.inputs,
            source.target_name,
            validation,
            test,
            source=_source_record(source),
            scores=scores,
            test_weights=relative(of_rows(source.weights, source.rows.test)),
            rows=source.row_numbers(),
        )
        if folder is not None and checkpoint is not None:
            progress.stage(_WRITING)
            _save(done, folder, checkpoint, settings, count)
    return done


def check_curve(source: Source, name: str) -> None:
    """Refuse a table with a target, to learn from, that a curve cannot take."""
    from twinedge.scoring.target_curve import CURVES, TargetCurve

    if name not in CURVES or source.targets:
        return
    rows = sorted([*source.rows.train, *source.rows.val])

    def where(row: int) -> str:
        file, number = source.name, rows[row]  # of one of the paper's sets, from 0
        if source.numbers is not None:
            number, tables = source.numbers[number], list(source.tables or ())
            if tables:
                file, number = tables[number[0]], number[1]
        return f"{file}: row {number}, column {quoted(source.target_name)}"

    TargetCurve(name).check(source.y[rows], where)


def _save(run: "Run", folder: Path, checkpoint: Path, settings: TrainSettings, folds: int) -> None:
    """Write a run; its checkpoints go unless the training was stopped."""
    from twinedge.training.trainer import discard

    try:
        with _undisturbed():
            run.save(folder, overwrite=settings.overwrite)
    except InputError as error:
        kept = f"; the training is kept in {checkpoint}: continue with "
        raise ParameterError(*error.parts, kept, Parameter("resume", True)) from error
    if not run.model.interrupted_:
        for one in (checkpoint, *(_of_fold(checkpoint, k) for k in range(folds))):
            discard(one)


def _source_record(source: Source) -> dict[str, Any]:
    """Return what a run keeps about its table."""
    record: dict[str, Any] = {
        "dataset": source.name,
        "split": source.split,
        "rows": len(source.y),
        "tables": source.tables,
    }
    if source.groups is not None:
        record["group"] = source.group_name
    if source.times is not None and source.notation is not None:
        record["time"] = source.time_name
        record["time_notation"] = source.notation._asdict()
        record["time_ranges"] = source.time_ranges()
    if source.weights is not None:
        record["weight"] = source.weight_name
    record |= {"missing": list(source.missing), "options": source.options}
    optional = ("tables", "missing", "options")
    return {key: one for key, one in record.items() if one or key not in optional}


def _cross_validated(
    source: Source, settings: TrainSettings, progress: Progress, checkpoint: Path | None
) -> "list[list[HeldOut]]":
    """Train a model for each fold, if there are any, and predict the rows that it did not see.

    Returns the predictions of each target, fold by fold.
    """
    from twinedge.evaluation.held_out import held_out

    found = []
    for k, fold_of in enumerate(source.folds):
        fold, title = fold_of(), f"Fold {k + 1} of {len(source.folds)}"
        kept = None if checkpoint is None else _of_fold(checkpoint, k)
        again = settings.resume and kept is not None and kept.exists()
        with progress.part(title, opaque=True):
            model = _fit(fold, settings, kept, again, _ignore)
        if model.interrupted_:
            (settings.report or _ignore)(f"Stopped in {title.lower()}, before the training itself.")
            raise KeyboardInterrupt
        found.append(held_out(model, fold))
    return found


def _of_fold(checkpoint: Path, fold: int) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.fold{fold + 1}")


def _ignore(remark: str) -> None:
    """Report nothing."""


def _fit(
    source: Source,
    settings: TrainSettings,
    checkpoint: Path | None,
    resume: bool,
    report: Report | None,
) -> "TwinRegressor":
    """Fit a model; without ``report``, digits that a device cannot hold raise a warning."""
    from twinedge.estimators.inputs import PrecisionWarning, check_precision
    from twinedge.scoring.weights import of_rows
    from twinedge.training.trainer import DivergedError, discard

    model = settings.model()
    train, val = source.rows.train, source.rows.val
    beside = of_rows(source.groups, val), of_rows(source.weights, val)
    try:
        remarks = check_precision(*source.part(train), source.encoding, source.target_names)
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from error
    for remark in remarks:
        (report or _ignore)(f"{source.name}: {remark}")
    is_new = checkpoint is not None and not checkpoint.exists()
    try:
        with warnings.catch_warnings():
            if report is not None:  # it was reported above
                warnings.simplefilter("ignore", PrecisionWarning)
            model.fit(
                *source.part(train),
                validation=(*source.part(val), *beside),
                groups=of_rows(source.groups, train),
                times=of_rows(source.times, train),
                sample_weight=of_rows(source.weights, train),
                encoding=source.encoding,
                checkpoint=checkpoint,
                resume=resume,
            )
    except (KeyboardInterrupt, ModuleNotFoundError) as stop:  # before the first round
        if checkpoint is not None and is_new and not any(checkpoint.glob("*.npz")):
            discard(checkpoint)
        if isinstance(stop, KeyboardInterrupt) and report is not None:
            report("Stopped before there was a network to keep.")
        raise
    except DivergedError:
        if checkpoint is not None:
            discard(checkpoint)
        raise
    model.target_names_, model.fill_values_ = source.target_names, source.fill_values
    return model


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C inside the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
