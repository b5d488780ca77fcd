"""The report on one model, and on one that predicts several targets."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from twinedge.wording import joined
from twinedge_export.report import costs, quality
from twinedge_export.report.document import Document, Drawing, Grid, Light, Section, number
from twinedge_export.report.findings import Findings, count_costs, read_file
from twinedge_export.report.groups_and_time import groups, times
from twinedge_export.report.interactive import calculator_facts, predictor_facts
from twinedge_export.report.learnt_curves import curves
from twinedge_export.report.verdict import facts, reasons, verdict

Part = TypeVar("Part", Section, Drawing, Grid)
_GRAVITY = ("go", "limit", "stop")  # of a verdict, the gravest last
_FACTS_OF_TARGET = 2  # the others are about the device


def document(found: Findings, command: str, *, with_predictor: bool = True) -> Document:
    """Put the findings into words.

    Parameters
    ----------
    found : Findings
        What was measured.
    command : str
        Command line that makes the same report.
    with_predictor : bool
        Whether a page lets the reader predict.
    """
    pack = found.pack
    columns = number(len(pack.device.encoding.names), "column")
    predictor = {}
    if with_predictor:
        order = [one.column for one in found.importance]
        predictor = predictor_facts(pack.device, pack.data, found.accuracy.points, order)
    return Document(
        f"{found.origin.name}: {found.target} from {columns}",
        verdict(found),
        reasons(found),
        facts(found),
        (
            *_evidence(found, [quality.predictor(found)] if with_predictor else []),
            costs.memory(found),
            costs.boards(found),
            costs.pack(found),
            costs.origin(found, command),
        ),
        calculator_facts(pack.model, found.costs.firmware),
        predictor,
    )


def _evidence(found: Findings, tried: Sequence[Section] = ()) -> tuple[Section, ...]:
    """Write the sections on how good a model is."""
    return (
        quality.accuracy(found),
        quality.intervals(found),
        *groups(found),
        *times(found),
        quality.importance(found),
        *curves(found),
        *tried,
        quality.anchors(found),
    )


def document_of_targets(found: Sequence[Findings], command: str) -> Document:
    """Put the findings on each target of a model into words.

    A section for each target and subject, and those on what the pack of all of them costs. The page
    does not predict, and calculates no other model: a report on one target does.
    """
    together = all_targets(found)
    columns = number(len(together.pack.device.encoding.names), "column")
    names, verdicts = [one.target for one in found], [verdict(one) for one in found]
    state = max((one.state for one in verdicts), key=_GRAVITY.index)
    words = " ".join(
        f"{name}: {light.words}"
        for name, light in zip(names, verdicts, strict=True)
        if light.state == state
    )
    if state == _GRAVITY[0]:
        words = f"Worth using for {joined(names)}."
    *_, memory, boards = reasons(together)
    return Document(
        f"{together.origin.name}: {joined(names)} from {columns}",
        Light(state, words),
        (
            *(
                f"{one.target}: {light.words} {' '.join(reasons(one)[:2])}"
                for one, light in zip(found, verdicts, strict=True)
            ),
            memory,
            boards,
        ),
        (
            *(
                fact._replace(label=f"{one.target}: {fact.label}")
                for one in found
                for fact in facts(one)[:-_FACTS_OF_TARGET]
            ),
            *facts(together)[-_FACTS_OF_TARGET:],
        ),
        (
            *(
                _of_target(section, short, one.target)
                for short, one in zip(_short_names(names), found, strict=True)
                for section in _evidence(one)
            ),
            replace(costs.memory(together), panel=""),
            costs.boards(together),
            costs.pack(together),
            costs.origin(together, command),
        ),
    )


def all_targets(found: Sequence[Findings]) -> Findings:
    """Let the findings on the first of several targets be about the pack of all of them.

    Only what its bytes decide: errors and intervals stay those of that target.
    """
    first = found[0]
    whole = read_file(first.origin.whole)
    return replace(
        first,
        origin=replace(first.origin, shared=""),
        pack=whole,
        costs=count_costs(whole.model, first.costs.firmware),
    )


def _short_names(names: Sequence[str]) -> list[str]:
    """Shorten names of targets to what links and names of files may have, each differently."""
    short: list[str] = []
    for place, name in enumerate(names, start=1):
        plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "target"
        short.append(f"{plain}-{place}" if plain in short else plain)
    return short


def _named(one: Part, short: str, target: str) -> Part:
    return replace(one, name=f"{one.name}-of-{short}", title=f"{target}: {one.title}")


def _of_target(section: Section, short: str, target: str) -> Section:
    """Name a section, its figures and its tables by the target."""
    return replace(
        _named(section, short, target),
        figures=tuple(_named(one, short, target) for one in section.figures),
        tables=tuple(_named(one, short, target) for one in section.tables),
    )
