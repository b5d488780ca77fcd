"""Does a model fit a board, and if not, why?"""

from dataclasses import dataclass

from twinedge.budget.boards import Board
from twinedge.budget.firmware import Runtime
from twinedge.budget.latency import milliseconds
from twinedge.budget.limits import largest, most_networks
from twinedge.budget.model import Model
from twinedge.budget.storage import pack_fault, twin_bytes

FITS, FEWER, NOT, UNKNOWN = "fits", "fits with fewer anchors", "does not fit", "not measured"


@dataclass(frozen=True)
class Verdict:
    """What became of one board.

    Parameters
    ----------
    board : Board
        Which.
    verdict : {"fits", "fits with fewer anchors", "does not fit", "not measured"}
        The answer.
    why : str
        Why it does not fit, or what is not known.
    anchors : int or None
        Anchors with which it fits: all that were asked for, or fewer.
    flash_bytes, ram_bytes : int or None
        What an image takes that fits, with that many anchors.
    milliseconds : (float, float) or None
        Estimated time of one query.
    ann_members : int or None
        Ordinary networks of the same shape that would fit into the same flash beside the runtime.
    """

    board: Board
    verdict: str
    why: str = ""
    anchors: int | None = None
    flash_bytes: int | None = None
    ram_bytes: int | None = None
    milliseconds: tuple[float, float] | None = None
    ann_members: int | None = None

    @property
    def words(self) -> str:
        """Say it in one line."""
        if self.verdict == FEWER:
            return f"fits with {self.anchors} anchors"
        return f"{self.verdict}: {self.why}" if self.why else self.verdict


def judge(model: Model, board: Board, firmware: dict[str, Runtime]) -> Verdict:
    """Decide whether runtime and pack fit a board; ``firmware`` holds the measured cores."""
    least = model.with_anchors(model.twins)
    fault = pack_fault(least)
    if fault:
        return Verdict(board, NOT, fault)
    runtime = firmware.get(board.core.same_as)
    if runtime is None:
        return _unmeasured(least, board)
    excess = _excess(model, board, runtime)
    if excess is None:
        return _fitting(model, board, runtime, FITS)

    def fits(share: int) -> bool:
        return _excess(model.with_anchors(share * model.twins), board, runtime) is None

    share = largest(fits, (model.anchors - 1) // model.twins)
    if share:
        return _fitting(model.with_anchors(share * model.twins), board, runtime, FEWER)
    why = _excess(least, board, runtime) or excess
    if least.anchors < model.anchors:
        why += " even with one anchor" + (" for each twin" if model.twins > 1 else "")
    return Verdict(board, NOT, why, ann_members=_networks(model, board, runtime))


def _unmeasured(least: Model, board: Board) -> Verdict:
    """Without the size of the runtime only one thing is certain: a pack that is too large."""
    size, flash = twin_bytes(least), board.free_flash
    if flash is not None and size > flash:
        return Verdict(board, NOT, f"the pack alone takes {size} of {flash} bytes of flash")
    return Verdict(board, UNKNOWN, f"the runtime on {board.core.name}")


def _fitting(model: Model, board: Board, runtime: Runtime, verdict: str) -> Verdict:
    return Verdict(
        board,
        verdict,
        anchors=model.anchors,
        flash_bytes=runtime.flash_bytes + twin_bytes(model),
        ram_bytes=runtime.ram_bytes(model),
        milliseconds=milliseconds(model, board, runtime),
        ann_members=_networks(model, board, runtime),
    )


def _networks(model: Model, board: Board, runtime: Runtime) -> int | None:
    if board.free_flash is None:
        return None
    return most_networks(model, max(0, board.free_flash - runtime.flash_bytes))


def _excess(model: Model, board: Board, runtime: Runtime) -> str | None:
    """Say what is too small; None where nothing is."""
    fault = pack_fault(model)
    if fault:
        return fault
    flash, ram = runtime.flash_bytes + twin_bytes(model), runtime.ram_bytes(model)
    if board.free_flash is None:
        ram += flash  # a Linux board reads program and pack from a card
    elif flash > board.free_flash:
        return f"flash {flash} of {board.free_flash} bytes"
    return f"RAM {ram} of {board.free_ram} bytes" if ram > board.free_ram else None
