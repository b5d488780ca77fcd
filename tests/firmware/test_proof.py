"""What Frama-C shows about the C runtime: every open alarm is listed in firmware_ref/proof."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BETWEEN = r"""
#include "twin_arith.h"
#include <stdio.h>

int main(void) {
    for (unsigned width = 0; width <= 12; width++)
        for (int32_t part = 0; part < (int32_t)1 << width; part++)
            for (int32_t step = -16383; step <= 16383; step++) {
                int32_t low = step < 0 ? -step : 0, high = low + step;
                int32_t between = twini_between(low, high, part, (uint8_t)width);
                if (between < (step < 0 ? high : low) || between > (step < 0 ? low : high))
                    return printf("%d of 2^%u, step %d: %d\n", part, width, step, between);
            }
    return 0;
}
"""

PROOF = Path(__file__).resolve().parents[2] / "firmware_ref" / "proof"


def load_prove() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prove", PROOF / "prove.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["prove"] = module
    spec.loader.exec_module(module)
    return module


prove = load_prove()


def need_frama_c() -> None:
    if not shutil.which("frama-c") and not os.environ.get("CI"):
        pytest.skip("needs frama-c: make prove installs it")


def run_prove(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """A run of prove.py, and what it wrote."""
    output = folder / "proof.json"
    command = [sys.executable, PROOF / "prove.py", "--jobs", "1", "--output", output, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert output.exists(), done.stdout + done.stderr
    return done, json.loads(output.read_text())


QUICK = ["arithmetic"]
SETS = {"quick": QUICK, "all": [case.name for case in prove.CASES]}


@pytest.mark.parametrize("cases", ["quick", pytest.param("all", marks=pytest.mark.slow)])
def test_no_alarm_is_open_that_is_not_listed(tmp_path: Path, cases: str) -> None:
    """Of all cases in minutes; `make prove` runs the same."""
    need_frama_c()
    done, written = run_prove(tmp_path, *(QUICK if cases == "quick" else ()))
    assert written["wrong"] == []
    assert done.returncode == 0, done.stdout + done.stderr
    assert [result["case"] for result in written["cases"]] == SETS[cases]
    for result in written["cases"]:
        assert result["shown"] > 0
        assert result["unreached"] == []


def test_an_alarm_that_is_not_listed_is_found() -> None:
    row = {"function": "twini_rsh", "kind": "signed_overflow", "text": "a + b <= 2147483647"}
    result = {"case": "arithmetic", "shown": 1, "unreached": [], "open": [row]}
    assert prove.compare([result], []) == [
        "not listed: arithmetic | twini_rsh | signed_overflow | a + b <= 2147483647"
    ]
    listed = prove.Alarm("arithmetic", "twini_rsh", "signed_overflow", "a + *")
    assert prove.compare([result], [listed]) == []
    assert prove.compare([{**result, "open": []}], [listed]) == [
        "listed, but gone: arithmetic | twini_rsh | signed_overflow | a + *"
    ]
    assert prove.compare([{**result, "case": "journal-1"}], [listed]) != []


def test_an_analysis_that_stops_early_is_found() -> None:
    result = {"case": "arithmetic", "shown": 1, "unreached": ["end"], "open": []}
    assert prove.compare([result], []) == ["arithmetic: the analysis ends before end"]
    failed = {"case": "arithmetic", "failure": ["[kernel] Frama-C aborted"]}
    assert prove.compare([failed], []) == ["arithmetic: Frama-C failed: [kernel] Frama-C aborted"]


def test_a_fault_in_the_source_is_an_open_alarm(tmp_path: Path) -> None:
    """The same analysis of a shift without its rounding term in range, which overflows."""
    need_frama_c()
    copy = tmp_path / "firmware_ref"
    for folder in ("include", "src", "proof"):
        shutil.copytree(PROOF.parent / folder, copy / folder)
    header = copy / "src" / "twin_arith.h"
    text = header.read_text()
    assert ">> 1)) >> n;" in text
    header.write_text(text.replace(">> 1)) >> n;", "<< 1)) >> n;"))
    output = tmp_path / "proof.json"
    command = [sys.executable, copy / "proof" / "prove.py", "--output", output, "arithmetic"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    wrong = json.loads(output.read_text())["wrong"]
    assert any("not listed: arithmetic | twini_rsh | signed_overflow" in line for line in wrong)


def test_interpolation_stays_between_its_ends(tmp_path: Path) -> None:
    """All that there are: adding the same number to both ends adds it to the result."""
    (tmp_path / "between.c").write_text(BETWEEN)
    options = ["-O2", "-std=c99", "-DTWIN_HOST=0"]
    options += [f"-I{PROOF.parent / folder}" for folder in ("src", "include")]
    source, program = tmp_path / "between.c", tmp_path / "between"
    subprocess.run(["gcc", *options, source, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
