"""What others report on the 20 public splits of nine UCI tables, as they print it.

Means over the splits of the root mean square error (RMSE) and of the negative log-likelihood (NLL),
as text, because the number of digits says how far a mean can be compared. None: not reported.
"""

from typing import NamedTuple

SOURCES = {
    "PBP": "Lakshminarayanan et al. 2017",
    "MC dropout": "Gal's repository DropoutUncertaintyExps, 2018",
    "deep ensembles": "Lakshminarayanan et al. 2017",
    "concrete dropout": "Matsubara, arXiv 2405.09536",
    "NGBoost": "Matsubara, arXiv 2405.09536",
    "WGBoost": "Matsubara, arXiv 2405.09536",
}
REMARK = (
    "The protocol is that of Hernández-Lobato and Adams (2015); ours are the index files that Gal "
    "published. Whether the other papers used the very same files was not checked."
)


class Printed(NamedTuple):
    """Means that a source prints for a method on a table."""

    rmse: str
    nll: str | None = None


def _row(*cells: str) -> dict[str, Printed]:
    return {
        method: Printed(*cell.split(" / ")) for method, cell in zip(SOURCES, cells, strict=True)
    }


REPORTED = {
    "bostonHousing": _row(
        "3.01", "2.90 / 2.40", "3.28 / 2.41", "2.65", "2.94 / 2.43", "2.78 / 2.47"
    ),
    "concrete": _row("5.67", "4.82 / 2.93", "6.03 / 3.06", "4.46", "5.06 / 3.04", "4.15 / 2.83"),
    "energy": _row("1.80", "0.54 / 1.21", "2.09 / 1.38", "0.46", "0.46 / 0.60", "0.42 / 0.53"),
    "kin8nm": _row("0.10", "0.079 / -1.14", "0.09 / -1.20", "0.07", "0.16 / -0.49", "0.15 / -0.44"),
    "naval-propulsion-plant": _row(
        "0.01", "0.0007 / -4.45", "0.00 / -5.63", "0.00", "0.00 / -5.34", "0.00 / -5.47"
    ),
    "power-plant": _row("4.12", "4.01 / 2.80", "4.11 / 2.79", "3.70", "3.79 / 2.79", "3.19 / 2.60"),
    "protein-tertiary-structure": _row(
        "4.73", "4.27 / 2.87", "4.71 / 2.83", "3.85", "4.33 / 2.81", "4.09 / 2.70"
    ),
    "wine-quality-red": _row(
        "0.64", "0.62 / 0.93", "0.64 / 0.94", "0.62", "0.63 / 0.91", "0.61 / 0.95"
    ),
    "yacht": _row("1.02", "0.67 / 1.25", "1.58 / 1.18", "0.57", "0.50 / 0.20", "0.48 / 0.16"),
}


def half_digit(printed: str) -> float:
    """Half a unit of the last digit: how far a printed mean may be off.

    Examples
    --------
    >>> half_digit("0.079"), half_digit("12")
    (0.0005, 0.5)
    """
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def best(table: str, measure: str) -> tuple[float, str]:
    """Return the lowest mean that is printed of a measure, and the methods that have it."""
    values = {
        method: float(value)
        for method, cell in REPORTED[table].items()
        if (value := getattr(cell, measure)) is not None
    }
    low = min(values.values())
    return low, ", ".join(method for method, value in values.items() if value == low)


def compare(table: str, measure: str, mean: float, error: float) -> str:
    """Say whether a mean of ours is ahead of the best that is printed, level with it, or behind.

    Level is what the standard error of our mean and the digits that others print leave open.

    Examples
    --------
    >>> [compare("yacht", "rmse", mean, 0.05) for mean in (0.3, 0.45, 0.6)]
    ['ahead', 'level', 'behind']
    >>> compare("naval-propulsion-plant", "rmse", 0.0001, 0.0)  # others print 0.00
    'level'
    """
    printed = [one for cell in REPORTED[table].values() if (one := getattr(cell, measure))]
    low, high = (min(float(one) + sign * half_digit(one) for one in printed) for sign in (-1, 1))
    if mean + error < low:
        return "ahead"
    return "behind" if mean - error > high else "level"
