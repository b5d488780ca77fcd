"""The float graphs of both shapes compute what the model does."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.runtime import reference
from twinedge.training import pairs
from twinedge_export.fold_anchors import Inputs, fold
from twinedge_export.graph import SHAPES, BareTwin, Ensemble

ROWS = [np.array([5, 17, 2]), np.array([40, 41]), np.array([0])]


@pytest.fixture(scope="module", params=["relu", "silu"])
def model(request, untrained, curve):
    X, y = curve
    return untrained(X[:80], y[:80], (7, 6), request.param, twins=3)


def one_twin(model, number):
    alone = copy(model)
    alone.weights_ = model.weights_[number : number + 1]
    return alone


def entering(graph, inputs, x):
    x = inputs.of(x) if graph.integers else x
    return x.astype(np.float32)


def mean_of(graph, found):
    """Integers do not span from zero to the target."""
    return found["mean"] + graph.integers * graph.folding.y_mean


@pytest.fixture(params=["scaled", "spanned"])
def kind(request):
    """How queries are scaled, and whether as for integers."""
    return getattr(Inputs, request.param), request.param == "spanned"


def test_an_ensemble_gives_mean_and_spread_of_all_anchors_of_all_twins(model, curve, kind):
    inputs, integers = kind[0](model), kind[1]
    graph = Ensemble(fold(model, ROWS, inputs), integers=integers)
    x = model.anchor_X_[50:60]
    found = graph.whole({"x": entering(graph, inputs, x)})
    estimates = np.concatenate(
        [one_twin(model, t).estimates(x, anchors=rows) for t, rows in enumerate(ROWS)], axis=1
    )
    unit = curve[1].std()
    np.testing.assert_allclose(mean_of(graph, found), estimates.mean(axis=1), atol=1e-5 * unit)
    np.testing.assert_allclose(found["spread"], estimates.std(axis=1), atol=1e-5 * unit)


def test_a_bare_twin_gives_the_difference_of_each_twin_in_one_order(model, curve, kind):
    inputs, integers = kind[0](model), kind[1]
    graph = BareTwin(fold(model, ROWS, inputs), integers=integers)
    x, rows = model.anchor_X_[50:60], np.arange(10)
    found = graph.whole(
        {
            "first": entering(graph, inputs, x),
            "second": entering(graph, inputs, model.anchor_X_[rows]),
        }
    )["difference"]
    assert found.shape == (10, 3)
    for twin in range(3):
        estimates = one_twin(model, twin).estimates(x, anchors=rows, symmetric=False)
        expected = np.diagonal(estimates) - model.anchor_y_[rows]
        np.testing.assert_allclose(found[:, twin], expected, atol=1e-5 * curve[1].std())


@pytest.fixture
def signals(model):
    """Make half differences, half sums and second outputs of pairs, twin by twin."""

    def of(x):
        scaled = model.scaling_.features(x)[None]
        for twin, rows in enumerate(ROWS):
            anchors = model.scaling_.features(model.anchor_X_[rows])[None]
            only = slice(twin, twin + 1)
            stack, readout = model.weights_[only], model.difficulty_[only]
            (block,) = pairs.signals(model.architecture_, stack, readout, scaled, anchors)
            yield block[:, 0].astype(np.float64) * model.scaling_.y_scale

    return of


def test_with_a_calibration_an_ensemble_gives_scale_and_intervals(
    model, kind, with_intervals, signals
):
    pack, inputs, integers = with_intervals(model, ROWS), kind[0](model), kind[1]
    graph = Ensemble(fold(model, ROWS, inputs, pack), integers=integers)
    x = model.anchor_X_[50:60]
    queries = {"x": entering(graph, inputs, x)}
    found = graph.whole(queries)
    assert list(found) == ["mean", "spread", "scale", "low", "high"]
    every = np.concatenate([*signals(x)], axis=2)
    estimates = every[0] + model.anchor_y_[np.concatenate(ROWS)]
    mean, unit = estimates.mean(axis=1), model.scaling_.y_scale
    square = (
        (30000 / 65536 * estimates.std(axis=1)) ** 2
        + (80000 / 65536) ** 2 * np.square(every[1]).mean(axis=1)
        + (50000 / 65536 * np.maximum(every[2].mean(axis=1), 0)) ** 2
        + (0.05 * unit) ** 2
    )
    assert ((every[2] < 0).any(axis=1) & (every[2] > 0).any(axis=1)).any()
    np.testing.assert_allclose(found["scale"], np.sqrt(square), rtol=1e-4)
    reach = np.sqrt(square)[:, None] * np.array([44000, 108000, 170000]) / 65536
    for name, side in (("low", -1), ("high", 1)):
        assert found[name].shape == (10, 3)
        # In full, even if the mean lacks that of the target.
        np.testing.assert_allclose(found[name], mean[:, None] + side * reach, atol=1e-4 * unit)
    # A pack agrees, up to rounding.
    evaluated = reference.evaluate(pack, x)
    for column, level in enumerate(pack.intervals.quantiles):
        bounds = reference.bounds(pack, evaluated, level)
        np.testing.assert_allclose(found["scale"], bounds.scale, rtol=1e-3)
        np.testing.assert_allclose(found["low"][:, column], bounds.low, atol=5e-3 * unit)
        np.testing.assert_allclose(found["high"][:, column], bounds.high, atol=5e-3 * unit)
    without = Ensemble(fold(model, ROWS, inputs), integers=integers).whole(queries)
    assert list(without) == ["mean", "spread"]
    for name, expected in without.items():
        np.testing.assert_array_equal(found[name], expected)


def test_with_a_calibration_a_bare_twin_gives_the_difficulty_of_the_second_point(
    model, kind, with_intervals, signals
):
    pack, inputs, integers = with_intervals(model, ROWS), kind[0](model), kind[1]
    graph = BareTwin(fold(model, ROWS, inputs, pack), integers=integers)
    x = model.anchor_X_[50:60]
    for twin, (rows, expected) in enumerate(zip(ROWS, signals(x), strict=True)):
        anchor = np.repeat(model.anchor_X_[rows[:1]], len(x), axis=0)
        queries = {
            name: entering(graph, inputs, points)
            for name, points in (("first", anchor), ("second", x))
        }
        found = graph.whole(queries)
        assert list(found) == ["difference", "difficulty"]
        assert found["difficulty"].shape == (10, 3)
        unit = model.scaling_.y_scale
        np.testing.assert_allclose(
            found["difficulty"][:, twin], expected[2, :, 0], atol=1e-5 * unit
        )


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_intervals_of_targets_in_any_unit(untrained, with_intervals, curve, unit):
    scales = []
    for y in (curve[1], unit * curve[1]):
        model = untrained(curve[0], y, (7, 6), "silu")
        folding = fold(model, [[0, 1]], Inputs.scaled(model), with_intervals(model, [[0, 1]]))
        found = Ensemble(folding, integers=False).whole({"x": curve[0].astype(np.float32)})
        scales.append(found["scale"].numpy().astype(np.float64) / y.std())
    np.testing.assert_allclose(*scales, rtol=1e-4)


def test_intervals_are_refused_for_a_model_without_second_output(
    untrained, with_intervals, curve, complaint
):
    model = untrained(*curve)
    pack = with_intervals(model, [[0]])
    model.difficulty_ = None
    words = complaint(fold, model, [[0]], Inputs.scaled(model), pack)
    assert "no second output" in words
    plain = replace(pack, intervals=None)
    assert fold(model, [[0]], Inputs.scaled(model), plain).bounds is None


def test_far_queries_end_where_those_of_a_pack_do(untrained, curve):
    from twinedge.pack.contents import LARGEST
    from twinedge_export.quantise import quantise

    X, y = curve
    model = untrained(X, y)
    pack, inputs = quantise(model, [[0]]), Inputs.scaled(model)
    np.testing.assert_allclose(
        LARGEST / pack.x_gain.astype(float), inputs.limit * inputs.unit, rtol=1e-5
    )
    assert np.abs(inputs.of(np.array([[np.inf, -np.inf, 1e300]]))).tolist() == [[inputs.limit] * 3]


@pytest.mark.parametrize("shape", SHAPES)
def test_ranges_are_seen_on_training_points_alone_edges_included(untrained, curve, shape):
    X, y = curve
    model = untrained(X[:70], y[:70])
    graph = SHAPES[shape](fold(model, [np.arange(60)], Inputs.scaled(model)), integers=False)
    for queries in graph.calibration(model).values():
        known = {tuple(row) for row in X[:70].astype(np.float32)}
        assert {tuple(row) for row in queries} <= known
        np.testing.assert_array_equal(queries.min(axis=0), X[:70].min(axis=0).astype(np.float32))
        np.testing.assert_array_equal(queries.max(axis=0), X[:70].max(axis=0).astype(np.float32))


def test_very_many_points_and_anchors_make_no_more_pairs(untrained):
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(20000, 3)), axis=0)
    model = untrained(X, rng.normal(size=20000))
    folding = fold(model, [np.arange(4000)], Inputs.scaled(model))
    queries = Ensemble(folding, integers=False).calibration(model)["x"]
    pairs = BareTwin(folding, integers=False).calibration(model)
    assert len(queries) == 64
    for picked in (queries, *pairs.values()):
        assert len(picked) <= 16384
        # Not simply the first rows of a sorted table.
        np.testing.assert_allclose(np.median(picked, axis=0), 0, atol=0.5)
        np.testing.assert_array_equal(picked.max(axis=0), X.max(axis=0).astype(np.float32))


def test_pairs_are_near_where_the_model_knows_no_others(untrained, curve):
    model = untrained(*curve, pairs="neighbors", neighbors=3)
    graph = BareTwin(fold(model, [np.arange(9)], Inputs.scaled(model)), integers=False)
    first, second = map(model.scaling_.features, graph.calibration(model).values())
    near = np.linalg.norm(first - second, axis=1)
    anyone = np.linalg.norm(first - np.roll(second, 1, axis=0), axis=1)
    assert np.median(near) < 0.4 * np.median(anyone)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0], [1]], "anchors for 2 twins, but the model has 1"),
        ([[]], "not empty"),
        ([[0.5]], "row numbers"),
        ([[-1]], "rows 0 to 119"),
        ([[120]], "rows 0 to 119"),
    ],
    ids=["twins", "empty", "fraction", "negative", "beyond"],
)
def test_impossible_anchors_are_refused(untrained, curve, rows, words):
    model = untrained(*curve)
    with pytest.raises(InputError, match=words):
        fold(model, rows, Inputs.scaled(model))
    model.weights_[0, 0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        fold(model, [[0]], Inputs.scaled(model))
