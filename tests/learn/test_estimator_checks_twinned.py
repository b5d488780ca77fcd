"""What scikit-learn asks of every estimator. No check is expected to fail."""

from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from twinedge import TwinnedRegressor

forest = RandomForestRegressor(n_estimators=4, min_samples_leaf=2)


@parametrize_with_checks([TwinnedRegressor(forest, pairs=8), TwinnedRegressor(Ridge())])
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
