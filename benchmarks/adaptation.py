"""What a few points measured on site are worth: groups that the training never saw.

Three tables fall into groups: mixes of concrete (CS), shapes of buildings (EE), hulls of yachts
(YH). A division puts whole groups aside to test, and others to validate; four 64-64 twins are
trained on the rest with `--effort quick` and exported with 32 anchors. Of each test group k points
are then measured, of concrete the youngest, and the error is taken on its other points:

    shipped     the pack as it was exported
    adapted     the pack and the new points, by the rule of the device
    replaced    the new points as the only anchors
    networks    four 64-64 ordinary networks, plus the mean residual at the new points
    retrained   the twins trained again with the new points of all test groups: the ceiling

All of ours are from the integers of the pack. Trainings are kept in a folder, so the run can be
stopped at any time and started again; those of another machine may lie there, too.

    python benchmarks/adaptation.py --divisions 20
    python benchmarks/adaptation.py --divisions 2 --datasets yh --k 1,3
"""

from pathlib import Path

import numpy as np

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor, data
from twinedge.learn.run import Run, load_run

LEADING = {"cs": 7, "ee": 5, "yh": 5}  # columns at the front that tell groups apart
KS = (1, 2, 3, 5, 8)


def groups_of(name):
    """The table, and the number of each row's group."""
    table = data.load(name)
    leading = table.X[:, : LEADING[name]]
    return table, np.unique(leading, axis=0, return_inverse=True)[1].ravel()


def measured(name, table, rows, group):
    """Rows of a group in the order in which they are measured."""
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
    """What four ordinary networks say of all rows of the table."""
    place = folder / "networks" / name / f"{division}.npy"
    if not place.exists():
        table, group = groups_of(name)
        rows = data.split_groups(group, division)
        four = EnsembleRegressor(AnnRegressor(hidden=(64, 64), effort="quick"), n=4, random_state=0)
        validation = table.X[rows.val], table.y[rows.val], group[rows.val]
        four.fit(table.X[rows.train], table.y[rows.train], validation, groups=group[rows.train])
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, four.predict(table.X))
    return np.load(place)


def retrained(folder, name, division, k):
    """What twins say of all rows that were trained with k points of each test group, too."""
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
        model.fit(table.X[train], table.y[train], validation, groups=group[train])
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, model.predict(table.X))
    return np.load(place)
