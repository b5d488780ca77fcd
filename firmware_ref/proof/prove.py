"""Run Frama-C on the harnesses of this folder, and compare what stays open with alarms.txt.

Usage: prove.py [--quick] [--jobs N] [--output FILE] [CASE ...]

A case is a harness with the sizes it is analysed for. For each, one line says how many functions
and statements were analysed, how many properties were shown, and how many alarms are open. An alarm
that alarms.txt does not list is a failure, and so is one that it lists and that is gone.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "proof"
PROVERS = BUILD / "why3.conf"

# A 32-bit little-endian machine, as most microcontrollers are, with the settings of one.
MACHINE = "gcc_x86_32"
SETTINGS = "-DTWIN_HOST=0 -DTWIN_BLOCK=2"

# The preprocessor is that of this machine, whatever it is.
FOREIGN = (
    "-U__x86_64__ -U__aarch64__ -U__FP_FAST_FMAF -U__FLT_EVAL_METHOD__ -D__FLT_EVAL_METHOD__=0"
)

# What counts as an error beyond what Frama-C has by default.
STRICT = ["-warn-signed-overflow", "-warn-invalid-bool"]
INVALID_POINTER = ["-warn-invalid-pointer"]  # twin_scratch_size lays out memory that is not there
EVA = ["-eva", "-eva-warn-signed-converted-downcast", "-eva-msg-key=-initial-state,-final-states"]
WP = ["-wp", "-wp-rte", "-wp-prover", "z3,cvc4", "-wp-par", "1", "-wp-timeout", "30"]

# Statuses of properties that leave nothing to be shown. Those of libraries are "considered valid".
SHOWN = {"Valid", "Considered valid", "Dead", "Unreachable"}


# The float ends take any float; volatile, which only makes compilers round, is any value to Eva.
FLOATS = ["-warn-special-float", "none"]
ROUNDED = "-Dvolatile="

PREDICTION = ("predict", "combine", "edge", "map", "nearest", "target", "kernels/portable")

# Functions where Eva does not tell paths apart: what they compute does not depend on which it was.
ONE_PATH = (
    *("twini_weight", "plain_activate", "plain_of_query", "plain_query"),
    *("portable_put", "portable_finish", "portable_pad", "portable_sums"),
    *("portable_of_anchor", "portable_first", "portable_further"),
    *("twini_evaluate", "twini_add_pair", "twini_add_estimate", "twini_add_signals"),
    *("twini_at_most", "twini_root"),
    *("twini_divide", "twini_product", "twini_combine", "twini_scale", "twini_units", "twini_sat"),
    *("twini_mulw", "twini_quantise", "twini_report", "twini_distance", "twini_is_nan"),
    *("twini_above", "twini_below"),
)


CHECKS = (
    *("twini_crc_bits", "twini_crc_word", "twini_crc", "twini_sum", "twini_padding_faults"),
    *("twini_magnitude", "twini_row_faults", "twini_output_faults", "twini_head_faults"),
    *(
        "twini_scaling_faults",
        "twini_map_faults",
        "twini_target_faults",
        "twini_curve_faults",
        "twini_count_faults",
        "twini_anchor_faults",
    ),
    *("twini_check_twins", "twini_check_anchors", "twini_select_level"),
)


class Case(NamedTuple):
    """A harness and how it is analysed.

    Attributes
    ----------
    name : str
        Of the case, in lines and in alarms.txt.
    harness : str
        File in this folder, without its suffix.
    sources : tuple of str
        What it analyses: files of src without twin_ and their suffix.
    defines : str
        Sizes, as options of the preprocessor.
    options : list of str
        Of Frama-C, in addition to those of every case.
    quick : bool
        Whether it is part of ``--quick``.
    """

    name: str
    harness: str
    sources: tuple[str, ...]
    defines: str
    options: list[str]
    quick: bool


def journal(record: int, block: int, unit: int, quick: bool = False) -> Case:
    """Analyse records of this size in blocks of this size, programmed in units of `unit` bytes."""
    options = [*INVALID_POINTER, "-eva-slevel", "100"]
    options += ["-eva-slevel-function", "twini_crc_bits:0", "-eva-ilevel", "64"]
    options += ["-eva-split-return-function", "storage_read:0,twin_journal_open:-20"]
    defines = f"-DN_RECORD={record} -DN_BLOCK={block} -DN_UNIT={unit}"
    name = f"journal-{record}-{block}-{unit}"
    return Case(name, "journal", ("journal",), defines, [*EVA, *options], quick)


def slots(bank: int, unit: int, quick: bool = False) -> Case:
    """Analyse banks of this size, programmed in units of `unit` bytes."""
    options = [*INVALID_POINTER, "-eva-slevel", "50", "-eva-slevel-function", "any_calls:0"]
    options += ["-eva-min-loop-unroll", "6", "-eva-split-return", "full"]
    name = f"slots-{bank}-{unit}"
    defines = f"-DN_BANK={bank} -DN_UNIT={unit}"
    return Case(name, "slots", ("slots", "release"), defines, [*EVA, *options], quick)


def window(statistic: str, samples: int, quick: bool = False) -> Case:
    """Analyse windows of a statistic over so many samples."""
    size = 4 * samples + 4
    size += 2 * (samples + 2) if statistic in ("MIN", "MAX") else 0
    size = (size + 7) // 8 * 8 + (16 if statistic in ("MEAN", "STD", "SLOPE") else 0)
    options = [*INVALID_POINTER, *FLOATS, "-eva-slevel", "3000", "-eva-ilevel", "64"]
    options += ["-eva-min-loop-unroll", "70", "-eva-split-return", "full"]
    numbers = {"STATISTIC": f"TWIN_{statistic}", "SAMPLES": samples, "PUSHES": 2 * samples + 2}
    numbers |= {"SCALE": "65536.0f", "MEMORY": size}
    defines = " ".join([ROUNDED, *(f"-DN_{name}={value}" for name, value in numbers.items())])
    name = f"window-{statistic.lower()}-{samples}"
    return Case(name, "window", ("window",), defines, [*EVA, *options], quick)


def watch(features: int, levels: int, quick: bool = False) -> Case:
    """Analyse a model with this many features, and intervals with this many levels."""
    options = [*INVALID_POINTER, *FLOATS, "-eva-slevel", "100"]
    options += ["-eva-slevel-function", "twini_crc_bits:0"]
    options += ["-eva-domains", "octagon,equality"]
    options += ["-eva-split-return-function", "twin_set_coverage:0"]
    defines = f"{ROUNDED} -DN_FEATURES={features} -DN_LEVELS={levels}"
    sources = ("watch", "open", "predict", "combine", "edge", "map", "target", "kernels/portable")
    return Case(f"watch-{features}-{levels}", "watch", sources, defines, [*EVA, *options], quick)


def release(entries: int, size: int, quick: bool = False) -> Case:
    """Analyse files of this size whose tables have this many entries."""
    options = ["-eva-slevel", "2000", "-eva-min-loop-unroll", "33", "-eva-split-return", "full"]
    options += ["-eva-split-limit", "100"]
    defines = f"-DN_ENTRIES={entries} -DN_SIZE={size}"
    name = f"release-{entries}-{size}"
    return Case(name, "release", ("release",), defines, [*EVA, *options], quick)


class Shape(NamedTuple):
    """A shape of packs, in the words of FORMAT.md: the first twins own `owned` anchors each."""

    features: int
    hidden: tuple[int, ...]
    twins: int = 1
    anchors: int = 2
    owned: int = 1
    neighbors: int = 0
    wide: int = 0
    silu: int = 0
    scaled: int = 0
    domain: int = 0
    outputs: int = 0  # of an input map; 0 without one
    rows: int = 0
    bins: int = 0  # of a target curve

    def scratch(self) -> int:
        """Bytes of scratch, from an aligned address on."""
        last = self.anchors - (self.twins - 1) * self.owned
        most = max(last, self.owned if self.twins > 1 else 0)
        nearest = 8 * self.neighbors if 0 < self.neighbors < most else 0
        blocks = sum(8 * pad4(width) for width in self.hidden[:-1])
        return nearest + 8 * self.hidden[0] + blocks + 2 * pad4(self.features)

    def sections(self) -> list[int]:
        """Bytes of each section in the order of the file, and of metadata of any length."""
        inputs, record = self.outputs or self.features, 16
        point = 2 * pad4(inputs)
        for depth, width in enumerate(self.hidden):
            kernels = 1 if depth else 2
            record += width * (kernels * (pad4(inputs) << self.wide) + 4) + pad4(2 * width)
            inputs = width
        record += 4 + 4 * pad4(inputs) if self.scaled else 2 * pad4(inputs)
        sizes = [8 * self.features + 8, self.twins * ((record + 15) // 16 * 16)]
        sizes += [386] * self.silu
        sizes += [pad4(2 * self.twins) + self.anchors * (point + 4)]
        sizes += [48] * self.scaled + [6 * self.features] * self.domain
        if self.outputs:
            head = pad4(4 + self.features + self.outputs)
            sizes += [head + pad4(2 * self.rows) + self.rows * self.outputs]
        return sizes + [12 + 4 * self.bins] * bool(self.bins) + [16]

    def defines(self) -> str:
        """As options of the preprocessor."""
        widths = dict(zip(("H1", "H2", "H3"), (*self.hidden, 0, 0), strict=False))
        numbers = {"LAYERS": len(self.hidden), "SCRATCH": self.scratch() + 7} | widths
        sizes = self.sections()
        ends = [(48 + 12 * len(sizes) + 15) // 16 * 16]
        for size in sizes:
            ends.append((ends[-1] + size + 15) // 16 * 16)
        behind = 3 + self.silu + self.scaled + self.domain
        numbers |= {"SIZE": ends[-1], "INTERVALS_AT": ends[3 + self.silu]}
        numbers |= {"MAP_AT": ends[behind], "CURVE_AT": ends[behind + bool(self.outputs)]}
        numbers |= {
            name.upper(): value for name, value in self._asdict().items() if name != "hidden"
        }
        return " ".join(f"-DN_{name}={value}" for name, value in numbers.items())

    def __str__(self) -> str:
        """In a name of a case."""
        parts = [f"{self.features}x{'x'.join(map(str, self.hidden))}"]
        parts += [f"{self.twins}t{self.anchors}a"]
        parts += [f"m{self.neighbors}"] if self.neighbors else []
        parts += [name for name in ("wide", "silu", "scaled", "domain") if self._asdict()[name]]
        parts += ["map"] * bool(self.outputs) + ["curve"] * bool(self.bins)
        return "-".join(parts)


def pad4(count: int) -> int:
    """Round up to a multiple of 4."""
    return (count + 3) // 4 * 4


def evaluation(name: str, harness: str, shape: Shape, more: dict[str, int], quick: bool) -> Case:
    """Analyse what predicts with packs of this shape."""
    start = 0x20000000
    most = max(40, *shape.hidden) + 2  # turns of a loop
    options = [*FLOATS, "-eva-slevel", "60", "-eva-min-loop-unroll", str(most)]
    options += ["-eva-auto-loop-unroll", "400", "-eva-split-return", "full"]
    options += ["-eva-slevel-function", ",".join(f"{name}:0" for name in ONE_PATH)]
    options += ["-absolute-valid-range", f"{start:#x}-{start + shape.scratch() - 1:#x}"]
    numbers = " ".join(f"-DN_{key}={value}" for key, value in more.items())
    defines = f"{ROUNDED} {shape.defines()} {numbers}"
    sources = (*PREDICTION, *(["release"] if harness == "self_test" else []))
    return Case(f"{name}-{shape}", harness, sources, defines, [*EVA, *options], quick)


def predict(shape: Shape, step: int, quick: bool = False) -> Case:
    """Analyse predictions of packs of this shape, in steps of `step` anchors, and in one go."""
    return evaluation("predict", "predict", shape, {"STEP": step, "QUERIES": 0}, quick)


def self_test(shape: Shape, queries: int, quick: bool = False) -> Case:
    """Analyse self-tests of packs of this shape, of up to so many queries."""
    return evaluation("predict-tested", "self_test", shape, {"QUERIES": queries}, quick)


def opening(shape: Shape, step: int = 0, quick: bool = False) -> Case:
    """Analyse opening packs of this shape in steps of `step` bytes; 0 for one go."""
    options = [*INVALID_POINTER, "-eva-slevel", "400", "-eva-ilevel", "64"]
    options += ["-eva-min-loop-unroll", str(60 + sum(shape.sections()) // 4)]  # words
    options += ["-eva-split-return", "full"]
    options += ["-eva-slevel-function", ",".join(f"{name}:0" for name in CHECKS)]
    sources = ("open", "predict", "combine", "map", "kernels/portable")
    name = f"open-{shape}" + (f"-step{step}" if step else "")
    return Case(
        name, "open", sources, f"{shape.defines()} -DN_STEP={step}", [*EVA, *options], quick
    )


SMALLEST = Shape(1, (1,), anchors=1)
FULL = Shape(2, (4, 4), 2, 3, 1, silu=1, scaled=1, domain=1)
NEAREST = Shape(3, (5,), 1, 4, neighbors=2, wide=1)
DEEP = Shape(1, (2, 3, 4), 2, 4, 2, neighbors=1, scaled=1)
LARGE = Shape(5, (6, 5), 3, 7, 2, neighbors=2, wide=1, silu=1, scaled=1, domain=1)
WIDE = Shape(8, (16, 16), 1, 8, silu=1, scaled=1)
CURVED = Shape(3, (4,), 1, 2, outputs=5, rows=6, bins=3)
FLAGSHIP = Shape(8, (128, 128), 1, 4)

CASES = [
    Case("arithmetic", "arithmetic", (), "", [*EVA, "-eva-precision", "3"], True),
    Case(
        "sums",
        "sums",
        ("predict", "combine", "map", "nearest"),
        "",
        [*WP, "-wp-fct", "product,twini_overflows,check_and_add"],
        True,
    ),
    journal(20, 224, 4, quick=True),
    journal(20, 256, 8),
    journal(24, 160, 1),
    slots(256, 1, quick=True),
    slots(256, 8),
    slots(1024, 256),
    *(
        window(statistic, 3, quick=statistic == "MIN")
        for statistic in ("LAG", "DELTA", "MIN", "MAX", "MEAN", "STD", "SLOPE")
    ),
    watch(2, 3, quick=True),
    watch(1, 1),
    watch(9, 15),
    release(1, 192, quick=True),
    release(3, 320),
    release(32, 640),
    opening(SMALLEST, quick=True),
    opening(SMALLEST, 16),
    opening(FULL, quick=True),
    opening(NEAREST, quick=True),
    opening(CURVED, quick=True),
    opening(CURVED._replace(rows=0, silu=1, domain=1), 16),
    opening(DEEP),
    opening(LARGE),
    opening(LARGE, 32),
    opening(WIDE),
    opening(FLAGSHIP),
    predict(FULL, 2, quick=True),
    predict(NEAREST, 1, quick=True),
    predict(DEEP, 3),
    predict(LARGE._replace(neighbors=0, domain=0), 2),
    predict(WIDE, 4),
    predict(FLAGSHIP._replace(hidden=(32, 32)), 4),
    self_test(SMALLEST, 3, quick=True),
    self_test(FULL, 2),
    self_test(NEAREST, 2),
]


GONE = "listed, but gone: "


class Alarm(NamedTuple):
    """An open property: where it is, and what it says."""

    case: str
    function: str
    kind: str
    text: str


def run_case(case: Case) -> dict[str, Any]:
    """Analyse one case; its result as in the output file."""
    folder = BUILD / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = folder / "properties.csv"
    command = ["frama-c", "-machdep", MACHINE, *STRICT]
    given = f"-I../include -I../src -include ../proof/proof.h {FOREIGN} {SETTINGS} {case.defines}"
    command += [f"-cpp-extra-args={given}", f"{case.harness}.c", *map(path_of, case.sources)]
    command += [*case.options, "-then", "-report-csv", str(table)]
    start = time.monotonic()
    where = os.environ | {"PWD": str(HERE), "WHY3CONFIG": str(PROVERS)}  # PWD: Frama-C believes it
    done = subprocess.run(command, cwd=HERE, env=where, capture_output=True, text=True, check=False)
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    result: dict[str, Any] = {"case": case.name, "seconds": round(time.monotonic() - start, 1)}
    if done.returncode or not table.exists():
        result["failure"] = (done.stdout + done.stderr).strip().splitlines()[-6:]
        return result
    result |= count_coverage(done.stdout)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    counted = [row for row in rows if is_ours(row)]
    opened = [row for row in counted if row["status"] not in SHOWN]
    result["shown"] = sum(row["status"] == "Valid" for row in counted)
    result["open"] = [
        {"function": row["function"], "kind": row["property kind"], "text": row["property"]}
        for row in opened
    ]
    source = (HERE / f"{case.harness}.c").read_text()
    marks = set(re.findall(r"\bFrama_C_show_each_(\w+)\(", source))
    reached = set(re.findall(r"Frama_C_show_each_(\w+):", done.stdout))
    result["unreached"] = sorted(marks - reached)
    return result


def find_provers() -> None:
    """Let Why3 write down the provers of this machine: nobody else's configuration counts."""
    PROVERS.parent.mkdir(parents=True, exist_ok=True)
    PROVERS.unlink(missing_ok=True)
    where = os.environ | {"WHY3CONFIG": str(PROVERS)}
    subprocess.run(["why3", "config", "detect"], env=where, capture_output=True, check=True)


def path_of(source: str) -> str:
    """Where a source is, seen from this folder."""
    folder, _, name = source.rpartition("/")
    return f"../src/kernels/kernel_{name}.c" if folder else f"../src/twin_{name}.c"


def is_ours(row: dict[str, str]) -> bool:
    """Whether a property is of our code, and not of a library or of a mark of a harness."""
    return row["directory"] != "FRAMAC_SHARE/libc" and "Frama_C_show_each" not in row["function"]


def count_coverage(output: str) -> dict[str, int]:
    """Functions and statements that Eva reached, from its summary."""
    found = re.search(r"(\d+) functions? analyzed \(out of (\d+)\)", output)
    statements = re.search(r"(\d+) statements reached \(out of (\d+)\)", output)
    if not found or not statements:
        return {}
    return {
        "functions": int(found[1]),
        "statements": int(statements[1]),
        "statements_in_them": int(statements[2]),
    }


def listed_alarms() -> list[Alarm]:
    """Alarms that may be open: lines of `case | function | kind | text`, `*` for anything."""
    alarms = []
    for line in (HERE / "alarms.txt").read_text().splitlines():
        if line.strip() and not line.startswith(("#", " ")):
            case, function, kind, text = (part.strip() for part in line.split("|", 3))
            alarms.append(Alarm(case, function, kind, text))
    return alarms


def matches(listed: Alarm, found: Alarm) -> bool:
    """Whether an open alarm is the one that is listed."""
    return all(map(fits, listed, found))


def fits(pattern: str, text: str) -> bool:
    """Whether a text is that of a pattern, where `*` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def compare(results: Iterable[dict[str, Any]], listed: list[Alarm]) -> list[str]:
    """Lines about failures, alarms that are not listed, and listed ones that are gone."""
    lines = []
    used = set()
    ran = []
    for result in results:
        name = result["case"]
        ran.append(name)
        if "failure" in result:
            lines.append(f"{name}: Frama-C failed: " + " / ".join(result["failure"]))
            continue
        lines += [f"{name}: the analysis ends before {mark}" for mark in result["unreached"]]
        for row in result["open"]:
            alarm = Alarm(name, row["function"], row["kind"], row["text"])
            fitting = [entry for entry in listed if matches(entry, alarm)]
            used.update(fitting)
            if not fitting:
                lines.append("not listed: " + " | ".join(alarm))
    for entry in listed:
        if entry not in used and any(fits(entry.case, name) for name in ran):
            lines.append(GONE + " | ".join(entry))
    return lines


def summarise(result: dict[str, Any]) -> str:
    """One line about a case."""
    if "failure" in result:
        return f"{result['case']:24} failed"
    reach = ""
    if "functions" in result:
        reach = f"{result['functions']:3} functions, {result['statements']:4} statements, "
    return (
        f"{result['case']:24} {reach}{result['shown']:4} properties shown, "
        f"{len(result['open']):2} open, {result['seconds']:5.1f} s"
    )


def main() -> int:
    """Run the cases that are named, or all; return 1 if something is open and not listed."""
    parser = argparse.ArgumentParser(description=__doc__, usage=(__doc__ or "").splitlines()[2][7:])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", type=Path, default=BUILD / "proof.json")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    chosen = [
        case
        for case in CASES
        if (case.quick or not arguments.quick)
        and (not arguments.cases or case.name in arguments.cases)
    ]
    results = []
    find_provers()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(run_case, chosen):
            results.append(result)
            print(summarise(result), flush=True)
    listed = listed_alarms()
    wrong = compare(results, listed)
    if arguments.cases:  # others may have what is listed
        wrong = [line for line in wrong if not line.startswith(GONE)]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"cases": results, "wrong": wrong}, indent=1) + "\n")
    for line in wrong:
        print(line)
    print(
        f"{len(results)} cases, {sum(len(r.get('open', [])) for r in results)} alarms open, "
        f"{len(wrong)} of them or other findings not accounted for"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
