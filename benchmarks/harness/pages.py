"""What pages say of results: generated tables, and the version of the training of each.

A generated table is between ``<!-- NAME: measured -->`` and ``<!-- end -->``. A link to a file of
results that depends on the training is followed by its version, as in "[accuracy.json](...) of
training version 5", and "not today's 6" if that is another.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.harness.record import RESULTS, Record, read_record, results_of
from twinedge.atomic_files import write_file
from twinedge.training import VERSION

ROOT = Path(__file__).parents[2]

Tables = dict[str, dict[str, str]]  # by page, seen from the root, and by name
NOTHING_NEWER = "No cell is newer than the table."

_LINK = re.compile(
    r"(?P<link>\[[^\]]*\]\([^)\s]*benchmarks/results/(?P<name>[\w/-]+)\.json\))"
    r"(?P<version>\s+of\s+training\s+version\s+\d+(?:,\s+not\s+today's\s+\d+)?)?"
)


def pages() -> list[Path]:
    """List the pages that may quote results."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fill(page: str, name: str, text: str) -> str:
    """Replace the text between the marks of a name."""
    marks = re.compile(rf"(<!-- {name}: measured -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"the page has no place for {name}")
    return marks.sub(lambda found: f"{found[1]}\n{text.strip()}\n\n{found[2]}", page)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; all columns but the first are numbers."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def newer_cells(record: Record, table_of: Callable[[str], str | None]) -> str:
    """Compare cells of today's training with those of the published version, on the same splits.

    ``table_of`` is the table of data that a cell belongs to, None for a cell to leave out. Errors
    are test RMSE.
    """
    unfinished = record.get("unfinished")
    if unfinished is None:
        return NOTHING_NEWER
    old, new = record["cells"], unfinished["cells"]
    shared: dict[str, list[str]] = {}
    for key in new:
        table = table_of(key)
        if table is not None and key in old:
            shared.setdefault(table, []).append(key)
    rows = []
    for table, keys in shared.items():
        then, now = (fmean(cells[key]["rmse_test"] for key in keys) for cells in (old, new))
        rows.append([table, str(len(keys)), f"{then:.4g}", f"{now:.4g}", f"{now / then:.3f}"])
    versions = (f"version {part['training']}" for part in (record, unfinished))
    return markdown(["table", "splits", *versions, "ratio"], rows)


def write_tables(tables: Tables) -> None:
    """Put generated tables on their pages."""
    for page, parts in tables.items():
        path = ROOT / page
        text = path.read_text()
        for name, part in parts.items():
            text = fill(text, name, part)
        write_file(path, text)


def version_of(name: str) -> int | None:
    """Return the version of the training that a result is of; None if it depends on none."""
    found: int | None = read_record(results_of(name)).get("training")
    return found


def with_versions(page: str) -> str:
    """Let each link to a result that depends on the training be followed by its version."""

    def versioned(found: re.Match[str]) -> str:
        version = version_of(found["name"])
        if version is None:
            return found["link"]
        today = "" if version == VERSION else f", not today's {VERSION}"
        wanted = f"of training version {version}{today}"
        shown = " ".join((found["version"] or "").split())  # however its lines are broken
        return found[0] if shown == wanted else f"{found['link']} {wanted}"

    return _LINK.sub(versioned, page)


def write_versions() -> list[Path]:
    """Bring the versions on all pages up to date; returns the pages that changed."""
    changed = []
    for path in pages():
        text = path.read_text()
        if (new := with_versions(text)) != text:
            write_file(path, new)
            changed.append(path)
    return changed


def quoted(page: str) -> set[str]:
    """Return the names of the results that a page links to."""
    return {found["name"] for found in _LINK.finditer(page)}


def mentioned(page: str) -> set[str]:
    """Return the names of the scripts that a page names, outside of commands to run them."""
    known = {path.stem for path in RESULTS.parent.glob("*.py")}
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    found = re.findall(r"benchmarks[/.](\w+)", prose)
    return {*found} & known
