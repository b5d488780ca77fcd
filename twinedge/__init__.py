"""Twin neural network regression, from a table to a device.

Public names are resolved on first use, so that ``import twinedge`` loads nothing heavy: training
pulls in TensorFlow, running a model does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from twinedge.version import __version__

if TYPE_CHECKING:
    from twinedge import data as data
    from twinedge.errors import InputError as InputError
    from twinedge.estimators import AnnRegressor as AnnRegressor
    from twinedge.estimators import EnsembleRegressor as EnsembleRegressor
    from twinedge.estimators import ExtraPairs as ExtraPairs
    from twinedge.estimators import LoopRegressor as LoopRegressor
    from twinedge.estimators import TwinnedRegressor as TwinnedRegressor
    from twinedge.estimators import TwinRegressor as TwinRegressor
    from twinedge.fitting import fit_csv as fit_csv
    from twinedge.loading import load as load
    from twinedge_export.deploy import export as export

_HOMES = {
    "AnnRegressor": "twinedge.estimators",
    "EnsembleRegressor": "twinedge.estimators",
    "ExtraPairs": "twinedge.estimators",
    "InputError": "twinedge.errors",
    "LoopRegressor": "twinedge.estimators",
    "TwinRegressor": "twinedge.estimators",
    "TwinnedRegressor": "twinedge.estimators",
    "export": "twinedge_export.deploy",
    "fit_csv": "twinedge.fitting",
    "load": "twinedge.loading",
}

__all__ = [
    "AnnRegressor",
    "EnsembleRegressor",
    "ExtraPairs",
    "InputError",
    "LoopRegressor",
    "TwinRegressor",
    "TwinnedRegressor",
    "__version__",
    "data",
    "export",
    "fit_csv",
    "load",
]


def __getattr__(name: str) -> Any:
    if name == "data":  # a subpackage, not a name in one
        return import_module("twinedge.data")
    if name not in _HOMES:
        raise AttributeError(f"module 'twinedge' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
