"""What a benchmark ran on: part of every result, as a number without a machine says little."""

import os
import platform
from datetime import date
from importlib.metadata import version

from benchmarks.reproduction.cells import processor
from twinedge.version import __version__


def describe(*packages: str) -> dict[str, object]:
    """Processor, cores, system, versions of Python and of these packages, and today's date."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "twinedge": __version__,  # also where it is not installed
        **{name: version(name) for name in packages},
        "date": date.today().isoformat(),
    }
