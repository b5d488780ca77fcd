import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor


def test_parameters_are_stored_as_given():
    widths, rows = [3, 4], np.array([1, 2])
    model = TwinRegressor(hidden=widths, anchors=rows, steps="nonsense")
    assert model.get_params()["hidden"] is widths
    assert model.get_params()["anchors"] is rows
    assert model.set_params(steps=5, pairs=3) is model
    assert (model.steps, model.pairs) == (5, 3)
    with pytest.raises(ValueError, match="colour"):
        model.set_params(colour="red")


def test_a_pickled_twin_keeps_everything_it_can_do(tiny_twin, curve):
    again = pickle.loads(pickle.dumps(tiny_twin))
    X, _ = curve
    np.testing.assert_array_equal(again.estimates(X), tiny_twin.estimates(X))
    np.testing.assert_array_equal(again.loop_violation(X), tiny_twin.loop_violation(X))


def test_a_pipeline_and_a_grid_search_find_the_better_parameters(tiny, curve):
    X, y = curve
    search = GridSearchCV(
        make_pipeline(
            PolynomialFeatures(2, include_bias=False), TwinRegressor(**tiny, intervals=False)
        ),
        {"twinregressor__steps": [1, 500]},
        cv=2,
        error_score="raise",
    )
    search.fit(X, y)
    assert search.best_params_["twinregressor__steps"] == 500
    assert search.best_score_ > 0.7
    assert search.predict(X).shape == y.shape


def test_cross_validation_scores_an_ensemble(tiny, curve):
    model = EnsembleRegressor(AnnRegressor(**tiny), 2, random_state=0)
    assert cross_val_score(model, *curve, cv=2, error_score="raise").min() > 0.3
