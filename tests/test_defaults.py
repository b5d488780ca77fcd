"""Each default is written once, and means the same to Python and to the command line."""

import ast
from pathlib import Path

from twinedge import defaults
from twinedge.budget import Model
from twinedge.training.parameters import shape_of

ROOT = Path(__file__).parents[1]
FILES = [path for folder in ("twinedge", "export") for path in (ROOT / folder).rglob("*.py")]
# Defaults of these parameters are in twinedge/defaults.py.
ELSEWHERE = {"anchors", "neighbors", "weights", "tolerance", "coverage", "ann_steps"}
# These leave the choice to somebody else; protocols write dots.
LEFT_OPEN = (None, "auto", "all", ...)


def written_out(path):
    """Yield default values of these parameters that a file writes out, in Python or as options."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            places = [*given.posonlyargs, *given.args]
            pairs = [*zip(reversed(places), reversed(given.defaults), strict=False)]
            pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
            yield from ((one.arg, value) for one, value in pairs)
        elif isinstance(node, ast.Call):
            names = [
                one.value.removeprefix("--").replace("-", "_")
                for one in node.args
                if isinstance(one, ast.Constant)
                and isinstance(one.value, str)
                and one.value.startswith("--")
            ]
            for keyword in node.keywords:
                if keyword.arg == "default" and names:
                    yield names[0], keyword.value


def test_no_default_is_written_twice():
    found = [
        (path.name, name, value.value)
        for path in FILES
        for name, value in written_out(path)
        if name in ELSEWHERE and isinstance(value, ast.Constant)
    ]
    # The budget's models predict with all anchors (0) unless neighbors are named.
    assert [one for one in found if one[2] not in (*LEFT_OPEN, 0)] == []


def test_a_budget_describes_what_training_makes():
    assert shape_of("auto", "auto") == (4, (56, 56))
    for twins, hidden in (("auto", "auto"), (1, "auto"), (3, "auto"), ("auto", (24, 8)), (2, 16)):
        made, widths = shape_of(twins, hidden)
        model = Model.of(
            8,
            None if hidden == "auto" else hidden,
            twins=None if twins == "auto" else twins,
        )
        assert (model.twins, model.hidden) == (made, widths)
        assert model.anchors == defaults.ANCHORS
