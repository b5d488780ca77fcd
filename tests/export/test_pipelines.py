"""A fitted scikit-learn pipeline that ends in a twin is exported, and predicts the same."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
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
from twinedge.pack import read_pack, write_pack
from twinedge.scoring.scores import rmse
from twinedge_export.pipelines import fold_pipeline

pytestmark = pytest.mark.filterwarnings(
    "ignore:Found unknown categories", "ignore:When `set_output`"
)

NUMBERS, NAMES = ["temp", "flow"], ["grade", "size"]
_RARE = ["d", "e"]  # levels of ``grade`` with few rows


def twin(**settings):
    usual = {"hidden": (8,), "activation": "silu", "learning_rate": 0.01, "weight_decay": 0.003}
    usual |= {"intervals": False, "steps": 10, "random_state": 0}
    return TwinRegressor(**{**usual, **settings})


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


@settings(max_examples=6, derandomize=True)
@given(transformers(), st.sampled_from(["none", 4]), st.integers(0, 1000))
def test_any_steps_that_scale_fill_in_or_encode_predict_the_same_without_them(
    transformer, input_map, seed
):
    pipeline = fitted(transformer, missing=True, model=twin(input_map=input_map))
    X, _ = measurements(60, seed, missing=True, unknown=True)
    folded = same_predictions(pipeline, X)
    assert folded.feature_names_in_.tolist() == ["temp", "grade", "flow", "size"]


@pytest.fixture(scope="module")
def mixed():
    """A pipeline as people write them: numbers filled in and scaled, names encoded."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    names = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = twin(steps=500, twins=2, intervals=True)
    return fitted(columns(numbers, names), missing=True, model=model)


@pytest.fixture(scope="module")
def exported(mixed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline")
    return twinedge.export(mixed, folder, anchors=16, formats=["twin", "onnx"])


def test_intervals_are_those_of_the_pipeline(mixed):
    X, _ = measurements(60, 1, missing=True, unknown=True)
    folded = same_predictions(mixed, X)
    expected = mixed[-1].predict_interval(mixed[:-1].transform(X))
    np.testing.assert_allclose(folded.predict_interval(X), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["model.twin", "model.onnx"])
def test_exported_files_take_the_columns_of_the_pipeline(mixed, exported, name):
    device = twinedge.load(exported.folder / name)
    X, y = measurements(80, 7, missing=name == "model.twin", unknown=True)
    queries = X[["size", "flow", "grade", "temp"]]  # in another order, without the spare one
    expected = mixed[-1].predict(mixed[:-1].transform(X), anchors=exported.rows)
    # What the export allows rounding to add to the error, on other rows.
    moved = rmse(device.predict(queries), expected) / rmse(expected, y)
    assert math.hypot(1, moved) < 1.02
    unseen = device.encoding.by_column(device.outside(queries))[
        :, device.encoding.names.index("grade")
    ]
    np.testing.assert_array_equal(unseen, X["grade"] == "new")


@pytest.mark.slow
def test_tflite_and_c_files_of_a_pipeline(mixed, exported, tmp_path):
    formats = ["twin", "tflite", "c"]
    done = twinedge.export(mixed, tmp_path, anchors=exported.rows.tolist(), formats=formats)
    X, y = measurements(80, 7, unknown=True)
    expected = mixed[-1].predict(mixed[:-1].transform(X), anchors=done.rows)
    device = twinedge.load(tmp_path / "model.tflite")
    moved = rmse(device.predict(X[["size", "flow", "grade", "temp"]]), expected)
    assert math.hypot(1, moved / rmse(expected, y)) < 1.02
    assert device.encoding.names == ("temp", "grade", "flow", "size")
    source = (tmp_path / "c" / "model" / "model.c").read_text()
    data = re.search(r"\{\n([\d,\s]+)\}", source)[1]
    packed = bytes(int(word, 0) for word in data.replace(",", " ").split())
    pack = read_pack((tmp_path / "model.twin").read_bytes())
    assert packed == write_pack(replace(pack, ids=None), metadata=False)


def test_rows_of_a_pipeline_may_have_weights():
    X, y = measurements(150, 0)
    pipeline = make_pipeline(columns(StandardScaler(), OrdinalEncoder()), twin())
    pipeline.fit(X, y, twinregressor__sample_weight=np.linspace(0.1, 3, 150))
    folded = same_predictions(pipeline, X)
    assert folded.sample_weights_.std() > 0.3


def test_a_pipeline_is_not_changed_by_its_export(mixed, exported):
    assert exported.evaluator.name == "validation"
    assert mixed[-1].n_features_in_ == 12  # 2 numbers, 5 and 3 levels, and a missing one of each
    assert len(mixed[-1].scaling_.x_mean) == 12
    assert not np.array_equal(exported.evaluator.points[0], mixed[-1].validation_[0])


def test_training_points_become_cells_again():
    pipeline = fitted(columns(MinMaxScaler((-1, 7)), OrdinalEncoder()))
    X, y = measurements(150, 0)
    folded = fold_pipeline(pipeline)
    rows = np.concatenate([folded.anchor_X_, folded.validation_[0]])
    targets = np.concatenate([folded.anchor_y_, folded.validation_[1]])
    found = folded.encoding_.encode(X)[np.argsort(y)]
    np.testing.assert_array_equal(rows[np.argsort(targets)], found)  # to the last bit


@pytest.mark.parametrize("kind", [float, str])
def test_a_level_that_the_pipeline_refuses_is_average_and_flagged(kind):
    X, y = measurements(150, 0)
    X["size"] = X["size"].astype(kind)
    pipeline = make_pipeline(columns(StandardScaler(), OrdinalEncoder()), twin()).fit(X, y)
    new = X[:4].assign(size=kind(3))
    with pytest.raises(ValueError, match="unknown categories"):
        pipeline.predict(new)
    folded = fold_pipeline(pipeline)
    average = pipeline[:-1].transform(X[:4])
    average[:, 3] = pipeline[-1].scaling_.x_mean[3]
    np.testing.assert_allclose(folded.predict(new), pipeline[-1].predict(average), atol=1e-5)
    assert (
        folded.encoding_.by_column(folded.outside(new)).tolist()
        == [[False, False, False, True]] * 4
    )


def test_a_missing_name_that_the_encoder_knows_is_a_level():
    encoder = OneHotEncoder(sparse_output=False)
    pipeline = fitted(
        columns(make_pipeline(StandardScaler(), SimpleImputer()), encoder), missing=True
    )
    folded = same_predictions(pipeline, measurements(60, 3, missing=True)[0])
    assert folded.encoding_.categories[1].levels == (*"abcde", "(missing)")
    assert folded.fill_values_[folded.encoding_.parts[1]].tolist() == [0, 0, 0, 0, 0, 1]


def test_missing_names_may_be_filled_in_by_a_text_that_spells_missing():
    filled = SimpleImputer(strategy="constant", fill_value="none")
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    transformer = ColumnTransformer([("grade", make_pipeline(filled, encoder), ["grade"])])
    X, _ = measurements(60, 3, missing=True, unknown=True)
    folded = same_predictions(fitted(transformer, missing=True), X)
    assert folded.encoding_.categories[0].levels == (*"abcde", "(missing)")


def test_codes_may_be_encoded_again_and_rare_levels_share_an_input():
    twice = make_pipeline(OrdinalEncoder(), OneHotEncoder(sparse_output=False))
    folded = same_predictions(fitted(columns(StandardScaler(), twice)), measurements(60, 3)[0])
    assert [one and one.levels for one in folded.encoding_.categories] == [
        *(None, tuple("abcde")),
        *(None, ("1", "2", "4")),
    ]
    encoder = OneHotEncoder(sparse_output=False, min_frequency=20)
    category = fold_pipeline(fitted(columns(StandardScaler(), encoder))).encoding_.categories[1]
    assert (category.levels, category.others) == (("a", "b", "c"), ("d", "e"))


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ([-2, 0], ["temp", "flow"]),
        (slice("flow", "size"), ["flow", "size"]),
        (slice(3, None), ["flow", "size"]),
        ([True, False, False, False, True], ["temp", "size"]),
        (make_column_selector(dtype_include=float), ["temp", "spare", "flow"]),
        (lambda X: [name for name in X.columns if name.startswith("s")], ["spare", "size"]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_columns_may_be_selected_in_any_way(key, found):
    X, _ = measurements(30, 1)
    folded = same_predictions(fitted(ColumnTransformer([("some", StandardScaler(), key)])), X)
    assert folded.feature_names_in_.tolist() == found
    np.testing.assert_array_equal(folded.predict(X[found]), folded.predict(X))


def test_columns_are_passed_through_dropped_and_nested():
    inner = make_pipeline(
        ColumnTransformer([("first", RobustScaler(), [1])], remainder="passthrough"),
        "passthrough",
        StandardScaler(),
    )
    transformer = ColumnTransformer(
        [
            ("inner", inner, NUMBERS),
            ("gone", "drop", ["grade"]),
            ("none", StandardScaler(), []),
            ("size", "passthrough", ["size"]),
        ],
        remainder=MaxAbsScaler(),
    )
    folded = same_predictions(fitted(transformer), measurements(30, 1)[0])
    assert folded.feature_names_in_.tolist() == ["temp", "spare", "flow", "size"]


def test_a_column_may_reach_the_twin_twice():
    both = ColumnTransformer(
        [
            ("scaled", StandardScaler(), NUMBERS),
            ("again", MinMaxScaler(), ["temp"]),
            ("codes", OrdinalEncoder(), NAMES),
            ("levels", OneHotEncoder(sparse_output=False, drop="first"), ["size"]),
        ]
    )
    folded = same_predictions(fitted(both), measurements(60, 2)[0])
    assert folded.encoding_.names == ("temp", "grade", "flow", "size")


def test_curves_of_names_become_part_of_the_kernels():
    X, _ = measurements(60, 4)
    codes = OrdinalEncoder()  # which have curves, as they have more than two values
    names = fitted(ColumnTransformer([("codes", codes, NAMES)]), model=twin(input_map=4))
    assert same_predictions(names, X).map_ is None
    both = fitted(columns("passthrough", codes), model=twin(input_map=4))
    curves = [len(knots) for knots in same_predictions(both, X).map_.knots]
    assert sum(count > 0 for count in curves) == len(NUMBERS)


def test_a_curve_takes_its_column_once():
    twice = ColumnTransformer([("a", StandardScaler(), NUMBERS), ("b", MinMaxScaler(), ["temp"])])
    pipeline = fitted(twice, model=twin(input_map=4))
    with pytest.raises(InputError, match="column 'temp' reaches the twin 2 times"):
        fold_pipeline(pipeline)


def test_a_constant_column_may_reach_the_twin_in_two_scales():
    X, y = measurements(150, 0)
    both = ColumnTransformer(
        [("scaled", MaxAbsScaler(), ["temp", "flow"]), ("again", "passthrough", ["flow"])]
    )
    pipeline = make_pipeline(both, twin()).fit(X.assign(flow=5.0), y)
    same_predictions(pipeline, X.assign(flow=np.linspace(4, 7, 150)))


def test_arrays_have_numbered_columns(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(5, 3, (100, 4))
    y = X[:, 0] * X[:, 2] + X[:, 3]
    transformer = ColumnTransformer([("numbers", StandardScaler(), [3, 0, 2])])
    pipeline = Pipeline([("first", None), ("prepare", transformer), ("twin", twin(steps=500))])
    pipeline.fit(X, y)
    folded = fold_pipeline(pipeline)
    assert folded.feature_names_in_.tolist() == ["x0", "x2", "x3"]
    np.testing.assert_allclose(folded.predict(X[:, [0, 2, 3]]), pipeline.predict(X), atol=1e-4)
    search = GridSearchCV(pipeline, {"twin__neighbors": [32]}, cv=2).fit(X, y)
    done = twinedge.export(search, tmp_path, anchors=8, formats=["twin"])
    device = twinedge.load(done.files[0].path)
    assert device.feature_names == ("x0", "x2", "x3")
    expected = search.best_estimator_[-1].predict(
        search.best_estimator_[:-1].transform(X), anchors=done.rows
    )
    assert np.std(device.predict(X[:, [0, 2, 3]]) - expected) < 0.02 * np.std(expected - y)


def test_the_twins_own_encoding_and_imputation_stay():
    numbers = ColumnTransformer([("numbers", StandardScaler(), NUMBERS)], remainder="passthrough")
    pipeline = fitted(
        numbers.set_output(transform="pandas"), missing=True, model=twin(impute="median")
    )
    folded = same_predictions(pipeline, measurements(60, 3, missing=True, unknown=True)[0])
    category = folded.encoding_.categories[folded.encoding_.names.index("grade")]
    assert set(category.levels) | set(category.others) == set("abcde")


def test_wild_values_are_clipped_where_the_twin_clips_them():
    X, y = measurements(5000, 0)
    X.loc[[7, 8], "flow"] = [1e4, -1e4]
    transformer = columns(MinMaxScaler((5, 6)), OrdinalEncoder())
    pipeline = make_pipeline(transformer, twin()).fit(X, y)
    assert pipeline[-1].scaling_.limit < 10
    queries = pd.concat([X[:40], X[:8].assign(flow=[-1e9, -1e5, 0, 900, 1100, 2000, 1e5, 1e9])])
    same_predictions(pipeline, queries)


def test_neighbors_stay_the_same():
    near = {"pairs": "neighbors", "neighbors": 8}
    one_hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    X, _ = measurements(60, 2)
    same_predictions(fitted(columns(RobustScaler(), one_hot), model=twin(**near)), X)
    with pytest.raises(InputError, match=r"column 'grade' is not encoded one-hot .* neighbors"):
        fold_pipeline(fitted(columns(RobustScaler(), OrdinalEncoder()), model=twin(**near)))


def refused(transformer, message, *, missing=False):
    with pytest.raises(InputError, match=message) as caught:
        fold_pipeline(fitted(transformer, missing=missing))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (PCA(2), r"step 'prepare__numbers' \(PCA\) cannot be exported: a device scales"),
        (make_pipeline(StandardScaler(), PolynomialFeatures()), r"__polynomialfeatures' \(Poly"),
        (FunctionTransformer(np.log), r"FunctionTransformer\) cannot be exported with a function"),
        (MinMaxScaler(clip=True), "cannot be exported with clip=True; .* take clip=False"),
        (SimpleImputer(add_indicator=True), "cannot be exported with add_indicator=True"),
        (SimpleImputer(missing_values=-1), "cannot be exported with missing_values=-1"),
    ],
    ids=lambda one: "" if isinstance(one, str) else type(one).__name__,
)
def test_a_step_that_cannot_be_folded_is_named(transformer, message):
    refused(columns(transformer, "drop"), message)


class Squared(StandardScaler):
    """A subclass of a known step, which may do anything."""

    def transform(self, X, copy=None):
        return super().transform(X, copy) ** 2


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (columns(Squared(), "drop"), r"\(Squared\) cannot be exported"),
        (
            columns(StandardScaler(), "drop", transformer_weights={"numbers": 2}),
            r"\(ColumnTransformer\) cannot be exported with transformer_weights",
        ),
        (
            ColumnTransformer(
                [("number", StandardScaler(), ["size"]), ("name", OrdinalEncoder(), ["size"])]
            ),
            "column 'size' is used both as numbers and as names",
        ),
        (
            ColumnTransformer(
                [("size", make_pipeline(StandardScaler(), OrdinalEncoder()), ["size"])]
            ),
            "column 'size' is encoded after",
        ),
    ],
    ids=["subclass", "weights", "numbers and names", "encoded after scaling"],
)
def test_columns_that_cannot_be_folded_are_named(transformer, message):
    refused(transformer, message)


def test_a_column_filled_in_with_two_values_is_named():
    both = ColumnTransformer(
        [("zero", SimpleImputer(strategy="constant"), NUMBERS), ("mean", SimpleImputer(), ["flow"])]
    )
    refused(both, "column 'flow' has missing cells filled in by 0 and by 100", missing=True)


@pytest.mark.parametrize(
    ("levels", "message"), [(["a", "NA", None], "'NA', which"), (["1", "1.0"], "both are '1'")]
)
def test_levels_that_a_device_cannot_tell_apart_are_named(levels, message):
    rng = np.random.default_rng(0)
    X = np.empty((60, 2), object)
    X[:, 0], X[:, 1] = rng.random(60), np.array(levels, object)[rng.integers(0, len(levels), 60)]
    encoder = OneHotEncoder(sparse_output=False, categories=[levels])
    transformer = ColumnTransformer([("names", encoder, [1])], remainder="passthrough")
    pipeline = make_pipeline(transformer, twin()).fit(X, X[:, 0].astype(float))
    with pytest.raises(InputError, match=rf"column 'x1' .*{message}"):
        fold_pipeline(pipeline)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(StandardScaler(), twin()), "the pipeline is not fitted"),
        (make_pipeline(StandardScaler(), Ridge()), r"ends in 'ridge' \(Ridge\), which cannot be"),
        (make_pipeline(StandardScaler(), TransformedTargetRegressor(twin())), "is not fitted"),
        (TransformedTargetRegressor(twin()), "the model is not fitted"),
        (GridSearchCV(twin(), {}), "a GridSearchCV cannot be exported"),
    ],
    ids=lambda one: "" if isinstance(one, str) else type(one).__name__,
)
def test_a_model_that_cannot_be_exported_is_named(model, message, tmp_path):
    with pytest.raises(InputError, match=message):
        twinedge.export(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_step_changed_after_the_fit_is_noticed():
    pipeline = fitted(columns(StandardScaler(), OrdinalEncoder()))
    other = Pipeline(
        [("prepare", columns(StandardScaler(), OrdinalEncoder())), ("twin", pipeline[-1])]
    )
    with pytest.raises(InputError, match=r"step 'prepare' \(ColumnTransformer\) is not fitted"):
        fold_pipeline(other)
    X, _ = measurements(150, 0)
    other[0].fit(X[["temp", "flow", "grade", "size"]].assign(grade="a"))
    with pytest.raises(InputError, match="column 'grade' has other levels than its twin"):
        fold_pipeline(other)
