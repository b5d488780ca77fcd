"""What scikit-learn asks of every estimator.

Of all checks one is expected to fail: repeated rows are not, bit for bit, rows with weights, since
batches of pairs are drawn at random. They are drawn equally often (test_sample_weight.py).
"""

from sklearn.utils.estimator_checks import parametrize_with_checks

from twinedge import TwinRegressor

model = TwinRegressor(
    hidden=(8,), activation="relu", learning_rate=0.01, weight_decay=0.003, steps=300
)


DRAWN = {"check_sample_weight_equivalence_on_dense_data": "batches are drawn at random"}


@parametrize_with_checks([model], expected_failed_checks=lambda estimator: DRAWN)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
