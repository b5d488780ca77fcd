"""Tables of queries: unusable ones are reported, not naming options that 'firmware run' lacks."""

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge_export.boards.run import read_queries


@pytest.fixture
def nameless(packs):
    """A pack of two unnamed features."""
    pack = packs.random_pack(np.random.default_rng(0), features=2, hidden=(3,))
    assert "features" not in pack.metadata
    return pack


def test_a_pack_without_names_takes_its_columns_by_position(nameless, tmp_path):
    (tmp_path / "t.csv").write_text("1,2,9\n3,4,9\n5,6,9\n")  # the last is a target
    assert read_queries(tmp_path / "t.csv", nameless, 2).tolist() == [[1, 2], [3, 4]]


def test_columns_of_all_targets_are_left_out(packs, tmp_path):
    rng = np.random.default_rng(0)
    pack = packs.random_pack(rng, features=2, hidden=(3,), outputs=2)
    (tmp_path / "t.csv").write_text("1,2,8,9\n3,4,8,9\n")
    assert read_queries(tmp_path / "t.csv", pack).tolist() == [[1, 2], [3, 4]]
    (tmp_path / "t.csv").write_text("1,2,9\n")
    with pytest.raises(InputError, match="3 columns, and the pack, which names none, takes 2"):
        read_queries(tmp_path / "t.csv", pack)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        pytest.param("1,2\n3,tea\n", ["row 2", "column 'x1'", "'tea'", "not a number"], id="word"),
        pytest.param("1,2\n3,\n", ["row 2", "column 'x1'", "missing value"], id="missing"),
        pytest.param("1,2,3,4\n", ["4 columns", "2 features"], id="too-many"),
    ],
)
def test_a_table_that_cannot_be_used(nameless, tmp_path, rows, says):
    (tmp_path / "t.csv").write_text(rows)
    with pytest.raises(InputError) as refused:
        read_queries(tmp_path / "t.csv", nameless)
    message = str(refused.value)
    assert all(word in message for word in says)
    assert "--" not in message
    assert "\n" not in message
