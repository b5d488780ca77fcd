"""Which training points travel to the device.

A twin predicts from the training points it is given as anchors. All of them are the best it can do
and too many for a device; a few well chosen ones come within a percent of that.
"""

from twinedge.anchors.auto import Choice
from twinedge.anchors.choice import choose, select
from twinedge.anchors.counts import Point, curve, rmse, smallest_within
from twinedge.anchors.measure import Recommendation, recommend
from twinedge.anchors.methods import METHODS, Method
from twinedge.anchors.rows import check_rows, rows_from_file

__all__ = [
    "METHODS",
    "Choice",
    "Method",
    "Point",
    "Recommendation",
    "check_rows",
    "choose",
    "curve",
    "recommend",
    "rmse",
    "rows_from_file",
    "select",
    "smallest_within",
]
