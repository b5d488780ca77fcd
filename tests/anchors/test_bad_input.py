import numpy as np
import pytest

from twinedge.anchors import METHODS, curve, select

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10.0)


@pytest.mark.parametrize(
    ("k", "twins", "words"),
    [
        (11, 1, "11 is more than the 10 training points"),
        (0, 1, "0 is not a positive whole number"),
        (2.0, 1, "2.0 is not"),
        (True, 1, "True is not"),
        (5, 2, "evenly by 2 twins; 6 can"),
        (1, 4, "evenly by 4 twins; 4 can"),
        (4, 0, "twins=0"),
        (4, 1.5, "twins=1.5"),
    ],
)
def test_numbers_that_cannot_be_chosen_are_refused(complaint, k, twins, words):
    assert words in complaint(select, X, Y, k, "random", twins=twins)


@pytest.mark.parametrize("method", ["kmeans", None, ["xy"]])
def test_an_unknown_method_is_answered_with_those_there_are(complaint, method):
    message = complaint(select, X, Y, 2, method)
    for name in ("auto", *METHODS):
        assert name in message


def test_a_seed_is_a_whole_number(complaint):
    assert "seed=-1" in complaint(select, X, Y, 2, "random", seed=-1)
    assert "seed=0.5" in complaint(select, X, Y, 2, "random", seed=0.5)


@pytest.mark.parametrize("method", ["auto", "greedy"])
def test_what_is_chosen_by_a_model_needs_one(complaint, oracle, method):
    model, validation = oracle()
    given = model.anchor_X_, model.anchor_y_, 2, method
    for options in ({}, {"model": model}, {"validation": validation}):
        message = complaint(select, *given, **options)
        assert "needs" in message.replace("need ", "needs ")
        assert "a fitted model and validation data" in message
        assert "medoids" in message


@pytest.mark.parametrize(
    ("points", "targets", "words"),
    [
        (X, Y[:9], "10 points and y has 9"),
        (X[:, 0], Y, "X has shape (10,)"),
        (X[:0], Y[:0], "not empty"),
        (X, Y[:, None], "y has shape (10, 1)"),
        (np.where(X == 6, np.nan, X), Y, "X: row 3"),
        (X, np.where(Y == 4, np.inf, Y), "y: row 4"),
        ([["a"]], [1.0], "X must be a table of numbers"),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], "X must be a table of numbers"),
    ],
)
def test_tables_that_are_none_are_refused(complaint, points, targets, words):
    assert words in complaint(select, points, targets, 1, "medoids")


@pytest.mark.parametrize(
    ("validation", "words"),
    [
        (5, "pair (X, y)"),
        ((np.zeros((3, 1)), np.zeros(2)), "3 points and 2 targets"),
        ((np.zeros((3, 2)), np.zeros(3)), "2 features; the model has 1"),
        ((np.zeros((0, 1)), np.zeros(0)), "not empty"),
        ((np.full((3, 1), np.nan), np.zeros(3)), "validation X: row 0"),
    ],
)
def test_validation_data_that_do_not_fit_are_refused(complaint, oracle, validation, words):
    model, _ = oracle()
    given = model.anchor_X_, model.anchor_y_
    assert words in complaint(select, *given, 2, model=model, validation=validation)
    assert words in complaint(curve, *given, model, validation)


def test_a_model_of_another_table_or_other_twins_or_none_is_refused(complaint, oracle):
    from twinedge import TwinRegressor

    model, validation = oracle()
    given = {"model": model, "validation": validation}
    for other in (model.anchor_X_[::-1], model.anchor_X_[:50]):
        message = complaint(select, other, model.anchor_y_[: len(other)], 2, **given)
        assert "anchor_X_" in message
    message = complaint(select, model.anchor_X_, model.anchor_y_, 2, twins=2, **given)
    assert "twins=2, but the model has 1" in message
    assert "not fitted" in complaint(select, X, Y, 2, model=TwinRegressor(), validation=(X, Y))


@pytest.mark.parametrize("method", ["greedy", "match"])
def test_a_model_of_neighbors_is_refused(complaint, oracle, method):
    model, validation = oracle()
    model.pairs = "neighbors"
    given = model.anchor_X_, model.anchor_y_, 2, method
    assert "use medoids" in complaint(select, *given, model=model, validation=validation)
