"""Which of several levels of rounding is written."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.progress import Progress
from twinedge_export.deviations import Evaluator
from twinedge_export.files import Job, RoundingError
from twinedge_export.settings import ExportSettings

ROWS = np.arange(0, 80, 10)


@pytest.fixture
def job(tiny_twin, curve, tmp_path, monkeypatch):
    """An export of files that hold an offset, and factors of spreads and of scales of 1."""

    def load(path):
        offset, spread, scale = [*map(float, path.read_text().split()), 1.0, 1.0][:3]
        return SimpleNamespace(
            predict_all=lambda x: SimpleNamespace(
                mean=tiny_twin.predict(x, anchors=ROWS) + offset,
                spread=tiny_twin.spread(x, anchors=ROWS) * spread,
                scale=np.full(len(x), scale),
            )
        )

    monkeypatch.setattr("twinedge_export.files.load", load)
    X, y = curve
    evaluator = Evaluator.of(tiny_twin, ROWS, 0, (X[80:100], y[80:100]), None)
    return Job(tiny_twin, (ROWS,), 0, evaluator, ExportSettings(), tmp_path, {}, Progress())


@pytest.fixture
def levels(tiny_twin):
    """Levels of the float model itself: ``levels(made=content)``."""

    def make(**contents):
        return {made: partial(lambda one: (one, tiny_twin), one) for made, one in contents.items()}

    return make


def test_the_first_level_within_the_tolerance_is_written(job, tiny_twin, levels):
    never = {"finer": lambda: 1 / 0}
    file, model = job.write("kind", "model.txt", levels(coarse=b"9", fine=b"0") | never)
    assert (file.kind, file.made, file.bytes) == ("kind", "fine", 1)
    assert file.path.read_bytes() == b"0"
    assert file.score.cost == 0
    assert model is tiny_twin
    # So it is if only the spread is off.
    file, _ = job.write("kind", "model.txt", levels(coarse=b"0 1.2", fine=b"0 1.04"))
    assert file.made == "fine"
    assert (file.score.cost, file.score.spread_cost) == (0, pytest.approx(0.04))


def test_a_file_beyond_the_tolerance_is_named_and_removed(job, levels, complaint):
    message = complaint(job.write, "kind", "model.txt", levels(coarse=b"0 1.2", finer=b"9 0.98"))
    assert message.startswith("model.txt: ")
    assert "0.0 % and is 20.0 % off in the spread (coarse)" in message
    assert message.count("spread") == 1
    assert "(finer), more than tolerance=0.02 allows" in message
    assert not list(job.folder.iterdir())
    coarse = levels(coarse=b"0 1.2")
    with pytest.raises(RoundingError) as refused:
        job.write("kind", "model.txt", coarse)
    wider = replace(job, settings=ExportSettings(tolerance=1.001 * refused.value.cost))
    assert wider.write("kind", "model.txt", coarse)[0].made == "coarse"


def test_a_pack_is_never_refused_for_a_spread_that_its_intervals_are_calibrated_on(
    job, levels, monkeypatch
):
    monkeypatch.setattr("twinedge_export.files.read_pack", lambda content: None)
    monkeypatch.setattr(Job, "_scale", lambda own, model, pack: np.ones(20))
    close = levels(first=b"0 1.2 1.04")
    file, _ = job.write("twin", "model.twin", close, calibrated=True)
    assert file.made == "first"
    assert file.score.describe_uncertainty(0.02) == ""
    # If scales are off, too, it is the closest pack whose errors are within the tolerance.
    far = levels(coarse=b"0 1.2 1.2", fine=b"0 1.2 1.1", finer=b"0 1.3 1.3", wrong=b"9")
    file, _ = job.write("twin", "model.twin", far, calibrated=True)
    assert (file.made, file.path.read_bytes()) == ("fine", b"0 1.2 1.1")
    assert file.score.describe_uncertainty(0.02) == "10.0 % off in the scale"
    with pytest.raises(RoundingError, match="wrong"):
        job.write("twin", "model.twin", levels(wrong=b"9"), calibrated=True)
    # Without intervals, there is only the spread.
    monkeypatch.setattr(Job, "_scale", lambda own, model, pack: None)
    with pytest.raises(RoundingError, match="in the spread"):
        job.write("twin", "model.twin", close, calibrated=True)
