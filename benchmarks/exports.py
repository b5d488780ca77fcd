"""The export that benchmarks of the runtime measure: RCL circuit, 6 features, 32 anchors."""

import subprocess
import sys
from pathlib import Path

EXPORT = Path("out/benchmark")


def load_or_export(folder: Path) -> Path:
    """Return the folder; if it does not exist, train for a minute and export into it."""
    if not folder.exists():
        run = Path("runs") / folder.name
        print("training and exporting, minutes ...", file=sys.stderr, flush=True)
        for command in (
            ["train", "--dataset", "rcl", "--effort", "quick", "-o", run],
            ["export", run, "--formats", "twin,tflite,onnx", "-o", folder],
        ):
            subprocess.run(
                [sys.executable, "-m", "twinedge", *command, "--json", "--quiet"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
    return folder
