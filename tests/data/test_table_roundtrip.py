import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from twinedge.data import read_table
from twinedge.errors import InputError

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SHAPES = st.tuples(st.integers(2, 12), st.integers(2, 5))
QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def written(draw):
    """A random matrix and one of the ways to write it."""
    values = draw(hnp.arrays(np.float64, SHAPES, elements=NUMBERS))
    delimiter = draw(st.sampled_from([",", ";", "\t", "|", "  "]))
    comma = delimiter != "," and draw(st.booleans())
    quote = delimiter != "  " and draw(st.booleans())
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    header = draw(st.booleans())

    def cell(value):
        text = repr(value).replace(".", ",") if comma else repr(value)
        return f'"{text}"' if quote else text

    lines = [delimiter.join(map(cell, row)) for row in values.tolist()]
    if header:
        lines.insert(0, delimiter.join(f"c{k}" for k in range(values.shape[1])))
    text = end.join(lines) + (end if draw(st.booleans()) else "")
    return values, ("\ufeff" if draw(st.booleans()) else "") + text


@QUICK
@given(written())
def test_what_is_written_is_read_to_the_bit(tmp_path, sample):
    values, text = sample
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    table = read_table(path, target=None)
    assert table.X.tobytes() == values.tobytes()


@QUICK
@given(written(), st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path, sample, data):
    """Whatever is done to the bytes, the answer is a table or an InputError."""
    _, text = sample
    raw = bytearray(text.encode())
    assume(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + 1] = data.draw(st.binary(max_size=3))
        assume(raw)
    path = tmp_path / "t.csv"
    path.write_bytes(raw)
    try:
        table = read_table(path, target=-1, impute="median")
    except InputError as error:
        message = str(error)
    else:
        message = "read"
        prepared = table.prepare(np.arange(len(table.y)))  # a damaged number becomes text
        assert np.isfinite(prepared.X).all()
        assert np.isfinite(table.y).all()
    assert len(message.splitlines()) == 1
