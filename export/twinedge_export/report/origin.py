"""Where a report comes from: command, versions, data, training."""

import platform
from importlib.metadata import version

from twinedge.version import __version__
from twinedge_export.report.document import Cell, Check, Section, Table
from twinedge_export.report.findings import Findings
from twinedge_export.report.words import number, shape

_PACKAGES = ("numpy", "matplotlib")
_TRAINING = ("tensorflow", "scikit-learn")


def origin(found: Findings, command: str) -> Section:
    """Say how the same report is made again."""
    told = _trained(found) if found.run is not None else _given(found)
    return Section(
        "origin",
        "How it was made",
        (
            "Nothing here is typed in by hand. The same command on the same machine gives the same "
            "file, byte for byte.",
        ),
        (),
        (
            Table("origin", "This report", ("what", "value"), tuple(made(found, command))),
            Table("training", "The model", ("what", "value"), tuple(told)),
        ),
        checks=(Check(command, "this page"),),
    )


def made(found: Findings, command: str) -> list[tuple[Cell, ...]]:
    """Tell command and versions, and what the export of a run would say."""
    packages = (*_PACKAGES, *(_TRAINING if found.run is not None else ()))
    rows: list[tuple[Cell, ...]] = [
        ("command", command),
        ("twinedge", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in packages),
        ("seed", str(found.seed)),
    ]
    done = found.export
    if done is not None:
        score = done.files[0].score
        rows += [
            ("anchors", f"{len(done.rows)}, chosen by {done.method} (asked for: {done.select})"),
            ("weights", done.files[0].made),
            (f"rounding changes the {done.judge.name} error by", f"{100 * score.cost:+.2f} %"),
            ("largest deviation of the pack from the float model", score.largest_deviation),
        ]
    if found.refused:
        rows.append(("twinedge export would refuse this", found.refused))
    return rows


def _given(found: Findings) -> list[tuple[Cell, ...]]:
    """Tell what a pack says of itself."""
    pack, known = found.device.pack, found.pack.pack
    metadata = {} if known is None else known.metadata
    plain = (str, int, float)
    return [
        ("file", found.file),
        ("bytes", len(found.data)),
        ("target", found.target),
        ("columns", ", ".join(found.device.encoding.names)),
        ("networks", f"{number(found.model.twins, 'twin')} of {shape(found.model.hidden)}"),
        ("activation", pack.activation),
        ("weights", found.model.weights),
        *((key, value) for key, value in metadata.items() if isinstance(value, plain)),
    ]


def _trained(found: Findings) -> list[tuple[Cell, ...]]:
    assert found.run is not None
    assert found.export is not None
    run, model = found.run, found.run.model
    counts = [len(model.anchor_y_), len(run.validation[1]), len(run.test[1])]
    names = ("training", "validation", "test")
    rows: list[tuple[Cell, ...]] = [
        ("run", found.name),
        *((key, str(value)) for key, value in run.source.items()),
        ("rows used", ", ".join(f"{n:,} {name}" for n, name in zip(counts, names, strict=True))),
        ("target", run.target_name),
        ("columns", ", ".join(found.device.encoding.names)),
        ("networks", f"{number(found.model.twins, 'twin')} of {shape(found.model.hidden)}"),
        ("activation", model.activation_),
        ("learning rate", model.learning_rate_),
        ("weight decay", model.weight_decay_),
        ("steps", model.steps_),
        ("networks tried on validation rows", len(model.trials_)),
    ]
    judge = found.export.judge
    for name, one in ((judge.name, judge.everyone), ("test", judge.everyone_test)):
        if one is not None:
            rows.append((f"{name} RMSE, all anchors", one.rmse))
    return rows
