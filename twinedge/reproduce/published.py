"""Training as the paper's code does it, beside ours.

Against the code, in its favour: unlabelled loops of weight zero, half of what the code computes,
are left out. Not as in the code, which takes its 24 pairs from eight closed loops: here each pair
is drawn alone. What comes out are our estimators with these weights inside, so that all are
evaluated alike.
"""

import math

import numpy as np

from twinedge.learn import AnnRegressor, TwinRegressor
from twinedge.learn.examples import Examples
from twinedge.learn.neighbours import partners_of
from twinedge.learn.network import Architecture, FloatArray
from twinedge.learn.scaling import Scaling
from twinedge.reproduce.adadelta import Passes, adadelta

Points = tuple[FloatArray, FloatArray]

HIDDEN = (128, 128)
PAIRS = 24  # in a batch
POINTS = 16  # in a batch of an ordinary network
EPOCHS = {"twin": 10_000, "network": 2_000}  # never reached: training stops before


def published_twin(
    train: Points,
    validation: Points,
    seed: int,
    *,
    pairs: str | int = "all",
    neighbors: int = 32,
    epochs: int = EPOCHS["twin"],
) -> TwinRegressor:
    """Train a twin; ``pairs`` and ``neighbors`` as in ``TwinRegressor``."""
    scaling = published_scaling(train[0])
    x, y = scaling.features(train[0]), scaling.target(train[1])
    held = scaling.features(validation[0]), scaling.target(validation[1])
    rows = np.arange(len(y), dtype=np.int32)[None]
    shape = Architecture(2 * x.shape[1], HIDDEN, "relu")
    network, _ = adadelta(
        shape,
        Examples.pairs(x, y, rows, partners_of(x, pairs, neighbors, seed)),
        loop_pairs(*held, seed),
        steps=epoch_length(len(y)),
        batch=PAIRS,
        epochs=epochs,
        seed=seed,
    )
    model = TwinRegressor(hidden=HIDDEN, activation="relu", pairs=pairs, neighbors=neighbors)
    model.architecture_ = shape
    model.weights_, model.scaling_, model.activation_ = network[None], scaling, "relu"
    model.anchor_X_, model.anchor_y_ = train
    model.n_features_in_ = x.shape[1]
    return model


def published_network(
    train: Points, validation: Points, seed: int, *, epochs: int = EPOCHS["network"]
) -> AnnRegressor:
    """Train an ordinary network."""
    scaling = published_scaling(train[0])
    x, y = scaling.features(train[0]), scaling.target(train[1])
    shape = Architecture(x.shape[1], HIDDEN, "relu")
    network, _ = adadelta(
        shape,
        Examples(Passes(x.shape[1], POINTS), (x, y, np.arange(len(y), dtype=np.int32)[None])),
        (scaling.features(validation[0]), scaling.target(validation[1])),
        steps=math.ceil(len(y) / POINTS),
        batch=POINTS,
        epochs=epochs,
        seed=seed,
    )
    return AnnRegressor.from_network(shape, network[None], scaling)


def epoch_length(rows: int) -> int:
    """Batches in an epoch of a twin: a fifth of all rows is for testing, and counts in it."""
    return math.ceil(5 * (rows + round(rows * 2 / 7)) / 16)


def published_scaling(X: FloatArray) -> Scaling:
    """Features divided by the largest above their mean; the target as it is."""
    mean = X.mean(axis=0)
    largest = (X - mean).max(axis=0)
    return Scaling(mean, np.where(largest > 0, largest, 1.0), 0.0, 1.0)


def loop_pairs(x: FloatArray, y: FloatArray, seed: int) -> Points:
    """Ordered pairs whose error stops the training: a loop from each point through two others."""
    rng = np.random.default_rng([seed, 1])
    loops = np.stack([[i, *rng.choice(len(y), 2, replace=False)] for i in range(len(y))])
    first, second = loops.ravel(), np.roll(loops, -1, axis=1).ravel()
    return np.concatenate([x[first], x[second]], axis=1), y[first] - y[second]
