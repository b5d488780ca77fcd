"""Training into a run folder, for the commands that do."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from twinedge.cli.output import note, saying
from twinedge.cli.source import Source
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.learn.estimator import Validation
    from twinedge.learn.twin import TwinRegressor


def fit_run(
    model: "TwinRegressor",
    source: Source,
    output: Path,
    *,
    split: int,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Fit a model to a table, write its run folder, and return what ``train`` prints."""
    from twinedge.learn.run import Run, check_writable
    from twinedge.learn.suitability import few_rows, standing
    from twinedge.learn.training import discard

    check_writable(output, overwrite=overwrite)
    for remark in source.remarks:
        note(remark, quiet=quiet)
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    start = time.perf_counter()
    _fit(model, source, checkpoint, resume, quiet)
    validation, test = source.part(source.rows.val), source.part(source.rows.test)
    scores: dict[str, Any] = {"rmse_val": model.validation_rmse_}
    try:
        with saying("Predicting the test rows", quiet=quiet):
            said = model.predict(test[0])
            train = source.part(source.rows.train)
            scores |= standing(train, test, said, validation, _pack_bytes(model)).scores()
    except KeyboardInterrupt:  # then nobody knows; what was trained is kept all the same
        model.interrupted_ = True
    scores["seconds"] = round(time.perf_counter() - start, 2)
    few = few_rows(len(test[1]), len(validation[1]))
    if few:
        note(few, quiet=quiet)
    where = {"dataset": source.name, "split": split, "rows": len(source.y)}
    run = Run(
        model,
        source.encoding.inputs,
        source.target_name,
        validation,
        test,
        source=where,
        scores=scores,
        fill_values=source.fill_values,
    )
    try:
        with _undisturbed(), saying("Writing the run", quiet=quiet):
            run.save(output, overwrite=overwrite)
    except InputError as error:
        raise InputError(f"{error}; the training is in {checkpoint}: --resume goes on") from error
    if not model.interrupted_:
        discard(checkpoint)
    return {
        **where,
        "features": len(source.encoding.names),
        "twins": len(model.weights_),
        "activation": model.activation_,
        "learning_rate": model.learning_rate_,
        "weight_decay": model.weight_decay_,
        **scores,
        "steps": model.steps_,
        "taught": model.teaching_ and model.teaching_["taught"],
        "interrupted": model.interrupted_,
        "run": str(output),
    }


def _pack_bytes(model: "TwinRegressor") -> int:
    """Bytes of the pack with as many anchors as an export takes; usual ones if no pack holds it."""
    from twinedge.budget import Model, twin_bytes
    from twinedge.learn.small_trees import ROOM

    twins = len(model.weights_)
    try:
        shape = Model.of(
            model.anchor_X_.shape[1],
            model.architecture_.hidden,
            max(twins, min(32, len(model.anchor_y_))),
            twins=twins,
            activation=model.activation_,
            intervals=bool(model.intervals),
        )
        return twin_bytes(shape)
    except InputError:
        return ROOM


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait until what is begun is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _fit(
    model: "TwinRegressor", source: Source, checkpoint: Path, resume: bool, quiet: bool
) -> None:
    from twinedge.learn.training import discard

    train, val = source.rows.train, source.rows.val
    validation: Validation = source.part(val)
    groups = None
    if source.groups is not None:
        groups, validation = source.groups[train], (*source.part(val), source.groups[val])
    ours = not checkpoint.exists()
    try:
        model.fit(
            *source.part(train),
            validation,
            groups=groups,
            encoding=source.encoding,
            checkpoint=checkpoint,
            resume=resume,
        )
    except KeyboardInterrupt:  # before the first round
        if ours and not any(checkpoint.glob("*.npz")):
            discard(checkpoint)
        note("Stopped before there was a network to keep.", quiet=quiet)
        raise typer.Exit(130) from None
    if not math.isfinite(model.validation_rmse_):
        discard(checkpoint)
        raise InputError("the training diverged: try a smaller --learning-rate")
