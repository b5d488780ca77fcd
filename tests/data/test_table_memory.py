"""What reading a long table costs, measured from outside, in a separate process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

STATUS = Path("/proc/self/status")

MEASURE = """
import sys
from pathlib import Path
from twinedge.data import read_table

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

before = peak()
table = read_table(sys.argv[1], target="y")
print(table.X.shape[0], table.duplicates, peak() - before)
"""


@pytest.mark.skipif(not STATUS.exists(), reason="peak memory is read from /proc")
def test_a_long_table_is_read_in_memory_near_its_own_size(tmp_path):
    # 200,000 x 9 numbers are 14 MB; as text in Python lists they would be 130 MB.
    block = "\n".join(",".join(map(repr, row)) for row in np.random.rand(1000, 9).tolist())
    path = tmp_path / "long.csv"
    path.write_text("a,b,c,d,e,f,g,h,y\n" + "\n".join([block] * 200) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    rows, duplicates, megabytes = done.stdout.split()
    assert int(rows) == 200_000
    assert int(duplicates) == 199_000
    assert float(megabytes) < 80


def test_importing_the_package_loads_nothing_heavier_than_numpy():
    code = (
        "import sys, twinedge.data;"
        "print([m for m in ('sklearn', 'scipy', 'pandas', 'tensorflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
