"""How far an exported file is from the float model it was made of."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from twinedge.errors import InputError
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Array
from twinedge.scoring import check_targets

Points = tuple[Array, Array]
Predict = Callable[[Array], Any]

_TINY = 1e-9  # of the target's deviation: a smaller error is none, and no yardstick


class Score(NamedTuple):
    """Errors of a file, in units of the target.

    ``cost`` is by which part the validation error exceeds that of the float model with the same
    anchors, or will where it is not as lucky as here: rounding that moves the predictions without
    regard to the error adds to it as independent noise does. ``ratio_to_float`` compares with the
    float model with all anchors.
    """

    rmse_val: float
    rmse_test: float | None
    ratio_to_float: float
    cost: float
    largest_deviation: float


@dataclass(frozen=True)
class Judge:
    """The float model as a yardstick.

    Parameters
    ----------
    validation, test : (X, y)
        Points the model was not trained on; ``test`` may be empty.
    float_rmse_val, float_rmse_test : float
        Errors of the float model with all anchors; the latter None without test points.
    same_rmse_val : float
        Its validation error with the anchors that travel.
    same : array of shape (v,)
        Its predictions with them on the validation points.
    least : float
        A smaller error counts as this.
    """

    validation: Points
    test: Points
    float_rmse_val: float
    float_rmse_test: float | None
    same_rmse_val: float
    same: Array
    least: float

    @classmethod
    def of(
        cls,
        model: TwinRegressor,
        rows: Array,
        neighbors: int,
        validation: Points,
        test: Points | None,
    ) -> "Judge":
        """Measure the float model with all anchors and with ``rows``.

        ``neighbors`` is how many nearest anchors of each twin predict, 0 for all.
        """
        check_targets(validation[1], len(validation[0]))
        if not len(validation[1]):
            raise InputError("an export is checked on validation points, and there are none")
        if test is None:
            test = validation[0][:0], validation[1][:0]
        check_targets(test[1], len(test[0]))
        nearest = neighbors or None
        same = model.predict(validation[0], anchors=rows, neighbors=nearest)
        everyone = model.predict(validation[0], neighbors=nearest)
        on_test = model.predict(test[0], neighbors=nearest) if len(test[1]) else None
        return cls(
            validation,
            test,
            _rmse(everyone, validation[1]),
            None if on_test is None else _rmse(on_test, test[1]),
            _rmse(same, validation[1]),
            same,
            _TINY * float(model.scaling_.y_scale),
        )

    def score(self, predict: Predict) -> Score:
        """Score a file by the function ``(n, f) -> (n,)`` that predicts with it."""
        predicted = np.asarray(predict(self.validation[0]), np.float64)
        if predicted.shape != self.same.shape or not np.isfinite(predicted).all():
            raise InputError("an exported file predicts what is not a number")
        rmse = _rmse(predicted, self.validation[1])
        yardstick = max(self.same_rmse_val, self.least)
        moved = _rmse(predicted, self.same) / yardstick
        return Score(
            rmse,
            _rmse(predict(self.test[0]), self.test[1]) if len(self.test[1]) else None,
            rmse / max(self.float_rmse_val, self.least),
            max(rmse / yardstick, math.hypot(1, moved)) - 1,
            float(np.abs(predicted - self.same).max()),
        )


def _rmse(predicted: Any, y: Array) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(predicted, np.float64) - y))))
