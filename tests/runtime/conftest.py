"""Fixtures for the tests of twinedge.runtime."""

import json
import os
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def random_pack():
    """Draw a pack: ``random_pack(rng, **fixed)``."""
    return runpy.run_path(str(HERE.parent / "pack" / "random_packs.py"))["random_pack"]


@pytest.fixture(scope="session")
def plain():
    """Read bytes with the plain evaluator: ``plain(data).evaluate(x)``."""
    return runpy.run_path(str(HERE / "plain_evaluator.py"))["Plain"]


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
    """Two models in every format and shape, one at all levels, the other at the lowest.

    ``device_checks.py`` says what lies there. TWINEDGE_EXPORTED names a folder with both, for
    machines that cannot train.
    """
    if made := os.environ.get("TWINEDGE_EXPORTED"):
        return {name: Path(made, name) for name in ("tiny", "four")}
    curve = request.getfixturevalue("curve")
    return {
        name: _export(tmp_path_factory.mktemp(name), request.getfixturevalue(model), levels, *curve)
        for name, model, levels in (("tiny", "tiny_twin", None), ("four", "four_twins", 1))
    }


def _export(folder, model, levels, X, y):
    from twinedge.pack import write_pack
    from twinedge_export import onnx_file, tflite
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
    np.savez(folder / "expected.npz", x=x, mean=mean, spread=spread, nearest=nearest)
    (folder / "model.twin").write_bytes(write_pack(quantise(model, rows, metadata=metadata)))
    allowed = {"model.twin": 0.012}
    for kind, module, make in (
        ("tflite", tflite, tflite.tflite_model),
        ("onnx", onnx_file, onnx_file.onnx_model),
    ):
        for level in module.LEVELS[:levels]:
            beside = folder / f"{kind}-{level.replace(', ', '-').replace(' ', '-')}"
            beside.mkdir()
            shutil.copy(folder / "model.twin", beside)
            for shape, name in (("ensemble", "model"), ("twin", "model_twin")):
                path = beside / f"{name}.{kind}"
                path.write_bytes(make(model, rows, shape=shape, level=level, metadata=metadata))
                least = ALLOWED_ANCHORS if shape == "twin" else 0
                allowed[str(path.relative_to(folder))] = max(ALLOWED[level], least)
    about = {
        "unit": float(y.std()),
        "anchors": len(flat),
        "names": names,
        "target": "level",
        "allowed": allowed,
    }
    (folder / "about.json").write_text(json.dumps(about))
    return folder
