"""Names of columns decide what a model reads: in estimators, runs and devices alike."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

import twinedge
from twinedge import AnnRegressor, EnsembleRegressor, LoopRegressor, TwinnedRegressor, TwinRegressor

TINY = {"hidden": 8, "steps": 40, "random_state": 0}
NAMES = ["temperature", "flow", "pressure"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.integers(0, 9, (200, 3)), columns=NAMES)
    return table, pd.Series(table["temperature"] - table["flow"] * 2.0, name="load")


@pytest.fixture(scope="module")
def named(frame):
    table, load = frame
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return TwinRegressor(**TINY).fit(table, load)


@pytest.fixture(scope="module")
def device(named, tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    twinedge.export(named, folder / "out", anchors=8, formats=("twin",), tolerance=10.0)
    return twinedge.load(folder / "out" / "model.twin")


@pytest.fixture(scope="module")
def run(frame, tmp_path_factory):
    table, load = frame
    folder = tmp_path_factory.mktemp("runs")
    table.assign(load=load).to_csv(folder / "table.csv", index=False)
    twinedge.fit_csv(folder / "table.csv", target="load", run=folder / "run", **TINY)
    return twinedge.load(folder / "run")


KINDS = ("int64", "float32", "category", "Int64", "Float64", "string", "object")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(data=st.data())
def test_order_and_kind_of_columns_change_no_bit(data, frame, named, run, device):
    table = frame[0].iloc[:7]
    kinds = {name: data.draw(st.sampled_from(KINDS), label=name) for name in NAMES}
    order = data.draw(st.permutations([*NAMES, "note"]))
    again = table.astype(kinds).assign(note="x")[order]
    for predict in (named.predict, run.model.predict, device.predict):
        assert predict(again).tobytes() == predict(table.to_numpy()).tobytes()
    assert named.predict(again, return_std=True)[1].tobytes() == (
        named.predict(table.to_numpy(), return_std=True)[1].tobytes()
    )


@pytest.mark.parametrize(
    "model",
    [
        AnnRegressor(**TINY),
        EnsembleRegressor(AnnRegressor(**TINY), 2),
        TwinnedRegressor(Ridge()),
        LoopRegressor(TwinnedRegressor(Ridge())),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_estimator_reads_a_frame_by_name(model, frame):
    table, load = frame
    fitted = model.fit(table, load)
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == NAMES
    expected = fitted.predict(table)
    np.testing.assert_array_equal(fitted.predict(table[NAMES[::-1]].assign(note="x")), expected)
    with pytest.raises(twinedge.InputError, match=r"no column 'flow'.*did you mean 'Flow'"):
        fitted.predict(table.rename(columns={"flow": "Flow"}))


WRONG = {
    "a wrong name": {"flow": "flwo"},
    "another case": {name: name.upper() for name in NAMES},
    "a wrong name among reordered": {"pressure": "presure"},
}


@pytest.mark.parametrize("renamed", WRONG.values(), ids=list(WRONG))
def test_a_wrong_name_is_refused_by_all(renamed, frame, named, run, device):
    table = frame[0].rename(columns=renamed)[list(frame[0].rename(columns=renamed))[::-1]]
    for predict in (named.predict, run.model.predict, device.predict, device.predict_all):
        with pytest.raises(twinedge.InputError, match=r"no column .*did you mean"):
            predict(table)


def test_a_missing_column_and_a_wrong_width_are_refused(frame, named, run, device):
    table = frame[0]
    for predict in (named.predict, run.model.predict, device.predict):
        with pytest.raises(twinedge.InputError, match="no column 'flow', which the model needs"):
            predict(table.drop(columns="flow"))
        for width in (2, 4):
            with pytest.raises(ValueError, match=r"X has \d features|3 features|needs 3"):
                predict(np.zeros((5, width)))


def test_columns_are_what_scikit_learn_calls_features(frame):
    table = frame[0].assign(kind=np.where(frame[0]["flow"] > 4, "fast", "slow"))
    model = TwinRegressor(**TINY).fit(table, frame[1])
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (4, [*NAMES, "kind"])
    assert model.anchor_X_.shape[1] == len(model.encoding_.inputs) == 5
    expected = model.predict(table)
    np.testing.assert_array_equal(model.predict(table.to_numpy(object)), expected)
    np.testing.assert_array_equal(model.predict(model.encoding_.encode(table)), expected)
    arrays = TwinRegressor(**TINY).fit(frame[0].to_numpy(), frame[1])
    assert not hasattr(arrays, "feature_names_in_")
    assert arrays.encoding_.names == ("x0", "x1", "x2")
    model.fit(frame[0].to_numpy(), frame[1])  # nothing is left of the names
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.slow
def test_our_own_calls_do_not_make_scikit_learn_warn(frame, tmp_path):
    table, load = frame
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = TwinRegressor(**TINY, teachers=["trees"])
        model.fit(table, load, groups=np.arange(200) // 5)
        model.predict_interval(table)
        model.adapt(table[:3], load[:3]).predict(table)
        model.forget()
        twinedge.export(model, tmp_path / "out", anchors=8, formats=("twin",), tolerance=10.0)


def test_the_target_keeps_its_name(named, device, run, frame):
    assert named.target_name_ == device.target_name == run.target_name == "load"
    assert TwinRegressor(**TINY).fit(*map(np.asarray, frame)).target_name_ == "y"


@pytest.fixture(scope="module")
def holes():
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"a": rng.normal(size=80), "b": rng.choice(["p", "q", "q"], 80)})
    load = table["a"] + (table["b"] == "p")
    table.loc[::7, "a"] = np.nan
    table.loc[3::9, "b"] = None
    return table, load


@pytest.fixture(scope="module")
def imputing(holes):
    return TwinRegressor(**TINY, impute="median").fit(*holes)


class TestImputing:
    """Missing cells are filled in by the estimator as by ``train --impute``."""

    def test_with_the_median_and_the_most_frequent_level(self, imputing):
        trained = imputing.anchor_X_
        assert np.isfinite(trained).all()
        assert imputing.fill_values_[1:].tolist() == [0, 1]
        filled = pd.DataFrame({"a": [imputing.fill_values_[0]], "b": ["q"]})
        empty = pd.DataFrame({"a": [np.nan], "b": [None]})
        np.testing.assert_array_equal(imputing.predict(empty), imputing.predict(filled))

    def test_on_the_device_too(self, imputing, holes, tmp_path):
        twinedge.export(imputing, tmp_path / "out", anchors=8, formats=("twin",), tolerance=10.0)
        device = twinedge.load(tmp_path / "out")
        assert device.fillable.all()
        rows = holes[0].iloc[:9]
        assert device.missing(rows).any()
        np.testing.assert_allclose(device.predict(rows), imputing.predict(rows), atol=0.3)

    def test_only_if_asked_to(self, holes, complaint):
        with pytest.raises(ValueError, match="NaN"):
            TwinRegressor(**TINY).fit(*holes)
        words = complaint(TwinRegressor(**TINY, impute="mean").fit, *holes)
        assert words == "impute='mean' is not one of 'median'"


class TestDevices:
    """What people do with a loaded file."""

    def test_one_row_is_a_query(self, device, frame):
        table = frame[0]
        expected = device.predict(table[:1])
        row = table.iloc[0]
        for query in (row, row.to_dict(), row.tolist(), row.to_numpy(), tuple(row)):
            assert device.predict(query).tolist() == expected.tolist()
        backwards = dict(reversed(row.to_dict().items()))
        assert device.predict(backwards).tolist() == expected.tolist()
        with pytest.raises(twinedge.InputError, match="no column 'flow'"):
            device.predict({"temperature": 1, "pressure": 2})
        with pytest.raises(twinedge.InputError, match="2 columns, but the model needs 3"):
            device.predict([1.0, 2.0])

    def test_pickling_keeps_the_predictions(self, device, frame):
        again = pickle.loads(pickle.dumps(device))
        assert type(again) is type(device)
        assert again.predict(frame[0]).tobytes() == device.predict(frame[0]).tobytes()

    def test_pickling_keeps_what_was_learnt(self, device, frame):
        mine = twinedge.load(device.info["file"])
        if not mine.coverages:
            pytest.fail("the model of this test should have intervals")
        mine.learn(frame[0][:2], frame[1][:2] + 3)
        again = pickle.loads(pickle.dumps(mine))
        assert again.predict(frame[0]).tobytes() == mine.predict(frame[0]).tobytes()
        assert again.predict(frame[0]).tobytes() != device.predict(frame[0]).tobytes()

    def test_a_pickle_of_a_file_that_changed_is_refused(self, device, tmp_path):
        file = tmp_path / "model.twin"
        data = Path(device.info["file"]).read_bytes()
        file.write_bytes(data)
        loaded = twinedge.load(file)
        before = pickle.dumps(loaded)
        file.write_bytes(data + b"\0")
        for packed in (before, pickle.dumps(loaded)):
            with pytest.raises(twinedge.InputError, match="changed since the device was loaded"):
                pickle.loads(packed)

    def test_a_device_says_what_it_is(self, device):
        assert repr(device).endswith("model.twin: 3 columns to load, 8 anchors, native>")


def test_load_takes_a_run_an_export_and_its_files(run, device, tmp_path):
    assert run.model.predict(np.zeros((1, 3))).shape == (1,)
    assert type(twinedge.load(device.info["file"].removesuffix("/model.twin"))) is type(device)
    with pytest.raises(twinedge.InputError, match="does not exist"):
        twinedge.load(tmp_path / "nothing")
    with pytest.raises(twinedge.InputError, match="neither a run nor an export"):
        twinedge.load(tmp_path)


def test_notebooks_show_shape_error_intervals_and_bytes(named, run, device):
    page = named._repr_mimebundle_()["text/html"]
    for words in ("1 twin of 8", "validation error", "intervals of", "bytes of a pack"):
        assert words in page
    assert "bytes of a pack" not in TwinRegressor()._repr_html_()
    page = run._repr_html_()
    assert "test error" in page
    assert f"{100 * run.scores['coverage_test']:.0f} % of the test rows" in page
    page = device._repr_html_()
    size = Path(device.info["file"]).stat().st_size
    assert f"{size:,}" in page
    assert "temperature" in page


def test_a_name_cannot_put_anything_into_a_notebook(named):
    named = pickle.loads(pickle.dumps(named))
    named.target_names_ = ("<script>alert(1)</script>",)
    assert "<script>alert" not in named._repr_html_().split("<caption")[1]


def test_a_frame_trains_the_same_run_as_its_file(frame, run):
    table = frame[0].assign(load=frame[1])
    again = twinedge.fit_csv(table, target="load", **TINY)
    assert again.model.weights_.tobytes() == run.model.weights_.tobytes()
    assert (again.encoding.names, again.target_name) == (run.encoding.names, "load")
    assert again.source["dataset"] == "data frame"
