"""What scikit-learn asks of every estimator. No check is expected to fail."""

from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from twinedge import LoopRegressor, TwinnedRegressor


@parametrize_with_checks([LoopRegressor(TwinnedRegressor(Ridge()))])
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
