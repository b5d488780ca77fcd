"""Counts are those of the networks people train."""

import numpy as np
import pytest

from twinedge.budget import Model, ann_params, twin_params

MEMBERS = range(1, 1025)


def keras_params(inputs, hidden):
    from twinedge.training.network import tf

    layers = [tf.keras.layers.Dense(width, activation="relu") for width in hidden]
    model = tf.keras.Sequential([tf.keras.Input((inputs,)), *layers, tf.keras.layers.Dense(1)])
    return model.count_params()


def test_the_example_of_the_paper():
    assert ann_params(8, (128, 128), 32) == 569_376
    assert twin_params(8, (128, 128), 32) == 19_105


@pytest.mark.parametrize("features", [1, 2, 6, 8, 13, 100, 1000])
def test_counts_are_those_of_keras_models_and_anchors(features):
    hidden = (128, 128)
    ann, twin = keras_params(features, hidden), keras_params(2 * features, hidden)
    X, y = np.empty((max(MEMBERS), features)), np.empty(max(MEMBERS))
    for members in MEMBERS:
        assert ann_params(features, hidden, members) == members * ann
        stored = X[:members].size + y[:members].size
        assert twin_params(features, hidden, members) == twin + stored


@pytest.mark.parametrize("hidden", [(1,), (7,), (64, 32), (5, 4, 3), (9, 8, 7, 6)], ids=str)
def test_counts_of_other_shapes(hidden):
    assert ann_params(3, hidden, 5) == 5 * keras_params(3, hidden)
    assert twin_params(3, hidden, 8, twins=4) == 4 * keras_params(6, hidden) + 8 * 4


def test_a_trained_model_has_as_many_numbers(four_twins):
    model = Model.of(3, (6, 5), 60, twins=4)
    stored = four_twins.anchor_X_.size + four_twins.anchor_y_.size
    assert model.twin_params == four_twins.weights_.size + stored
