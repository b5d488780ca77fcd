"""Fixtures for the tests of twinedge_export."""

import platform
from dataclasses import replace
from functools import cache

import numpy as np
import pytest


@pytest.fixture(scope="session")
def untrained():
    """Make a model with random weights: ``untrained(X, y, hidden, activation, ...)``.

    ``bins`` are those of a map with random curves and ``extra`` outputs, ``curve`` is the target's.
    """
    from twinedge import TwinRegressor
    from twinedge.encoding.encoder import Encoding
    from twinedge.scoring.target_curve import TargetCurve
    from twinedge.training.input_map import InputMap, choose_knots
    from twinedge.training.network import Architecture, Scaling

    def make(
        X,
        y,
        hidden=(8,),
        activation="relu",
        *,
        twins=1,
        seed=0,
        bins=0,
        extra=2,
        curve=None,
        **parameters,
    ):
        model = TwinRegressor(twins=twins, hidden=hidden, activation=activation, **parameters)
        model.remember_columns(Encoding.numbered(X.shape[1]))
        model.activation_ = activation
        model.scaling_ = Scaling.of(X, y, curve=curve and TargetCurve(curve))
        inputs = X.shape[1]
        if bins:
            inputs += extra
            knots = choose_knots(model.scaling_.features(X), bins)
            steps = np.random.default_rng([seed, 1]).normal(0, 0.4, (sum(map(len, knots)), inputs))
            model.map_ = InputMap(knots, steps.astype(np.float32))
        model.architecture_ = Architecture(2 * inputs, hidden, activation)
        model.weights_ = model.architecture_.initial([seed + twin for twin in range(twins)])
        rng = np.random.default_rng(seed)
        for network in model.weights_:
            for _, bias in model.architecture_.parts(network):
                bias[...] = rng.normal(0, 0.1, bias.shape)
        model.anchor_X_, model.anchor_y_ = X, y
        return model

    return make


@pytest.fixture(scope="session")
def deviation():
    """Return the rms difference of a pack from its model, in standard deviations of the target."""
    from twinedge.pack import read_pack, write_pack
    from twinedge.runtime.reference import evaluate
    from twinedge_export.quantise import quantise

    def measure(model, X, anchors=8, **settings):
        twins, count = len(model.weights_), len(model.anchor_y_)
        rows = np.random.default_rng(0).permutation(count)[: anchors * twins].reshape(-1, twins).T
        pack = read_pack(write_pack(quantise(model, rows, **settings)))
        neighbors = pack.neighbors or None
        options = {"anchors": rows.T.reshape(-1), "neighbors": neighbors}
        expected, spread = model.predict(X, **options), model.spread(X, **options)
        found = evaluate(pack, X)
        unit = model.anchor_y_.std()
        off = np.sqrt(np.mean(np.square(found.mean.astype(np.float64) - expected))) / unit
        off_spread = np.sqrt(np.mean(np.square(found.spread.astype(np.float64) - spread))) / unit
        return max(off, off_spread)

    return measure


@pytest.fixture(scope="session")
def with_intervals():
    """Give a model a second output: ``with_intervals(model, rows, fill)`` is its pack."""
    from twinedge.pack.contents import Intervals
    from twinedge_export.quantise import UNITS, quantise

    def make(model, rows, fill=None):
        rng, shape = np.random.default_rng(0), (len(model.weights_), model.architecture_.hidden[-1])
        weights, bias = rng.normal(0, 0.3, shape), np.full((shape[0], 1), 0.2)
        model.difficulty_ = np.hstack([weights, bias]).astype(np.float32)
        pack = quantise(model, rows, weights="int16", intervals=True, fill_values=fill)
        # At least a twentieth of the target's deviation, whatever the signals say.
        constant = 4096 * UNITS // 20
        quantiles = {500: 44000, 900: 108000, 990: 170000}
        intervals = Intervals(30000, 80000, 50000, constant, 100, 1, 0, quantiles)
        return replace(pack, intervals=intervals)

    return make


@pytest.fixture(scope="session")
def by_openvino():
    """Run a file in OpenVINO, which shares no code with the runtimes that twinedge uses."""
    import openvino

    core = openvino.Core()

    def run(path, queries, *, in_floats=False):
        options = {"INFERENCE_PRECISION_HINT": "f32"}
        if in_floats and platform.machine() == "x86_64":
            # Kernels for 8 bits saturate on processors without VNNI.
            options["LP_TRANSFORMS_MODE"] = False
        compiled = core.compile_model(core.read_model(path), "CPU", options)
        found = compiled(queries)
        return {name: found[one] for one in compiled.outputs for name in one.names}

    return run


ROWS = [np.arange(5), np.array([50, 3])]  # of the model that ``converted`` converts


@pytest.fixture(scope="session")
def convertible(untrained, curve):
    """Models of two twins, by the form of the file that ``converted`` makes of them."""
    X, y = curve
    shapes = {"onnx": (12, 8, 6), "tflite": (12, 8)}
    return {
        form: untrained(X[:80], y[:80], hidden, "silu", twins=2) for form, hidden in shapes.items()
    }


@pytest.fixture(scope="session")
def converted(convertible, with_intervals):
    """Convert a model, each way once: ``converted(form, level, shape, intervals=...)``."""
    from twinedge_export.onnx_file import onnx_model
    from twinedge_export.tflite_file import tflite_model

    metadata = {"target": "Füllstand", "features": []}

    @cache
    def convert(form, level, shape, intervals):
        make = {"onnx": onnx_model, "tflite": tflite_model}[form]
        pack = with_intervals(convertible[form], ROWS, fill=np.array([0.5, np.nan, 2.0]))
        settings = {"shape": shape, "level": level, "metadata": metadata}
        return make(convertible[form], ROWS, pack=pack if intervals else None, **settings)

    return lambda form, level, shape, *, intervals=True: convert(form, level, shape, intervals)
