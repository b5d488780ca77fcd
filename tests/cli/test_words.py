import click
import pytest

from twinedge.cli.options import number, one_of, share, whole, widths


def test_words_become_values():
    assert whole(1)("12") == 12
    assert whole(1, "auto")("auto") == "auto"
    assert number("auto")("1e-3") == 0.001
    assert number()("0") == 0
    assert share("0.95") == 0.95
    assert one_of("a", "b")("b") == "b"
    assert widths("64,32") == (64, 32)
    assert widths("8") == (8,)


@pytest.mark.parametrize(
    ("parser", "word"),
    [
        *((whole(1), word) for word in ("0", "-1", "1.0", "", "auto", "1e3")),
        *((number(), word) for word in ("-0.1", "nan", "inf", "", "auto", "1,5")),
        *(
            (share, word)
            for word in ("0", "1", "1.0", "90", "-0.5", "nan", "inf", "", "0,9", "90%")
        ),
        *((one_of("a", "b"), word) for word in ("c", "", "A")),
        *((widths, word) for word in ("", "0", "8,", ",8", "8,-1", "8;8", "8,x")),
    ],
)
def test_wrong_words_are_quoted(parser, word):
    with pytest.raises(click.BadParameter, match="expected"):
        parser(word)
