"""For every file and backend: the same questions, the same answers, the same errors."""

import runpy
from pathlib import Path

import pytest

CHECKS = runpy.run_path(str(Path(__file__).parent / "device_checks.py"))["CHECKS"]
LEVELS = {
    "tflite": ("int8", "int8-float-edges", "int16-float-edges", "float32"),
    "onnx": ("int8", "int8-weights", "float32"),
}


def files(levels):
    """Names of the converted files of a model at these levels."""
    return [
        f"{kind}-{level}/{name}.{kind}"
        for kind, all_levels in LEVELS.items()
        for level in all_levels[:levels]
        for name in ("model", "model_twin")
    ]


FILES = {"tiny": files(None), "four": files(1), "calibrated": files(None)}


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model, names in FILES.items() for name in names]
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_converted_file(exported, device_checks, model, name, check):
    check(device_checks["Given"](exported[model]), name)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("model", FILES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_evaluator_of_packs(exported, device_checks, model, backend, check):
    check(device_checks["Given"](exported[model], backend), "model.twin")


def test_no_file_is_left_out(exported, device_checks):
    found = {name: device_checks["Given"](folder).allowed for name, folder in exported.items()}
    assert {name: list(allowed) for name, allowed in found.items()} == {
        name: ["model.twin", *converted] for name, converted in FILES.items()
    }
