"""Results of benchmarks/rivals.py: the result file, and tables for docs/rivals.md.

A rival is compared with our twins of the same size on the splits that both have. The standard error
is that of the mean of these differences; a rival is called better or worse if a difference of
zero is outside the 95 % interval of Student's t. (Splits of one table share rows, so the true
error is somewhat larger.)
"""

from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.harness.pages import Tables, newer_cells
from benchmarks.harness.record import Cells, Record, read_record, results_of
from benchmarks.harness.rows import LONG
from twinedge.wording import plural

PAGE = "docs/rivals.md"
OURS = "twins"
TITLES = {
    "twins": "our four twins",
    "twin": "our one twin",
    "boosting": "boosted trees",
    "forest": "forest",
    "nearest": "neighbors",
    "linear": "linear",
    "network": "one network",
    "networks": "four networks",
}
SIZES = {"20": "The bytes of the default pack", "8": "8,192 bytes"}
CONFIDENCE = 0.95


def summarise(cells: Cells) -> dict[str, Any]:
    """Sum up: by size and rival, each table's mean error and difference from ours, and all nine."""
    found: dict[tuple[str, str], dict[str, Cells]] = {}
    for key in sorted(cells, key=lambda key: (key.split("/")[2] in LONG, key)):
        rival, size, name, split = key.split("/")
        found.setdefault((size, rival), {}).setdefault(name, {})[split] = cells[key]
    summary: dict[str, Any] = {}
    for size in SIZES:
        ours = found.get((size, OURS), {})
        for rival in TITLES:
            if (size, rival) in found:
                tables = {
                    name: _line(splits, {} if rival == OURS else ours.get(name, {}))
                    for name, splits in found[size, rival].items()
                }
                summary.setdefault(size, {})[rival] = {"tables": tables, **_all(tables)}
    return {"summary": summary}


def _line(theirs: Cells, ours: Cells) -> dict[str, Any]:
    """Sum up one rival on one table: on splits that we have, too, unless there are hardly any."""
    both = sorted({*theirs} & {*ours}, key=int)
    compared = len(both) > 1
    errors = np.array([theirs[split]["rmse_test"] for split in (both if compared else theirs)])
    taken = [theirs[split]["bytes"] for split in (both if compared else theirs)]
    line: dict[str, Any] = {
        "splits": len(errors),
        "rmse": float(np.mean(errors)),
        "bytes": round(float(np.mean(taken))),
    }
    if compared:
        mine = np.array([ours[split]["rmse_test"] for split in both])
        more = errors - mine
        error = float(more.std(ddof=1) / len(more) ** 0.5)
        chance = error * float(student.ppf((1 + CONFIDENCE) / 2, len(more) - 1))
        ahead, behind = more.mean() < -chance, more.mean() > chance
        line |= {
            "difference": float(more.mean()),
            "standard_error": error,
            "ours": float(np.mean(mine)),
            "ratio": line["rmse"] / float(np.mean(mine)),
            "verdict": "better" if ahead else "worse" if behind else "alike",
        }
    return line


def _all(tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """On how many tables a rival is better, alike, worse; the geometric mean of error ratios."""
    compared = [line for line in tables.values() if "ratio" in line]
    if not compared:
        return {}
    ratios = [np.log(line["ratio"]) for line in compared]
    counts = {
        word: sum(line["verdict"] == word for line in compared)
        for word in ("better", "alike", "worse")
    }
    mean = float(f"{np.exp(np.mean(ratios)):.6g}")  # processors differ in the last digits
    return {"geometric_mean_ratio": mean, **counts}


def pages(record: Record) -> Tables:
    """Return the generated parts of the page: errors, findings, and what a query costs."""
    summary = record["summary"]
    found = {size: _accuracy(summary[size]) for size in SIZES if size in summary}
    found["findings"] = _findings(summary)
    device = read_record(results_of("device")).get("rivals")
    if device:
        found["device"] = _device(device)
    found["newer"] = newer_cells(record, _long_table)
    return {PAGE: found}


def _long_table(key: str) -> str | None:
    """Return the long table that a cell of our default pack belongs to."""
    rival, size, name, _ = key.split("/")
    return name if (rival, size) == (OURS, "20") and name in LONG else None


def _findings(summary: dict[str, Any]) -> str:
    """Say on which tables each rival is better, and on which it may be."""
    lines = []
    for size, rivals in summary.items():
        lines.append(f"{SIZES[size]}:\n")
        for rival, one in rivals.items():
            by = {
                word: [name for name, line in one["tables"].items() if line.get("verdict") == word]
                for word in ("better", "alike", "worse")
            }
            if any(by.values()):
                worse = len(by.pop("worse"))
                parts = [f"{word} on {', '.join(names)}" for word, names in by.items() if names]
                if worse:
                    parts.append(f"worse on {'the other' if parts else 'all'} {worse}")
                lines.append(f"- {TITLES[rival]}: {'; '.join(parts)}")
        lines.append("")
    return "\n".join(lines)


def _accuracy(rivals: dict[str, Any]) -> str:
    """One table: a line for each data set, a column for each rival."""
    names = list(dict.fromkeys(name for one in rivals.values() for name in one["tables"]))
    lines = [["table", *(TITLES[rival] for rival in rivals)], ["---", *["---:"] * len(rivals)]]
    most = {
        name: max(one["tables"].get(name, {"splits": 0})["splits"] for one in rivals.values())
        for name in names
    }
    lines += [
        [name, *(_cell(one["tables"].get(name), most[name]) for one in rivals.values())]
        for name in names
    ]
    splits = {line["splits"] for one in rivals.values() for line in one["tables"].values()}
    taken = (_range(line["bytes"] for line in one["tables"].values()) for one in rivals.values())
    lines.append(["bytes", *taken])
    if any("geometric_mean_ratio" in one for one in rivals.values()):
        ratios = {
            rival: f"{one['geometric_mean_ratio']:.2f}" if "geometric_mean_ratio" in one else ""
            for rival, one in rivals.items()
        }
        lines.append(["error relative to ours", *({**ratios, OURS: "1"}[one] for one in rivals)])
        counts = [
            f"{one['better']} / {one['alike']} / {one['worse']}" if "better" in one else ""
            for one in rivals.values()
        ]
        lines.append(["better / alike / worse", *counts])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\nSplits per table: {_range(splits)}.\n"


def _cell(line: dict[str, Any] | None, most: int) -> str:
    """Error, and the standard error of its difference from ours; bold if it is better.

    If it has fewer splits than others, so it says, with ours on the same ones.
    """
    if line is None:
        return ""
    text = f"{line['rmse']:.4g}"
    if "difference" in line:
        text += f" ± {line['standard_error']:.2g}"
        if line["verdict"] == "better":
            text = f"**{text}**"
        if line["splits"] < most:
            text += f" (ours {line['ours']:.4g}, {line['splits']} splits)"
    elif line["splits"] < most:
        text += f" ({plural(line['splits'], 'split')})"
    return text


def _range(values: Any) -> str:
    low, high = min(found := list(values)), max(found)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _device(device: dict[str, Any]) -> str:
    """Say what a query costs."""
    head = "| | instructions | flash bytes | RAM bytes |\n|---|---:|---:|---:|"
    lines = [
        f"| {name} | {row['instructions_per_query']:,} | {row['flash_bytes']:,} | "
        f"{row['ram_bytes']:,} |"
        for name, row in device["rows"].items()
    ]
    return "\n".join([head, *lines]) + "\n"
