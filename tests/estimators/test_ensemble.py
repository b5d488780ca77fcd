import numpy as np
import pytest

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor


@pytest.fixture(params=[TwinRegressor, AnnRegressor])
def base(request, tiny):
    return request.param(**{**tiny, "random_state": None})


def test_mean_and_std_are_those_of_members_that_differ(base, curve):
    X, y = curve
    model = EnsembleRegressor(base, 3, random_state=0).fit(X, y)
    assert len(model.members_) == 3
    predictions = np.stack([member.predict(X) for member in model.members_])
    assert len({one.tobytes() for one in predictions}) == 3
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, predictions.mean(axis=0))
    np.testing.assert_allclose(std, predictions.std(axis=0))
    np.testing.assert_array_equal(model.predict(X), mean)


def test_the_same_random_state_gives_the_same_bits_and_another_does_not(base, curve):
    X, y = curve
    first, again, other = (
        EnsembleRegressor(base, 2, random_state=seed).fit(X, y).predict(X) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_base_is_left_unfitted(base, curve):
    before = base.get_params()
    EnsembleRegressor(base, 1).fit(*curve)
    assert base.get_params() == before
    assert not hasattr(base, "weights_")


def test_the_others_take_what_the_first_member_chose(curve):
    X, y = curve
    base = AnnRegressor(hidden=(6,), effort="quick", steps=400)
    model = EnsembleRegressor(base, 3, random_state=0).fit(X, y)
    first, *others = model.members_
    assert len(first.trials_) > 2
    for member in others:
        assert [trial["stage"] for trial in member.trials_] == ["final round"]
        assert member.activation_ == first.activation_
        assert member.learning_rate_ == first.learning_rate_
        assert member.weight_decay_ == first.weight_decay_


def test_validation_points_reach_every_member(base, curve):
    X, y = curve
    model = EnsembleRegressor(base, 2, random_state=0).fit(
        X[:80], y[:80], validation=(X[80:], y[80:])
    )
    for member in model.members_:
        assert member.validation_rmse_ == pytest.approx(member.rmse(X[80:], y[80:]))


def test_an_ensemble_stopped_early_has_the_members_it_got(base, curve, monkeypatch):
    fit = type(base).fit

    def stopped(self, *args, **kwargs):
        fit(self, *args, **kwargs)
        self.interrupted_ = True
        return self

    monkeypatch.setattr(type(base), "fit", stopped)
    model = EnsembleRegressor(base, 5, random_state=0).fit(*curve)
    assert len(model.members_) == 1
    assert np.isfinite(model.predict(curve[0])).all()
