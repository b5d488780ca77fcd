"""The figures of docs/how-it-works.md, from models that are trained here: `make figures`.

A small twin learns a curve with noise that grows from left to right. What is drawn is what it, and
the pack exported from it, predict.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import twinedge
from twinedge.anchors import select
from twinedge.figure_style import styled

DOCS = Path(__file__).resolve().parents[1]
BLUE, ORANGE, GREEN, GREY = "#0b5394", "#b45f06", "#38761d", "#777777"
LOOK = {"font.size": 9, "svg.hashsalt": "twinedge", "legend.frameon": False}


def truth(x):
    """Return what is measured, without noise."""
    return np.sin(2.5 * x) + 0.4 * x


def sample(count, seed, shift=0.0):
    """Measure at random places; the noise grows with x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, count)
    return x[:, None], truth(x) + shift + rng.normal(0, 0.04 + 0.11 * (x + 2) / 2)


def fitted():
    """Train a twin on 160 points, with 80 more to validate and calibrate."""
    X, y = sample(160, 1)
    model = twinedge.TwinRegressor(
        hidden=(24, 24),
        activation="silu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=3000,
        random_state=0,
    )
    return model.fit(X, y, validation=sample(80, 2))


def main():
    """Draw all figures into docs/."""
    model, grid = fitted(), np.linspace(-2, 2, 161)[:, None]
    with tempfile.TemporaryDirectory() as folder:
        twinedge.export(model, folder, anchors=16, formats=["twin"])
        pack = Path(folder, "model.twin")
        with styled(LOOK) as figure:
            for name, draw in (
                ("twins", lambda axes: twins(axes, model, grid)),
                ("anchors", lambda axes: anchors(axes, model)),
                ("intervals", lambda axes: intervals(axes, twinedge.load(pack), grid)),
                ("site", lambda axes: site(axes, pack, grid)),
            ):
                page = figure(figsize=(7, 3.4), layout="constrained", facecolor="white")
                draw(page.subplots())
                path = DOCS / f"how-{name}.svg"
                page.savefig(path, metadata={"Date": None, "Creator": None})
                text = path.read_text("utf-8")
                path.write_text("\n".join(map(str.rstrip, text.splitlines())) + "\n", "utf-8")
                print(path.relative_to(DOCS.parent), file=sys.stderr)


def twins(axes, model, grid):
    """Draw what each of six anchors says, and their mean."""
    X, y = model.anchor_X_, model.anchor_y_
    order = np.argsort(X[:, 0])
    rows = order[np.linspace(6, len(X) - 7, 6).astype(int)]
    found = model.estimates(grid, anchors=rows)
    axes.plot(*sample(160, 1), ".", color=GREY, ms=3, alpha=0.5, label="training points")
    for number, one in enumerate(found.T):
        label = "F(x, a) + y(a), one anchor each" if not number else None
        axes.plot(grid, one, color=BLUE, lw=0.8, alpha=0.7, label=label)
    axes.plot(grid, found.mean(1), color=ORANGE, lw=2.2, label="their mean: the prediction")
    axes.plot(X[rows], y[rows], "o", color=BLUE, ms=6, label="anchors")
    axes.set(xlabel="x", ylabel="y")
    axes.legend(loc="upper left", fontsize=8)


def anchors(axes, model):
    """How far off predictions are with few anchors, chosen in two ways."""
    new, held = sample(2000, 3), sample(80, 2)
    points = model.anchor_X_, model.anchor_y_
    counts = [1, 2, 4, 8, 16, 32, 64, 128]
    for method, colour in (("random", GREY), ("match", BLUE)):
        errors = []
        for count in counts:
            seeds = range(8 if method == "random" else 1)
            chosen = [
                select(*points, count, method, model=model, validation=held, seed=seed)
                for seed in seeds
            ]
            errors.append(np.mean([rmse(model.predict(new[0], anchors=c), new[1]) for c in chosen]))
        axes.plot(counts, errors, "o-", color=colour, label=f"{method} anchors")
    axes.axhline(
        rmse(model.predict(new[0], anchors="all"), new[1]),
        color=ORANGE,
        ls="--",
        label="all 160 points as anchors",
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, map(str, counts))
    axes.set(xlabel="anchors on the device", ylabel="RMSE on new points", ylim=(0, None))
    axes.legend(fontsize=8)


def rmse(predicted, y):
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def intervals(axes, device, grid):
    """Draw the 90 % intervals of a pack, and how many of 300 new points they hold."""
    X, y = sample(300, 4)
    low, high = device.predict_interval(X, coverage=0.9).T
    held = (low <= y) & (y <= high)
    band = device.predict_interval(grid, coverage=0.9).T
    axes.fill_between(grid[:, 0], *band, color=BLUE, alpha=0.2, lw=0, label="90 % interval")
    axes.plot(grid, device.predict(grid), color=BLUE, lw=1.5, label="prediction")
    axes.plot(X[held], y[held], ".", color=GREEN, ms=4, label=f"{held.sum()} new points inside")
    axes.plot(X[~held], y[~held], "x", color=ORANGE, ms=5, label=f"{(~held).sum()} outside")
    axes.set(xlabel="x", ylabel="y")
    axes.legend(loc="upper left", fontsize=8)


def site(axes, pack, grid):
    """Draw the same pack where all is 0.6 higher, as shipped and after 3 and 12 measured points."""
    X, y = sample(12, 5, shift=0.6)
    axes.plot(grid, truth(grid) + 0.6, color=GREY, lw=3, alpha=0.5, label="the truth on site")
    for count, colour in ((0, BLUE), (3, GREEN), (12, ORANGE)):
        device = twinedge.load(pack)
        if count:
            device.learn(X[:count], y[:count])
        error = rmse(device.predict(grid), truth(grid[:, 0]) + 0.6)
        words = f"after {count} points" if count else "as shipped"
        axes.plot(grid, device.predict(grid), color=colour, label=f"{words}: RMSE {error:.2f}")
    axes.plot(X, y, "o", color=GREY, ms=4, label="points measured on site")
    axes.set(xlabel="x", ylabel="y")
    axes.legend(loc="upper left", fontsize=8)


if __name__ == "__main__":
    main()
