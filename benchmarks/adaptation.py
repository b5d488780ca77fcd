"""What are a few points measured on site worth, for groups that the training never saw?

Three tables fall into groups: mixes of concrete (CS), shapes of buildings (EE), hulls of yachts
(YH). A division holds out whole groups to test, and others to validate; four 64-64 twins are
trained on the rest with `--effort quick` and exported with 32 anchors. Then k points of each test
group are measured (the youngest, for concrete), and the error is taken on its other points:

    shipped     the pack as it was exported
    adapted     the pack and the new points, by the rule of the device
    replaced    the new points as the only anchors
    networks    four 64-64 ordinary networks, plus the mean residual at the new points
    retrained   the twins trained again with the new points of all test groups: the ceiling

All of ours except `retrained` use the integers of the pack. A division's error is taken over all
its test groups; the mean over divisions is shown. Trained runs are kept in a folder, so the run can
be stopped and resumed at any time; runs from other machines can be added.

    python benchmarks/adaptation.py
    python benchmarks/adaptation.py --divisions 2 --datasets yh --retrain 0
"""

import argparse
import json
from pathlib import Path

import numpy as np
from machine import describe

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor, data, scoring
from twinedge.anchors import choose
from twinedge.calibration import interval_score
from twinedge.learn.run import Run, load_run
from twinedge.learn.uncertainty import learn_difficulty, trust_between
from twinedge.pack import write_pack
from twinedge.runtime.adapting import calibrate_pack, own_pack
from twinedge.runtime.native import Native, NativeDevice
from twinedge_export.quantise import quantise

RESULTS = Path(__file__).parent / "results" / "adaptation.json"
RUNS = Path("runs/adaptation")
LEADING = {"cs": 7, "ee": 5, "yh": 5}  # leading columns that distinguish groups
KS = (1, 2, 3, 5, 8)
ANCHORS, COVERAGE = 32, 0.9
WAYS = ("shipped", "adapted", "replaced", "networks", "retrained")


def groups_of(name):
    """Load a table, and number the group of each row."""
    table = data.load(name)
    leading = table.X[:, : LEADING[name]]
    return table, np.unique(leading, axis=0, return_inverse=True)[1].ravel()


def measured(name, table, rows, group):
    """Put the rows of a group in the order in which they are measured."""
    if name == "cs":
        return rows[np.argsort(table.X[rows, 7], kind="stable")]
    return np.random.RandomState(group).permutation(rows)


def trained(folder, name, division):
    """Load the run of a division, or train it."""
    place = folder / "twins" / name / str(division)
    if not place.exists():
        table, group = groups_of(name)
        rows = data.split_groups(group, division)
        model = TwinRegressor(twins=4, hidden=(64, 64), effort="quick", random_state=0)
        validation = table.X[rows.val], table.y[rows.val]
        model.fit(
            table.X[rows.train],
            table.y[rows.train],
            (*validation, group[rows.val]),
            groups=group[rows.train],
        )
        test = table.X[rows.test], table.y[rows.test]
        names = table.feature_names, table.target_name
        scores = {"rmse_val": model.validation_rmse_, "rmse_test": model.rmse(*test)}
        where = {"dataset": name, "split": division}
        place.parent.mkdir(parents=True, exist_ok=True)
        Run(model, *names, validation, test, source=where, scores=scores).save(place)
    return load_run(place)


def networks(folder, name, division):
    """Predict all rows of the table with four ordinary networks."""
    place = folder / "networks" / name / f"{division}.npy"
    if not place.exists():
        table, group = groups_of(name)
        rows = data.split_groups(group, division)
        four = EnsembleRegressor(AnnRegressor(hidden=(64, 64), effort="quick"), n=4, random_state=0)
        validation = table.X[rows.val], table.y[rows.val], group[rows.val]
        four.fit(
            table.X[rows.train],
            table.y[rows.train],
            validation=validation,
            groups=group[rows.train],
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, four.predict(table.X))
    return np.load(place)


def retrained(folder, name, division, k):
    """Predict all rows with twins trained with k points of each test group, too."""
    place = folder / "retrained" / name / f"{division}-{k}.npy"
    if not place.exists():
        table, group = groups_of(name)
        rows = data.split_groups(group, division)
        first = trained(folder, name, division).model
        new = [
            measured(name, table, rows.test[group[rows.test] == one], one)[:k]
            for one in np.unique(group[rows.test])
        ]
        train = np.concatenate([rows.train, *new])
        model = TwinRegressor(
            twins=4,
            hidden=(64, 64),
            activation=first.activation_,
            learning_rate=first.learning_rate_,
            weight_decay=first.weight_decay_,
            steps=first.steps_,
            intervals=False,
            random_state=0,
        )
        validation = table.X[rows.val], table.y[rows.val], group[rows.val]
        model.fit(table.X[train], table.y[train], validation=validation, groups=group[train])
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, model.predict(table.X))
    return np.load(place)


def device_of(run):
    """Make the pack of a run, like an export."""
    model, twins = run.model, len(run.model.weights_)
    options = {"model": model, "validation": run.validation, "twins": twins, "seed": 0}
    rows = choose(model.anchor_X_, model.anchor_y_, ANCHORS, "auto", **options).rows
    lists = [rows[twin::twins] for twin in range(twins)]
    model.difficulty_ = learn_difficulty(model, 0, lists)
    model.trust_ = trust_between(model, 0)
    pack = calibrate_pack(quantise(model, lists, intervals=True), *run.validation, chosen=True)
    return NativeDevice(pack, Path("model.twin"), Native(write_pack(pack), pack))


def measure(folder, name, division, retrain):
    """Try each way in one division, for each k."""
    table, group = groups_of(name)
    rows = data.split_groups(group, division)
    device = device_of(trained(folder, name, division))
    ordinary = networks(folder, name, division)
    again = {k: retrained(folder, name, division, k) for k in KS} if retrain else {}
    cells = {"trust": device.pack.intervals.trust / 65536}
    for k in KS:
        found = {way: [] for way in (*WAYS, "y", "ends", "shipped_ends")}
        for one in np.unique(group[rows.test]):
            order = measured(name, table, rows.test[group[rows.test] == one], one)
            new, rest = order[:k], order[k:]
            if not len(rest):
                continue
            found["y"].append(table.y[rest])
            found["shipped"].append(device.predict(table.X[rest]))
            found["shipped_ends"].append(device.predict_interval(table.X[rest], COVERAGE))
            device.learn(table.X[new], table.y[new])
            found["adapted"].append(device.predict(table.X[rest]))
            found["ends"].append(device.predict_interval(table.X[rest], COVERAGE))
            own = own_pack(device.pack, device.points)
            alone = Native(write_pack(own), own)
            found["replaced"].append(alone.predict_with_spread(table.X[rest])[0])
            device.forget()
            shift = np.mean(table.y[new] - ordinary[new])
            found["networks"].append(ordinary[rest] + shift)
            if again:
                found["retrained"].append(again[k][rest])
        if found["y"]:
            cells[str(k)] = judged({way: np.concatenate(v) for way, v in found.items() if v})
    return cells


def judged(found):
    """Return errors of each way, and scores of intervals."""
    y = found["y"]
    cell = {way: scoring.rmse(found[way], y) for way in WAYS if way in found}
    for way, ends in (("shipped", "shipped_ends"), ("adapted", "ends")):
        low, high = found[ends].T
        cell[f"{way}_coverage"] = float(np.mean((low <= y) & (y <= high)))
        cell[f"{way}_score"] = interval_score(low, high, y, COVERAGE)
    return {**cell, "points": len(y)}


def summarise(cells):
    """Average over the divisions, table by table and k by k."""
    lines = []
    for name in LEADING:
        mine = [cell for key, cell in cells.items() if key.startswith(f"{name}/")]
        for k in map(str, KS):
            there = [cell[k] for cell in mine if k in cell]
            if not there:
                continue
            line = {"dataset": name, "k": int(k), "divisions": len(there)}
            keys = [key for key in there[0] if key != "points" and key != "retrained"]
            line |= {key: float(np.mean([cell[key] for cell in there])) for key in keys}
            both = [cell for cell in there if "retrained" in cell]
            if both:  # fewer divisions, so next to the others on the same ones
                line["retrained"] = float(np.mean([cell["retrained"] for cell in both]))
                line["adapted_there"] = float(np.mean([cell["adapted"] for cell in both]))
                line["retrained_divisions"] = len(both)
            lines.append(line)
    return lines


def main():
    """Fill in the missing cells, print the table, and last one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--divisions", type=int, default=20, help="seeds 0 to N - 1 (default 20)")
    parser.add_argument("--datasets", default=",".join(LEADING))
    parser.add_argument("--retrain", type=int, default=5, help="divisions to train again in")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where trained runs are kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    cells = {}
    for division in range(options.divisions):
        for name in options.datasets.split(","):
            cell = measure(options.runs, name, division, division < options.retrain)
            cells[f"{name}/{division}"] = cell
            print(f"{name} {division}: trust {cell['trust']:.2f}", flush=True)
    lines = summarise(cells)
    record = {
        "machine": describe("tensorflow", "scikit-learn", "numpy"),
        "summary": lines,
        "cells": cells,
    }
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(record, indent=1) + "\n")
    print("set  k  shipped  adapted  replaced  networks  retrained  covered before / after")
    for line in lines:
        again = f"{line['retrained']:9.2f}" if "retrained" in line else f"{'-':>9}"
        print(
            f"{line['dataset']:3}  {line['k']}  {line['shipped']:7.2f}  {line['adapted']:7.2f}  "
            f"{line['replaced']:8.2f}  {line['networks']:8.2f}  {again}  "
            f"{line['shipped_coverage']:.3f} / {line['adapted_coverage']:.3f}"
        )
    print(json.dumps({"summary": lines}))


if __name__ == "__main__":
    main()
