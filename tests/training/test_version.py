"""A change of what training gives raises the version of the training.

A tiny table is trained with all defaults, but for very few steps and trees: settings compared on
folds, teachers, the last rounds, an export. So short a training hardly depends on how a processor
rounds, so what it gave is the same everywhere within a little. After raising the version, record it
anew:

    python tests/training/test_version.py

Lengths of trainings and defaults are compared as they are. Rules for long tables are not covered.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from twinedge.training import VERSION

GOLDEN = Path(__file__).parents[1] / "golden" / "training-version.json"
CLOSE = 0.01  # the targets have a standard deviation of nearly one
RAISE = "training gives something else: raise VERSION in twinedge/training/__init__.py"


def train() -> dict[str, object]:
    """Return the defaults, the settings that were tried and chosen, and predictions."""
    from twinedge import AnnRegressor, TwinRegressor, export, load
    from twinedge.training.selection import PLANS

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (70, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=70)
    usual = PLANS["normal"]
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setitem(PLANS, "normal", replace(usual, folds=16, final=40))
        for name in ("_HELD_OUT_TREES", "_TREES"):
            patch.setattr(f"twinedge.estimators.difficulty.{name}", 30)
        model = TwinRegressor(random_state=0).fit(X[:60], y[:60])
        export(model, f"{folder}/out", formats=("twin",), tolerance=10.0)
        device = load(f"{folder}/out/model.twin", backend="numpy")
        mean, scale = device.predict(X[60:], return_std=True)
    return {
        "version": VERSION,
        "defaults": {
            kind.__name__: {name: repr(one) for name, one in kind().get_params().items()}
            for kind in (TwinRegressor, AnnRegressor)
        },
        "plans": {effort: asdict(plan) for effort, plan in PLANS.items()},
        "trials": [
            {name: one for name, one in trial.items() if name != "rmse_val"}
            for trial in model.trials_
        ],
        "chosen": [model.activation_, model.learning_rate_, model.weight_decay_],
        "taught": bool(model.teaching_ and model.teaching_["taught"]),
        "numbers": {
            "trials": [trial["rmse_val"] for trial in model.trials_],
            "predictions": model.predict(X[60:]).tolist(),
            "pack": mean.tolist(),
            "scales": scale.tolist(),
        },
    }


def known_parts(found: object, known: object) -> object:
    """Leave out what is new: a parameter or a field that did not exist."""
    if isinstance(found, dict) and isinstance(known, dict):
        return {key: known_parts(found.get(key), one) for key, one in known.items()}
    return found


def test_training_gives_what_this_version_gave():
    known, found = json.loads(GOLDEN.read_text()), json.loads(json.dumps(train()))
    assert known["version"] == VERSION, f"record this version: python {Path(__file__).name}"
    numbers, expected = found.pop("numbers"), known.pop("numbers")
    for part, one in known.items():
        if part == "trials":
            pairs = zip(found[part], one, strict=True)
            assert [known_parts(*pair) for pair in pairs] == one, RAISE
        else:
            assert known_parts(found[part], one) == one, f"{part}: {RAISE}"
    for part, values in expected.items():
        off = np.abs(np.subtract(numbers[part], values))
        assert off.max() < CLOSE, f"{part}: {RAISE}"


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(train(), indent=1) + "\n")
