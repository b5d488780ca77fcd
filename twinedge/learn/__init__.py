"""Everything that fits a model: twins, ordinary networks, and ensembles of either."""

from twinedge.learn.ann import AnnRegressor
from twinedge.learn.ensemble import EnsembleRegressor
from twinedge.learn.extra_pairs import ExtraPairs
from twinedge.learn.forest import TwinnedRegressor
from twinedge.learn.loops import LoopRegressor
from twinedge.learn.twin import TwinRegressor

__all__ = [
    "AnnRegressor",
    "EnsembleRegressor",
    "ExtraPairs",
    "LoopRegressor",
    "TwinRegressor",
    "TwinnedRegressor",
]
