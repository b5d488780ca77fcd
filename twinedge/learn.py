"""Deprecated: ``twinedge`` has the estimators, ``twinedge.run_folder`` the runs."""

import sys

from twinedge import run_folder
from twinedge.deprecation import warn_deprecated
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

warn_deprecated("twinedge.learn", "twinedge for estimators, twinedge.run_folder for runs")
