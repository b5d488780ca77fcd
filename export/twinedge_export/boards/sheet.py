"""What was measured, as tables: for people, and for ``docs/ports.md``."""

from pathlib import Path
from typing import Any

from twinedge.budget import Model, Runtime
from twinedge.budget.firmware import kind_of
from twinedge.errors import InputError
from twinedge_export.firmware import firmware_folder

# The paper's model: 128-128, 32 anchors, relu, int8; as export writes it, and without intervals.
MODELS = tuple(Model.of(8, intervals=intervals) for intervals in (True, False))
HEADER = (
    *("board", "core", "intervals", "text", "RAM", "stack", "instructions"),
    "per multiply-add of layer 2",
)
_LAYER_2 = 2 * 32 * 128 * 128  # multiply-adds, both orders of each pair
KERNEL_HEADER = ("kernel", "machine", "stack")
_WORDS = ("board", "core", "intervals", "kernel", "machine")  # columns that hold no numbers
_TITLE = "# Ports: the boards that run the runtime"
_MARKS = "".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in ("boards", "kernels"))


def sizes(firmware: dict[str, Runtime]) -> list[dict[str, Any]]:
    """List for each measured port what the paper's model takes, None where it does not fit.

    With intervals, then without, as far as both were measured. Bytes, and instructions of one
    query; ``per_multiply_add`` divides all of them by the multiply-adds of the second layer alone,
    by which kernels of others are judged.
    """
    rows = []
    for core, runtime in sorted(firmware.items(), key=lambda one: one[1].port):
        for model in MODELS:
            build = runtime.builds.get(kind_of(model))
            if build is None:
                continue
            counted = {one.model: one.instructions for one in build.references}.get(model)
            rows.append(
                {
                    "board": runtime.port,
                    "core": core,
                    "intervals": model.intervals,
                    "text_bytes": build.text_bytes,
                    "ram_bytes": build.ram_bytes(model),
                    "stack_bytes": build.stack_bytes,
                    "instructions": counted,
                    "per_multiply_add": counted and counted / _LAYER_2,
                }
            )
    return rows


def as_words(row: dict[str, Any]) -> list[str]:
    """Put a row of ``sizes`` into the cells of a table."""
    return [_word(one) for one in row.values()]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2f}" if isinstance(value, float) else str(value or "-")


def write_sheet(rows: list[dict[str, Any]], kernels: list[dict[str, Any]]) -> Path | None:
    """Put both tables between their marks in ``docs/ports.md``; None where this is no checkout.

    Raises
    ------
    InputError
        Where the page has no marks.
    """
    root = firmware_folder().parent
    if not (root / "pyproject.toml").is_file():
        return None
    page = root / "docs" / "ports.md"
    text = page.read_text("utf-8") if page.exists() else f"{_TITLE}\n\n{_MARKS}"
    beside = page.with_name(f".{page.name}.partial")
    beside.write_text(with_tables(text, rows, kernels), encoding="utf-8")
    beside.replace(page)
    return page


def with_tables(text: str, rows: list[dict[str, Any]], kernels: list[dict[str, Any]]) -> str:
    """Return a page with these rows between its marks."""
    text = _with_table(text, "boards", HEADER, rows)
    return _with_table(text, "kernels", KERNEL_HEADER, kernels)


def _with_table(text: str, name: str, header: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    mark, end_mark = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, start, rest = text.partition(mark)
    _, end, after = rest.partition(end_mark)
    if not start or not end:
        raise InputError(f"the page of the boards has no place between {mark} and {end_mark}")
    sides = ["---" if one in _WORDS else "--:" for one in header]
    lines = [header, sides, *map(as_words, rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{before}{start}\n{table}\n{end}{after}"
