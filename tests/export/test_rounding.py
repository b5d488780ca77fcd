"""How kernels are rounded: as finely as possible, without any overflow."""

import zlib

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack.contents import Twin, check_weights
from twinedge.runtime.reference import silu_curve
from twinedge_export.round_weights import round_layer, round_output


def exact(layer, unit):
    """Return kernel and bias as floats, from the integers of a layer."""
    factor = layer.multiplier / 2.0 ** (16 + layer.shift + layer.fraction) / unit
    return layer.kernel * factor[:, None], layer.bias * factor * unit


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("inputs", [1, 2, 128, 1024, 2048])
@pytest.mark.parametrize("size", [1e-6, 1.0, 10.0])
def test_kernels_use_their_range_and_overflow_nothing(dtype, inputs, size):
    rng = np.random.default_rng(inputs)
    kernel = rng.normal(0, size, (16, inputs))
    kernel[3] = size  # this row has the largest possible sum
    bias = rng.normal(0, 10 * size, 16)
    unit = 4 / 32767
    layer = round_layer(kernel, bias, unit, 3.0, dtype)
    output, multiplier, shift = round_output(rng.normal(0, size, 16), 2.0**-layer.fraction)
    check_weights(Twin((layer,), output, multiplier, shift), 0)
    found, found_bias = exact(layer, unit)
    most = np.iinfo(dtype).max
    step = np.maximum(np.abs(kernel).max(axis=1) / most, np.abs(kernel).sum(axis=1) / 60_000)
    step += np.abs(bias) / 200_000 + step.max() / 2**13
    assert (np.abs(found - kernel) <= step[:, None]).all()
    np.testing.assert_allclose(found_bias, bias, rtol=1e-5, atol=1e-3 * size * unit * 32767)


@pytest.mark.parametrize("shape", ["equal", "one", "none"])
def test_output_weights_just_fit(shape):
    weights = {"equal": np.ones(1024), "one": np.eye(1024)[0], "none": np.zeros(1024)}[shape]
    whole, multiplier, shift = round_output(weights, 0.01)
    assert 32767 * int(np.abs(whole.astype(int)).sum()) < 2**30
    assert 1 <= multiplier <= 32767
    assert 0 <= shift <= 30
    np.testing.assert_allclose(
        whole * float(multiplier) / 2.0 ** (16 + shift), weights * 0.01, rtol=0.02
    )


@pytest.mark.parametrize("power", range(1, 12))
def test_steps_that_are_powers_of_two_fit_too(power):
    layer = round_layer(np.full((1, 1), 127.0), np.zeros(1), 2.0**-power / 64, 1.0, np.int8)
    found, _ = exact(layer, 2.0**-power / 64)
    np.testing.assert_allclose(found, 127.0, rtol=0.005)


def test_a_layer_of_nothing_is_a_layer():
    layer = round_layer(np.zeros((3, 2)), np.zeros(3), 1e-4, 0.0, np.int8)
    assert not layer.kernel.any()
    assert not layer.bias.any()
    assert (layer.multiplier >= 1).all()


def test_a_kernel_too_coarse_for_any_multiplier_is_refused():
    with pytest.raises(InputError, match="too large"):
        round_layer(np.full((1, 1), 1e6), np.zeros(1), 1.0, 1.0, np.int8)


def test_the_curve_follows_silu_within_half_a_unit_of_its_finest_use():
    a = np.arange(0, 12, 1 / 1024)
    fine = a < 4
    position = np.where(fine, 32 * a, 128 + 8 * (a - 4))
    k = position.astype(int)
    curve = silu_curve().astype(float)
    line = curve[k] + (curve[k + 1] - curve[k]) * (position - k)
    error = line - 32768 * a / (1 + np.exp(a))
    assert np.abs(error).max() < 4
    assert abs(error.mean()) < 0.2


def test_the_curve_is_the_same_on_every_machine():
    assert silu_curve().dtype == np.int16
    assert zlib.crc32(silu_curve().astype("<i2").tobytes()) == 0x6B30DDE2
