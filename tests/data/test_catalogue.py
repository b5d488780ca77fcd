import numpy as np
import pytest

from twinedge.data import names
from twinedge.data.catalogue import CATALOGUE, entry_of
from twinedge.data.fetch import verify

MEASURED = ("bc", "bh", "cs", "ee", "wn", "yh")
WITH_FILE = (*MEASURED, "rcl", "wsb")


def test_the_nine_sets_of_the_paper_are_there():
    assert names() == ("bc", "bh", "cs", "ee", "rcl", "tf", "wn", "wsb", "yh")


@pytest.mark.parametrize("name", WITH_FILE)
def test_entry_describes_the_true_file(name, true_folder, true_values):
    entry = CATALOGUE[name]
    values = true_values(name)
    assert values.shape == (entry.rows, entry.features + 1)
    header = (true_folder / entry.file_name).read_text().split("\n", 1)[0]
    assert header == entry.header
    np.testing.assert_allclose(values.mean(0), entry.means, rtol=1e-5)
    verify(entry, values, "here")


@pytest.mark.parametrize("name", names())
def test_every_entry_is_complete(name):
    entry = CATALOGUE[name]
    assert len(entry.means) == entry.features + 1
    assert entry.title
    assert entry.source
    assert entry.licence
    sources = (entry.openml_id is not None) + (entry.address is not None)
    assert sources == (1 if name in MEASURED else 0)
    assert (entry.address is None) == (entry.member is None)


def test_a_key_in_capitals_as_the_paper_prints_it_is_understood():
    assert entry_of("BH") is CATALOGUE["bh"]


def test_an_unknown_set_is_answered_with_the_nine_and_the_nearest(complaint):
    message = complaint(entry_of, "wbs")
    assert "'wbs'" in message
    assert "did you mean 'wsb'" in message
    assert "bc, bh, cs, ee, rcl, tf, wn, wsb, yh" in message


def test_true_values_with_other_digits_are_still_recognised(true_values):
    # A copy elsewhere may print more digits than ours.
    values = true_values("cs")
    values[:, -1] += np.random.RandomState(0).uniform(-0.005, 0.005, len(values))
    verify(CATALOGUE["cs"], values, "here")


def _drop_row(values):
    return values[:-1]


def _drop_column(values):
    return values[:, 1:]


def _swap_columns(values):
    return values[:, [1, 0, *range(2, values.shape[1])]]


def _scale_target(values):
    return values * np.r_[np.ones(values.shape[1] - 1), 1.01]


def _shuffle_rows(values):
    return values[np.random.RandomState(0).permutation(len(values))]


def _reverse_rows(values):
    return values[::-1]


def _spoil_one(values):
    spoilt = values.copy()
    spoilt[7, 2] = 1e9
    return spoilt


def _not_a_number(values):
    spoilt = values.copy()
    spoilt[7, -1] = np.nan
    return spoilt


DAMAGE = {
    _drop_row: "rows",
    _drop_column: "features",
    _swap_columns: "mean",
    _scale_target: "mean",
    _shuffle_rows: "original order",
    _reverse_rows: "original order",
    _spoil_one: "mean",
    _not_a_number: "mean",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", MEASURED)
def test_damage_is_noticed(name, damage, true_values, complaint):
    message = complaint(verify, CATALOGUE[name], damage(true_values(name)), "the/file")
    assert message.startswith("the/file: ")
    assert DAMAGE[damage] in message


def test_heating_load_is_not_taken_for_cooling_load(true_folder, complaint):
    values = np.loadtxt(true_folder / "ee_heating.csv", delimiter=",", skiprows=1)
    assert "'cooling_load'" in complaint(verify, CATALOGUE["ee"], values, "here")
