import numpy as np
import pytest

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor
from twinedge.estimators import networks

BAD = {
    "hidden": [(), 0, (8, 0), (8.5,), "8", None, (True,)],
    "activation": ["tanh", None, 3, "RELU"],
    "learning_rate": ["fast", -0.1, np.nan, np.inf, None, True],
    "weight_decay": ["none", -1, np.nan, None],
    "effort": ["heroic", None, 1],
    "steps": [0, -5, 1.5, "many", None, True],
    "validation_fraction": [-0.1, 1.0, 1.5, 0.999, np.nan, "half", None],
    "random_state": ["seed", 1.5, [1, 2, 3, "x"]],
    "twins": [0, -1, 1.5, "two", None, True],
    "pairs": ["some", 0, -3, 2.5, None, True],
    "neighbors": [0, -2, 1.5, "all", None],
    "anchors": ["none", 0, 10_000, [], [10_000], [-1], [0.5], None, [[1], [2, 3]]],
}


def cases(table):
    return [
        pytest.param(name, value, id=f"{name}={value!r}") for name in table for value in table[name]
    ]


@pytest.fixture(autouse=True)
def _never_trains(monkeypatch):
    """A bad parameter must be refused before hours are spent."""

    def trained(*args, **kwargs):
        pytest.fail("the training was begun")

    monkeypatch.setattr(networks, "choose", trained)


@pytest.mark.parametrize(("name", "value"), cases(BAD))
def test_a_twin_names_the_parameter_that_is_wrong_before_it_trains(
    complaint, curve, tiny, name, value
):
    assert name in complaint(TwinRegressor(**{**tiny, name: value}).fit, *curve)


@pytest.mark.parametrize("n", [0, -1, 2.5, "many", None])
def test_an_ensemble_names_its_number_of_members_if_wrong(complaint, curve, tiny, n):
    assert f"n={n!r}" in complaint(EnsembleRegressor(AnnRegressor(**tiny), n).fit, *curve)


def test_anchors_that_the_twins_cannot_share_evenly_are_refused(complaint, curve, tiny):
    model = TwinRegressor(**tiny, twins=4, anchors=6)
    assert "6 cannot be shared evenly" in complaint(model.fit, *curve)


@pytest.mark.parametrize("validation", [np.zeros((5, 3)), 0.1, (), ([[1.0, 2, 3]],)])
def test_validation_must_have_points_and_targets(complaint, curve, tiny, validation):
    message = complaint(TwinRegressor(**tiny).fit, *curve, validation=validation)
    assert message.startswith("validation is not a tuple of points and targets")


def test_validation_targets_that_do_not_match_the_points_are_refused(complaint, curve, tiny):
    X, y = curve
    message = complaint(TwinRegressor(**tiny).fit, X, y, validation=(X[:5], y[:4]))
    assert "5 points and targets of shape (4,)" in message


def test_validation_points_with_other_features_are_refused(curve, tiny):
    X, y = curve
    with pytest.raises(ValueError, match="X has 2 features"):
        TwinRegressor(**tiny).fit(X, y, validation=(X[:5, :2], y[:5]))


def test_resuming_without_a_checkpoint_is_refused(complaint, curve, tiny, monkeypatch):
    assert "resume" in complaint(TwinRegressor(**tiny).fit, *curve, resume=True)
