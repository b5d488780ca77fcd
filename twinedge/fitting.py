"""From a table to a run: read, split, fit, score on held-out rows, and write the run folder.

Functions import the heavy packages, so that a table that cannot be read is refused at once.
"""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from twinedge.data.source import Source, from_catalogue, from_table
from twinedge.data.table import Missing
from twinedge.defaults import COVERAGE
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.progress import Progress, progress_bar

if TYPE_CHECKING:
    from twinedge.learn.estimator import Validation
    from twinedge.learn.run import Run
    from twinedge.learn.twin import TwinRegressor
    from twinedge.scoring import Array

Say = Callable[[str], None]

# What follows the training.
_TESTING, _WRITING = "Comparing with other models on the test rows", "Writing the run"


def fit_csv(
    path: Any,
    *,
    target: str | int,
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
    split: int = 0,
    run: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    say: Say | None = None,
    **settings: Any,
) -> "Run":
    r"""Fit a twin to a table, as ``twinedge train`` does.

    Rows are split into 70 % to train, 10 % to choose settings and calibrate intervals, and 20 % to
    test.

    Parameters
    ----------
    path : path or data frame
        CSV, Parquet or Excel file, or a data frame, with one row per point.
    target : str or int
        Column to predict, by name or position: 0 is the first, -1 the last.
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
        What stands for a missing value in every column, besides empty cells, ``NA`` and the like:
        -9999, say.
    group : str, optional
        Column that says which rows belong together. They are held out together.
    time : str, optional
        Column that says when each row was measured: dates and times of any usual form, or numbers;
        it is not a feature. The model is trained on the oldest rows, chosen on the next ones, and
        tested on the newest, so that its scores hold for the future. Not with ``group``.
    weight : str, optional
        Column that says how much each row counts, in training, in intervals and in all errors; it
        is not a feature. Rows of weight 0 are left out.
    split : int
        Which random split.
    run : path, optional
        Run folder to write. Checkpoints are kept beside it, to resume from.
    resume : bool
        Continue a training that was stopped; needs ``run``.
    overwrite : bool
        Replace files of the folder even if they were changed since they were written.
    say : function, optional
        Called with each remark on the table and the training.
    **settings
        Parameters of ``TwinRegressor``. Training uses all cores unless ``n_jobs`` says otherwise.

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
    with progress_bar(bool(settings.get("verbose"))) as progress:
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
            split=split,
        )
        return fit_source(
            source,
            run=run,
            resume=resume,
            overwrite=overwrite,
            say=say,
            impute=impute,
            **settings,
        )


def fit_dataset(name: str, *, split: int = 0, **options: Any) -> "Run":
    """Fit a twin to one of the paper's data sets, on one of its 25 splits.

    Takes the options of ``fit_source``.
    """
    return fit_source(from_catalogue(name, split), **options)


def fit_source(
    source: Source,
    *,
    run: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    say: Say | None = None,
    **settings: Any,
) -> "Run":
    """Fit a twin to a table that has been read; parameters as in ``fit_csv``."""
    with progress_bar(bool(settings.get("verbose"))) as progress:
        progress.plan({_TESTING: 3 + len(source.y) / 500, _WRITING: 1})
        return _fitted(source, progress, run, resume, overwrite, say or _nothing, settings)


def _fitted(
    source: Source,
    progress: Progress,
    run: str | Path | None,
    resume: bool,
    overwrite: bool,
    say: Say,
    settings: dict[str, Any],
) -> "Run":
    import numpy as np

    from twinedge.learn.run import Run, check_writable, checkpoint_of
    from twinedge.learn.small_trees import ROOM
    from twinedge.learn.comparison import few_rows, standing
    from twinedge.learn.training import discard
    from twinedge.learn.twin import TwinRegressor
    from twinedge.weighting import effective_rows, of_rows, relative

    model = TwinRegressor(**{"n_jobs": -1, **settings})
    folder = None if run is None else Path(run)
    checkpoint = None
    if folder is not None:
        check_writable(folder, overwrite=overwrite)
        checkpoint = checkpoint_of(folder)
    for remark in source.remarks:
        say(remark)
    start = perf_counter()
    with progress.part("Training"):
        _fit(model, source, checkpoint, resume, say)
    validation, test = source.part(source.rows.val), source.part(source.rows.test)
    weights = relative(of_rows(source.weights, source.rows.test))
    scores: dict[str, Any] = {"rmse_val": model.validation_rmse_}
    try:
        progress.stage(_TESTING)
        said = model.predict(test[0])
        train = source.part(source.rows.train)
        room = model.pack_bytes() or ROOM
        weighed = model.sample_weights_, model.validation_weights_, weights
        naive = _naive(source)
        scores |= standing(train, test, said, validation, room, weighed, naive).scores()
        scores |= _scores_by_time(source, said - test[1], naive, weights)
        covered = None
        if model.calibration_ is not None and COVERAGE in model.calibration_.quantiles:
            low, high = model.predict_interval(test[0], COVERAGE).T
            covered = (low <= test[1]) & (test[1] <= high)
            scores["coverage_test"] = float(np.average(covered, weights=weights))
        scores |= _scores_by_group(source, model, said - test[1], covered, weights)
    except KeyboardInterrupt:  # the model is kept, without its test scores
        model.interrupted_ = True
    scores["seconds"] = round(perf_counter() - start, 2)
    few = few_rows(
        int(effective_rows(weights, len(test[1]))),
        int(effective_rows(model.validation_weights_, len(validation[1]))),
    )
    if few:
        say(few)
    done = Run(
        model,
        source.encoding.inputs,
        source.target_name,
        validation,
        test,
        source={
            "dataset": source.name,
            "split": source.split,
            "rows": len(source.y),
            **({} if source.groups is None else {"group": source.group_name}),
            **_time_record(source),
            **({} if source.weights is None else {"weight": source.weight_name}),
            **({"missing": list(source.missing)} if source.missing else {}),
        },
        scores=scores,
        test_weights=weights,
    )
    if folder is None or checkpoint is None:
        return done
    try:
        with _undisturbed():
            progress.stage(_WRITING)
            done.save(folder, overwrite=overwrite)
    except InputError as error:
        kept = f"; the training is kept in {checkpoint}: continue with "
        raise ParameterError(*error.parts, kept, Parameter("resume", True)) from error
    if not model.interrupted_:
        discard(checkpoint)
    return done


def _naive(source: Source) -> "Array | None":
    """Last known target before each test row; None if the order of rows means nothing."""
    from twinedge.forecasting import naive_forecast

    if source.times is None:
        return None
    return naive_forecast(source.times, source.y)[source.rows.test]


def _scores_by_time(
    source: Source, error: "Array", naive: "Array | None", weights: "Array | None"
) -> dict[str, Any]:
    """Score test rows in consecutive blocks of time, if they have times."""
    from twinedge.forecasting import score_blocks

    if source.times is None or source.notation is None or naive is None:
        return {}
    test = source.rows.test
    of_naive = naive - source.y[test]
    blocks = score_blocks(source.times[test], source.notation, error, of_naive, weights)
    return {"by_time": blocks}


def _scores_by_group(
    source: Source,
    model: "TwinRegressor",
    error: "Array",
    covered: "Array | None",
    weights: "Array | None",
) -> dict[str, Any]:
    """Score each test group, and each training group that networks left out in turn."""
    import numpy as np

    from twinedge.scoring import rmse, score_groups

    if source.groups is None:
        return {}
    tested = score_groups(source.groups[source.rows.test], error, covered, weights)
    scores: dict[str, Any] = {"groups": [{**one, "part": "test"} for one in tested]}
    left_out = model.left_out_
    if left_out is not None:
        within, each = None, left_out.sample_weight
        if covered is not None and model.calibration_ is not None:
            reach = model.calibration_.reach(COVERAGE)
            within = np.abs(left_out.errors) <= reach * model.calibration_.scale(left_out.signals)
        found = score_groups(
            source.groups[source.rows.train], -left_out.errors, within, left_out.sample_weight
        )
        scores["groups"] += [{**one, "part": "left out"} for one in found]
        scores["rmse_left_out"] = rmse(left_out.errors, weights=each)
    return scores


def _time_record(source: Source) -> dict[str, Any]:
    """Return what a run keeps about the order of its rows, if that is known."""
    if source.times is None or source.notation is None:
        return {}
    ranges, notation = source.time_ranges(), source.notation._asdict()
    return {"time": source.time_name, "time_notation": notation, "time_ranges": ranges}


def _nothing(remark: str) -> None:
    """Say nothing."""


def _fit(
    model: "TwinRegressor", source: Source, checkpoint: Path | None, resume: bool, say: Say
) -> None:
    from twinedge.learn.inputs import PrecisionWarning, check_precision
    from twinedge.learn.training import DivergedError, discard
    from twinedge.weighting import of_rows

    train, val = source.rows.train, source.rows.val
    validation: Validation = source.part(val)
    groups = of_rows(source.groups, train)
    if source.groups is not None or source.weights is not None:
        beside = of_rows(source.groups, val), of_rows(source.weights, val)
        validation = (*source.part(val), *beside)
    try:
        remarks = check_precision(*source.part(train), source.encoding, source.target_name)
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from error
    for remark in remarks:
        say(f"{source.name}: {remark}")
    ours = checkpoint is not None and not checkpoint.exists()
    try:
        with warnings.catch_warnings():
            if say is not _nothing:  # it was said above
                warnings.simplefilter("ignore", PrecisionWarning)
            model.fit(
                *source.part(train),
                validation=validation,
                groups=groups,
                times=of_rows(source.times, train),
                sample_weight=of_rows(source.weights, train),
                encoding=source.encoding,
                checkpoint=checkpoint,
                resume=resume,
            )
    except (KeyboardInterrupt, ModuleNotFoundError) as stop:  # before the first round
        if checkpoint is not None and ours and not any(checkpoint.glob("*.npz")):
            discard(checkpoint)
        if isinstance(stop, KeyboardInterrupt):
            say("Stopped before there was a network to keep.")
        raise
    except DivergedError:
        if checkpoint is not None:
            discard(checkpoint)
        raise
    model.target_name_, model.fill_values_ = source.target_name, source.fill_values


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
