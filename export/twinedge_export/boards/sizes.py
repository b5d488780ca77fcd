"""What was measured, as tables: the paper's model on each board, and the stack of each call."""

from typing import Any

from twinedge.budget import Model, Runtime
from twinedge.budget.measurements import CALLS, build_kind
from twinedge.errors import InputError

# The paper's model: 128-128, 32 anchors, relu, int8; as export writes it, and without intervals.
MODELS = tuple(Model.of(8, (128, 128), 32, intervals=one) for one in (True, False))
HEADER = (
    *("board", "core", "intervals", "text", "RAM", "stack", "instructions", "at most"),
    "per multiply-add of layer 2",
)
_LAYER_2 = 2 * 32 * 128 * 128  # multiply-adds, both orders of each pair


def sizes(firmware: dict[str, Runtime]) -> list[dict[str, Any]]:
    """List for each measured port what the paper's model takes, None where it does not fit.

    With intervals, then without, if both were measured. Bytes, and instructions of one query;
    ``per_multiply_add`` divides all of them by the multiply-adds of the second layer alone, the
    usual yardstick for kernels.
    """
    rows = []
    for core, runtime in sorted(firmware.items(), key=lambda one: one[1].port):
        for model in MODELS:
            build = runtime.builds.get(build_kind(model))
            if build is None:
                continue
            counted = {one.model: one.instructions for one in build.references}.get(model)
            most = build.worst.instructions(model) if counted and build.worst else None
            rows.append(
                {
                    "board": runtime.port,
                    "core": core,
                    "intervals": model.intervals,
                    "text_bytes": build.text_bytes,
                    "ram_bytes": build.ram_bytes(model),
                    "stack_bytes": build.stack_bytes,
                    "instructions": counted,
                    "instructions_worst": most,
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


def stack_rows(firmware: dict[str, Runtime]) -> list[dict[str, str | int]]:
    """List the stack of each group of calls in bytes, for each port where it was measured."""
    ports = sorted(firmware.values(), key=lambda one: one.port)
    return [{"board": one.port, **one.stacks} for one in ports if one.stacks]


_STACK_HEADER = ("board", *CALLS)
_KERNEL_HEADER = ("kernel", "machine", "stack")
_TEXTS = ("board", "core", "intervals", "kernel", "machine")  # columns that hold no numbers


def with_tables(text: str, firmware: dict[str, Runtime], kernels: list[dict[str, Any]]) -> str:
    """Return a page with what was measured between its marks."""
    text = _with_table(text, "boards", HEADER, sizes(firmware))
    text = _with_table(text, "stacks", _STACK_HEADER, stack_rows(firmware))
    return _with_table(text, "kernels", _KERNEL_HEADER, kernels)


def _with_table(text: str, name: str, header: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    mark, end_mark = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, start, rest = text.partition(mark)
    _, end, after = rest.partition(end_mark)
    if not start or not end:
        raise InputError(f"docs/ports.md lacks the marks {mark} and {end_mark}")
    sides = ["---" if one in _TEXTS else "--:" for one in header]
    lines = [header, sides, *map(as_words, rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{before}{start}\n{table}\n{end}{after}"
