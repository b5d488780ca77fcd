"""Which rows are anchors, and which twin owns which."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.anchors import check_rows, rows_from_file
from twinedge.anchors.rows import assign, merge_twins, per_twin
from twinedge.errors import InputError


@pytest.fixture
def listed(tmp_path):
    """Return a reader of a file with this text."""

    def read(text):
        path = tmp_path / "rows.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return rows_from_file(path)

    return read


@settings(deadline=None)
@given(st.permutations(range(12)), st.sampled_from([1, 2, 3, 4, 6]))
def test_good_rows_come_back_as_they_are(rows, twins):
    checked = check_rows(rows, 12, twins)
    assert checked.tolist() == list(rows)
    assert checked.dtype == np.intp


@pytest.mark.parametrize(
    ("rows", "twins", "words"),
    [
        ([], 1, "empty"),
        ([3, 1, 3], 1, "row 3 is listed more than once"),
        ([0, 10], 1, "there is no row 10; the training points are rows 0 to 9"),
        ([-1, 2], 1, "there is no row -1"),
        ([0, 1, 2], 2, "3 rows cannot be shared evenly by 2 twins"),
        ([0.0, 1.0], 1, "whole row numbers"),
        ([True, False], 1, "whole row numbers"),
        (["1"], 1, "whole row numbers"),
        ([[1, 2]], 1, "whole row numbers"),
        ([[1], [2, 3]], 1, "whole row numbers"),
        ([10**30], 1, "whole row numbers"),
        (7, 1, "whole row numbers"),
        (None, 1, "whole row numbers"),
    ],
)
def test_rows_that_cannot_be_anchors_are_refused(complaint, rows, twins, words):
    assert words in complaint(check_rows, rows, 10, twins)


def test_all_gives_every_point_to_every_twin():
    weights = np.array([1.0, 2.0, 1.0])
    rows, counting = assign("all", 3, 2, weights)
    np.testing.assert_array_equal(rows, [[0, 1, 2], [0, 1, 2]])
    assert counting is weights


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_a_twin_owns_every_so_manieth_row(twins, each, seed):
    rows = np.random.default_rng(seed).permutation(100)[: twins * each]
    shares = per_twin(rows, twins)
    for twin, share in enumerate(shares):
        np.testing.assert_array_equal(share, rows[twin::twins])
    np.testing.assert_array_equal(merge_twins(list(shares)), rows)
    np.testing.assert_array_equal(assign(rows, 100, twins)[0], shares)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 20))
def test_a_number_assigns_so_many_different_points(twins, each, more):
    count = twins * each + more
    rows, _ = assign(twins * each, count, twins)
    assert rows.shape == (twins, each)
    assert len(set(rows.ravel())) == twins * each
    assert 0 <= rows.min() <= rows.max() < count
    np.testing.assert_array_equal(assign(np.int64(twins * each), count, twins)[0], rows)


def test_of_thousands_some_are_enough_unless_only_the_nearest_predict():
    assert assign("auto", 4096, 2)[0].shape == (2, 4096)
    assert assign("auto", 4097, 2, nearest=True)[0].shape == (2, 4097)
    rows, counting = assign("auto", 4097, 2, np.linspace(1, 2, 4097))
    assert rows.shape == (2, 256)
    assert len(set(rows[0])) == 256
    assert rows.max() > 4000
    np.testing.assert_array_equal(rows[0], rows[1])
    assert counting is None


@pytest.mark.parametrize("anchors", ["some", 0, -1, 11, True, None, 1.5, 9, [1, 2, 3], [3, 10]])
def test_anchors_that_cannot_be_assigned_are_refused(complaint, anchors):
    message = complaint(assign, anchors, 10, 2)
    assert "anchors" in message
    if isinstance(anchors, list):  # an export refuses them in the same words
        assert complaint(check_rows, anchors, 10, 2) == message


def test_an_estimator_may_use_an_anchor_twice_and_a_pack_holds_it_once(complaint):
    assert assign([3, 3], 10, 2)[0].tolist() == [[3], [3]]
    assert "row 3 is listed more than once" in complaint(check_rows, [3, 3], 10, 2)


@pytest.mark.parametrize(
    "text",
    [
        "5\n0\n17\n",
        "5\r\n0\r\n17",
        "5, 0,17",
        "# chosen by hand\n5,0,  # the first two\n\n   \n17 # and one\n",
        "\ufeff5\n0\n17\n",
        "5\n0\n0017\n",
    ],
)
def test_numbers_are_read_in_their_order(listed, text):
    assert listed(text).tolist() == [5, 0, 17]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1\n2\nthree\n", "line 3: 'three' is not a row number"),
        ("1\n-2\n", "line 2: '-2' is not"),
        ("1.0\n", "line 1: '1.0' is not"),
        ("1,,2\n", "line 1: '' is not"),
        (",\n", "line 1: '' is not"),
        ("1 2\n", "line 1: '1 2' is not"),
        ("1_000\n", "'1_000' is not"),
        ("٣\n", "is not"),
        ("9" * 40 + "\n", "is not a row number"),
        ("4\n8\n\n4\n", "line 4: row 4 is already on line 1"),
        ("4,4\n", "line 1: row 4 is already on line 1"),
        ("", "no row numbers"),
        ("# nothing\n\n", "no row numbers"),
        (b"1\n\xff\xfe\n", "not text"),
        (b"\x00\x01\x02", "line 1"),
    ],
)
def test_what_is_no_list_of_rows_is_refused_with_its_line(listed, complaint, text, words):
    message = complaint(listed, text)
    assert words in message
    assert "rows.txt" in message


def test_files_that_cannot_be_read_are_refused(complaint, tmp_path):
    assert "No such file" in complaint(rows_from_file, tmp_path / "none.txt")
    assert "directory" in complaint(rows_from_file, tmp_path)
    assert "not a usable path" in complaint(rows_from_file, "a\0b")


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_does_worse_than_an_input_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        rows = rows_from_file(path).tolist()
    except InputError as error:
        rows, message = [0], str(error)
    else:
        message = "none"
    assert len(set(rows)) == len(rows) > 0
    assert len(message.splitlines()) == 1
