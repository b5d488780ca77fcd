"""Everything that fits a model: twins, ordinary networks, and ensembles of either.

Names are resolved on first use: a table that cannot be read is refused before TensorFlow is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinedge.learn.estimator import AnnRegressor, EnsembleRegressor
    from twinedge.learn.fit import fit_csv
    from twinedge.learn.forest import TwinnedRegressor
    from twinedge.learn.loops import LoopRegressor
    from twinedge.learn.pairs import ExtraPairs
    from twinedge.learn.twin import TwinRegressor

_HOMES = {
    "AnnRegressor": "twinedge.learn.estimator",
    "EnsembleRegressor": "twinedge.learn.estimator",
    "ExtraPairs": "twinedge.learn.pairs",
    "LoopRegressor": "twinedge.learn.loops",
    "TwinRegressor": "twinedge.learn.twin",
    "TwinnedRegressor": "twinedge.learn.forest",
    "fit_csv": "twinedge.learn.fit",
}

__all__ = [
    "AnnRegressor",
    "EnsembleRegressor",
    "ExtraPairs",
    "LoopRegressor",
    "TwinRegressor",
    "TwinnedRegressor",
    "fit_csv",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'twinedge.learn' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
