"""Predicts with an installed wheel, and compares every bit with the golden vectors.

Run as ``python golden_words.py FOLDER BACKEND``, with the folder that ``golden`` of conftest.py
writes; prints a JSON object. It needs nothing but the wheel and numpy.
"""

import json
import sys
from pathlib import Path

import numpy as np

import twinedge


def main():
    """Print what was found."""
    folder, backend = Path(sys.argv[1]), sys.argv[2]
    words = np.load(folder / "words.npz")
    packs = sorted(folder.glob("*.twin"))
    devices = [twinedge.load(path, backend) for path in packs]
    wrong = []
    for path, device in zip(packs, devices, strict=True):
        queries, mean, spread = (
            words[f"{path.stem} {kind}"] for kind in ("queries", "mean", "spread")
        )
        with np.errstate(over="ignore"):
            found = device.predict(queries), device.spread(queries)
        for bits, values in zip((mean, spread), found, strict=True):
            if not np.array_equal(np.ascontiguousarray(values, np.float32).view(np.uint32), bits):
                wrong.append(path.stem)
    result = {
        "packs": len(packs),
        "wrong": wrong,
        "backends": sorted({device.info["backend"] for device in devices}),
        "kernels": sorted({device.info.get("kernel", "") for device in devices}),
        "file": twinedge.__file__,
        "python": list(sys.version_info[:2]),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
