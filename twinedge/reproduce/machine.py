"""Where numbers were computed: goes with every cell, for cells may come from several machines."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("tensorflow", "scikit-learn", "numpy")
_ARM_CORES = {"0xd0c": "Arm Neoverse-N1", "0xd40": "Arm Neoverse-V1"}


@cache
def machine() -> str:
    """Processor, system and versions of this machine in a line."""
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return ", ".join([processor(), system, *filter(None, map(_package, _PACKAGES))])


def _package(name: str) -> str:
    """Name and version; nothing where it is not installed, for some methods do without."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def processor() -> str:
    """Name of the processor, as well as the system knows it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
        known = {name.strip(): value.strip() for name, _, value in reversed(lines)}
        if "model name" in known:
            return known["model name"]
        if "CPU part" in known:
            return _ARM_CORES.get(known["CPU part"], known["CPU part"])
    return platform.processor() or platform.machine()
