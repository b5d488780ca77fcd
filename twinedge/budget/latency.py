"""How long a query takes: an estimate from measured instructions."""

from collections.abc import Sequence

from twinedge.budget.boards import Board
from twinedge.budget.firmware import Build
from twinedge.budget.model import Model

Range = tuple[float, float]


def instructions(model: Model, build: Build) -> Range | None:
    """Least and most instructions of one query.

    A model that was measured takes what was measured. Another takes as many per multiply-add as
    those measured with the same build that have next to fewer and next to more of them: the
    smaller a model is, the more shows the work around its layers. None without any.
    """
    adds = model.multiply_adds
    for one in build.references:
        if one.model == model:
            return float(one.instructions), float(one.instructions)
    known = [(one.model.multiply_adds, one.instructions) for one in build.references]
    near = [max((one for one in known if one[0] <= adds), default=None)]
    near.append(min((one for one in known if one[0] >= adds), default=None))
    ratios = [one[1] / one[0] for one in near if one is not None]
    return (min(ratios) * adds, max(ratios) * adds) if ratios else None


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


def in_words(ends: Sequence[float] | None) -> str:
    """Write a range with three digits, without exponents; nothing for None."""
    return "-".join(f"{float(f'{one:.3g}'):g}" for one in ends or ())
