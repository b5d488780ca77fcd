"""Python code in the documentation runs as printed, block by block; commands are accepted."""

import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

import twinedge
from twinedge.cli import app
from twinedge.training import selection
from twinedge.training.parameters import shape_of

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): blocks
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if (blocks := re.findall(r"(?ms)^```python\n(.*?)^```", path.read_text("utf-8")))
}

STONES = "carat,cut,price\n" + "".join(
    f"{0.2 + n / 50},{('Ideal', 'Good', 'Fair')[n % 3]},{300 + 40 * n + 90 * (n % 3)}\n"
    for n in range(60)
)


def here(code):
    """Return a block with path and query replaced by existing ones, and an ensemble by two."""
    code = code.replace("/opt/twinedge/", "out/").replace("[[0.5, 0.5]]", "x")
    return code.replace(
        "EnsembleRegressor(AnnRegressor(), 32).fit(X, y)",
        "EnsembleRegressor(AnnRegressor(), 2).fit(X, y)",
    )


@pytest.fixture
def surroundings(tiny_twin, curve, tmp_path, monkeypatch):
    """Names and files that a reader would have; training is brief, and networks are small."""
    brief = selection.Plan(folds=5, final=40, teachers=False)
    for effort in selection.PLANS:
        monkeypatch.setitem(selection.PLANS, effort, brief)
    monkeypatch.setattr(
        "twinedge.estimators.twin.shape_of",
        lambda *given: (2, (12, 12)) if given == ("auto", "auto") else shape_of(*given),
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stones.csv").write_text(STONES)
    X, y = curve
    rows = [f"{n},{','.join(map(str, x))},{t}" for n, (x, t) in enumerate(zip(X, y, strict=True))]
    (tmp_path / "measurements.csv").write_text("\n".join(["id,a,b,c,strength", *rows]))
    twinedge.export(tiny_twin, "out", anchors=8, formats=["twin"], weights="int16")
    return {
        "twinedge": twinedge,
        "TwinRegressor": twinedge.TwinRegressor,
        "model": tiny_twin,
        "device": twinedge.load("out/model.twin"),
        "X": X[:80],
        "y": y[:80],
        "weights": np.linspace(1, 2, 80),
        "validation": (X[80:100], y[80:100]),
        "X_new": X[100:],
        "X_test": X[100:],
        "y_test": y[100:],
        "weights_test": np.linspace(1, 2, 20),
        "x": X[:3],
    }


LONG = ("docs/methods.md", "docs/training.md")


def test_there_are_pages_with_python():
    assert {"README.md", "docs/training.md", "docs/learning.md"} <= set(PAGES)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page in LONG else ()) for page in PAGES],
)
def test_the_python_of_a_page_runs(page, surroundings):
    for code in PAGES[page]:
        names = dict(surroundings)  # y of one block is not the training target of the next
        exec(compile(here(code), page, "exec"), names)
        for name in ("y", "mean", "scale", "std", "low", "high"):
            assert np.isfinite(names.get(name, 0)).all(), name
        surroundings |= {name: names[name] for name in ("model", "device")}


def commands(text):
    """Yield the arguments of every ``twinedge`` command of a page, in blocks and in prose."""
    fenced = r"(?ms)^```\w*\n(.*?)^```$"
    for block in re.findall(fenced, text):
        lines = re.sub(r"\\\n\s*", " ", block)
        for line in re.findall(r"(?m)^(?:\$ )?(?:.*\| )?twinedge ([^<>|\n]+)", lines):
            yield shlex.split(line, comments=True)
    for line in re.findall(r"`twinedge ([^`<>|]+)`", re.sub(fenced, "", text)):
        if line not in ("COMMAND --help", "--version"):  # which are answered at once
            yield shlex.split(line)


COMMANDS = {
    str(path.relative_to(ROOT)): found
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if (found := list(commands(path.read_text("utf-8"))))
}


@pytest.mark.parametrize("page", COMMANDS)
def test_the_command_line_accepts_the_commands_of_a_page(page, monkeypatch):
    monkeypatch.setattr(click.Command, "invoke", lambda *_: None)  # parse, do not run
    for arguments in COMMANDS[page]:
        with app.make_context("twinedge", list(arguments)) as context:
            try:
                app.invoke(context)
            except click.MissingParameter:
                assert not any(word.startswith("-") for word in arguments)  # named, not called
