"""Everything that fits a model: twins, ordinary networks, and ensembles of either."""

from twinedge.estimators.loops import LoopRegressor
from twinedge.estimators.ordinary import AnnRegressor, EnsembleRegressor
from twinedge.estimators.twin import TwinRegressor
from twinedge.estimators.twinned import TwinnedRegressor
from twinedge.training.pairs import ExtraPairs

__all__ = [
    "AnnRegressor",
    "EnsembleRegressor",
    "ExtraPairs",
    "LoopRegressor",
    "TwinRegressor",
    "TwinnedRegressor",
]
