"""Turn a fitted model into files for a device, and those into firmware. Workstation only.

Names are resolved on first use: exporting pulls in TensorFlow, building firmware does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinedge_export.deploy import Export as Export
    from twinedge_export.deploy import export as export
    from twinedge_export.settings import FORMATS as FORMATS

_HOMES = {
    "FORMATS": "twinedge_export.settings",
    "Export": "twinedge_export.deploy",
    "export": "twinedge_export.deploy",
}

__all__ = ["FORMATS", "Export", "export"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'twinedge_export' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
