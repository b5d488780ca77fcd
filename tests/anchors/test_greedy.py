from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from twinedge.anchors import methods as subject
from twinedge.anchors import rmse, select
from twinedge.anchors.methods import forward
from twinedge.anchors.pool import Evidence


def exhaustive(residuals, k):
    """The same choice, made by trying every candidate in double precision."""
    twins, count, _ = residuals.shape
    chosen, total = [], 0.0
    for place in range(k):
        errors = {
            row: np.square(total + residuals[place % twins, row].astype(float)).sum()
            for row in range(count)
            if row not in chosen
        }
        chosen.append(min(errors, key=errors.get))
        total = total + residuals[place % twins, chosen[-1]].astype(float)
    return chosen


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 12), st.integers(1, 9), st.integers(0, 10**6))
def test_each_step_takes_what_lowers_the_error_most(twins, count, points, seed):
    residuals = np.random.default_rng(seed).normal(size=(twins, count, points)).astype(np.float32)
    assert forward(residuals, count).tolist() == exhaustive(residuals, count)


def choice(model, validation, k, method="greedy", **options):
    twins = len(model.weights_)
    return select(
        model.anchor_X_,
        model.anchor_y_,
        k,
        method,
        model=model,
        validation=validation,
        twins=twins,
        **options,
    )


@pytest.mark.parametrize("twins", [1, 4])
def test_the_error_on_its_own_data_falls_and_stays_below_that_of_random_rows(oracle, twins):
    model, validation = oracle(twins=twins)
    counts = [twins * i for i in (1, 2, 4, 8)]
    errors = [rmse(model, validation, choice(model, validation, k)) for k in counts]
    assert all(later <= 1.02 * earlier for earlier, later in pairwise(errors))
    for k, error in zip(counts, errors, strict=True):
        for seed in range(5):
            drawn = choice(model, validation, k, "random", seed=seed)
            assert error <= rmse(model, validation, drawn)


def test_twins_take_their_own_best_rows(oracle):
    model, validation = oracle(twins=2, n=20)
    model.written += 100.0
    model.written[:, 0, 3] -= 100.0
    model.written[:, 1, 7] -= 100.0
    assert choice(model, validation, 2).tolist() == [3, 7]


def test_many_rows_are_thinned_to_points_that_stand_for_them(oracle, monkeypatch):
    monkeypatch.setattr(subject, "MOST_CANDIDATES", 20)
    model, validation = oracle(n=90)
    rows = choice(model, validation, 6)
    assert len(set(rows.tolist())) == 6
    assert sum(model.calls) <= 20 * len(validation[1])
    np.testing.assert_array_equal(choice(model, validation, 6), rows)
    assert len(set(choice(model, validation, 40).tolist())) == 40  # more than that, if requested


def test_many_validation_points_are_thinned_to_what_memory_holds(oracle, monkeypatch):
    monkeypatch.setattr(subject, "_TABLE", 60 * 30)
    model, validation = oracle(v=200)
    rows = choice(model, validation, 6)
    assert sum(model.calls) == 60 * 30
    np.testing.assert_array_equal(choice(model, validation, 6), rows)


@pytest.mark.parametrize(("unit", "offset"), [(1e-25, 0), (1e25, 0), (1, 1e7)])
def test_targets_of_any_size_are_distinguished(oracle, unit, offset):
    model, (X, y) = oracle()
    plain = choice(model, (X, y), 5)
    model.written = model.written * unit + offset
    model.anchor_y_ = model.anchor_y_ * unit + offset
    np.testing.assert_array_equal(choice(model, (X, y * unit + offset), 5), plain)


def test_the_number_of_threads_does_not_matter(oracle):
    model, validation = oracle(v=300, n=500, twins=2)
    found = []
    for threads in (1, 4):
        with threadpool_limits(threads):
            found.append(choice(model, validation, 20))
    np.testing.assert_array_equal(*found)


def test_errors_are_scored_on_points_that_had_no_part_in_the_choice(oracle):
    # Nothing can be learned from pure noise: the honest error of k anchors is that of any k.
    honest, own = [], []
    for seed in range(10):
        model, (X, y) = oracle(v=40, n=200, bias=0, seed=seed)
        evidence = Evidence(model, X, y)
        evidence.scale = 1.0
        residuals = (model.written[:, 0] - y[:, None]).T[None].astype(np.float32)
        table = subject.Candidates(np.arange(200), np.ascontiguousarray(residuals), evidence)
        folds = np.array_split(np.random.default_rng(0).permutation(40), 5)
        honest.append(table.held_out_errors([4], folds).mean())
        own.append(np.square(residuals[0, table.choose(4)].mean(axis=0)).mean())
    assert 0.2 < np.mean(honest) < 0.32  # 1 / k
    assert np.mean(own) < 0.12


def test_held_out_errors_are_in_units_of_the_target(oracle):
    model, validation = oracle(v=20, n=3)
    evidence = Evidence(model, *validation)
    evidence.scale = 10.0
    residuals = np.full((1, 3, 20), 0.5, np.float32)
    table = subject.Candidates(np.arange(3), residuals, evidence)
    folds = np.split(np.arange(20), 5)
    np.testing.assert_allclose(table.held_out_errors([1, 2], folds), np.full((2, 20), 25.0))
