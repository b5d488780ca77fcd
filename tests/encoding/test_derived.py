"""The grammar of derived inputs: what can be written, and the error for anything else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.encoding.derived import (
    STATISTICS,
    UNITS,
    Clock,
    Derived,
    Term,
    check_columns_of,
    parse_terms,
)
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.times import Notation
from twinedge.errors import InputError

CLOCK = Clock("t", Notation(None, "seconds"), "device", 1000.0, 90_000, 60.0)


@st.composite
def terms(draw: st.DrawFn) -> Term:
    statistic = draw(st.sampled_from(sorted(STATISTICS)))
    column = draw(st.text(min_size=1))
    unit = draw(st.sampled_from(["", *UNITS]))
    least, most = STATISTICS[statistic]
    return Term(statistic, column, float(draw(st.integers(least, most))), unit)


@given(st.lists(terms(), min_size=1, max_size=5, unique_by=str))
def test_what_is_written_is_read_again(written: list[Term]) -> None:
    read = parse_terms(", ".join(map(str, written)))
    assert [one._replace(position=1) for one in read] == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("men(temp, 12)", "at character 1, unknown statistic 'men' (did you mean 'mean'?)"),
        ("temp@1, men(temp, 12)", "at character 9, unknown statistic 'men'"),
        ("temp", "at character 1, 'temp' is no derived input; write inputs like temp@6, mean("),
        ("mean(temp)", "at character 10, mean lacks a number of samples; write mean(temp, 12)"),
        ("mean(temp, 12", "at character 14, the bracket of mean is not closed"),
        ("mean(temp, x)", "at character 12, 'x' is no number of samples"),
        ("mean(temp, 1.5)", "at character 12, 1.5 is no whole number of samples"),
        ("mean(temp, 3 moons)", "at character 12, unknown unit 'moons'; use ms, s, min, h, d"),
        ("mean(temp, 2000)", "at character 1, mean(temp, 2000): mean takes 2 to 1,024"),
        ("a@1, temp@0", "at character 6, temp@0: a lag takes 1 to 65,534"),
        ("a@1,, b@1", "at character 5, an input is missing"),
        ("a@1,", "at character 5, an input is missing"),
        ("", "at character 1, an input is missing"),
        ("a@1 b@1", "at character 3, unknown unit 'b'"),
        ("mean(a, 2) b@1", "at character 11, a comma is needed here"),
        ("a@1, a @ 1", "at character 6, a@1 is there already, at character 1"),
        ('"a@1', "at character 1, a quote is not closed"),
        ("lag(a, 1)", "at character 1, unknown statistic 'lag'"),
    ],
)
def test_says_where_and_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_terms(text)
    assert message in str(refused.value)


def test_names_columns_that_cannot_be_derived_from() -> None:
    with pytest.raises(InputError, match="column 'power' is the target"):
        check_columns_of(parse_terms("power@1"), ["temp"], {"power": "the target"})
    with pytest.raises(InputError, match=r"character 9, no column 'tmp' \(did you mean 'temp'\?\)"):
        check_columns_of(parse_terms("temp@1, tmp@1"), ["temp"], {})


def test_survives_json() -> None:
    derived = Derived("mean", "temp", 12, 20.5, 14, CLOCK)
    encoding = Encoding([("temp", None), ("mean(temp, 12)", derived)])
    read = Encoding.of(json.loads(json.dumps(encoding.described)), encoding.inputs)
    assert read.kinds == encoding.kinds
    assert read.inputs == ("temp", "mean(temp, 12)")
    assert read.measured.names == ("temp",)


@pytest.mark.parametrize(
    "damage",
    [
        {"samples": 0},
        {"samples": "3"},
        {"statistic": "median"},
        {"clock": None},
        {"clock": {"notation": {"day_first": None, "unit": "fortnights"}}},
        {"bits": 99},
    ],
)
def test_damage_leaves_plain_columns(damage: dict[str, object]) -> None:
    derived = Derived("mean", "temp", 12, 20.5, 14, CLOCK)
    encoding = Encoding([("temp", None), ("mean(temp, 12)", derived)])
    described = json.loads(json.dumps(encoding.described))
    described[1]["derived"] |= damage
    assert Encoding.of(described, encoding.inputs).is_plain
