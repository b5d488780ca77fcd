"""What is counted: twins with their anchors, and the ordinary ensemble they stand for."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

from twinedge.budget import counts
from twinedge.budget.counts import Hidden, layers
from twinedge.errors import InputError
from twinedge.pack.layout import ACTIVATIONS, MAX_LEVELS, MAX_TWINS

# How weights can be stored: the first two as a pack does, the others as bare numbers.
WEIGHTS = ("int8", "int16", "float16", "float32")
LEVELS = 5  # of a pack with intervals, unless few rows support fewer


@dataclass(frozen=True)
class Model:
    """Shape of a model; ``Model.of`` makes one from plain numbers.

    Parameters
    ----------
    features : int
        Features of a point.
    hidden : tuple of int
        Widths of the hidden layers.
    counts : tuple of int
        Anchors of each twin.
    neighbors : int
        How many nearest anchors of each twin predict; 0 for all.
    activation : {"relu", "silu"}
        Of the hidden layers.
    weights : {"int8", "int16", "float16", "float32"}
        How weights are stored.
    intervals : bool
        Whether the pack says how far off predictions are to be expected, and how usual a query is.
    levels : int
        Levels of these intervals; 0 where the pack has ranges of the features and no more. Nothing
        but the length of the pack depends on it, so models are compared without.
    """

    features: int
    hidden: tuple[int, ...]
    counts: tuple[int, ...]
    neighbors: int = 0
    activation: str = "relu"
    weights: str = "int8"
    intervals: bool = False
    levels: int = field(default=LEVELS, compare=False)

    def __post_init__(self) -> None:
        for what, number in (
            ("features", self.features),
            ("hidden layers", len(self.hidden)),
            *(("neurons in a layer", width) for width in self.hidden),
            ("twins", self.twins),
            *(("anchors of a twin", count) for count in self.counts),
        ):
            if number < 1:
                raise InputError(f"{number} {what}: a model has at least 1")
        if self.neighbors < 0:
            raise InputError(f"{self.neighbors} neighbors: 0 is for all anchors, or 1 or more")
        if self.activation not in ACTIVATIONS:
            raise InputError(f"activation {self.activation!r} is not {' or '.join(ACTIVATIONS)}")
        if self.weights not in WEIGHTS:
            raise InputError(f"weights {self.weights!r} are not one of {', '.join(WEIGHTS)}")
        if not 0 <= self.levels <= MAX_LEVELS:
            raise InputError(f"{self.levels} levels: a pack has 0 to {MAX_LEVELS}")

    @classmethod
    def of(
        cls,
        features: int,
        hidden: Hidden = (128, 128),
        anchors: int = 32,
        *,
        twins: int = 1,
        neighbors: int = 0,
        activation: str = "relu",
        weights: str = "int8",
        intervals: bool = False,
    ) -> "Model":
        """Make a model whose twins share the anchors as evenly as can be.

        ``hidden`` is the widths of the hidden layers, or that of the only one.
        """
        widths, shares = layers(hidden), deal(anchors, twins)
        return cls(features, widths, shares, neighbors, activation, weights, intervals)

    @property
    def twins(self) -> int:
        """Networks."""
        return len(self.counts)

    @property
    def anchors(self) -> int:
        """Stored points of all twins together."""
        return sum(self.counts)

    @property
    def members(self) -> int:
        """Estimates in one prediction: the size of the ensemble."""
        return sum(self.evaluated)

    @property
    def evaluated(self) -> tuple[int, ...]:
        """Anchors of each twin that predict."""
        return tuple(min(count, self.neighbors or count) for count in self.counts)

    @property
    def scaled(self) -> bool:
        """Whether twins have a second output: for intervals, not for ranges of features alone."""
        return self.intervals and self.levels > 0

    @property
    def ann_params(self) -> int:
        """Parameters of as many ordinary networks as there are members."""
        return counts.ann_params(self.features, self.hidden, self.members)

    @property
    def twin_params(self) -> int:
        """Parameters of the twins, and their anchors, as the paper counts: without intervals."""
        return counts.twin_params(self.features, self.hidden, self.anchors, self.twins)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one query, both orders of each pair.

        The query's half of the first layer is computed once for each twin, the anchor's half and
        everything behind it once for each anchor that predicts. Neighbours cost a distance to
        every anchor, intervals a second output in one of the two orders.
        """
        half = self.features * self.hidden[0]
        behind = sum(rows * columns for rows, columns in pairwise((*self.hidden, 1)))
        distances = self.features * self.anchors if self.neighbors else 0
        second = self.members * self.hidden[-1] if self.scaled else 0
        return 2 * (self.twins * half + self.members * (half + behind)) + second + distances

    def with_anchors(self, anchors: int) -> "Model":
        """Return the same with another number of anchors."""
        return replace(self, counts=deal(anchors, self.twins))


def deal(anchors: int, twins: int) -> tuple[int, ...]:
    """Share anchors among twins; the first ones get what is left over."""
    if not 1 <= twins <= MAX_TWINS:
        raise InputError(f"{twins} twins: a pack has 1 to {MAX_TWINS}")
    if anchors < twins:
        raise InputError(f"{anchors} anchors for {twins} twins: each needs at least one")
    share, rest = divmod(anchors, twins)
    return tuple(share + (twin < rest) for twin in range(twins))
