"""What a Pi receives: models trained and exported here, and their expected answers."""

import runpy
from pathlib import Path

RUNTIME = runpy.run_path(str(Path(__file__).parents[1] / "runtime" / "conftest.py"))
exported = RUNTIME["exported"]
