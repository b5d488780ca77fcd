"""Sections on what a model costs, and where a report comes from."""

import platform
from importlib.metadata import version
from typing import Any

from twinedge.budget import all_boards
from twinedge.budget.fits import describe_verdict as told
from twinedge.pack.describe import meaning_of, name_of, uses
from twinedge.version import __version__
from twinedge.wording import format_range
from twinedge_export.report import figures as figures
from twinedge_export.report.document import (
    LIGHTS,
    Cell,
    Chapter,
    Check,
    Grid,
    Light,
    Share,
    number,
    shape,
)
from twinedge_export.report.findings import Findings

# What the bytes of a pack are for, the most interesting first.
_USES = {
    "kernels": "weights of the hidden layers, padded to whole words",
    "biases": "one for each neuron, 32 bits",
    "multipliers": "bring the sums of each neuron back to 16 bits",
    "output weights": "weights of the last layer",
    "weights of both outputs": "weights of the last layer: of predictions, and of their difficulty",
    "bias of the difficulty": "of the second output of each twin, 32 bits",
    "twin heads": "shifts and fraction bits of each twin",
    "curve": "table of the silu activation",
    "anchor features": "features of the stored training points, 16 bits each",
    "anchor targets": "their targets, 32 bits each",
    "anchor counts": "how many anchors each twin has",
    "intervals": "how far off to expect predictions: weights of the signals, quantiles",
    "domain": "range of each feature, and its value when missing",
    "schema": "stands for columns and target: which points on site belong to the pack",
    "scaling": "offset and gain of each feature and of the target",
    "header": "shape, length, checksums",
    "table": "where each section begins",
    "ids": "training row of each anchor; left out of the image for a device",
    "metadata": "names, ranges, scores; left out of the image for a device",
    "padding": "zeros, so that every section begins where loads are fast",
}

_MEMORY = (
    "members",
    "networks, parameters",
    "twin, parameters",
    "networks, bytes",
    "twin, bytes",
    "ratio of bytes",
)
_BOARDS = (
    "board",
    "verdict",
    "ms, estimated",
    "flash, bytes",
    "flash there is",
    "RAM, bytes",
    "RAM there is",
    "ordinary networks",
    "core",
)


def memory(found: Findings) -> Chapter:
    """Memory against ensemble size, and the calculator for other models."""
    start = found.budget["smaller_from"]
    fewer = f"Twins have fewer parameters from {number(start['params'], 'member')} on"
    fewer += f", and take fewer bytes from {start['bytes']} on." if start["bytes"] else "."
    return Chapter(
        "memory",
        "Memory against ensembles",
        (
            "An ensemble of ordinary networks stores every one of them. A twin stores one network "
            "and a training point for each member. " + fewer,
        ),
        (figures.memory(found),),
        (
            Grid(
                "memory",
                "Memory by ensemble size",
                _MEMORY,
                tuple((*one, one.ann_bytes / one.twin_bytes) for one in found.memory),
            ),
        ),
        (
            "Parameters are counted as in the paper's section on miniaturizing accurate networks. "
            f"Bytes with {found.model.weights} weights come from the code that lays out packs, "
            "without row numbers and names, which a device does not need; those of ordinary "
            "networks are the same records without the second point, anchors and intervals.",
        ),
        (Check(f"twinedge budget {found.file}", "the same numbers"),),
        "calculator",
    )


def boards(found: Findings) -> Chapter:
    """Judge which boards hold it."""
    boards, measured = found.budget["boards"], found.budget["cores_measured"]
    known = all_boards()
    counts = {state: sum(one["verdict"] == state for one in boards) for state in LIGHTS}
    said = [f"{state}: {count}" for state, count in counts.items() if count]
    lead = [f"Of {len(boards)} boards, {', '.join(said)}."]
    if not measured:
        lead.append(
            "The runtime has not been measured on any core, so no board can be said to hold it: "
            "run twinedge firmware measure. Only packs too large for the flash are reported."
        )
    return Chapter(
        "boards",
        "Boards that hold it",
        tuple(lead),
        (),
        (
            Grid(
                "boards",
                "Boards",
                _BOARDS,
                tuple(
                    (
                        one["title"],
                        Light(LIGHTS[one["verdict"]], _verdict(one)),
                        format_range(one["milliseconds_estimated"]) or None,
                        one["flash_bytes"],
                        one["free_flash_bytes"],
                        one["ram_bytes"],
                        one["free_ram_bytes"],
                        one["ann_members"],
                        one["core"] + _stand_in(one),
                    )
                    for one in boards
                ),
            ),
            Grid(
                "sources",
                "Sources of the board figures",
                ("board", "source", "kept for others"),
                tuple(
                    (one.title, one.source, one.note)
                    for one in (known[one["board"]] for one in boards)
                ),
                folded=True,
            ),
        ),
        (
            "Flash is runtime, pack and a minimal program around them, RAM is static memory, "
            "scratch, one query and stack, both from measured images"
            + (f" ({', '.join(measured)})" if measured else "")
            + "; a core with the instruction set of another is judged as that one. The memory of a "
            "board is that of its data sheet, less what a boot loader keeps. Times are "
            "estimates: measured instructions times a range of cycles per instruction; a board "
            "whose query may take more than a second fits slowly. Ordinary "
            "networks are how many of the same shape the flash would hold.",
        ),
        (
            Check(f"twinedge budget {found.file}", "the same table"),
            Check(
                f"twinedge firmware run --board pico {found.file} rows.csv",
                "builds it for a board, and compares every bit on an emulator",
            ),
        ),
    )


def _stand_in(board: dict[str, Any]) -> str:
    on = board["measured_on"]
    return "" if on in (board["core"], None) else f" as {on}"


def pack(found: Findings) -> Chapter:
    """Say what every byte of the pack is for."""
    parts, length = uses(found.pack.pieces), found.pack.length
    order = [use for use in _USES if use in parts] + [use for use in parts if use not in _USES]
    rows = [
        (use, parts[use], Share(parts[use] / length), _USES.get(use, ""))
        for use in order
        if parts[use]
    ]
    return Chapter(
        "pack",
        "What every byte is for",
        (
            f"The .twin file has {length:,} bytes; the image for a device leaves out names and row "
            f"numbers and has {found.budget['twin_bytes']:,}.",
        ),
        (figures.pack(found),),
        (
            Grid(
                "uses",
                "What each part is for",
                ("use", "bytes", "part", "what for"),
                (*rows, ("all", length, Share(1), "")),
                folded=True,
            ),
            Grid(
                "sections",
                "Sections of the file",
                ("section", "offset", "bytes", "meaning"),
                tuple(
                    (name_of(one.kind), one.offset, one.length, meaning_of(one))
                    for one in found.pack.sections
                ),
                folded=True,
            ),
        ),
        ("Read from the file itself.",),
        (Check(f"twinedge inspect {found.file}", "every array with its offset"),),
    )


def _verdict(one: dict[str, Any]) -> str:
    return told(one["verdict"], one["why"], one["anchors"], one["milliseconds_estimated"])


_PACKAGES = ("numpy", "matplotlib")
_TRAINING = ("tensorflow", "scikit-learn")


def origin(found: Findings, command: str) -> Chapter:
    """Say how to make the same report again."""
    told = _trained(found) if found.run is not None else _given(found)
    return Chapter(
        "origin",
        "How it was made",
        (
            "Nothing here is typed by hand. The same command on the same machine writes the same "
            "file, byte for byte.",
        ),
        (),
        (
            Grid("origin", "This report", ("what", "value"), tuple(made(found, command))),
            Grid("training", "The model", ("what", "value"), tuple(told)),
        ),
        checks=(Check(command, "this page"),),
    )


def made(found: Findings, command: str) -> list[tuple[Cell, ...]]:
    """List command and versions, and what the export of a run would report."""
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
            ("anchors", f"{len(done.rows)}, chosen by {done.method} (requested: {done.select})"),
            ("weights", done.files[0].made),
            (f"rounding changes the {done.evaluator.name} error by", f"{100 * score.cost:+.2f} %"),
            ("largest deviation of the pack from the float model", score.largest_deviation),
        ]
    if found.refused:
        rows.append(("twinedge export would refuse this", found.refused))
    return rows


def _given(found: Findings) -> list[tuple[Cell, ...]]:
    """List what a pack says about itself."""
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


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_in_words(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    return str(value)


def _trained(found: Findings) -> list[tuple[Cell, ...]]:
    assert found.run is not None
    assert found.export is not None
    run, model = found.run, found.run.model
    counts = [len(model.anchor_y_), len(run.validation[1]), len(run.test[1])]
    names = ("training", "validation", "test")
    rows: list[tuple[Cell, ...]] = [
        ("run", found.name),
        *((key, _in_words(value)) for key, value in run.source.items()),
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
    evaluator = found.export.evaluator
    everything = evaluator.all_anchors, evaluator.all_anchors_test
    for name, one in zip((evaluator.name, "test"), everything, strict=True):
        if one is not None:
            rows.append((f"{name} RMSE, all anchors", one.rmse))
    return rows
