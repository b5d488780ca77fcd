"""What scikit-learn asks of every estimator. No check is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from twinedge import AnnRegressor, EnsembleRegressor

base = AnnRegressor(
    hidden=(8,), activation="relu", learning_rate=0.01, weight_decay=0.003, steps=300
)


@parametrize_with_checks([EnsembleRegressor(base, 2)])
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
