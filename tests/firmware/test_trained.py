"""Trained twins, quantised: the C runtime computes the reference's bits on them, too."""

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference
from twinedge_export.quantise import quantise


@pytest.mark.parametrize("weights", ["int8", "int16"])
@pytest.mark.parametrize("model", ["tiny_twin", "four_twins"])
def test_quantised_models(request, open_pack, cases, model, weights):
    fitted = request.getfixturevalue(model)
    twins = len(fitted.weights_)
    rows = np.random.default_rng(0).permutation(len(fitted.anchor_y_))[: 6 * twins]
    pack = quantise(fitted, rows.reshape(-1, twins).T, weights=weights)
    x = cases.queries(pack, 1000)
    expected = reference.evaluate(pack, x)
    mean, spread, estimates = open_pack(write_pack(pack)).predict(x)
    np.testing.assert_array_equal(estimates, expected.estimates)
    np.testing.assert_array_equal(mean.view(np.uint32), expected.mean.view(np.uint32))
    np.testing.assert_array_equal(spread.view(np.uint32), expected.spread.view(np.uint32))
