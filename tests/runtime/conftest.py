"""Fixtures for the tests of twinedge.runtime."""

import json
import os
import runpy
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def random_pack():
    """Draw a pack: ``random_pack(rng, **fixed)``."""
    return runpy.run_path(str(HERE.parent / "pack" / "random_packs.py"))["random_pack"]


@pytest.fixture
def opened(tmp_path):
    """Open a pack with both backends: ``opened(pack)``."""
    from twinedge.pack import write_pack
    from twinedge.runtime.loading import load

    def both(pack):
        path = tmp_path / "model.twin"
        path.write_bytes(write_pack(pack))
        return [load(path, backend) for backend in ("numpy", "native")]

    return both


@pytest.fixture(scope="session")
def plain():
    """Read bytes with the plain evaluator: ``plain(data).evaluate(x)``."""
    return runpy.run_path(str(HERE / "plain_evaluator.py"))["Plain"]


@pytest.fixture(scope="session")
def served():
    """Stream bytes to a device, one write at a time: ``served(device, *chunks)``.

    Returns the lines that were written, and the error that ended the stream, if any.
    """
    from twinedge.errors import InputError
    from twinedge.runtime.streaming import serve

    def call(device, *chunks, **settings):
        read, write = os.pipe()
        out, error = [], None

        def feed():
            for chunk in chunks:
                os.write(write, chunk)
            os.close(write)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            serve(device, read, out.append, **settings)
        except InputError as stop:
            error = str(stop)
        finally:
            feeder.join()
            os.close(read)
        return "".join(out).splitlines(), error

    return call


# How far, in standard deviations of the target, a file of a level may be off; a third is usual.
ALLOWED = {
    "int8": 0.03,
    "int8, float edges": 0.012,
    "int16, float edges": 0.004,
    "int8 weights": 0.004,
    "float32": 1e-5,
}
# Anchors of a bare twin come from a pack, in 16 bits.
ALLOWED_ANCHORS = 1e-4


@pytest.fixture(scope="session")
def device_checks():
    """What holds for every device."""
    return runpy.run_path(str(HERE / "device_checks.py"))


@pytest.fixture(scope="session")
def exported(tmp_path_factory, request):
    """Models in every format and shape, at the lowest level; all but "tiny" have intervals.

    TWINEDGE_EXPORTED names a folder with all of them, for machines that cannot train.
    """
    kinds = {"tiny": "tiny_twin", "four": "four_twins", "calibrated": "tiny_twin"}
    if folder := os.environ.get("TWINEDGE_EXPORTED"):
        return {name: Path(folder, name) for name in kinds}
    curve = request.getfixturevalue("curve")
    return {
        name: _export(
            tmp_path_factory.mktemp(name),
            request.getfixturevalue(model),
            *(1, name != "tiny"),
            *curve,
        )
        for name, model in kinds.items()
    }


@pytest.fixture(scope="session")
def exported_at_every_level(tmp_path_factory, tiny_twin, curve):
    """One model in every format, shape and level, without intervals and with them."""
    return {
        name: _export(tmp_path_factory.mktemp(name), tiny_twin, None, intervals, *curve)
        for name, intervals in (("tiny", False), ("calibrated", True))
    }


@pytest.fixture
def dialogue():
    """Serve a device that answers each line as it comes: ``send = dialogue(device)``."""
    from twinedge.runtime.streaming import serve

    ends, threads = [], []

    def start(device):
        source, send = os.pipe()
        receive, out = os.pipe()
        ends.extend([source, receive])
        thread = threading.Thread(
            target=serve, args=(device, source, lambda text: os.write(out, text.encode()))
        )
        thread.start()
        threads.append((thread, send, out))

        def exchange(line):
            os.write(send, line)
            return os.read(receive, 1000).decode()

        return exchange

    yield start
    for thread, send, out in threads:
        os.close(send)
        thread.join()
        os.close(out)
    for one in ends:
        os.close(one)


def _calibrated(model, rows, metadata, fill, X, y):
    """Make a pack with intervals to which all signals contribute."""
    from twinedge.runtime.pack_calibration import calibrate_pack
    from twinedge_export.quantise import quantise

    pack = quantise(model, rows, metadata=metadata, fill_values=fill, intervals=True)
    pack = calibrate_pack(pack, X[80:100], y[80:100])
    weights = dict.fromkeys(("by_spread", "by_asymmetry", "by_difficulty"), 40000)
    return replace(pack, intervals=replace(pack.intervals, **weights))


def _bounds(model, pack, x, flat):
    """Scale and ends ``(n, 2, levels)`` of the float model, with the coefficients of a pack."""
    from twinedge.runtime.pack_calibration import calibration_of

    calibration = calibration_of(pack)
    mean, signals = model._signals(x, flat, None)
    scale = calibration.scale(signals)
    reach = scale[:, None] * np.array([*calibration.quantiles.values()])
    return {"scale": scale, "ends": mean[:, None, None] + np.stack([-reach, reach], axis=1)}


def _export(folder, model, levels, intervals, X, y):
    from twinedge.pack import write_pack
    from twinedge_export import onnx_file, tflite_file
    from twinedge_export.quantise import quantise

    twins, names = len(model.weights_), ["angle", "offset", "idle"]
    flat = np.arange(8 * twins)
    rows = [flat[twin::twins] for twin in range(twins)]
    low, high = model.anchor_X_.min(axis=0), model.anchor_X_.max(axis=0)
    ranges = zip(names, low.tolist(), high.tolist(), strict=True)
    metadata = {
        "features": [{"name": name, "min": a, "max": b} for name, a, b in ranges],
        "target": "level",
    }
    inside = X[((low <= X) & (high >= X)).all(axis=1)]
    x = inside[-20:]
    mean, spread = model.predict(x, anchors=flat), model.spread(x, anchors=flat)
    nearest = model.predict(x, anchors=flat, neighbors=2)
    expected = {"x": x, "mean": mean, "spread": spread, "nearest": nearest}
    pack, fill = quantise(model, rows, metadata=metadata), [np.nan, 5.0, np.nan]
    if intervals:
        pack = _calibrated(model, rows, metadata, np.array(fill), X, y)
        expected |= _bounds(model, pack, x, flat)
    np.savez(folder / "expected.npz", **expected)
    (folder / "model.twin").write_bytes(write_pack(pack))
    allowed = {"model.twin": 0.012}
    for kind, module, make in (
        ("tflite", tflite_file, tflite_file.tflite_model),
        ("onnx", onnx_file, onnx_file.onnx_model),
    ):
        for level in module.LEVELS[:levels]:
            beside = folder / f"{kind}-{level.replace(', ', '-').replace(' ', '-')}"
            beside.mkdir()
            shutil.copy(folder / "model.twin", beside)
            for shape, name in (("ensemble", "model"), ("twin", "model_twin")):
                path = beside / f"{name}.{kind}"
                settings = {"shape": shape, "level": level, "metadata": metadata}
                path.write_bytes(make(model, rows, **settings, pack=pack if intervals else None))
                least = ALLOWED_ANCHORS if shape == "twin" else 0
                allowed[str(path.relative_to(folder))] = max(ALLOWED[level], least)
    about = {
        "unit": float(y.std()),
        "anchors": len(flat),
        "names": names,
        "target": "level",
        "allowed": allowed,
        "fill": fill[1] if intervals else None,
    }
    (folder / "about.json").write_text(json.dumps(about))
    return folder
