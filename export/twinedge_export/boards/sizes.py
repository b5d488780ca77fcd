"""What the paper's model takes on each board that was measured."""

from typing import Any

from twinedge.budget import Model, Runtime
from twinedge.budget.boards import kind_of

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
            build = runtime.builds.get(kind_of(model))
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
