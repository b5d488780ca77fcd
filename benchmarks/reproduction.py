"""Do the paper's findings hold here?

Answers the experiments of `twinedge reproduce` on all nine sets, keeps every cell and the tables
in the result folder, and writes tables and figures into docs/reproduction.md. Cells that are in
--cells or in the result folder are not computed again; the rest takes about an hour on two cores.

    python benchmarks/reproduction.py --jobs 2
    python benchmarks/reproduction.py --cells runs/reproduction --experiments twin_rf,check
"""

import argparse
import json
import re
from pathlib import Path

from machine import describe

from twinedge import data
from twinedge.reproduce.answer import Answer
from twinedge.reproduce.answering import answer_all
from twinedge.reproduce.cells import Cell, Setup
from twinedge.reproduce.experiments import experiment
from twinedge.reproduce.store import Store, write_whole
from twinedge.reproduce.tables import Question

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "reproduction"
PAGE = HERE.parent / "docs" / "reproduction.md"
# Each as time allowed; the page says with every table how it was obtained.
EXPERIMENTS = {
    "ann_ensemble": Setup(trainer="published"),
    "tnnr_ensemble": Setup(trainer="published"),
    "twin_rf": Setup(),
    "check": Setup(),
}
SPLITS = 5


def kept(results: Path) -> dict[str, dict]:
    """Cells of the result folder: what each came to, by all that decides it."""
    path = results / "cells.json"
    cells = json.loads(path.read_text())["cells"] if path.exists() else []
    return {identity(cell["cell"]): cell["result"] for cell in cells}


def identity(key: dict) -> str:
    """Name a cell by its key."""
    return json.dumps(key, sort_keys=True)


def question(name: str) -> Question:
    """Ask an experiment as it was asked for the page."""
    setup = EXPERIMENTS[name]
    return Question(experiment(name, setup), data.names(), SPLITS, setup)


def answer_from(results: Path, name: str) -> Answer:
    """Answer an experiment from the cells of the result folder alone."""
    known = kept(results)
    asked = question(name)
    return Answer(asked, {cell: known[identity(cell.key)] for cell in asked.cells()})


def fill(page: str, name: str, text: str) -> str:
    """Put a text between the marks of an experiment, in place of what is there."""
    marks = re.compile(rf"(<!-- {name}: measured -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"{PAGE} has no place for {name}")
    return marks.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", page)


def record(answers: dict[str, Answer], results: Path) -> list[str]:
    """Write cells, tables and figures, and what the page shows of them; returns the findings."""
    machine = describe("tensorflow", "scikit-learn", "numpy")
    cells = {
        key: {"cell": json.loads(key), "result": result} for key, result in kept(results).items()
    }
    said = []
    page = PAGE.read_text()
    for name, answer in answers.items():
        table = answer.record()
        for cell in table.pop("cells"):
            result = cell.pop("result")
            cells[identity(cell)] = {"cell": cell, "result": result}
        said += [f"{name}: {one}" for one in table["findings"]]
        write_whole(results / f"{name}.json", json.dumps({"machine": machine, **table}) + "\n")
        text = answer.markdown()
        figure = PAGE.with_suffix("") / f"{name}.svg"
        figure.parent.mkdir(exist_ok=True)
        if answer.write_figure(figure):
            title = answer.asked.experiment.title
            text += f"\n![{title}]({figure.parent.name}/{figure.name})\n"
        page = fill(page, name, text)
    lines = ",\n".join(json.dumps(cells[key], sort_keys=True) for key in sorted(cells))
    head = json.dumps({"machine": machine})[:-1]
    write_whole(results / "cells.json", f'{head}, "cells": [\n{lines}\n]}}\n')
    write_whole(PAGE, page)
    return said


def main() -> None:
    """Fill in the missing cells, write everything, and print last one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--experiments", default=",".join(EXPERIMENTS))
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    store, known = Store(options.cells), kept(RESULTS)
    answers: dict[str, Answer] = {}
    for name in options.experiments.split(","):
        asked = question(name)
        for cell in asked.cells():
            _take_over(store, cell, known)
        found, _ = answer_all(
            [name],
            asked.datasets,
            SPLITS,
            asked.setup,
            options.cells,
            jobs=options.jobs,
            quiet=False,
        )
        answers |= found
    said = record(answers, RESULTS)
    print(*said, sep="\n")
    print(json.dumps({"results": RESULTS.name, "findings": said}))


def _take_over(store: Store, cell: Cell, known: dict[str, dict]) -> None:
    """Spare a cell that the result folder has the work of computing it."""
    if identity(cell.key) in known and store.load(cell) is None:
        store.save(cell, known[identity(cell.key)])


if __name__ == "__main__":
    main()
