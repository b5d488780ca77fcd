"""A fitted scikit-learn pipeline that ends in a twin is exported, and predicts the same."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import twinedge
from twinedge import InputError, TwinRegressor
from twinedge_export.pipelines import fold_pipeline

NUMBERS, NAMES = ["temp", "flow"], ["grade", "size"]
_RARE = ["d", "e"]  # levels of ``grade`` with few rows


def twin(**settings):
    usual = {"hidden": (8,), "activation": "silu", "learning_rate": 0.01, "weight_decay": 0.003}
    return TwinRegressor(**{**usual, "steps": 50, "random_state": 0, **settings})


def measurements(rows, seed, *, missing=False, unknown=False):
    """Make a table whose columns have different units, kinds and offsets, and its target."""
    rng = np.random.default_rng(seed)
    temp = rng.normal(20, 5, rows).round(1)
    flow = rng.uniform(1000, 1010, rows).round(3)
    grade = rng.choice(["a", "b", "c", *_RARE], rows, p=[0.4, 0.3, 0.24, 0.03, 0.03]).astype(object)
    grade[:10] = ["a", "b", "c", *_RARE] * 2
    size = rng.choice([1, 2, 4], rows)
    worth = pd.Series(grade).map(dict(zip("abcde", [0, 3, -2, 5, 6], strict=True))).to_numpy(float)
    y = 0.4 * temp + (flow - 1005) ** 2 / 5 + worth + size + rng.normal(0, 0.1, rows)
    table = pd.DataFrame(
        {"temp": temp, "spare": rng.random(rows), "grade": grade, "flow": flow, "size": size}
    )
    if unknown:
        table.loc[rng.random(rows) < 0.2, "grade"] = "new"
        table.loc[rng.random(rows) < 0.2, "size"] = 8
    if missing:
        table["size"] = table["size"].astype(float)
        for name in (*NUMBERS, *NAMES):
            table.loc[rng.random(rows) < 0.15, name] = np.nan
    return table, y


def fitted(transformer, *, missing=False, model=None):
    X, y = measurements(150, 0, missing=missing)
    steps = [("prepare", transformer), ("twin", model or twin())]
    return Pipeline(steps).fit(X, y)


def same_predictions(pipeline, X):
    """Compare predictions, their scale and intervals; returns the folded twin."""
    folded, last = fold_pipeline(pipeline), pipeline[-1]
    shuffled = X[np.random.default_rng(0).permutation(X.columns)]
    expected = last.predict(pipeline[:-1].transform(X), return_std=True)
    for mine, theirs in zip(folded.predict(shuffled, return_std=True), expected, strict=True):
        # First kernels are rounded to float32 again.
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-6 * last.scaling_.y_scale)
    np.testing.assert_allclose(folded.predict(X), pipeline.predict(X), atol=1e-5)
    return folded


def columns(numbers, names, **settings):
    return ColumnTransformer(
        [("numbers", numbers, NUMBERS), ("names", names, NAMES)], sparse_threshold=0, **settings
    )


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-3, 1)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False, with_scaling=False),
    FunctionTransformer(),
    "passthrough",
]
IMPUTERS = [
    SimpleImputer(),
    SimpleImputer(strategy="median"),
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="constant", fill_value=3),
]
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", drop="first"),
    OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.1),
    OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=2, drop="first"),
    OneHotEncoder(handle_unknown="ignore", categories=[list("abx"), [1, 2, 3]]),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=9,
        encoded_missing_value=5,
        min_frequency=0.1,
    ),
]


@st.composite
def transformers(draw):
    """Scalers and imputers of numbers in any order, encoders of names with scalers behind."""
    numbers = [draw(st.sampled_from(SCALERS)), draw(st.sampled_from(IMPUTERS))]
    if draw(st.booleans()):
        numbers.reverse()
    numbers += draw(st.lists(st.sampled_from(SCALERS), max_size=1))
    names = [draw(st.sampled_from(ENCODERS))]
    if isinstance(names[0], OneHotEncoder):
        names[0].set_params(sparse_output=False)
    names.insert(0, draw(st.sampled_from(["passthrough", SimpleImputer(strategy="most_frequent")])))
    # Only an imputer makes missing names acceptable to a scaler's mean, a twin or both.
    names.append(SimpleImputer(strategy="constant", fill_value=-2))
    names += draw(st.lists(st.sampled_from(SCALERS), max_size=1))
    frame = draw(st.booleans())
    found = columns(make_pipeline(*numbers), make_pipeline(*names))
    return found.set_output(transform="pandas") if frame else found


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(transformers(), st.integers(0, 1000))
def test_any_steps_that_scale_fill_in_or_encode_predict_the_same_without_them(transformer, seed):
    pipeline = fitted(transformer, missing=True)
    X, _ = measurements(60, seed, missing=True, unknown=True)
    folded = same_predictions(pipeline, X)
    assert folded.feature_names_in_.tolist() == ["temp", "grade", "flow", "size"]
