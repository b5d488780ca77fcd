"""How long a query takes: an estimate from measured instructions."""

from twinedge.budget.boards import Board
from twinedge.budget.firmware import Build
from twinedge.budget.model import Model

Range = tuple[float, float]


def instructions(model: Model, build: Build) -> Range | None:
    """Least and most instructions of one query.

    A model that was measured takes what was measured. Another takes the least and the most
    instructions per multiply-add among those measured with the same build; None without any.
    """
    for one in build.references:
        if one.model == model:
            return float(one.instructions), float(one.instructions)
    ratios = [one.instructions / one.model.multiply_adds for one in build.references]
    if not ratios:
        return None
    return min(ratios) * model.multiply_adds, max(ratios) * model.multiply_adds


def milliseconds(model: Model, board: Board, build: Build) -> Range | None:
    """Estimate the time of one query, shortest and longest.

    Instructions times the range of cycles per instruction that ``boards.toml`` states for the
    core, at the board's clock: an estimate, for nobody has run it there.
    """
    found = instructions(model, build)
    if found is None:
        return None
    low, high = (
        1000 * count * cycles / board.clock
        for count, cycles in zip(found, board.core.cycles_per_instruction, strict=True)
    )
    return low, high
