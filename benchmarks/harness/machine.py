"""What a benchmark ran on: part of every result, as a number without a machine says little."""

import os
import platform
from datetime import date
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from twinedge.version import __version__

_PACKAGES = ("tensorflow", "scikit-learn", "numpy")
_ARM_CORES = {"0xd0c": "Arm Neoverse-N1", "0xd40": "Arm Neoverse-V1"}


@cache
def machine() -> str:
    """Processor, system and package versions of this machine, in one line."""
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return ", ".join([processor(), system, *filter(None, map(_package, _PACKAGES))])


def _package(name: str) -> str:
    """Name and version; empty if it is not installed, since some methods do not need it."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def processor() -> str:
    """Name of the processor, as far as the system knows it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
        known = {name.strip(): value.strip() for name, _, value in reversed(lines)}
        if "model name" in known:
            return known["model name"]
        if "CPU part" in known:
            return _ARM_CORES.get(known["CPU part"], known["CPU part"])
    return platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def load_before() -> float | None:
    """Load of this machine when first asked, before a benchmark adds its own; None if unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def describe(*packages: str) -> dict[str, object]:
    """Processor, cores, system, versions of Python and of these packages, and today's date."""
    return {
        "processor": processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "twinedge": __version__,  # also where it is not installed
        **{name: version(name) for name in packages},
        "date": date.today().isoformat(),
    }
