"""What a Pi is given: models that were trained and exported here, and what they must say."""

import runpy
from pathlib import Path

RUNTIME = runpy.run_path(str(Path(__file__).parents[1] / "runtime" / "conftest.py"))
exported = RUNTIME["exported"]
