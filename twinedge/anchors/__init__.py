"""Choose which training points travel to the device.

A twin predicts from the training points it is given as anchors. It does best with all of them, but
those are too many for a device; a few well-chosen ones come within a percent of that.
"""

from twinedge.anchors.choice import AnchorChoice, choose, select
from twinedge.anchors.curves import Point, Recommendation, curve, recommend, rmse, smallest_within
from twinedge.anchors.methods import METHODS, Method
from twinedge.anchors.rows import check_rows, rows_from_file

__all__ = [
    "METHODS",
    "AnchorChoice",
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
