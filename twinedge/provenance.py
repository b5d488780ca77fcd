"""Which rows a model was trained on: a digest that shows how many of a table are among them.

Each row is hashed, and the smallest hashes are kept: a fair sample of the rows, the same for the
same table in any order. Hashes of another table below the largest of them are a sample of that one,
and the share of hashes in common shows how many rows are. Up to 96 rows, the sample is all of them,
and the count is exact. Only numpy is needed, so that a Raspberry Pi can count them as well.
"""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError

Array = npt.NDArray[Any]

DIGEST = "training_rows"  # its name in the record of a run and in the metadata of a pack
MOST = 96  # hashes kept, of 4 bytes
_DIGITS = 3  # of an estimate


class Known(NamedTuple):
    """How many rows of a table a model was trained on; ``exact`` unless that is an estimate."""

    rows: int
    exact: bool

    def describe(self, of: int) -> str:
        """Describe it, of a table with so many rows."""
        about = "" if self.exact else "about "
        return f"{about}{self.rows:,} of {of:,} rows were trained on"


@dataclass(frozen=True)
class TrainingRows:
    """A digest of the rows that a model was trained on.

    Parameters
    ----------
    count : int
        How many different rows there were.
    hashes : array of shape (k,), uint32
        Their smallest hashes, ascending: all, or the first 96.
    fill_values : array of shape (f,), optional
        What replaced missing inputs before a row was hashed, NaN for inputs that may not miss.
    """

    count: int
    hashes: Array
    fill_values: Array | None = None

    @classmethod
    def of(cls, X: Array, y: Array, fill_values: Array | None = None) -> "TrainingRows":
        """Make the digest of encoded rows ``(n, f)`` without missing values, and their targets."""
        found = np.unique(hash_rows(X, y))
        return cls(len(found), found[:MOST], fill_values)

    @property
    def is_complete(self) -> bool:
        """Whether the digest has the hashes of all rows."""
        return self.count == len(self.hashes)

    @property
    def fingerprint(self) -> bytes:
        """Sixteen bytes that stand for the rows, in any order."""
        rows = self.count.to_bytes(8, "little") + self.hashes.astype("<u4").tobytes()
        return sha256(rows).digest()[:16]

    def known(self, X: Array, y: Array) -> Known | None:
        """Count the rows of a table that the model was trained on.

        Parameters
        ----------
        X : array of shape (n, f)
            Encoded rows; a missing input is NaN.
        y : array of shape (n,)
            Their targets.

        Returns
        -------
        Known or None
            None if the table is too small to estimate it.
        """
        if self.fill_values is not None:
            X = np.where(np.isnan(X), self.fill_values, X)
        hashes = hash_rows(X, y)
        common = np.isin(hashes, self.hashes)
        if self.is_complete:
            return Known(int(common.sum()), True)
        sampled = hashes <= self.hashes[-1]
        if not sampled.any():
            return None
        # Of two samples, the smaller one has the larger share in common, which is the surer.
        both = np.unique(hashes[common])
        if len(np.unique(hashes[sampled])) < len(self.hashes):
            estimate = len(hashes) * common.sum() / sampled.sum()
        else:
            estimate = self.count * len(both) / len(self.hashes)
        estimate = min(estimate, len(hashes))
        digits = _DIGITS - len(str(int(estimate)))
        return Known(int(round(estimate, min(digits, 0))), False)

    def record(self) -> dict[str, Any]:
        """Return the digest in JSON types, for a run or the metadata of a pack."""
        text = b64encode(self.hashes.astype("<u4").tobytes()).decode()
        found: dict[str, Any] = {"count": self.count, "hashes": text}
        if self.fill_values is not None:
            values = np.asarray(self.fill_values, np.float64).tolist()
            found["fill_values"] = [None if value != value else value for value in values]
        return found

    @classmethod
    def read(cls, record: Any) -> "TrainingRows | None":
        """Read the digest of a run or pack; None if there is none, as in packs of version 1.

        Raises
        ------
        InputError
            If it is damaged.
        """
        if record is None:
            return None
        try:
            hashes = np.frombuffer(b64decode(record["hashes"], validate=True), "<u4")
            count, values = int(record["count"]), record.get("fill_values")
            fill = None
            if values is not None:
                fill = np.array([np.nan if one is None else float(one) for one in values])
            if not len(hashes) == min(count, MOST) or not (np.diff(hashes.astype(int)) > 0).all():
                raise ValueError("hashes")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError("the digest of the training rows is damaged") from error
        return cls(count, hashes, fill)


def hash_rows(X: Array, y: Array) -> Array:
    """Hash rows ``(n, f)`` and targets ``(n,)`` as float32; returns uint32 ``(n,)``."""
    with np.errstate(over="ignore"):
        rows = np.column_stack([X, y]).astype("<f4")
    rows += np.float32(0)  # minus zero equals zero
    digests = b"".join(blake2b(row.tobytes(), digest_size=4).digest() for row in rows)
    return np.frombuffer(digests, "<u4").astype(np.uint32)
