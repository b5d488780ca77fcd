"""Whether a model fits a board, and why not; and all figures of a model in one record."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinedge.budget.boards import Board
from twinedge.budget.limits import (
    most_anchors,
    most_features,
    most_networks,
    smaller_in_bytes,
    smaller_in_params,
)
from twinedge.budget.measurements import (
    Build,
    Range,
    Runtime,
    instructions,
    milliseconds,
    parts_of,
)
from twinedge.budget.model import (
    WEIGHTS,
    Model,
    ann_bytes,
    largest,
    pack_fault,
    pack_sections,
    twin_bytes,
)
from twinedge.errors import InputError
from twinedge.wording import format_range, joined, plural

FITS, SLOW, FEWER = "fits", "fits, slowly", "fits with fewer anchors"
NOT, UNKNOWN = "does not fit", "not measured"

PART_WORDS = {"map": "an input map", "target_curve": "a target curve"}

# The verdict mentions the time of a query that may take longer than this.
SLOW_MILLISECONDS = 1000.0


@dataclass(frozen=True)
class Verdict:
    """The verdict on one board.

    Parameters
    ----------
    board : Board
        The board.
    verdict : {"fits", "fits, slowly", "fits with fewer anchors", "does not fit", "not measured"}
        The answer; slowly if a query may take more than a second.
    why : str
        Why it does not fit, or what is not known.
    anchors : int or None
        Number of anchors with which it fits: all that were requested, or fewer.
    flash_bytes, ram_bytes : int or None
        What the image takes with that many anchors.
    milliseconds : (float, float) or None
        Estimated time of one query.
    ann_members : int or None
        Number of ordinary networks of the same shape that would fit into the same flash beside the
        runtime.
    instructions : (float, float) or None
        Usual instructions of one query, measured or estimated.
    worst : int or None
        Most instructions of one query, whatever its features and the numbers in the pack.
    """

    board: Board
    verdict: str
    why: str = ""
    anchors: int | None = None
    flash_bytes: int | None = None
    ram_bytes: int | None = None
    milliseconds: Range | None = None
    ann_members: int | None = None
    instructions: Range | None = None
    worst: int | None = None

    @property
    def words(self) -> str:
        """The verdict in one line."""
        if self.verdict == UNKNOWN:
            return f"{self.verdict}: {self.why}"
        return describe_verdict(self.verdict, self.why, self.anchors, self.milliseconds)

    @property
    def fits(self) -> bool:
        """Whether the board holds the whole model, even if it is slow."""
        return self.verdict in (FITS, SLOW)


def describe_verdict(
    verdict: str, why: str, anchors: int | None, milliseconds: Sequence[float] | None
) -> str:
    """Put a verdict in a few words, with the seconds of a query if it is slow."""
    if verdict in (NOT, UNKNOWN):
        return f"{verdict}: {why}" if verdict == NOT else verdict
    words = f"fits with {plural(anchors or 0, 'anchor')}" if verdict == FEWER else FITS
    if milliseconds is not None and max(milliseconds) > SLOW_MILLISECONDS:
        words += f", {format_range([one / 1000 for one in milliseconds])} s a query"
    return words


def describe_smaller(start: dict[str, int | None]) -> str:
    """Say from how many members on twins are smaller: ``smaller_from`` of a summary.

    Examples
    --------
    >>> describe_smaller({"params": 3, "bytes": 5})
    'Twins have fewer parameters from 3 members on, and take fewer bytes from 5 on.'
    >>> describe_smaller({"params": 3, "bytes": None})
    'Twins have fewer parameters from 3 members on.'
    """
    params, size = start["params"], start["bytes"]
    if params is None and size is None:
        return "Twins are never smaller: an anchor takes as much as an ordinary network."
    words = [f"have fewer parameters from {plural(params, 'member')} on"] if params else []
    if size:
        words.append(f"take fewer bytes from {size if words else plural(size, 'member')} on")
    return f"Twins {', and '.join(words)}."


def describe_unmeasured(summary: dict[str, Any]) -> list[str]:
    """Say on which cores it was not measured what the code of curves takes."""
    cores: dict[str, list[str]] = {}
    for one in summary["boards"]:
        what, _, core = one["why"].rpartition(" on ")
        if one["verdict"] == UNKNOWN and " with " in what and core not in cores.get(what, ()):
            cores.setdefault(what, []).append(core)
    return [f"{what[0].upper()}{what[1:]} on {joined(found)}." for what, found in cores.items()]


def describe_core(core: str, measured_on: str | None) -> str:
    """Name a core, and the one that it was measured on if that is another."""
    return core if measured_on in (core, None) else f"{core} as {measured_on}"


def board_verdict(model: Model, board: Board, firmware: dict[str, Runtime]) -> Verdict:
    """Decide whether runtime and pack fit a board.

    Parameters
    ----------
    model : Model
        What the pack holds; ids and metadata stay off the board.
    board : Board
        Where it should run.
    firmware : dict of str to Runtime
        Measured cores.
    """
    least = model.with_anchors(model.twins)
    fault = pack_fault(least)
    if fault:
        return Verdict(board, NOT, fault)
    runtime = firmware.get(board.core.same_as)
    build = None if runtime is None else runtime.build(model)
    if build is None:
        # Without the size of the runtime, only a pack too large by itself is ruled out.
        size, flash = twin_bytes(least), board.free_flash
        if flash is not None and size > flash:
            return Verdict(board, NOT, f"the pack alone takes {size} of {flash} bytes of flash")
        return Verdict(board, UNKNOWN, _not_measured(model, board, runtime))
    image = _Image(board, build)
    if image.excess(model) is None:
        return image.verdict(model, FITS)

    def fits(share: int) -> bool:
        return image.excess(model.with_anchors(share * model.twins)) is None

    share = largest(fits, (model.anchors - 1) // model.twins)
    if share:
        return image.verdict(model.with_anchors(share * model.twins), FEWER)
    why = f"{image.excess(least)}"
    if least.anchors < model.anchors:
        why += " even with one anchor" + (" for each twin" if model.twins > 1 else "")
    return Verdict(board, NOT, why, ann_members=image.networks(model))


def _not_measured(model: Model, board: Board, runtime: Runtime | None) -> str:
    """Describe what was not run on a board's core."""
    known = () if runtime is None else runtime.parts
    missing = [PART_WORDS[name] for name in parts_of(model) if name not in known]
    missing += ["several targets"] * (model.targets > 1)
    what = f" with {' and '.join(missing)}" if runtime is not None and missing else ""
    return f"the runtime was not run{what} on {board.core.same_as}"


@dataclass(frozen=True)
class _Image:
    """Runtime and pack on a board."""

    board: Board
    build: Build

    def flash_bytes(self, model: Model) -> int:
        return self.build.flash_bytes + twin_bytes(model)

    def ram_bytes(self, model: Model) -> int:
        pack = twin_bytes(model) if self.board.pack_in_ram else 0
        return self.build.ram_bytes(model) + pack

    def excess(self, model: Model) -> str | None:
        """Describe which memory is too small; None if none is."""
        fault = pack_fault(model)
        if fault:
            return fault
        flash, ram = self.flash_bytes(model), self.ram_bytes(model)
        if self.board.free_flash is None:
            ram += flash  # a Linux board reads program and pack from a card
        elif flash > self.board.free_flash:
            return f"flash {flash} of {self.board.free_flash} bytes"
        return f"RAM {ram} of {self.board.free_ram} bytes" if ram > self.board.free_ram else None

    def verdict(self, model: Model, verdict: str) -> Verdict:
        """Return the verdict on a model that fits, with what it takes."""
        time = milliseconds(model, self.board, self.build)
        if verdict == FITS and time is not None and max(time) > SLOW_MILLISECONDS:
            verdict = SLOW
        usual, worst = instructions(model, self.build), self.build.worst
        most = None if worst is None else worst.instructions(model)
        if usual is not None and most is not None:
            usual = min(usual[0], most), min(usual[1], most)
        return Verdict(
            self.board,
            verdict,
            anchors=model.anchors,
            flash_bytes=self.flash_bytes(model),
            ram_bytes=self.ram_bytes(model),
            milliseconds=time,
            ann_members=self.networks(model),
            instructions=usual,
            worst=most,
        )

    def networks(self, model: Model) -> int | None:
        """Count the ordinary networks that would fit into the flash."""
        if self.board.free_flash is None:
            return None
        room = self.board.free_flash - self.build.flash_bytes
        if self.board.pack_in_ram:
            room = min(room, self.board.free_ram - self.build.ram_bytes(model))
        return most_networks(model, max(0, room))


def summarise(
    model: Model,
    boards: Iterable[Board],
    firmware: dict[str, Runtime],
    *,
    flash: int | None = None,
    file_bytes: int | None = None,
) -> dict[str, Any]:
    """Count a model, and find out which boards it fits.

    Parameters
    ----------
    model : Model
        What to count.
    boards : iterable of Board
        Which boards to look at.
    firmware : dict of str to Runtime
        Measured cores.
    flash : int, optional
        Find the largest models that take this many bytes.
    file_bytes : int, optional
        Size of the ``.twin`` file, which may hold more than a device needs.

    Returns
    -------
    dict
        As described in ``docs/budget.md``; an impossible size is None.
    """
    twin, ann = _possible(twin_bytes, model), _possible(ann_bytes, model)
    stored = {name: replace(model, weights=name) for name in WEIGHTS}
    # Even if there are too many anchors, find out how many there could be.
    possible = _possible(twin_bytes, model.with_anchors(model.twins)) is not None
    result: dict[str, Any] = {
        "features": model.features,
        "hidden": list(model.hidden),
        "twins": model.twins,
        "anchors": model.anchors,
        "neighbors": model.neighbors,
        "members": model.members,
        "activation": model.activation,
        "weights": model.weights,
        "intervals": model.intervals,
        "map_outputs": model.map_outputs,
        "map_rows": model.map_rows,
        "map_curves": model.map_curves,
        "target_bins": model.target_bins,
        **(_beside_own_packs(model) if model.targets > 1 else {}),
        **({"window_bytes": model.window_bytes} if model.window_bytes else {}),
        "ann_params": model.ann_params,
        "twin_params": model.twin_params,
        "ann_bytes": ann,
        "twin_bytes": twin,
        "file_bytes": file_bytes,
        "ratio": None if twin is None or ann is None else ann / twin,
        "bytes": {
            name: {"twin": _possible(twin_bytes, one), "ann": _possible(ann_bytes, one)}
            for name, one in stored.items()
        },
        "sections": pack_sections(model) if pack_fault(model) is None else None,
        "multiply_adds": model.multiply_adds,
        "smaller_from": {
            "params": smaller_in_params(model),
            "bytes": smaller_in_bytes(model) if possible else None,
        },
        "cores_measured": sorted(firmware),
        "boards": [_record(board_verdict(model, one, firmware), firmware) for one in boards],
    }
    if flash is not None:
        result["in_flash"] = {
            "bytes": flash,
            "ann_members": most_networks(model, flash) if possible else None,
            "twin_anchors": most_anchors(model, flash) if possible else None,
            "twin_features": None if twin is None else most_features(model, flash),
        }
    return result


def _beside_own_packs(model: Model) -> dict[str, Any]:
    """Compare a pack of several targets with as many of one target each."""
    own = _possible(twin_bytes, model.of_one_target())
    return {"targets": model.targets, "own_pack_bytes": own}


def _possible(size: Callable[[Model], int], model: Model) -> int | None:
    """Bytes, or None if no pack could hold the model."""
    try:
        return size(model)
    except InputError:
        return None


def _record(found: Verdict, firmware: dict[str, Runtime]) -> dict[str, Any]:
    board, core = found.board, found.board.core
    return {
        "board": board.name,
        "title": board.title,
        "core": core.name,
        "measured_on": core.same_as if core.same_as in firmware else None,
        "free_flash_bytes": board.free_flash,
        "free_ram_bytes": board.free_ram,
        "verdict": found.verdict,
        "why": found.why,
        "anchors": found.anchors,
        "flash_bytes": found.flash_bytes,
        "ram_bytes": found.ram_bytes,
        "milliseconds_estimated": found.milliseconds and list(found.milliseconds),
        "instructions_estimated": found.instructions and list(map(round, found.instructions)),
        "instructions_worst": found.worst,
        "ann_members": found.ann_members,
    }
