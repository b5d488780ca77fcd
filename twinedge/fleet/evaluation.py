"""Evaluate a pack on a fleet: read all stores, check all devices, and put the worst first."""

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from twinedge.errors import InputError, Parameter, ParameterError, wrong_value
from twinedge.fleet.device_checks import FINDINGS
from twinedge.fleet.retraining import Gain, estimate_gain
from twinedge.fleet.stores import (
    Batch,
    FleetPoints,
    Task,
    evaluate_batch,
    find_stores,
    with_contents,
)
from twinedge.pack.contents import Pack, target_names
from twinedge.progress import progress_bar
from twinedge.runtime.loading import core_count
from twinedge.runtime.pack_device import read_pack_file
from twinedge.wording import shown

_BATCH = 250  # stores


@dataclass(frozen=True)
class Fleet:
    """What the stores of a fleet say.

    Parameters
    ----------
    pack : Pack
        The pack that all devices have.
    devices : list of dict
        One for each device with points, the worst first; see ``checks``.
    unused : list of dict
        Files that are of no use, and why.
    gain : Gain or None
        What retraining would bring; None if there are too few devices to say.
    """

    pack: Pack
    devices: list[dict[str, Any]]
    unused: list[dict[str, str]]
    gain: Gain | None

    @property
    def totals(self) -> dict[str, Any]:
        """Facts about all devices together, as values for JSON."""
        assert self.pack.intervals is not None
        named = Counter(name for one in self.devices for name in one["findings"])
        used = sum(one["used"] for one in self.devices)
        inside = {
            name: sum(one[name] * one["used"] for one in self.devices) / used
            for name in ("inside_shipped", "inside_adapted")
        }
        return {
            "devices": len(self.devices),
            "points": sum(one["points"] for one in self.devices),
            "need_a_look": sum(bool(one["findings"]) for one in self.devices),
            **{name: named[name] for name in FINDINGS},
            "unused_files": len(self.unused),
            "coverage": self.pack.intervals.usual_level / 1000,
            **inside,
        }

    def record(self) -> dict[str, Any]:
        """Return everything, as values for JSON."""
        gain = None if self.gain is None else self.gain.record()
        return {
            **self.totals,
            "retraining": gain,
            "ranking": self.devices,
            "unused": self.unused,
        }

    def ranked(self, by: str) -> list[dict[str, Any]]:
        """Return the devices in order: "worst" first, or by "off", "drift" or "interval".

        By how far each is off for certain, by how far it drifts, and by how few of its points are
        inside the interval as adapted, measured by the chance of that.
        """
        keys: dict[str, Any] = {
            "worst": _by_severity,
            "off": lambda one: -(one["off_by_at_least"] or 0.0),
            "drift": lambda one: (
                1.0 if one["chance_drift"] is None else one["chance_drift"],
                -abs(one["drift"] or 0.0),
            ),
            "interval": lambda one: (one["chance_adapted"], one["inside_adapted"]),
        }
        return sorted(self.devices, key=keys[by])


def _by_severity(device: dict[str, Any]) -> tuple[bool, bool, float]:
    """Put first what has to do with the model, then single points and slots, then who is off."""
    serious = device["severity"] > 1
    amount = device["severity"] if serious else device["off_by_at_least"] or 0.0
    return not serious, not device["findings"], -amount


def evaluate_fleet(
    stores: Sequence[str | Path],
    pack: str | Path,
    *,
    target: str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    verbose: bool = False,
) -> Fleet:
    """Evaluate a pack on the points of its devices.

    Parameters
    ----------
    stores : sequence of path
        Files, folders or patterns; also dumps of microcontrollers.
    pack : path
        The ``.twin`` file that the devices have, or a newer one of the same schema.
    target : str, optional
        Which target to evaluate, if it has several.
    jobs : int, optional
        How many processes read stores; by default one per core, if there are many stores.
    cluster : str, optional
        Address of the scheduler of a Dask cluster, to work there instead.
    verbose : bool
        Whether to show progress.

    Raises
    ------
    InputError
        If there is no store that can be used, or the pack has no intervals.
    """
    pack = Path(pack)
    content, data = read_pack_file(pack)
    if content.intervals is None:
        raise InputError(f"{pack} has no intervals: its devices cannot learn")
    number = _number_of(target, target_names(content.metadata, len(content.every_target), "y"))
    content = content.single(number)
    paths, missing = find_stores(stores, pack)
    unused = [{"file": shown(one), "why": "does not exist"} for one in missing]
    tasks = [
        Task(start, data, [(path, None) for path in paths[start : start + _BATCH]], number)
        for start in range(0, len(paths), _BATCH)
    ]
    batches: list[Batch] = []
    with progress_bar(verbose) as progress:
        progress.plan({"reading stores": 8, "estimating what retraining would bring": 2})
        progress.stage("reading stores")
        for batch in _evaluate(tasks, jobs, cluster):
            batches.append(batch)
            progress.at(f"{len(paths)} stores", len(batches), len(tasks))
        batches.sort(key=lambda one: one.number)
        devices = [device for batch in batches for device in batch.devices]
        unused += [one for batch in batches for one in batch.unused]
        if not devices:
            raise InputError(_describe_failure(stores, unused))
        progress.stage("estimating what retraining would bring")
        gain = estimate_gain(content, FleetPoints.joined([one.points for one in batches]))
    names = Counter(one["device"] for one in devices)
    for one in devices:  # the same name in two folders: the file distinguishes them
        if names[one["device"]] > 1:
            one["device"] = one["file"]
    return Fleet(content, sorted(devices, key=_by_severity), unused, gain)


def _number_of(target: str | None, names: Sequence[str]) -> int:
    """Return the number of a target, which must be named if there are several."""
    if target is None and len(names) == 1:
        return 0
    if target is None:
        raise ParameterError(
            f"the pack predicts {', '.join(names)}: name the target to evaluate with ",
            Parameter("target", names[0]),
        )
    if target not in names:
        which = f"is not {names[0]}" if len(names) == 1 else f"is not one of {', '.join(names)}"
        raise wrong_value("target", target, f"{which}, which the pack predicts")
    return names.index(target)


def _evaluate(tasks: list[Task], jobs: int | None, cluster: str | None) -> Iterator[Batch]:
    """Evaluate batches on this machine or on a cluster, in any order."""
    if cluster is not None:
        from twinedge.dask_cluster import computed, connect

        yield from computed(connect(cluster), evaluate_batch, [*map(with_contents, tasks)])
        return
    jobs = min(jobs or core_count(), len(tasks))
    if jobs < 2:
        yield from map(evaluate_batch, tasks)
        return
    # Not forked: there is a thread that shows progress, and libraries have their own. Ctrl-C is
    # left to this process.
    ignore_interrupts = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), ignore_interrupts)
    try:
        yield from pool.map(evaluate_batch, tasks)
    except BrokenProcessPool as error:
        raise ParameterError(
            "the processes that read stores die, perhaps for lack of memory: try a smaller ",
            Parameter("jobs"),
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _describe_failure(stores: Sequence[str | Path], unused: list[dict[str, str]]) -> str:
    given = shown(stores[0]) + (f" and {len(stores) - 1} more" if len(stores) > 1 else "")
    if not unused:
        return f"{given}: there are no files"
    if len(unused) == 1:
        return f"{unused[0]['file']} {unused[0]['why']}: there are no points to look at"
    return (
        f"{given}: none of {len(unused)} files has points for this pack; the first, "
        f"{unused[0]['file']}, {unused[0]['why']}"
    )
