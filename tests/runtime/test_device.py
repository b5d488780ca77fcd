"""What every device says of itself."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import twinedge
from twinedge.pack import write_pack
from twinedge.runtime.pack_device import PackDevice, reference_of


@pytest.fixture
def pack(random_pack):
    """A pack of two features, without intervals."""
    return random_pack(np.random.default_rng(0), features=2, scaled=False)


@pytest.fixture
def loaded(tmp_path):
    """Load a pack: ``loaded(pack)``."""

    def load(pack):
        (tmp_path / "model.twin").write_bytes(write_pack(pack))
        return twinedge.load(tmp_path / "model.twin")

    return load


@pytest.mark.parametrize(
    ("features", "names"),
    [
        ([{"name": name, "min": 0, "max": 1} for name in "ab"], ("a", "b")),
        ([{"name": "a", "min": 0, "max": 1}], ("x0", "x1")),
        ([{"name": name} for name in "ab"], ("x0", "x1")),
        ("ab", ("x0", "x1")),
    ],
)
def test_names_that_do_not_fit_the_features_are_made_up(pack, loaded, features, names):
    assert loaded(replace(pack, metadata={"features": features})).feature_names == names


def test_a_notebook_shows_what_a_file_says(pack, loaded, stones_export):
    page = loaded(pack)._repr_html_()
    assert "networks" in page
    assert "intervals" not in page
    page = twinedge.load(stones_export / "model.onnx")._repr_html_()
    assert "networks" not in page
    assert "intervals of" in page


def test_only_what_was_loaded_from_a_file_can_be_pickled(pack, loaded, complaint):
    device = loaded(pack)
    x = np.zeros((1, 2))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(device)).predict(x), device.predict(x))
    alone = PackDevice(pack, "mine.twin", reference_of(pack), "numpy")
    assert complaint(pickle.dumps, alone).startswith("mine.twin was not opened by load")
