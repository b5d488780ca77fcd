"""Messages of the library speak of parameters; the command line spells them as options."""

import ast
import itertools
import pickle
import re
from pathlib import Path

import pytest

from twinedge.cli.options import as_option
from twinedge.errors import Advice, InputError, Parameter, ParameterError, dropping

ROOT = Path(__file__).parents[1]
LIBRARY = [
    path
    for folder in ("twinedge", "export")
    for path in (ROOT / folder).rglob("*.py")
    if path.parent != ROOT / "twinedge" / "cli"
]
OPTION = re.compile(r"(?<![\w-])--[a-z]")


def raised_texts(path):
    """Pieces of text in exceptions of a file, with their lines."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Raise):
            for one in ast.walk(node):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.lineno, one.value


def test_no_error_of_the_library_names_an_option():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in LIBRARY
        for line, text in raised_texts(path)
        if OPTION.search(text) and "pip install" not in text
    ]
    assert found == []


def spelled_out(path):
    """Lines of a file that raise an error in whose text a parameter is spelled as Python."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Raise):
            continue
        for text in (one for one in ast.walk(node) if isinstance(one, ast.JoinedStr)):
            for before, value in itertools.pairwise(text.values):
                spelled = isinstance(before, ast.Constant) and before.value.endswith("=")
                if spelled and isinstance(value, ast.FormattedValue):
                    yield node.lineno


def test_no_error_spells_a_parameter_as_python_in_its_text():
    """It is a Parameter, which the command line spells as an option."""
    found = [f"{path.relative_to(ROOT)}:{line}" for path in LIBRARY for line in spelled_out(path)]
    assert found == []


def test_an_error_names_what_it_advises():
    error = ParameterError("t.csv: column 'b' never changes: ", dropping(["b", "air temp"]), ".")
    assert isinstance(error, InputError)
    assert str(error) == "t.csv: column 'b' never changes: drop=['b', 'air temp']."
    assert error.parameters == (Parameter("drop", ["b", "air temp"]),)
    spelled = error.advice.spelled(as_option)
    assert spelled == "t.csv: column 'b' never changes: --drop b --drop 'air temp'."


def test_parts_of_an_error_can_be_used_again():
    first = ParameterError("changed; say ", Parameter("overwrite", True))
    for error in (first, InputError("no room")):
        again = ParameterError(*error.parts, "; then ", Parameter("resume", True))
        assert str(again) == f"{error}; then resume=True"
    assert again.parameters == (Parameter("resume", True),)
    both = ParameterError(*first.parts, "; then ", Parameter("resume", True))
    assert both.advice.spelled(as_option) == "changed; say --overwrite; then --resume"


@pytest.mark.parametrize(
    ("parameter", "python", "option"),
    [
        (Parameter("learning_rate"), "learning_rate", "--learning-rate"),
        (Parameter("drop_missing_target", True), "drop_missing_target=True", None),
        (Parameter("impute", "median"), "impute='median'", "--impute median"),
        (Parameter("tolerance", 0.02), "tolerance=0.02", "--tolerance 0.02"),
        (Parameter("drop", ["a;b"]), "drop=['a;b']", "--drop 'a;b'"),
        (Parameter("drop", ["two\nlines"]), "drop=['two\\nlines']", "--drop 'two\\nlines'"),
    ],
)
def test_python_and_shell_spell_a_parameter(parameter, python, option):
    assert str(parameter) == python
    assert as_option(parameter) == (option or "--drop-missing-target")


def test_advice_is_text_and_survives_a_process():
    advice = Advice("leave it out with ", dropping(["id"]))
    assert advice == "leave it out with drop=['id']"
    assert pickle.loads(pickle.dumps(advice)).spelled(as_option) == "leave it out with --drop id"
