import io
import sys

import pytest

from twinedge.cli.output import print_csv, print_json, print_record, print_table, print_text
from twinedge.errors import InputError


def test_numbers_stand_to_the_right(capsys):
    print_table(("name", "size", "what"), [("a", "1.5", "x y"), ("long", "-1e+05", "z")])
    assert capsys.readouterr().out.splitlines() == [
        "name    size  what",
        "a        1.5  x y",
        "long  -1e+05  z",
    ]


def test_nothing_is_cut(capsys):
    print_table(("path",), [("x" * 500,)])
    assert capsys.readouterr().out == f"path\n{'x' * 500}\n"


def test_a_record_is_for_a_person(capsys):
    print_record({"rmse_val": 0.123456789, "rows": 3, "stopped": False, "r2": None})
    assert capsys.readouterr().out.splitlines() == [
        "rmse val  0.12346",
        "rows      3",
        "stopped   no",
        "r2        -",
    ]


def test_json_knows_no_nan(capsys):
    print_json({"a": float("nan"), "b": [1.0, float("inf")], "c": {"d": -float("inf")}})
    assert capsys.readouterr().out == '{"a": null, "b": [1.0, null], "c": {"d": null}}\n'


def test_csv_quotes_what_needs_it(capsys):
    print_csv(["a, b", "c"], [["1", "2"]])
    assert capsys.readouterr().out == '"a, b",c\n1,2\n'


def test_a_letter_that_the_terminal_lacks(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    with pytest.raises(InputError, match=r"ascii cannot show '\\xb5'.*PYTHONIOENCODING"):
        print_text("5 \u00b5m")
