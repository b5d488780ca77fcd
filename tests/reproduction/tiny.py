"""A table of k-NN cells, which take milliseconds: `python tiny.py FOLDER JOBS|ADDRESS`.

The tests kill it. Real cells in the real engine; only the question is made up.
"""

import sys
from pathlib import Path

from benchmarks.reproduction.answers import answer_all
from benchmarks.reproduction.cells import Setup
from benchmarks.reproduction.experiment import Comparison, Experiment, Measure, Sweep, at
from benchmarks.reproduction.experiments import EXPERIMENTS

DATASETS, SPLITS = ["tf", "rcl", "wsb"], 20  # synthetic sets, not read from files


def build(setup):
    one, four = (Measure(f"{k} nearest", "nearest", at("nearest", "neighbours", k)) for k in (1, 4))
    curves = {"k-NN": ((1, 4), [one, four])}
    return Experiment("tiny", "k-NN", [Comparison(one, four)], [Sweep("k-NN", "k", curves)])


def answer(folder, **where):
    EXPERIMENTS["tiny"] = build
    return answer_all(["tiny"], DATASETS, SPLITS, Setup(), folder, quiet=False, **where)


if __name__ == "__main__":
    place, where = Path(sys.argv[1]), sys.argv[2]
    answer(place, **({"jobs": int(where)} if where.isdigit() else {"cluster": where}))
