"""Every module of the reproduction may be the first to be imported."""

import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks.reproduction

MODULES = sorted(
    path.stem for path in Path(benchmarks.reproduction.__file__).parent.glob("[a-z]*.py")
)


@pytest.mark.slow  # most of them import TensorFlow
@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_by_itself(module):
    command = [sys.executable, "-c", f"import benchmarks.reproduction.{module}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
