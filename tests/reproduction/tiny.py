"""A table of k-NN cells, which take milliseconds: `python tiny.py FOLDER JOBS|ADDRESS`.

The tests kill it. Real cells in the real engine; only the experiment is made up.
"""

import sys
from pathlib import Path

from benchmarks.reproduction.__main__ import reproduce
from benchmarks.reproduction.cells import Setup
from benchmarks.reproduction.measures import Comparison, Experiment, Measure, Sweep, at

DATASETS, SPLITS = ["tf", "rcl", "wsb"], 20  # synthetic sets, not read from files

if __name__ == "__main__":
    one, four = (Measure(f"{k} nearest", "nearest", at("nearest", "neighbours", k)) for k in (1, 4))
    sweep = Sweep("k-NN", "k", {"k-NN": ((1, 4), [one, four])})
    experiment = Experiment("tiny", "k-NN", [Comparison(one, four)], [sweep])
    folder, where = Path(sys.argv[1]), sys.argv[2]
    place = {"jobs": int(where)} if where.isdigit() else {"cluster": where}
    reproduce([experiment], DATASETS, SPLITS, Setup(), folder, quiet=False, **place)
