"""How long a query takes: an estimate from measured instructions."""

from twinedge.budget.boards import Board
from twinedge.budget.firmware import Runtime
from twinedge.budget.model import Model

Range = tuple[float, float]


def instructions(model: Model, runtime: Runtime) -> Range | None:
    """Least and most instructions of one query.

    A model that was measured takes what was measured. Another takes the least and the most
    instructions per multiply-add among the measured ones with its activation and weights; None
    where there is no such one.
    """
    alike = [
        one
        for one in runtime.references
        if (one.model.activation, one.model.weights) == (model.activation, model.weights)
    ]
    for one in alike:
        if one.model == model:
            return float(one.instructions), float(one.instructions)
    if not alike:
        return None
    ratios = [one.instructions / one.model.multiply_adds for one in alike]
    return min(ratios) * model.multiply_adds, max(ratios) * model.multiply_adds


def milliseconds(model: Model, board: Board, runtime: Runtime) -> Range | None:
    """Estimate the time of one query, shortest and longest.

    Instructions times the range of cycles per instruction that ``boards.toml`` states for the
    core, at the board's clock: an estimate, for nobody has run it there.
    """
    found = instructions(model, runtime)
    if found is None:
        return None
    low, high = (
        1000 * count * cycles / board.clock
        for count, cycles in zip(found, board.core.cycles_per_instruction, strict=True)
    )
    return low, high
