"""Print the share of the runtime's lines and branches that its tests reach; fail below a limit.

Compiles firmware_ref/src with counters, runs the tests of tests/firmware that load the library,
and asks gcov. `make coverage` runs it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "firmware_ref" / "src"
SUBJECTS = (
    *("bits", "refusals", "api", "misuse", "intervals", "kernels", "watch", "store"),
    *("journal", "curves", "targets", "release", "bad", "slots", "window"),
)
LIMITS = {"lines": 99.0, "branches": 98.0}  # per cent
# Compiled everywhere, run by processors that can; elsewhere the tests run them in emulators.
RARE = {"kernels/kernel_neon_i8mm.c": "i8mm"}


def main() -> int:
    """Measure, print a table and one JSON object; return 1 below the limit."""
    with tempfile.TemporaryDirectory() as folder:
        run_tests(Path(folder))
        files = read_counters(Path(folder))
    totals = [0, 0, 0, 0]
    print(f"{'file':34}{'lines':>14}{'branches':>16}")
    able = set(Path("/proc/cpuinfo").read_text().split())
    for name, counts in sorted(files.items()):
        if RARE.get(name, "") not in {"", *able}:
            print(f"{name:34}{'not for this processor':>30}")
            continue
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        print(row(name, counts))
    print(row("all", totals))
    shares = {"lines": percent(*totals[:2]), "branches": percent(*totals[2:])}
    print(json.dumps({name: round(share, 2) for name, share in shares.items()}))
    return 0 if all(shares[name] >= limit for name, limit in LIMITS.items()) else 1


def run_tests(folder: Path) -> None:
    """Run the tests with libraries that count; counters land in the folder, beside objects."""
    environment = os.environ | {
        # At -O0 a branch in the object file is a branch in the source.
        "TWIN_TEST_OPTIONS": "--coverage -O0 -DTWIN_COUNTED -fprofile-update=atomic",
        "TWIN_TEST_QUERIES": "60",
    }
    tests = [
        path
        for path in sorted((ROOT / "tests" / "firmware").glob("test_*.py"))
        if path.stem.split("_")[1] in SUBJECTS
    ]
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", folder / "tests")
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env=environment,
        check=True,
    )


def read_counters(folder: Path) -> dict[str, list[int]]:
    """Return lines reached and in total, and likewise branches, of each file below src."""
    listing = subprocess.run(
        ["gcov", "--json-format", "--stdout", "--branch-probabilities", *folder.rglob("*.gcda")],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    lines: dict[tuple[str, int], int] = {}
    branches: dict[tuple[str, int, int], int] = {}
    for report in listing.splitlines():
        for one in json.loads(report)["files"]:
            path = (ROOT / one["file"]).resolve()
            if SOURCES not in path.parents:
                continue
            name = str(path.relative_to(SOURCES))
            for line in one["lines"]:
                place = (name, line["line_number"])
                lines[place] = lines.get(place, 0) + line["count"]
                for number, branch in enumerate(line["branches"]):
                    branches[(*place, number)] = branches.get((*place, number), 0) + branch["count"]
    files: dict[str, list[int]] = {}
    for offset, counts in ((0, lines), (2, branches)):
        for place, count in counts.items():
            entry = files.setdefault(place[0], [0, 0, 0, 0])
            entry[offset] += count > 0
            entry[offset + 1] += 1
            if not count and "--missing" in sys.argv:
                print("not reached:", *place)
    return files


def percent(reached: int, there: int) -> float:
    """Share in per cent; 100 of nothing."""
    return 100 * reached / there if there else 100.0


def row(name: str, counts: list[int]) -> str:
    """One line of the table."""
    cells = (f"{percent(*pair):.1f} % of {pair[1]}" for pair in (counts[:2], counts[2:]))
    return f"{name:34}" + "".join(f"{cell:>16}" for cell in cells)


if __name__ == "__main__":
    sys.exit(main())
