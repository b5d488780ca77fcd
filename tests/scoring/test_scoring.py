"""What predictions and intervals are worth."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from twinedge import scoring
from twinedge.scoring.scores import describe_scores, rank_correlation, score


def test_errors_and_intervals_are_counted():
    y, mean = np.array([0.0, 1, 2, 3]), np.array([0.0, 1, 2, 5])
    ends = {0.5: np.stack([mean - 1, mean + 1], axis=1), 0.9: np.stack([mean - 3, mean + 3], 1)}
    found = score(y, mean, np.ones(4), np.array([1.0, 1, 1, 4]), ends)
    assert (found.rows, found.rmse, found.mae, found.largest_error) == (4, 1.0, 0.5, 2.0)
    assert found.baseline_rmse == pytest.approx(np.std(y))
    assert found.r2 == pytest.approx(1 - 1 / np.var(y))
    half, most = found.intervals
    assert half == (0.5, 0.75, 2.0, 2 + 4 * 1 / 4)
    assert most == (0.9, 1.0, 6.0, 6.0)


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    scale, error = rng.integers(0, 9, 40).astype(float), rng.normal(size=40).round(1)
    assert rank_correlation(scale, error) == pytest.approx(spearmanr(scale, np.abs(error))[0])
    assert rank_correlation(np.ones(40), error) == 0


@pytest.mark.parametrize(
    ("scale", "says"),
    [
        (
            range(10),
            "Intervals cover 30 % where 90 % is claimed; the scale ranks errors well (1.00).",
        ),
        (range(10, 0, -1), "; the scale does not rank errors (-1.00)."),
        (range(9), "; 9 rows cannot show whether the scale ranks errors."),
        (range(1), "; 1 row cannot show whether the scale ranks errors."),
    ],
)
def test_a_sentence_says_it(scale, says):
    mean = np.arange(len(scale), dtype=float)
    y, spread, scale = np.zeros(len(mean)), np.ones(len(mean)), np.array(scale, float)
    ends = {0.9: np.stack([mean - 2, mean + 2], axis=1)}
    assert says in describe_scores(score(y, mean, spread, scale, ends))


def test_without_intervals_it_says_so():
    assert "no intervals" in describe_scores(score(np.zeros(3), np.ones(3), np.ones(3)))


def test_rmse_is_of_predictions_or_of_errors():
    y, predicted = np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 1.0])
    assert scoring.rmse(predicted, y) == scoring.rmse(predicted - y) == np.sqrt(8 / 3)
    # Squares of float32 would be infinite.
    assert scoring.rmse(np.full(4, 1e30, np.float32)) == pytest.approx(1e30)
