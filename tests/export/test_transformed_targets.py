"""A TransformedTargetRegressor of a twin is exported, and its files give the user's units."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, StandardScaler

import twinedge
from twinedge import InputError, TwinRegressor
from twinedge.pack import read_pack
from twinedge_export.pipelines import fold_estimator

FUNCTIONS = {
    "log": (np.log, np.exp),
    "log1p": (np.log1p, np.expm1),
    "sqrt": (np.sqrt, np.square),
}


def twin(**settings):
    usual = {"hidden": (8,), "activation": "silu", "learning_rate": 0.01, "weight_decay": 0.003}
    return TwinRegressor(**{**usual, "steps": 600, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def table():
    """200 rows of a target over two powers of ten, with errors in proportion to its size."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 3)) * [1, 10, 100]
    y = 5 * np.exp(2 * np.sin(2 * X[:, 0]) + X[:, 1] / 10 + rng.normal(0, 0.05, 200))
    return X, y


@pytest.fixture(scope="module", params=FUNCTIONS)
def fitted(request, table):
    """Name of a curve, and a model that was fitted on it."""
    func, inverse = FUNCTIONS[request.param]
    model = TransformedTargetRegressor(twin(), func=func, inverse_func=inverse)
    return request.param, model.fit(table[0][:150], table[1][:150])


def test_a_transformed_target_is_one_with_a_curve(fitted, table):
    kind, model = fitted
    found, X = fold_estimator(model), table[0][150:]
    assert found.scaling_.curve.kind == kind
    np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=1e-5)
    np.testing.assert_allclose(sorted(found.anchor_y_), _known(found.anchor_y_, table[1]))
    low, high = found.predict_interval(X).T
    inside = model.regressor_.predict_interval(X)
    if kind == "sqrt":  # no target is below the root of zero
        inside = np.maximum(inside, 0)
    np.testing.assert_allclose([low, high], FUNCTIONS[kind][1](inside).T, rtol=1e-4)
    errors = found.predict(found.validation_[0]) - found.validation_[1]
    assert found.validation_rmse_ == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    assert model.regressor_.scaling_.curve is None  # which is left as it was


def _known(some, y):
    """Return those of the targets that are nearest to some."""
    return np.sort(y[np.abs(y[:, None] - some).argmin(axis=0)])


def test_all_files_give_the_users_units(fitted, table, tmp_path):
    kind, model = fitted
    done = twinedge.export(model, tmp_path / "out", anchors=16, formats=("twin", "onnx"))
    X, y = table[0][150:], table[1][150:]
    pack = read_pack((tmp_path / "out" / "model.twin").read_bytes())
    assert pack.target_curve is not None
    assert pack.metadata["target_curve"]["kind"] == kind
    inverse = FUNCTIONS[kind][1]
    expected = inverse(model.regressor_.predict(X, anchors=done.rows))
    for file in done.files:
        device = twinedge.load(file.path)
        np.testing.assert_allclose(device.predict(X), expected, rtol=0.02, atol=0.01 * y.std())
        low, high = device.predict_interval(X, 0.9).T
        assert (low <= device.predict(X)).all()
        assert (high >= device.predict(X)).all()
        assert np.mean((low <= y) & (y <= high)) > 0.8


@pytest.mark.parametrize("where", ["inside", "around", "search"])
def test_pipelines_inside_and_around(table, where):
    X, y = table
    functions = {"func": np.log, "inverse_func": np.exp}
    if where == "inside":
        model = TransformedTargetRegressor(make_pipeline(StandardScaler(), twin()), **functions)
    elif where == "around":
        model = make_pipeline(StandardScaler(), TransformedTargetRegressor(twin(), **functions))
    else:
        inner = FunctionTransformer(np.log, np.exp)
        model = GridSearchCV(
            TransformedTargetRegressor(twin(steps=20), transformer=inner),
            {"regressor__hidden": [(4,)]},
            cv=2,
        )
    found = fold_estimator(getattr(model.fit(X, y), "best_estimator_", model))
    assert found.scaling_.curve.kind == "log"
    np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=1e-4)


def test_a_target_that_is_left_as_it_is_needs_no_curve(table):
    model = TransformedTargetRegressor(twin(steps=20)).fit(*table)
    assert fold_estimator(model).scaling_.curve is None


CUBES = {"func": np.cbrt, "inverse_func": lambda c: c**3}
DECIBELS = {"func": np.log10, "inverse_func": lambda c: 10**c}
SHIFTED = FunctionTransformer(np.log, np.exp, kw_args={"where": True})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TransformedTargetRegressor(twin(), **CUBES), "log and exp, log1p and expm1, sqrt and"),
        (TransformedTargetRegressor(twin(), **DECIBELS), "a device cannot undo"),
        (TransformedTargetRegressor(twin(), func=np.log, inverse_func=np.expm1), "cannot undo"),
        (TransformedTargetRegressor(twin(), transformer=SHIFTED), "cannot undo"),
        (
            TransformedTargetRegressor(twin(), transformer=QuantileTransformer(n_quantiles=10)),
            "cannot undo",
        ),
        (TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp), "has a Ridge"),
        (
            TransformedTargetRegressor(twin(target_curve="sqrt"), func=np.log, inverse_func=np.exp),
            "leave out one of the two",
        ),
    ],
    ids=["cubes", "log10", "mixed up", "arguments", "transformer", "ridge", "twice"],
)
def test_what_cannot_be_exported_is_refused_in_a_line(table, tmp_path, complaint, model, message):
    X, y = table
    if isinstance(model.regressor, TwinRegressor):
        model.regressor.set_params(steps=10, intervals=False)
    model.set_params(check_inverse=False).fit(X, 2 + y)
    assert message in complaint(twinedge.export, model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unfitted_one_is_refused():
    with pytest.raises(InputError, match="the model is not fitted"):
        fold_estimator(TransformedTargetRegressor(twin(), func=np.log, inverse_func=np.exp))
