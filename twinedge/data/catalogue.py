"""The nine data sets of the paper: what they hold, where they come from, how to recognise them.

The paper's text and its published files differ: the files were made with a different formula (RCL)
or different columns (WSB), and a tenth of the noise. Both are here, as variants ``"published"`` and
``"paper"``; only ``"published"`` compares with the paper's numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinedge.errors import InputError
from twinedge.wording import closest, quoted


@dataclass(frozen=True)
class Dataset:
    """One of the paper's data sets.

    Parameters
    ----------
    name : str
        Key in the catalogue, such as ``"bh"``.
    X : ndarray of float64, shape (n, f)
        Features, in the units of the source.
    y : ndarray of float64, shape (n,)
        Target, in the units of the source.
    feature_names : tuple of str
        Names of the columns of `X`.
    target_name : str
    title : str
        Full name of the set.
    source : str
        Where these rows came from: a path, an address, or how they were generated.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    title: str
    source: str = ""

    @property
    def rows(self) -> int:
        """Number of rows, n."""
        return len(self.y)

    @property
    def features(self) -> int:
        """Number of features, f."""
        return int(self.X.shape[1])


@dataclass(frozen=True)
class Entry:
    """What is known about one data set.

    Parameters
    ----------
    name : str
        Key, lower case.
    title : str
        Name in the paper.
    rows : int
    feature_names : tuple of str
    target_name : str
    means : tuple of float
        Mean of each feature and, last, of the target.
    row_moment : float
        Mean of the target weighted by row number (1, 2, ...). Shuffled rows change it and leave
        the means alone; the paper's splits need the original order.
    source : str
        Who collected the data.
    licence : str
    note : str
        What a user should know before trusting a result.
    openml_id : int or None
        OpenML data_id to download from.
    address : str or None
        Zip file at UCI to download from.
    member : str or None
        File inside that zip.
    """

    name: str
    title: str
    rows: int
    feature_names: tuple[str, ...]
    target_name: str
    means: tuple[float, ...]
    row_moment: float
    source: str
    licence: str
    note: str = ""
    openml_id: int | None = None
    address: str | None = None
    member: str | None = None

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def file_name(self) -> str:
        """Name of the CSV file in a data folder."""
        return f"{self.name}.csv"

    @property
    def header(self) -> str:
        """First line of that file."""
        return ",".join((*self.feature_names, self.target_name))

    def dataset(self, X: NDArray[np.float64], y: NDArray[np.float64], source: str) -> Dataset:
        """Make the set of its rows; a variant may lack the last features."""
        names = self.feature_names[: X.shape[1]]
        return Dataset(self.name, X, y, names, self.target_name, self.title, source)


_CC_BY = "CC BY 4.0"
_MADE = "generated; no licence needed"

_ENTRIES = (
    Entry(
        name="bc",
        title="Bio Concentration",
        rows=779,
        feature_names=(
            *("nHM", "piPC09", "PCD", "X2Av", "MLOGP", "ON1V", "N-072", "B02[C-N]", "F04[C-O]"),
        ),
        target_name="logBCF",
        means=(
            *(1.754814, 3.467616, 1.550822, 0.2368806, 3.201746, 1.510295, 0.1861361, 0.42362),
            *(3.585366, 2.062773),
        ),
        row_moment=2.049445,
        source="Grisoni et al. 2016; UCI 510",
        licence=f"{_CC_BY} (general UCI terms)",
        note="The file has 14 columns; the paper's code uses the 9 descriptors.",
        address="https://archive.ics.uci.edu/static/public/510/"
        "qsar+bioconcentration+classes+dataset.zip",
        member="Grisoni_et_al_2016_EnvInt88.csv",
    ),
    Entry(
        name="bh",
        title="Boston Housing",
        rows=506,
        feature_names=(
            *("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX"),
            *("PTRATIO", "B", "LSTAT"),
        ),
        target_name="MEDV",
        means=(
            *(3.613524, 11.36364, 11.13678, 0.06916996, 0.5546951, 6.284634, 68.5749, 3.795043),
            *(9.549407, 408.2372, 18.45553, 356.674, 12.65306, 22.53281),
        ),
        row_moment=21.33312,
        source="Harrison & Rubinfeld 1978; StatLib; OpenML 531",
        licence="none stated",
        note="scikit-learn dropped it on ethical grounds (column B); for comparison only.",
        openml_id=531,
    ),
    Entry(
        name="cs",
        title="Concrete Strength",
        rows=1030,
        feature_names=(
            *("cement", "blast_furnace_slag", "fly_ash", "water", "superplasticizer"),
            *("coarse_aggregate", "fine_aggregate", "age"),
        ),
        target_name="strength",
        means=(
            *(281.1679, 73.89583, 54.18835, 181.5673, 6.20466, 972.9189, 773.5805, 45.66214),
            35.81796,
        ),
        row_moment=32.82191,
        source="Yeh 1998; UCI 165; OpenML 44959",
        licence=_CC_BY,
        note="Strength in MPa. 25 exact duplicate rows.",
        openml_id=44959,
    ),
    Entry(
        name="ee",
        title="Energy Efficiency",
        rows=768,
        feature_names=(
            *("relative_compactness", "surface_area", "wall_area", "roof_area", "overall_height"),
            *("orientation", "glazing_area", "glazing_area_distribution"),
        ),
        target_name="cooling_load",
        means=(
            *(0.7641667, 671.7083, 318.5, 176.6042, 5.25, 3.5, 0.234375, 2.8125),
            24.58776,
        ),
        row_moment=25.41192,
        source="Tsanas & Xifara 2012; UCI 242",
        licence=_CC_BY,
        note="The paper uses the cooling load (Y2); most others the heating load (Y1).",
        address="https://archive.ics.uci.edu/static/public/242/energy+efficiency.zip",
        member="ENB2012_data.xlsx",
    ),
    Entry(
        name="rcl",
        title="RCL Circuit Current",
        rows=4000,
        feature_names=("V0", "R", "L", "C", "omega", "t"),
        target_name="current",
        means=(1.995429, 1.990368, 1.998219, 2.004687, 1.999356, 2.011113, -0.226385),
        row_moment=-0.2314434,
        source="Wetzel et al., published data file",
        licence=_MADE,
        note="Without the file: generated, the same distribution but not the paper's rows.",
    ),
    Entry(
        name="tf",
        title="Test Function",
        rows=1000,
        feature_names=("x1", "x2"),
        target_name="y",
        means=(0.006472996, 0.008070046, -0.6398744),
        row_moment=-0.6169773,
        source="Wetzel et al., published code",
        licence=_MADE,
        note="Generated with the paper's seed: exactly the paper's rows.",
    ),
    Entry(
        name="wn",
        title="Red Wine Quality",
        rows=1599,
        feature_names=(
            *("fixed_acidity", "volatile_acidity", "citric_acid", "residual_sugar", "chlorides"),
            *("free_sulfur_dioxide", "total_sulfur_dioxide", "density", "pH", "sulphates"),
            "alcohol",
        ),
        target_name="quality",
        means=(
            *(8.319637, 0.5278205, 0.2709756, 2.538806, 0.08746654, 15.87492, 46.46779),
            *(0.9967467, 3.311113, 0.6581488, 10.42298, 5.636023),
        ),
        row_moment=5.666977,
        source="Cortez et al. 2009; UCI 186; OpenML 44972",
        licence=_CC_BY,
        note="240 exact duplicate rows: a random split leaks from train to test.",
        openml_id=44972,
    ),
    Entry(
        name="wsb",
        title="Wheatstone Bridge Voltage",
        rows=200,
        feature_names=("U", "R1", "R2", "R3", "unused1", "unused2"),
        target_name="voltage",
        means=(2.046731, 2.04604, 2.004042, 1.99069, 1.994775, 1.996761, -0.007099695),
        row_moment=-0.0003104339,
        source="Wetzel et al., published data file",
        licence=_MADE,
        note="Without the file: generated, the same distribution but not the paper's rows.",
    ),
    Entry(
        name="yh",
        title="Yacht Hydrodynamics",
        rows=308,
        feature_names=(
            *("lcb", "prismatic_coefficient", "length_displacement", "beam_draught"),
            *("length_beam", "froude_number"),
        ),
        target_name="residuary_resistance",
        means=(-2.381818, 0.5641364, 4.788636, 3.936818, 3.206818, 0.2875, 10.49536),
        row_moment=10.95117,
        source="Gerritsma, Onnink & Versluis 1981; UCI 243; OpenML 42370",
        licence=_CC_BY,
        openml_id=42370,
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def names() -> tuple[str, ...]:
    """Return the keys of the nine sets, in alphabetical order.

    Examples
    --------
    >>> names()
    ('bc', 'bh', 'cs', 'ee', 'rcl', 'tf', 'wn', 'wsb', 'yh')
    """
    return tuple(CATALOGUE)


def entry_of(name: str) -> Entry:
    """Look up a set by its key, in upper or lower case.

    Raises
    ------
    InputError
        If there is no such set; the message lists the known ones.
    """
    entry = CATALOGUE.get(name.lower())
    if entry is None:
        known: Sequence[str] = names()
        raise InputError(
            f"no data set called {quoted(name)}{closest(name, known)}; "
            f"the sets are {', '.join(known)}"
        )
    return entry


VARIANTS = ("published", "paper")
_NOISE = {"published": 0.01, "paper": 0.1}  # standard deviation, in units of the target


def paper_test_function() -> Dataset:
    """Make TF, the paper's rows bit for bit: 1000 points, uniform on [-1, 1]^2, no noise.

    y = x1^3 + x1^2 - x1 - 1 + x1 x2 + sin(x2)
    """
    # The paper's legacy generator: a new-style one would draw different points.
    X = np.random.RandomState(0).random_sample((1000, 2)) * 2 - 1
    x1, x2 = X[:, 0], X[:, 1]
    y = x1**3 + x1**2 - x1 - 1 + x1 * x2 + np.sin(x2)
    return CATALOGUE["tf"].dataset(X, y, "generated with the paper's seed")


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
        The paper's seed is unknown: any seed gives its distribution, but not its rows.
    """
    noise = _noise(variant)
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, (rows, 6))
    v0, r, coil, c, omega, t = X.T
    z = omega * coil - 1.0 / (omega * c)
    if variant == "paper":
        z = z**2
    y = v0 * np.cos(omega * t) / np.sqrt(r**2 + z) + rng.normal(0.0, noise, rows)
    return CATALOGUE["rcl"].dataset(X, y, f"generated, variant {variant}, seed {seed}")


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
    return CATALOGUE["wsb"].dataset(X, y, f"generated, variant {variant}, seed {seed}")


#: Sets that differ between the paper's text and its files, and how to make either.
GENERATORS: dict[str, Callable[[str], Dataset]] = {"rcl": rcl_circuit, "wsb": wheatstone_bridge}


def _noise(variant: str) -> float:
    if variant not in _NOISE:
        raise InputError(f"no variant {quoted(variant)}; use {' or '.join(map(repr, VARIANTS))}")
    return _NOISE[variant]
