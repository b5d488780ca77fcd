"""What a report says: the findings in words."""

from typing import Any

from twinedge_export.report.costs import boards, memory, pack
from twinedge_export.report.document import Document, Fact
from twinedge_export.report.findings import Findings
from twinedge_export.report.origin import origin
from twinedge_export.report.quality import accuracy, anchors, intervals, predictions
from twinedge_export.report.words import number, percent


def document(found: Findings, command: str, calculator: dict[str, Any]) -> Document:
    """Put the findings into words.

    Parameters
    ----------
    found : Findings
        What was measured.
    command : str
        What a person types to get the same.
    calculator : dict
        For the calculator of the page.
    """
    model, budget = found.model, found.budget
    twins = "One twin" if model.twins == 1 else f"{model.twins} twins"
    one, them = number(model.anchors, "anchor"), number(model.members, "ordinary network")
    lead = f"{twins} with {one} in {budget['twin_bytes']:,} bytes, instead of {them} in "
    lead += f"{budget['ann_bytes']:,}."
    return Document(
        f"{found.name}: {found.run.target_name} from {number(model.features, 'feature')}",
        lead,
        tuple(_facts(found)),
        (
            memory(found),
            anchors(found),
            accuracy(found),
            predictions(found),
            intervals(found),
            boards(found),
            pack(found),
            origin(found, command),
        ),
        calculator,
    )


def _facts(found: Findings) -> list[Fact]:
    model, budget, judged = found.model, found.budget, found.judged
    ratio = budget["ratio"]
    compared = f"{ratio:.1f} times smaller" if ratio > 1 else f"{1 / ratio:.1f} times larger"
    facts = [
        Fact(
            "On the device",
            f"{budget['twin_bytes']:,} bytes",
            f"{compared} than {number(model.members, 'ordinary network')}",
        ),
        Fact(
            f"Error on {judged.name} rows",
            f"{judged.rmse:.4g}",
            f"RMSE of {found.run.target_name} over {number(len(judged.y), 'row')}",
        ),
        Fact("Boards", *_boards_in_short(budget)),
    ]
    if found.usual is not None:
        claimed, covered = percent(found.usual.claimed), percent(found.usual.covered)
        width = f"{found.usual.mean_width:.4g} wide on average"
        facts.append(Fact(f"Intervals of {claimed}", f"{covered} covered", width))
    elif found.reliability is not None:
        worth = found.reliability.at(0.9)
        facts.append(
            Fact(
                "Intervals of 90 %",
                f"{percent(worth.covered)} covered",
                f"{percent(worth.scaled)} with the spread times {found.reliability.factor:.3g}"
                if worth.scaled is not None
                else "by the spread as it is",
            )
        )
    return facts


def _boards_in_short(budget: dict[str, Any]) -> tuple[str, str]:
    verdicts = [one["verdict"] for one in budget["boards"]]
    unknown = verdicts.count("not measured")
    if not budget["cores_measured"]:
        return "not measured", f"{number(unknown, 'board')} wait for the size of the runtime"
    slow = verdicts.count("fits, slowly")
    value = f"{verdicts.count('fits') + slow} of {len(verdicts)} hold it"
    notes = [f"{slow} slowly"] * bool(slow) + [f"{unknown} not measured yet"] * bool(unknown)
    return value, ", ".join(notes) or "judged by measured images"
