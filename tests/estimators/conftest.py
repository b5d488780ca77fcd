"""What the tests of estimators share."""

import pytest

from twinedge.estimators import difficulty


@pytest.fixture(scope="module")
def few_trees():
    """Learn the difficulty from few trees, where a test is not about it."""
    every = difficulty.ExtraTreesRegressor
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(difficulty, "ExtraTreesRegressor", lambda _, **more: every(20, **more))
        yield
