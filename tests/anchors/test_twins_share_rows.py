"""Which twin owns which anchors, everywhere in the package."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.anchors import check_rows
from twinedge.anchors import rows as anchor_rows
from twinedge.training.pairs import deal


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_a_twin_owns_every_so_manieth_row(twins, each, seed):
    rows = np.random.default_rng(seed).permutation(100)[: twins * each]
    dealt = anchor_rows.deal_out(rows, twins)
    for twin, mine in enumerate(dealt):
        np.testing.assert_array_equal(mine, rows[twin::twins])
    np.testing.assert_array_equal(anchor_rows.gather(list(dealt)), rows)
    # Estimators deal out rows named by the user in the same way.
    np.testing.assert_array_equal(deal(rows, 100, twins), dealt)


@pytest.mark.parametrize("rows", [[], [0, 10], [-1], [0.5], [[1, 2]], [[1], [2, 3]], [1, 2, 3]])
def test_what_an_export_refuses_an_estimator_refuses_in_the_same_words(complaint, rows):
    assert complaint(check_rows, rows, 10, 2) == complaint(deal, rows, 10, 2)


def test_an_estimator_may_ask_an_anchor_twice_and_a_pack_holds_it_once(complaint):
    assert deal([3, 3], 10, 2).tolist() == [[3], [3]]
    assert "row 3 is listed more than once" in complaint(check_rows, [3, 3], 10, 2)
