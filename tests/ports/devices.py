"""The program of examples/update on an emulated board, with the host's side of its serial line."""

import runpy

import numpy as np

from twinedge.pack import read_pack
from twinedge.runtime import reference
from twinedge.runtime.self_test import identified
from twinedge.signing import sign
from twinedge_export.amalgamation import firmware_folder

EXAMPLE = firmware_folder() / "examples" / "update"
_HOST = runpy.run_path(str(EXAMPLE / "host.py"))
FLAGS, Device, build, write_key = (_HOST[one] for one in ("FLAGS", "Device", "build", "write_key"))


def released(pack, counter, key):
    """Sign a release as ``twinedge sign --lean`` does, of a pack without metadata."""
    from twinedge.pack import write_pack

    return sign(write_pack(identified(pack, counter=counter), metadata=False), key, lean=True)


def means(data, x):
    """What a pack predicts, float32."""
    return reference.evaluate(read_pack(data), np.asarray(x, np.float32)).mean
