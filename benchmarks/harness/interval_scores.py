"""How good the intervals of a pack are, beside the simplest ones around the same predictions."""

from typing import Any

import numpy as np

from benchmarks.harness.trained import packed
from twinedge import scoring
from twinedge.run_folder import Run
from twinedge.runtime import reference
from twinedge.scoring.calibration import interval_score, quantile
from twinedge.scoring.scores import rank_correlation
from twinedge_export.quantise import quantise

COVERAGE, LEVEL = 0.9, 900


def score_intervals(low: np.ndarray, high: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Coverage, mean width, and mean interval score of 90 % intervals."""
    return {
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low)),
        "score": interval_score(low, high, y, COVERAGE),
    }


def measure(run: Run) -> dict[str, Any]:
    """Score a run on its test points, from the integers of its pack.

    ``constant`` are intervals of constant width, ``spread`` those from the spread of the estimates
    alone, both calibrated on the validation rows; ``rmse_without`` is the error of a pack without
    intervals.
    """
    pack, lists = packed(run)
    plain = reference.evaluate(quantise(run.model, lists), run.test[0]).mean
    X, y = run.test
    seen, found = (reference.evaluate(pack, points) for points in (run.validation[0], X))
    ends = reference.bounds(pack, found, LEVEL)
    errors = np.abs(run.validation[1] - seen.mean)
    width = quantile(errors, COVERAGE)
    least = np.finfo(np.float32).tiny
    spread = quantile(errors / np.maximum(seen.spread, least), COVERAGE) * found.spread
    return {
        "ours": score_intervals(ends.low, ends.high, y),
        "constant": score_intervals(found.mean - width, found.mean + width, y),
        "spread": score_intervals(found.mean - spread, found.mean + spread, y),
        "rank": rank_correlation(ends.scale, found.mean - y),
        "rmse": scoring.rmse(found.mean, y),
        "rmse_without": scoring.rmse(plain, y),
        "rows": int(pack.intervals.rows) if pack.intervals else 0,
    }
