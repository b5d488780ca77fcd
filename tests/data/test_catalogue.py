import numpy as np
import pytest

from twinedge.data import names
from twinedge.data.catalogue import CATALOGUE, entry_of
from twinedge.data.fetch import verify

MEASURED = ("bc", "bh", "cs", "ee", "wn", "yh")


def test_the_nine_sets_of_the_paper_are_there():
    assert names() == ("bc", "bh", "cs", "ee", "rcl", "tf", "wn", "wsb", "yh")


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


def _with(row, column, value):
    def spoil(values):
        values[row, column] = value
        return values

    return spoil


DAMAGE = {
    "a row less": (lambda values: values[:-1], "rows"),
    "a column less": (lambda values: values[:, 1:], "features"),
    "swapped columns": (lambda values: values[:, [1, 0, *range(2, values.shape[1])]], "mean"),
    "a scaled target": (lambda v: v * np.r_[np.ones(v.shape[1] - 1), 1.01], "mean"),
    "shuffled rows": (np.random.RandomState(0).permutation, "original order"),
    "reversed rows": (lambda values: values[::-1], "original order"),
    "a wrong cell": (_with(7, 2, 1e9), "mean"),
    "not a number": (_with(7, -1, np.nan), "mean"),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_noticed(damage, words, true_values, complaint):
    for name in ("cs", "yh"):
        message = complaint(verify, CATALOGUE[name], damage(true_values(name)), "the/file")
        assert message.startswith("the/file: ")
        assert words in message


def test_heating_load_is_not_taken_for_cooling_load(true_folder, complaint):
    values = np.loadtxt(true_folder / "ee_heating.csv", delimiter=",", skiprows=1)
    assert "'cooling_load'" in complaint(verify, CATALOGUE["ee"], values, "here")
