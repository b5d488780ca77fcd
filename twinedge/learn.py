"""Deprecated, goes with 0.3: ``twinedge`` has the estimators, ``twinedge.run_folder`` the runs."""

import sys
import warnings

from twinedge import run_folder
from twinedge.estimators import (
    AnnRegressor,
    EnsembleRegressor,
    ExtraPairs,
    LoopRegressor,
    TwinnedRegressor,
    TwinRegressor,
    uncertainty,
)

__all__ = [
    "AnnRegressor",
    "EnsembleRegressor",
    "ExtraPairs",
    "LoopRegressor",
    "TwinRegressor",
    "TwinnedRegressor",
]
__path__: list[str] = []  # so that the two names below can be imported as before
sys.modules["twinedge.learn.run"] = run_folder
sys.modules["twinedge.learn.uncertainty"] = uncertainty

warnings.warn(
    "twinedge.learn is deprecated: import estimators from twinedge, runs from twinedge.run_folder",
    DeprecationWarning,
    stacklevel=2,
)
