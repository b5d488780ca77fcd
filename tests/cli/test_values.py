"""Values of options: what is accepted, and how the rest is refused."""

import click
import pytest

from twinedge.cli.values import SHARE, Number, Several, Whole, WordOr

WIDTHS = Several(Whole(1), "128,128", distinct=False)
FORMATS = Several(click.Choice(("twin", "c")), "twin,c")


@pytest.mark.parametrize(
    ("kind", "word", "value"),
    [
        (Whole(1), "12", 12),
        (WordOr(Whole(1), "auto"), "auto", "auto"),
        (WordOr(Whole(1), "auto"), "3", 3),
        (WordOr(Whole(1), "fewest", formerly=["auto"]), "auto", "auto"),
        (WordOr(Number(0), "auto"), "1e-3", 0.001),
        (Number(0), "0", 0),
        (SHARE, "0.95", 0.95),
        (WIDTHS, "64,32", (64, 32)),
        (WIDTHS, "56,56", (56, 56)),
        (WIDTHS, "8", (8,)),
        (FORMATS, "c,twin,c", ("c", "twin")),
        (WordOr(FORMATS, "none"), "none", "none"),
        (WordOr(click.Path(), "auto"), "rows.txt", "rows.txt"),
    ],
)
def test_words_become_values(kind, word, value):
    assert kind.convert(word, None, None) == value


@pytest.mark.parametrize(
    ("kind", "word", "says"),
    [
        *((Whole(1), word, "not a valid whole number") for word in ("1.0", "", "auto", "1e3")),
        *((Whole(1), word, "not in the range x>=1") for word in ("0", "-1")),
        *((Number(0), word, "not a valid number") for word in ("", "auto", "1,5")),
        *((Number(0), word, "not a finite number") for word in ("nan", "inf", "1e999")),
        (Number(0), "-0.1", "not in the range x>=0"),
        *((SHARE, word, "not a valid number between 0 and 1") for word in ("", "0,9", "90%")),
        *((SHARE, word, "not in the range 0<x<1") for word in ("0", "1", "1.0", "90", "-0.5")),
        (SHARE, "nan", "not a finite number"),
        *((WIDTHS, word, "a list like 128,128") for word in ("", "0", "8,", ",8", "8,-1", "8;8")),
        *((FORMATS, word, "not one of 'twin', 'c'") for word in ("elf", "twin,", "TWIN")),
        (WordOr(Whole(1), "all", "auto"), "many", "whole number, nor 'all' or 'auto'"),
        (WordOr(Whole(1), "auto"), "0", "not in the range x>=1, nor 'auto'"),
        (WordOr(Whole(1), "fewest", formerly=["auto"]), "some", "number, nor 'fewest'"),
    ],
)
def test_wrong_words_are_answered_with_what_is_right(kind, word, says):
    with pytest.raises(click.BadParameter) as caught:
        kind.convert(word, None, None)
    assert says in caught.value.message
    found = word.split(",")[-1] if isinstance(kind, Several) else word
    assert found in caught.value.message
