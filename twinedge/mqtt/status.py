"""What a service says of itself: counts since its start, and rate and delays of late."""

import time
from collections import deque
from datetime import datetime, timezone
from typing import Any

import numpy as np

_DELAYS = 4096  # of the latest answers
_LONGEST = 250  # characters of a topic


class Status:
    """Counts of a service, and how long its answers take.

    Attributes
    ----------
    queries, outside, missing : int
        Queries that were answered; those with a column outside its range, with one filled in.
    waiting : int
        Samples that were not answered, because their window was not full.
    bad : int
        Payloads that could not be used, and publications that the broker refused.
    truths, covered, learnt : int
        True values; those within the interval that was predicted; those that were learnt.
    """

    def __init__(self) -> None:
        self.queries = self.outside = self.missing = self.waiting = self.bad = 0
        self.truths = self.covered = self.learnt = 0
        self._last_bad: dict[str, str] | None = None
        self._delays: deque[float] = deque(maxlen=_DELAYS)
        self._since, self._counted, self._counted_at = _now(), 0, time.monotonic()

    def answered(self, seconds: float) -> None:
        """Count how long an answer took, from the query's arrival to the broker's confirmation."""
        self._delays.append(seconds)

    def refuse(self, topic: str, reason: str) -> None:
        """Count something that could not be used."""
        self.bad += 1
        self._last_bad = {"topic": topic[:_LONGEST], "reason": reason, "time": _now()}

    def report(self) -> dict[str, Any]:
        """Return all of it for people; the rate is that since the last report."""
        now = time.monotonic()
        rate = (self.queries - self._counted) / max(now - self._counted_at, 1e-3)
        self._counted, self._counted_at = self.queries, now
        delays = np.quantile([*self._delays], [0.5, 0.99]) if self._delays else None
        return {
            "since": self._since,
            "time": _now(),
            "queries": self.queries,
            "rate": round(rate, 1),
            "delay_ms": None
            if delays is None
            else dict(zip(("median", "p99"), (1e3 * delays).round(2).tolist(), strict=True)),
            "outside": self.outside,
            "missing": self.missing,
            "bad": self.bad,
            "last_bad": self._last_bad,
            "truths": self.truths,
            "coverage": round(self.covered / self.truths, 4) if self.truths else None,
            "learnt": self.learnt,
        }


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
