"""A device loads a pack and predicts with numpy and nothing heavier."""

import json
import subprocess
import sys

import numpy as np

from twinedge.pack import write_pack
from twinedge.runtime.loading import load

FOUR_LINES = """
import twinedge
device = twinedge.load(sys.argv[1])
mean, spread = device.predict([[0.5, 6.0, -20.0]], return_std=True)
print(json.dumps([float(mean[0]), float(spread[0]), sorted(sys.modules)]))
"""
NUMPY = "import json, numpy, sys; print(json.dumps(sorted(sys.modules)))"
# Parts of twinedge that a prediction loads.
PARTS = {
    *("atomic_files", "defaults", "encoding", "errors", "loading", "notebook", "pack"),
    *("run_record", "runtime", "scoring", "version", "wording"),
}


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_four_lines_load_numpy_and_nothing_else(random_pack, tmp_path):
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(random_pack(np.random.default_rng(0), features=3)))
    mean, spread, loaded = run("import json, sys\n" + FOUR_LINES, path)
    expected = load(path, "numpy").predict([[0.5, 6.0, -20.0]], return_std=True)
    assert [np.float32(mean), np.float32(spread)] == [one[0] for one in expected]
    packages, with_numpy = (
        {name.partition(".")[0] for name in one} for one in (loaded, run(NUMPY))
    )
    assert packages - with_numpy - set(sys.stdlib_module_names) == {"twinedge"}
    own = {name.split(".")[1] for name in loaded if name.startswith("twinedge.")}
    assert own <= PARTS
