"""What is deprecated still works, and says once in a process what to use instead."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from twinedge.deprecation import GOES_WITH
from twinedge.version import __version__

ROOT = Path(__file__).parents[1]
# A line that uses each old name, and what it must be.
METHOD = "from twinedge.anchors.methods import METHODS; assert not METHODS['random']"
OLD = {
    "twinedge.learn": "import twinedge.learn; assert twinedge.learn.TwinRegressor is T",
    "twinedge.budget.judge": (
        "from twinedge import budget as b; assert b.judge is b.board_verdict"
    ),
    "twinedge.estimators.uncertainty.judge": (
        "from twinedge.estimators import uncertainty as u; assert u.judge is u.evaluate_uncertainty"
    ),
    "settled()": "m = T(); m.resolved = lambda: 5; assert m.settled() == 5",
    "Method.asks": f"{METHOD}.asks",
    "Method.looks": f"{METHOD}.looks",
}


def test_each_old_name_is_mentioned_once_where_it_is_used(tmp_path):
    script = tmp_path / "mine.py"
    lines = ["from twinedge.estimators import TwinRegressor as T", *OLD.values(), *OLD.values()]
    script.write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"mine\.py:(\d+): FutureWarning: (.*) is deprecated", done.stderr)
    assert shown == [(str(2 + place), name) for place, name in enumerate(OLD)]
    assert done.stderr.count(f"and goes with {GOES_WITH}: use ") == len(OLD)


def test_all_are_listed_with_the_version_that_ends_them():
    page = (ROOT / "docs" / "versions.md").read_text("utf-8")
    rows = page.partition("| deprecated |")[2].splitlines()[2:]
    assert {row.rsplit("|", 2)[1].strip() for row in rows} == {GOES_WITH}
    listed = " ".join(row.split("|")[1] for row in rows)
    for name in OLD:
        assert name.removeprefix("Method.") in listed, name
    assert tuple(map(int, __version__.split(".")[:2])) < tuple(map(int, GOES_WITH.split(".")))


def test_the_versions_on_the_page_are_those_of_today():
    page = (ROOT / "docs" / "versions.md").read_text("utf-8")
    header = (ROOT / "firmware_ref" / "include" / "twin.h").read_text("utf-8")
    oldest, newest = re.findall(r"^#define TWIN_PACK_(?:OLDEST|NEWEST) +(\d+)$", header, re.M)
    assert page.count(f"| {__version__} |") == 2
    assert f"| {oldest} to {newest} |" in page


@pytest.mark.parametrize(
    ("old", "new"), [(("--bits", "16"), "--weights int16"), (("--bits", "8"), "--weights int8")]
)
def test_an_old_option_is_mentioned(old, new):
    command = [sys.executable, "-m", "twinedge", "budget", "--features", "3", *old]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == f"{' '.join(old)} is deprecated and goes with {GOES_WITH}: use {new}\n"
