"""What a benchmark ran on: goes into every result, for a number without a machine says little."""

import os
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path


def describe(*packages: str) -> dict[str, object]:
    """Processor, cores, system, versions of Python and of these packages, and today's date."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("twinedge", *packages)},
        "date": date.today().isoformat(),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("CPU part"):
                part = line.partition(":")[2].strip()
                return {"0xd0c": "Arm Neoverse-N1", "0xd40": "Arm Neoverse-V1"}.get(part, part)
    return platform.processor() or platform.machine()
