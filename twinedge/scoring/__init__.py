"""Scores of predictions, calibrated intervals, and weights of rows. Needs only numpy."""

from twinedge.scoring.scores import (
    Coverage,
    Scores,
    check_targets,
    describe_scores,
    r2,
    rank_correlation,
    rmse,
    score,
    score_groups,
)

__all__ = [
    "Coverage",
    "Scores",
    "check_targets",
    "describe_scores",
    "r2",
    "rank_correlation",
    "rmse",
    "score",
    "score_groups",
]
