"""What scikit-learn asks of every estimator.

Of all checks one is expected to fail, for a forest: repeated rows are not, bit for bit, rows with
weights, since forests draw rows, and others to pair them with, at random.
"""

from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from twinedge import TwinnedRegressor

forest = RandomForestRegressor(n_estimators=4, min_samples_leaf=2)


def drawn(estimator):
    if isinstance(estimator.base, Ridge):
        return {}
    return {"check_sample_weight_equivalence_on_dense_data": "rows are drawn at random"}


@parametrize_with_checks(
    [TwinnedRegressor(forest, pairs=8), TwinnedRegressor(Ridge())], expected_failed_checks=drawn
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
