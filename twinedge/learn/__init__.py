"""Everything that fits a model: twins, ordinary networks, and ensembles of either."""

from twinedge.learn.estimator import AnnRegressor, EnsembleRegressor
from twinedge.learn.forest import TwinnedRegressor
from twinedge.learn.loops import LoopRegressor
from twinedge.learn.pairs import ExtraPairs
from twinedge.learn.twin import TwinRegressor

__all__ = [
    "AnnRegressor",
    "EnsembleRegressor",
    "ExtraPairs",
    "LoopRegressor",
    "TwinRegressor",
    "TwinnedRegressor",
]
