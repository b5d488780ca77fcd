"""The report as CSV, for a spreadsheet: one number to a line, to be filtered."""

import csv
import io

from twinedge_export.report.document import Cell, Document, Light

HEADER = ("section", "table", "row", "quantity", "value")


def sheet(document: Document) -> str:
    """Write it; numbers are not rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for section in document.sections:
        for table in section.tables:
            for first, *cells in table.rows:
                for column, cell in zip(table.columns[1:], cells, strict=True):
                    line = (section.name, table.name, _value(first), column, _value(cell))
                    writer.writerow(map(_harmless, line))
    return text.getvalue()


def _value(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell.words if isinstance(cell, Light) else str(cell)


def _harmless(text: str) -> str:
    """Keep a spreadsheet from taking a name for a formula; a negative number is none."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
