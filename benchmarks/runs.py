"""The trained models that several benchmarks measure: default settings, first split of each set."""

import subprocess
import sys
from pathlib import Path

from twinedge.learn.run import Run, load_run


def load_or_train(folder: Path, name: str) -> Run:
    """Load the run of a data set from a folder of runs; train it where it is missing."""
    path = folder / name
    if not path.exists():
        print(f"training {name} ...", file=sys.stderr, flush=True)
        command = ["train", "--dataset", name, "--split", "0", "--json", "--quiet", "-o", path]
        subprocess.run(
            [sys.executable, "-m", "twinedge", *command], check=True, stdout=subprocess.DEVNULL
        )
    return load_run(path)
