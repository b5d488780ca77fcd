"""A device reads and evaluates a pack with numpy and nothing heavier."""

import json
import subprocess
import sys

CODE = """
import sys, json
import twinedge.pack, twinedge.runtime.reference
import twinedge.pack.reader, twinedge.pack.writer
print(json.dumps(sorted(sys.modules)))
"""


def test_packs_and_their_evaluation_load_numpy_alone():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    outside = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert not outside & {"tensorflow", "keras", "sklearn", "scipy", "pandas", "click", "rich"}
    assert "numpy" in outside
    own = {name for name in loaded if name.startswith("twinedge")}
    allowed = {
        *("pack", "runtime", "calendars", "calibration", "categories", "cells", "defaults"),
        *("encoding", "errors", "notebook", "tables", "times", "version", "weighting"),
    }
    assert {name.split(".")[1] for name in own - {"twinedge"}} <= allowed
