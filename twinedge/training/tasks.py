"""What the trainer is to learn: the rows, which network sees which, and how they are scored."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from twinedge.scoring.weights import in_proportion, mean_over_targets, of_rows
from twinedge.training.batches import Examples, IndexArray
from twinedge.training.input_map import (
    Knots,
    MappedArchitecture,
    choose_knots,
    coded,
    codes_of,
)
from twinedge.training.network import Architecture, FloatArray, Scaling
from twinedge.training.pairs import differences, nearest
from twinedge.training.trainer import NetworkJob

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing from 3.11 on

Rows = npt.NDArray[np.intp]

BATCH = 64  # examples per step
# silu is chosen for smooth targets, which larger batches fit to more digits; the batches of tables
# with thousands of rows are large enough.
_STEADY, _STEADY_ENOUGH = 2, 4 * BATCH
FOLDS = 5  # a fifth of the training rows is held out when candidates are compared
# Enough to compare networks; all would take longer than the training between two looks.
_LOOK_POINTS, _LOOK_ANCHORS = 512, 64
_COMPARED = 4096  # validation rows that the last choice is made on


class Kind(Protocol):
    """What determines the shape of a network: of a candidate, or of a network to train."""

    @property
    def activation(self) -> str:
        """Activation of the hidden layers."""

    @property
    def bins(self) -> int:
        """Bins of a feature in the map in front of the network; 0 for no map."""

    @property
    def shares_map(self) -> bool:
        """Whether the networks of a stack share one map."""


@dataclass(frozen=True)
class MapPlan:
    """How a map is learnt, and what gives way to it."""

    extra: int  # numbers that it adds to the features
    hidden: tuple[int, ...]  # widths of the layers of a network behind it
    pace: float = 1.0  # its learning rate, as a share of that of the networks
    decay: float = 0.03  # its weight decay


@dataclass(frozen=True)
class Task:
    """A scaled table, training rows first, and the networks to fit to it.

    The rows after the first ``train`` are for validation; without such, the training rows serve for
    both. A row is drawn in proportion to its weight, and errors are weighted means. Errors of
    several targets are scaled, and means over the targets, each by the rows that measured it.
    """

    x: FloatArray  # scaled features (n, f)
    y: FloatArray  # scaled target (n,), or several (n, m), NaN where one was not measured
    train: int
    scale: float  # units of the target in one scaled unit; 1 for several targets
    hidden: tuple[int, ...]
    foldable: bool = True  # whether training rows may be held out
    batch: int = BATCH  # least examples per step
    groups: Rows | None = None  # numbers from 0 (train,): rows of one are held out together
    weights: FloatArray | None = None  # of rows (n,), on average 1 over the training rows
    folds: int = FOLDS  # parts of the training rows that are held out in turn
    curved: Scaling | None = None  # of a target with a curve: errors are in the user's units
    maps: dict[int, MapPlan] = field(default_factory=dict)  # to try, by their bins
    _knots: dict[int, Knots] = field(default_factory=dict, compare=False, repr=False)

    def batch_of(self, activation: str) -> int:
        """Examples per step of a network with this activation."""
        if activation != "silu":
            return self.batch
        return max(self.batch, min(_STEADY * self.batch, _STEADY_ENOUGH))

    @property
    def targets(self) -> int:
        """Number of targets."""
        return 1 if self.y.ndim == 1 else self.y.shape[1]

    def measured(self, target: int) -> Rows:
        """Rows that measured one of several targets."""
        return np.flatnonzero(np.isfinite(self.y[:, target]))

    def of_target(self, target: int) -> "Self":
        """Return the task of learning one of several targets alone, from rows that measured it."""
        rows = self.measured(target)
        train = rows[rows < self.train]
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows, target],
            train=len(train),
            groups=of_rows(self.groups, train),
            weights=of_rows(self.weights, rows),
            _knots={},
        )

    @property
    def teachable(self) -> bool:
        """Whether a network may learn made-up points from teachers."""
        return True

    def across(self, most: int) -> "Self":
        """Return the task with as many folds as groups, but at most so many."""
        assert self.groups is not None
        return replace(self, folds=min(most, int(self.groups.max()) + 1))

    @property
    def has_folds(self) -> bool:
        """Whether there are training rows to hold out."""
        count = self.train if self.groups is None else int(self.groups.max()) + 1
        return self.foldable and self.train >= 2 * FOLDS and count >= FOLDS

    def fingerprint(self) -> str:
        """Hash of the data: whether two trainings use the same."""
        rest = f"{self.train} {self.scale!r}".encode()
        more = [one.tobytes() for one in (self.groups, self.weights) if one is not None]
        return sha256(b"".join([self.x.tobytes(), self.y.tobytes(), rest, *more])).hexdigest()

    def rows(self, job: NetworkJob) -> Rows:
        """Training rows of a network, in its own order."""
        rng = np.random.default_rng([job.seed, 1])
        return rng.permutation(np.setdiff1d(np.arange(self.train), self._held_out(job)))

    def validation(self, job: NetworkJob) -> Rows:
        """Rows a network is scored on."""
        rest = np.arange(self.train, len(self.y))
        rows = np.concatenate([rest, self._held_out(job)])
        if not len(rows):
            return np.arange(self.train)[:_LOOK_POINTS]
        return rows[:_LOOK_POINTS]

    def architecture(self, kind: Kind) -> Architecture:
        """Shape of the networks."""
        raise NotImplementedError

    def knots(self, bins: int) -> Knots:
        """Knots of a map with so many bins, placed by the training rows."""
        if bins not in self._knots:
            self._knots[bins] = choose_knots(self.x[: self.train], bins)
        return self._knots[bins]

    def coded(self, x: FloatArray, bins: int) -> FloatArray:
        """Return scaled points ``(n, f)`` as the networks are trained on: with codes for a map."""
        return coded(self.knots(bins), x) if bins else x

    def behind_map(
        self, architecture: Architecture, stack: FloatArray, bins: int
    ) -> tuple[Architecture, FloatArray, Callable[[FloatArray], FloatArray]]:
        """Take the maps off a stack of networks.

        Returns the shape of the networks, the networks ``(c, size)``, and the function that turns
        scaled points ``(c, n, f)`` into what each of them takes.
        """
        if not isinstance(architecture, MappedArchitecture):
            return architecture, stack, lambda x: x
        networks, maps = zip(
            *(architecture.without_map(one, self.knots(bins)) for one in stack), strict=True
        )

        def mapped(x: FloatArray) -> FloatArray:
            return np.stack([one.apply(mine) for one, mine in zip(maps, x, strict=True)])

        return architecture.network, np.stack(networks), mapped

    def widened(
        self, x: FloatArray, y: FloatArray, rows: IndexArray, weights: FloatArray | None
    ) -> Examples:
        """Training data of networks that see these rows ``(c, m)`` of another scaled table."""
        raise NotImplementedError

    def examples(self, jobs: list[NetworkJob]) -> Examples:
        """Training data of a stack of these networks."""
        x = self.coded(self.x, jobs[0].bins)
        return self.widened(x, self.y, self._rows_of_all(jobs), self.weights)

    def predict(
        self, architecture: Architecture, stack: FloatArray, x: FloatArray, jobs: list[NetworkJob]
    ) -> FloatArray:
        """Return the scaled targets that networks predict for points ``(c, n, f)``.

        They are ``(c, n)``, of several targets ``(c, n, m)``.
        """
        raise NotImplementedError

    def score(
        self, architecture: Architecture, stack: FloatArray, jobs: list[NetworkJob]
    ) -> FloatArray:
        """RMSE on the validation rows of each network, in units of the target."""
        rows = _even([self.validation(job) for job in jobs])
        return self._rmse(self.predict(architecture, stack, self.x[rows], jobs), rows)

    def errors(
        self, architecture: Architecture, stack: FloatArray, jobs: list[NetworkJob]
    ) -> FloatArray:
        """Errors of the mean of networks on validation rows, or on training rows if none.

        They are in units of the target. Those of rows with weights are multiplied by the root of
        the weight, divided by the mean weight, so that plain means of squares are weighted ones.
        """
        rows = np.arange(self.train, len(self.y))[:_COMPARED]
        rows = rows if len(rows) else np.arange(self.train)[:_COMPARED]
        points = np.broadcast_to(self.x[rows], (len(jobs), len(rows), self.x.shape[1]))
        mean = self.predict(architecture, stack, points, jobs).mean(axis=0)
        if self.targets > 1:
            weights = of_rows(self.weights, rows)
            squares = np.square(mean - self.y[rows], dtype=np.float64)
            errors = np.sqrt(mean_over_targets(squares, np.isfinite(self.y[rows]), weights))
        elif self.curved is None:
            errors = np.asarray((mean - self.y[rows]).astype(np.float64) * self.scale)
        else:
            errors = self.curved.restored(mean) - self.curved.restored(self.y[rows])
        if self.weights is None:
            return errors
        return np.asarray(errors * np.sqrt(self.weights[rows] / self.weights[rows].mean()))

    def fold(self, number: int) -> Rows:
        """Training rows that are held out together; rows of a group stay together."""
        if self.groups is None:
            return _fold(self.train, self.folds, number)
        of_groups = _fold(int(self.groups.max()) + 1, self.folds, number)
        return np.flatnonzero(np.isin(self.groups, of_groups))

    def _held_out(self, job: NetworkJob) -> Rows:
        return np.arange(0) if job.fold is None or not self.has_folds else self.fold(job.fold)

    def _rows_of_all(self, jobs: list[NetworkJob]) -> IndexArray:
        return _even([self.rows(job) for job in jobs]).astype(np.int32)

    def _rmse(self, predicted: FloatArray, rows: Rows) -> FloatArray:
        error, scale = predicted - self.y[rows], self.scale
        if self.curved is not None:
            error, scale = self.curved.restored(predicted) - self.curved.restored(self.y[rows]), 1.0
        weights = None if self.weights is None else self.weights[rows]
        squares = np.square(error, dtype=np.float64)
        if self.targets > 1:
            squares = mean_over_targets(squares, np.isfinite(self.y[rows]), weights)
        rmse: FloatArray = np.sqrt(np.average(squares, axis=-1, weights=weights))
        return rmse * scale


@dataclass(frozen=True)
class PointTask(Task):
    """An ordinary network: x in, y out."""

    def architecture(self, kind: Kind) -> Architecture:
        """Shape of networks that take one point."""
        return Architecture(self.x.shape[1], self.hidden, kind.activation, targets=self.targets)

    def widened(
        self, x: FloatArray, y: FloatArray, rows: IndexArray, weights: FloatArray | None
    ) -> Examples:
        """Single points."""
        return Examples.points(x, y, rows, weights)

    def predict(
        self, architecture: Architecture, stack: FloatArray, x: FloatArray, jobs: list[NetworkJob]
    ) -> FloatArray:
        """Return the plain outputs."""
        return architecture.outputs(stack, x)


@dataclass(frozen=True)
class PairTask(Task):
    """A twin: two points in, the difference of their targets out."""

    # Rows (train, m) that each training row is paired with; any other if None.
    partners: IndexArray | None = None
    # Score with this many nearest training rows as anchors, instead of a random few if None.
    neighbors: int | None = None

    def architecture(self, kind: Kind) -> Architecture:
        """Shape of networks that take two points."""
        features = self.x.shape[1]
        if not kind.bins:
            return Architecture(2 * features, self.hidden, kind.activation, targets=self.targets)
        plan = self.maps[kind.bins]
        return MappedArchitecture(
            2 * (features + plan.extra),
            plan.hidden,
            kind.activation,
            features=features,
            codes=codes_of(self.knots(kind.bins)),
            shared=kind.shares_map,
            pace=plan.pace,
            decay=plan.decay,
            targets=self.targets,
        )

    @property
    def teachable(self) -> bool:
        """Whether any two rows may form a pair, including made-up ones."""
        return self.partners is None and self.neighbors is None

    def widened(
        self, x: FloatArray, y: FloatArray, rows: IndexArray, weights: FloatArray | None
    ) -> Examples:
        """Pairs drawn on the fly."""
        return Examples.pairs(x, y, rows, self.partners, weights)

    def predict(
        self, architecture: Architecture, stack: FloatArray, x: FloatArray, jobs: list[NetworkJob]
    ) -> FloatArray:
        """Return the mean of the estimates, with anchors from a network's training rows."""
        lists = [self.rows(job) for job in jobs]
        network, stack, mapped = self.behind_map(architecture, stack, jobs[0].bins)
        if self.targets == 1:
            return self._mean_estimate(network, stack, mapped, x, lists, self.y)
        found = []
        for target in range(self.targets):
            known = self.measured(target)
            own = [mine[np.isin(mine, known)] for mine in lists]
            # A fold may hold out all rows that measured a target.
            own = [mine if len(mine) else known[known < self.train] for mine in own]
            alone = network.of_target(stack, target)
            found.append(self._mean_estimate(*alone, mapped, x, own, self.y[:, target]))
        return np.stack(found, axis=-1)

    def _mean_estimate(
        self,
        network: Architecture,
        stack: FloatArray,
        mapped: Callable[[FloatArray], FloatArray],
        x: FloatArray,
        lists: list[Rows],
        y: FloatArray,
    ) -> FloatArray:
        """Return the mean of the estimates of a target ``(n,)``, with anchors from these rows."""
        each = None
        if self.neighbors is None:
            chosen = None
            anchors = _even([in_proportion(one, self.weights, _LOOK_ANCHORS) for one in lists])
            values = y[anchors][:, None]
        else:
            anchors = _even(lists)
            chosen = np.stack(
                [
                    nearest(self.x[mine], points, self.neighbors)
                    for mine, points in zip(anchors, x, strict=True)
                ]
            )
            used = np.stack([mine[c] for mine, c in zip(anchors, chosen, strict=True)])
            values, each = y[used], None if self.weights is None else self.weights[used]
        blocks = differences(network, stack, mapped(x), mapped(self.x[anchors]), chosen)
        estimates = np.concatenate(list(blocks), axis=1) + values
        return np.asarray(np.average(estimates, axis=2, weights=each))


def _fold(count: int, folds: int, number: int) -> Rows:
    """One of the random parts of ``count`` rows or groups."""
    return np.array_split(np.random.default_rng(0).permutation(count), folds)[number]


def _even(lists: list[Rows]) -> Rows:
    """Stack lists of rows into one array; the shorter ones are repeated from their start."""
    longest = max(map(len, lists))
    return np.stack([np.resize(rows, longest) for rows in lists])
