"""The four lines a user types on a Pi, and what they load."""

import json
import subprocess
import sys

import numpy as np

import twinedge
from twinedge.pack import write_pack
from twinedge.runtime import loading

FOUR_LINES = """
import twinedge
device = twinedge.load(sys.argv[1])
mean, spread = device.predict([[0.5, 6.0, -20.0]], return_std=True)
print(json.dumps([float(mean[0]), float(spread[0]), sorted(sys.modules)]))
"""


def test_the_loader_has_a_public_name():
    assert twinedge.load.__module__ == "twinedge.loading"
    assert {"load", "export"} <= set(dir(twinedge))


def test_data_needs_no_import_of_its_own():
    code = "import twinedge; print(twinedge.data.names()[0], 'data' in dir(twinedge))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "bc True\n"


def test_four_lines_load_numpy_and_nothing_else(random_pack, tmp_path):
    pack = random_pack(np.random.default_rng(0), features=3)
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(pack))
    done = subprocess.run(
        [sys.executable, "-c", "import json, sys\n" + FOUR_LINES, path],
        capture_output=True,
        text=True,
        check=True,
    )
    mean, spread, loaded = json.loads(done.stdout)
    expected = loading.load(path, "numpy").predict([[0.5, 6.0, -20.0]], return_std=True)
    assert [np.float32(mean), np.float32(spread)] == [one[0] for one in expected]
    numpy_alone = subprocess.run(
        [sys.executable, "-c", "import json, numpy, sys; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, before = (
        {name.partition(".")[0] for name in names}
        for names in (loaded, json.loads(numpy_alone.stdout))
    )
    assert loaded - before - set(sys.stdlib_module_names) == {"twinedge"}
