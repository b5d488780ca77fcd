"""What a report says: the findings in words, in the order in which a person decides."""

from typing import Any

from twinedge_export.report import trying
from twinedge_export.report.costs import boards, memory, pack
from twinedge_export.report.document import Document
from twinedge_export.report.explaining import anchors, drivers, trial
from twinedge_export.report.findings import Findings
from twinedge_export.report.origin import origin
from twinedge_export.report.quality import accuracy, intervals
from twinedge_export.report.verdict import facts, reasons, verdict
from twinedge_export.report.words import number


def document(
    found: Findings, command: str, calculator: dict[str, Any], *, tried: bool = True
) -> Document:
    """Put the findings into words.

    Parameters
    ----------
    found : Findings
        What was measured.
    command : str
        What a person types to get the same.
    calculator : dict
        For the calculator of the page.
    tried : bool
        Whether a page is to predict.
    """
    columns = number(len(found.device.encoding.names), "column")
    return Document(
        f"{found.name}: {found.target} from {columns}",
        verdict(found),
        reasons(found),
        facts(found),
        (
            accuracy(found),
            intervals(found),
            drivers(found),
            *([trial(found)] if tried else []),
            anchors(found),
            memory(found),
            boards(found),
            pack(found),
            origin(found, command),
        ),
        calculator,
        _trial(found) if tried else {},
    )


def _trial(found: Findings) -> dict[str, Any]:
    order = [one.column for one in found.drivers]
    return trying.facts(found.device.pack, found.data, found.points, order)
