"""The generated data sets: a test function, a circuit and a bridge.

The paper's text and its published files differ: the files were made with another formula (RCL) or
other columns (WSB) and a tenth of the noise. Both are here, as variants ``"published"`` and
``"paper"``; only ``"published"`` compares with the paper's numbers.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinedge.data.catalogue import CATALOGUE
from twinedge.data.dataset import Dataset
from twinedge.data.wording import quoted
from twinedge.errors import InputError

VARIANTS = ("published", "paper")
_NOISE = {"published": 0.01, "paper": 0.1}  # standard deviation, in units of the target


def paper_test_function() -> Dataset:
    """Make TF, the paper's rows bit for bit: 1000 points, uniform on [-1, 1]^2, no noise.

    y = x1^3 + x1^2 - x1 - 1 + x1 x2 + sin(x2)
    """
    # The paper's legacy generator: a new-style one would draw other points.
    X = np.random.RandomState(0).random_sample((1000, 2)) * 2 - 1
    x1, x2 = X[:, 0], X[:, 1]
    y = x1**3 + x1**2 - x1 - 1 + x1 * x2 + np.sin(x2)
    return _dataset("tf", X, y, "generated with the paper's seed")


def rcl_circuit(variant: str = "published", *, rows: int = 4000, seed: int = 0) -> Dataset:
    """Make RCL, the current in a circuit of resistor, capacitor and coil.

    Inputs V0, R, L, C, omega, t are uniform on [1, 3], without units.
    With the reactance Z = omega L - 1/(omega C), the current is
    V0 cos(omega t) / sqrt(R^2 + Z) as published, and with Z^2 for Z in the paper's text.

    Parameters
    ----------
    variant
        "published" (noise 0.01) or "paper" (noise 0.1, both standard deviations of a Gaussian).
    rows
        Number of rows.
    seed
        The paper's seed is not known: any seed gives its distribution, none its rows.
    """
    noise = _noise(variant)
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, (rows, 6))
    v0, r, coil, c, omega, t = X.T
    z = omega * coil - 1.0 / (omega * c)
    if variant == "paper":
        z = z**2
    y = v0 * np.cos(omega * t) / np.sqrt(r**2 + z) + rng.normal(0.0, noise, rows)
    return _dataset("rcl", X, y, f"generated, variant {variant}, seed {seed}")


def wheatstone_bridge(variant: str = "published", *, rows: int = 200, seed: int = 0) -> Dataset:
    """Make WSB, the voltage across a Wheatstone bridge.

    Inputs U, R1, R2, R3 are uniform on [1, 3], without units;
    V = U (R2/(R1 + R2) - R3/(R2 + R3)) plus noise.

    Parameters
    ----------
    variant
        "published": two more columns that do not enter V, noise 0.01. "paper": the four inputs
        only, noise 0.1.
    rows
        Number of rows.
    seed
        As for `rcl_circuit`.
    """
    noise = _noise(variant)
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, (rows, 6 if variant == "published" else 4))
    u, r1, r2, r3 = X[:, :4].T
    y = u * (r2 / (r1 + r2) - r3 / (r2 + r3)) + rng.normal(0.0, noise, rows)
    return _dataset("wsb", X, y, f"generated, variant {variant}, seed {seed}")


#: Sets that differ between the paper's text and its files, and how to make either.
GENERATORS: dict[str, Callable[[str], Dataset]] = {"rcl": rcl_circuit, "wsb": wheatstone_bridge}


def _noise(variant: str) -> float:
    if variant not in _NOISE:
        raise InputError(f"no variant {quoted(variant)}; use {' or '.join(map(repr, VARIANTS))}")
    return _NOISE[variant]


def _dataset(name: str, X: NDArray[np.float64], y: NDArray[np.float64], source: str) -> Dataset:
    entry = CATALOGUE[name]
    return Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=entry.feature_names[: X.shape[1]],
        target_name=entry.target_name,
        title=entry.title,
        source=source,
    )
