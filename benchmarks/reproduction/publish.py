"""Do the paper's findings hold here?

Computes the cells of `twinedge reproduce` on all nine sets, keeps every cell in the result folder,
and writes docs/reproduction.md from them. Cells in --cells or in the result folder are not computed
again. All of it takes some nine hours of one core; with --no-compute, nothing is computed, and the
page says what is missing. Cells may be computed on several machines and merged: each says where it
comes from. Timing is measured on one otherwise idle machine.

    python benchmarks/reproduction.py --jobs 2
    python benchmarks/reproduction.py --experiments multiplier --datasets rcl --no-page --jobs 16
    python benchmarks/reproduction.py --experiments timing --splits 2
    python benchmarks/reproduction.py --no-compute --cells runs/reproduction
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.reproduction.answers import Answer
from benchmarks.reproduction.cells import Cell, CellStore, Setup
from benchmarks.reproduction.claims import judged
from benchmarks.reproduction.experiments import experiment
from benchmarks.reproduction.page import CURVES, HERE_ALREADY, curves_page, filled, has_figure
from benchmarks.reproduction.running import local, progress_of, run
from benchmarks.reproduction.tables import Question
from twinedge import data
from twinedge.atomic_files import write_file
from twinedge.data.catalogue import CATALOGUE

HERE = Path(__file__).parents[1]
RESULTS = HERE / "results" / "reproduction"
PAGE = HERE.parent / "docs" / "reproduction.md"
PUBLISHED = Setup(trainer="published")
# Networks as the paper's code trains them, forests with a small grid.
EXPERIMENTS = {
    "ann_ensemble": PUBLISHED,
    "tnnr_ensemble": PUBLISHED,
    "multiplier": PUBLISHED,
    "knn_tnnr": PUBLISHED,
    "neighbors": PUBLISHED,
    "knn": PUBLISHED,
    "memory": Setup(),
    "rf_ssl": Setup(),
    "timing": PUBLISHED,
    "twin_rf": Setup(),
    "uncertainty": PUBLISHED,
    "check": Setup(),
}
SPLITS = 5


OWN = Setup(members=2)  # twins and ANNs of our own trainer, for one finding

Kept = dict[str, dict[str, Any]]


def identity(key: dict[str, Any]) -> str:
    """Name a cell by its key."""
    return json.dumps(key, sort_keys=True)


def kept(results: Path) -> Kept:
    """Cells of the result folder: result and machine, by all that determines it."""
    path = results / "cells.json"
    if not path.exists():
        return {}
    record = json.loads(path.read_text())
    return {
        identity(cell["cell"]): {**cell["result"], "machine": record["machines"][cell["on"]]}
        for cell in record["cells"]
    }


def write_kept(results: Path, cells: Kept) -> None:
    """Write cells into the result folder, a line for each."""
    machines = sorted({result["machine"] for result in cells.values()})
    lines = []
    for key in sorted(cells):
        result = {name: value for name, value in cells[key].items() if name != "machine"}
        on = machines.index(cells[key]["machine"])
        lines.append(json.dumps({"cell": json.loads(key), "on": on, "result": result}))
    head, body = json.dumps(machines), ",\n".join(lines)
    write_file(results / "cells.json", f'{{"machines": {head}, "cells": [\n{body}\n]}}\n')


def question(name: str, setup: Setup) -> Question:
    """Return the question of an experiment, as the page asks it."""
    return Question(experiment(name, setup), data.names(), SPLITS, setup)


def answered(name: str, setup: Setup, known: Kept) -> Answer:
    """Answer an experiment as far as cells are known."""
    asked = question(name, setup)
    cells = [cell for cell in asked.cells() if identity(cell.key) in known]
    results = {cell: known[identity(cell.key)] for cell in cells}
    return Answer(asked.known(results), results)


def answers_from(known: Kept) -> dict[str, Answer]:
    """Answer all experiments of the page."""
    return {name: answered(name, setup, known) for name, setup in EXPERIMENTS.items()}


def page_from(page: str, known: Kept) -> str:
    """Write what is known into the page."""
    own = answered("tnnr_ensemble", OWN, known)
    machines = [result["machine"] for result in known.values()]
    return filled(page, answers_from(known), own, machines)


def asked_cells() -> list[Cell]:
    """Cells of everything on the page."""
    asked = [*EXPERIMENTS.items(), ("tnnr_ensemble", OWN)]
    return [cell for name, setup in asked for cell in question(name, setup).cells()]


def wanted_of(names: Iterable[str], store: CellStore, known: Kept) -> list[Cell]:
    """Missing cells of experiments: by split, and within each the longest tables first."""
    cells = dict.fromkeys(
        cell for name in names for cell in question(name, EXPERIMENTS[name]).cells()
    )
    wanted = [
        cell for cell in cells if identity(cell.key) not in known and store.load(cell) is None
    ]
    return sorted(wanted, key=lambda cell: (cell.split, -CATALOGUE[cell.dataset].rows))


def gathered(store: CellStore, known: Kept) -> Kept:
    """Return the cells that the page asks for: from the result folder, or else from a store."""
    found = {}
    for cell in asked_cells():
        key = identity(cell.key)
        result = known.get(key) or store.load(cell)
        if result is not None:
            found[key] = {"machine": "a machine that it does not name", **result}
    return found


def record(known: Kept) -> list[dict[str, str]]:
    """Write cells, page, curves and figures; returns the findings."""
    write_kept(RESULTS, known)
    folder = PAGE.with_suffix("")
    answers = answers_from(known)
    for name, answer in answers.items():
        if name not in HERE_ALREADY and has_figure(answer):
            answer.write_figure(folder / f"{name}.svg")
    write_file(folder / CURVES, curves_page(answers))
    write_file(PAGE, page_from(PAGE.read_text(), known))
    found = [
        {"part": claim.part, "finding": claim.says, "verdict": verdict.word, "seen": verdict.seen}
        for answer in answers.values()
        for claim, verdict in judged(answer)
    ]
    write_file(RESULTS / "findings.json", json.dumps(found, indent=1) + "\n")
    return found


def main() -> None:
    """Fill in the missing cells, write everything, and print last one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--experiments", default=",".join(EXPERIMENTS))
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="list the missing cells, and stop")
    parser.add_argument("--no-compute", action="store_true", help="use existing cells only")
    parser.add_argument(
        "--no-page", action="store_true", help="compute only, leaving cells in --cells"
    )
    options = parser.parse_args()
    store, known = CellStore(options.cells), kept(RESULTS)
    wanted = [
        cell
        for cell in wanted_of(options.experiments.split(","), store, known)
        if cell.dataset in options.datasets.split(",") and cell.split < options.splits
    ]
    if options.list:
        print(*wanted, sep="\n")
        return
    if not options.no_compute:
        with progress_of(options.jobs, quiet=False) as progress:
            run(wanted, store, local(options.jobs), progress)
    if options.no_page:
        return
    found = record(gathered(store, known))
    for one in found:
        print(f"{one['part']}, {one['verdict']}: {one['finding']} Here: {one['seen']}.")
    print(json.dumps({"results": RESULTS.name, "findings": found}))


if __name__ == "__main__":
    main()
