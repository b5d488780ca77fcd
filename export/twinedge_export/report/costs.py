"""Sections on what a model costs, and where a report comes from."""

import platform
from importlib.metadata import version
from typing import Any

from twinedge.budget import all_boards
from twinedge.budget.fits import describe_core, describe_smaller, describe_verdict
from twinedge.pack.describe import meaning_of, name_of, uses
from twinedge.pack.release import UNKNOWN
from twinedge.pack.sections import pack_id
from twinedge.runtime.self_test import identity_of
from twinedge.version import __version__
from twinedge.wording import format_range
from twinedge_export.report import figures
from twinedge_export.report.document import (
    LIGHTS,
    Cell,
    Check,
    Grid,
    Light,
    Section,
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
    "map": "curves of the features in front of the twins: knots, and a table of what they add",
    "target curve": "from estimates to the target",
    "anchor features": "features of the stored training points, 16 bits each",
    "anchor targets": "their targets, 32 bits each",
    "anchor counts": "how many anchors each twin has",
    "intervals": "how far off to expect predictions: weights of the signals, quantiles",
    "domain": "range of each feature, and its value when missing",
    "schema": "stands for columns and target: which points on site belong to the pack",
    "self test": "queries with the answers that a device must give",
    "identity": "what the pack is, and what it was made from",
    "scaling": "offset and gain of each feature and of the target",
    "header": "shape, length, checksums",
    "table": "where each section begins",
    "ids": "training row of each anchor; left out of the image for a device",
    "metadata": "names, ranges, scores; left out of the image for a device",
    "padding": "zeros, so that every section begins where loads are fast",
}


def memory(found: Findings) -> Section:
    """Memory against ensemble size, and the calculator for other models."""
    fewer = describe_smaller(found.costs.budget["smaller_from"])
    table = Grid.of(
        "memory",
        "Memory by ensemble size",
        found.costs.memory,
        {
            "members": lambda one: one.members,
            "networks, parameters": lambda one: one.ann_params,
            "twin, parameters": lambda one: one.twin_params,
            "networks, bytes": lambda one: one.ann_bytes,
            "twin, bytes": lambda one: one.twin_bytes,
            "ratio of bytes": lambda one: one.ann_bytes / one.twin_bytes,
        },
    )
    return Section(
        "memory",
        "Memory against ensembles",
        (
            "An ensemble of ordinary networks stores every one of them. A twin stores one network "
            "and a training point for each member. " + fewer,
            *([found.origin.shared] if found.origin.shared else []),
        ),
        (figures.memory(found),),
        (table,),
        (
            "Parameters are counted as in the paper's section on miniaturizing accurate networks. "
            f"Bytes with {found.pack.model.weights} weights come from the code that lays out "
            "packs, without row numbers and names, which a device does not need; those of ordinary "
            "networks are the same records without the second point, anchors and intervals.",
        ),
        (Check(f"twinedge budget {found.origin.file}", "the same numbers"),),
        "calculator",
    )


def _verdict(one: dict[str, Any]) -> Light:
    parts = one["verdict"], one["why"], one["anchors"], one["milliseconds_estimated"]
    return Light(LIGHTS[one["verdict"]], describe_verdict(*parts))


def boards(found: Findings) -> Section:
    """Show which boards hold it."""
    boards, measured = found.costs.budget["boards"], found.costs.budget["cores_measured"]
    known, file = all_boards(), found.origin.file
    counts = {state: sum(one["verdict"] == state for one in boards) for state in LIGHTS}
    listed = [f"{state}: {count}" for state, count in counts.items() if count]
    lead = [f"Of {len(boards)} boards, {', '.join(listed)}."]
    if not measured:
        lead.append(
            "The runtime has not been measured on any core, so no board is known to hold it: "
            "run twinedge firmware measure. Only packs too large for the flash are reported."
        )
    table = Grid.of(
        "boards",
        "Boards",
        boards,
        {
            "board": lambda one: one["title"],
            "verdict": _verdict,
            "ms, estimated": lambda one: format_range(one["milliseconds_estimated"]) or None,
            "flash, bytes": lambda one: one["flash_bytes"],
            "flash there is": lambda one: one["free_flash_bytes"],
            "RAM, bytes": lambda one: one["ram_bytes"],
            "RAM there is": lambda one: one["free_ram_bytes"],
            "ordinary networks": lambda one: one["ann_members"],
            "core": lambda one: describe_core(one["core"], one["measured_on"]),
        },
    )
    sources = Grid.of(
        "sources",
        "Sources of the board figures",
        [known[one["board"]] for one in boards],
        {
            "board": lambda one: one.title,
            "source": lambda one: one.source,
            "kept for others": lambda one: one.note,
        },
        folded=True,
    )
    return Section(
        "boards",
        "Boards that hold it",
        tuple(lead),
        tables=(table, sources),
        how=(
            "Flash is runtime, pack and a minimal program around them, RAM is static memory, "
            "scratch, one query and stack, both from measured images"
            + (f" ({', '.join(measured)})" if measured else "")
            + "; the numbers of a core also hold for others with the same instructions. The memory "
            "of a board is that of its data sheet, less what a boot loader keeps. Times are "
            "estimates: measured instructions times a range of cycles per instruction; a board "
            "whose query may take more than a second fits slowly. Ordinary "
            "networks are how many of the same shape the flash would hold.",
        ),
        checks=(
            Check(f"twinedge budget {file}", "the same table"),
            Check(
                f"twinedge firmware run --board pico {file} rows.csv",
                "builds it for a board, and compares every bit on an emulator",
            ),
        ),
    )


def pack(found: Findings) -> Section:
    """Describe what every byte of the pack is for."""
    description = found.pack.description
    parts, length = uses(description.pieces), description.length
    order = [use for use in _USES if use in parts] + [use for use in parts if use not in _USES]
    rows = [
        (use, parts[use], Share(parts[use] / length), _USES.get(use, ""))
        for use in order
        if parts[use]
    ]
    sections = Grid.of(
        "sections",
        "Sections of the file",
        description.sections,
        {
            "section": lambda one: name_of(one.kind),
            "offset": lambda one: one.offset,
            "bytes": lambda one: one.length,
            "meaning": meaning_of,
        },
        folded=True,
    )
    return Section(
        "pack",
        "What every byte is for",
        (
            f"The .twin file has {length:,} bytes; the image for a device leaves out names and row "
            f"numbers and has {found.costs.budget['twin_bytes']:,}.",
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
            sections,
        ),
        ("Read from the file itself.",),
        (Check(f"twinedge inspect {found.origin.file}", "every array with its offset"),),
    )


_PACKAGES = ("numpy", "matplotlib")
_TRAINING = ("tensorflow", "scikit-learn")


def origin(found: Findings, command: str) -> Section:
    """Describe how to make the same report again."""
    about = _given(found) if found.origin.run is None else _trained(found)
    return Section(
        "origin",
        "How it was made",
        (
            "Nothing here is typed by hand. The same command on the same machine writes the same "
            "file, byte for byte.",
        ),
        tables=(
            Grid("origin", "This report", ("what", "value"), tuple(made(found, command))),
            Grid("training", "The model", ("what", "value"), tuple(about)),
        ),
        checks=(Check(command, "this page"),),
    )


def made(found: Findings, command: str) -> list[tuple[Cell, ...]]:
    """List command and versions, and what the export of a run would report."""
    origin = found.origin
    packages = (*_PACKAGES, *(_TRAINING if origin.run is not None else ()))
    rows: list[tuple[Cell, ...]] = [
        ("command", command),
        ("twinedge", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in packages),
        ("seed", str(origin.seed)),
    ]
    done = origin.export
    if done is not None:
        score = done.files[0].score
        rows += [
            ("anchors", f"{len(done.rows)}, chosen by {done.method} (requested: {done.select})"),
            ("weights", done.files[0].made),
            (f"rounding changes the {done.evaluator.name} error by", f"{100 * score.cost:+.2f} %"),
            ("largest deviation of the pack from the float model", score.largest_deviation),
        ]
    if origin.refused:
        rows.append(("twinedge export would refuse this", origin.refused))
    return rows


def _shape(found: Findings) -> list[tuple[Cell, ...]]:
    model = found.pack.model
    known, encoding = found.pack.description.pack, found.pack.device.encoding
    identity = None if known is None else identity_of(known)
    parent = UNKNOWN if identity is None else identity.parent
    return [
        ("id of the pack", pack_id(found.pack.data).hex()),
        *([] if parent == UNKNOWN else [("id of its parent", parent.hex())]),
        ("target", found.target),
        ("columns", ", ".join(encoding.measured.names)),
        *([("derived", encoding.derivation)] if encoding.derived else []),
        ("networks", f"{number(model.twins, 'twin')} of {shape(model.hidden)}"),
        ("activation", model.activation),
    ]


def _given(found: Findings) -> list[tuple[Cell, ...]]:
    """List what a pack says about itself."""
    known = found.pack.description.pack
    metadata = {} if known is None else known.metadata
    plain = (str, int, float)
    return [
        ("file", found.origin.file),
        ("bytes", len(found.pack.data)),
        *_shape(found),
        ("weights", found.pack.model.weights),
        *((key, value) for key, value in metadata.items() if isinstance(value, plain)),
    ]


def _trained(found: Findings) -> list[tuple[Cell, ...]]:
    run, done = found.origin.run, found.origin.export
    assert run is not None
    assert done is not None
    model, evaluator = run.model, done.evaluator
    counts = len(model.anchor_y_), len(run.validation[1]), len(run.test[1])
    names = ("training", "validation", "test")
    rows: list[tuple[Cell, ...]] = [
        ("run", found.origin.name),
        *((key, _describe(value)) for key, value in run.source.items()),
        ("rows used", ", ".join(f"{n:,} {name}" for n, name in zip(counts, names, strict=True))),
        *_shape(found),
        ("learning rate", model.learning_rate_),
        ("weight decay", model.weight_decay_),
        ("steps", model.steps_),
        ("networks tried on validation rows", len(model.trials_)),
    ]
    everything = evaluator.all_anchors, evaluator.all_anchors_test
    for name, one in zip((evaluator.name, "test"), everything, strict=True):
        if one is not None:
            rows.append((f"{name} RMSE, all anchors", one.rmse))
    return rows


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_describe(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_describe, value))
    return str(value)
