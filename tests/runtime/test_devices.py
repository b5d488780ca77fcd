"""For every file and backend: the same queries, the same predictions, the same errors."""

import pytest

FILES = [
    f"{kind}-int8/{name}.{kind}" for kind in ("tflite", "onnx") for name in ("model", "model_twin")
]
MODELS = ("tiny", "four", "calibrated")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("model", MODELS)
def test_every_converted_file(exported, device_checks, model, name):
    given = device_checks["Given"](exported[model])
    assert list(given.allowed) == ["model.twin", *FILES]
    device_checks["run_all"](given, name)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("model", MODELS)
def test_every_evaluator_of_packs(exported, device_checks, model, backend):
    device_checks["run_all"](device_checks["Given"](exported[model], backend), "model.twin")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny", "calibrated"])
def test_every_level(exported_at_every_level, device_checks, model):
    given = device_checks["Given"](exported_at_every_level[model])
    assert len(given.allowed) == 1 + 2 * (4 + 3)
    for name in given.allowed:
        device_checks["run_all"](given, name)
