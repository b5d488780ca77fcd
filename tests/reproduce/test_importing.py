"""Every module of the reproduction may be the first to be imported."""

import subprocess
import sys
from pathlib import Path

import pytest

import twinedge.reproduce

MODULES = sorted(path.stem for path in Path(twinedge.reproduce.__file__).parent.glob("[a-z]*.py"))


@pytest.mark.slow  # most of them import TensorFlow
@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_by_itself(module):
    command = [sys.executable, "-c", f"import twinedge.reproduce.{module}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
