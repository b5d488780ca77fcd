"""One rule says which of several models is the best, and when there is no telling."""

import pytest

from twinedge.evaluation.verdict import NAMES, Rival, verdict


def rivals(error=0.04, **others):
    """Models beside a twin with an error of 1, in multiples of that."""
    errors = {"boosting": 1.2, "forest": 1.3, "trees": 1.4, "nearest": 1.6, "linear": 1.8}
    errors |= {"mean": 2.0} | others
    return {name: Rival(one, one - 1, error) for name, one in errors.items()}


def given(**others):
    return verdict(1.0, rivals(**others), 500, 20_480)


def test_a_twin_ahead_of_all_is_the_best_and_the_next_is_named():
    assert given() == (
        "best",
        "twin",
        "boosting",
        "The twin is the best of these models (RMSE 1); next come boosted trees of any size (1.2).",
    )


def test_the_best_of_all_is_named_not_the_simplest_that_wins():
    found = given(linear=0.9, trees=0.7, boosting=0.8)
    assert found[:2] == ("behind", "trees")
    assert found.sentence.startswith("Trees in the same 20,480 bytes do better (RMSE 0.7 against 1")
    assert "linear" not in found.sentence


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mean"])
def test_whoever_is_better_is_named_with_a_reason(name):
    found = given(**{name: 0.8})
    assert found[:2] == ("behind", name)
    assert "better (RMSE 0.8 against 1 of the twin): " in found.sentence


def test_a_linear_model_that_is_almost_exact_is_suspicious():
    found = given(linear=0.01)
    assert found.best == "linear"
    assert "is one of the columns computed from the target?" in found.sentence
    assert "easier to explain" not in found.sentence


def test_being_no_better_than_the_mean_comes_before_all_else():
    assert given(mean=1.02, linear=1.01).sentence.startswith(
        "The twin is no better than predicting"
    )
    assert given(mean=0.9).sentence.startswith("The twin is worse than predicting the mean")


def test_equally_good_is_not_undecided():
    found = given(boosting=0.99)
    assert found[:2] == ("as good", "twin")
    assert (
        "Boosted trees of any size do as well (RMSE 0.99 against 1 of the twin)" in found.sentence
    )


def test_what_may_be_much_better_is_undecided_and_says_what_would_decide():
    found = given(boosting=0.95, error=0.15)
    assert found[:2] == ("undecided", None)
    assert found.sentence == (
        "Undecided: 500 rows cannot tell the twin from boosted trees of any size (RMSE 1 and 0.95, "
        "which may differ by 0.15 by chance); about 1,200 would decide."
    )


def test_a_wide_range_that_ends_near_zero_is_still_the_twin():
    assert given(boosting=1.3, forest=2, trees=2, nearest=3, linear=3, mean=9, error=0.35)[:2] == (
        "as good",
        "twin",
    )
