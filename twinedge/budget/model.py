"""What is counted: twins with their anchors, and the ordinary ensemble they stand for."""

from dataclasses import dataclass, replace
from itertools import pairwise

from twinedge.budget import counts
from twinedge.errors import InputError
from twinedge.pack.layout import ACTIVATIONS, MAX_TWINS

# How weights can be stored: the first two as a pack does, the others as bare numbers.
WEIGHTS = ("int8", "int16", "float16", "float32")


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
    """

    features: int
    hidden: tuple[int, ...]
    counts: tuple[int, ...]
    neighbors: int = 0
    activation: str = "relu"
    weights: str = "int8"

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

    @classmethod
    def of(
        cls,
        features: int,
        hidden: tuple[int, ...] = (128, 128),
        anchors: int = 32,
        *,
        twins: int = 1,
        neighbors: int = 0,
        activation: str = "relu",
        weights: str = "int8",
    ) -> "Model":
        """Make a model whose twins share the anchors as evenly as can be."""
        return cls(features, hidden, deal(anchors, twins), neighbors, activation, weights)

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
    def ann_params(self) -> int:
        """Parameters of as many ordinary networks as there are members."""
        return counts.ann_params(self.features, self.hidden, self.members)

    @property
    def twin_params(self) -> int:
        """Parameters of the twins, and their anchors."""
        return counts.twin_params(self.features, self.hidden, self.anchors, self.twins)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one query, both orders of each pair.

        The query's half of the first layer is computed once for each twin, the anchor's half and
        everything behind it once for each anchor that predicts. Neighbours cost a distance to
        every anchor.
        """
        half = self.features * self.hidden[0]
        behind = sum(rows * columns for rows, columns in pairwise((*self.hidden, 1)))
        distances = self.features * self.anchors if self.neighbors else 0
        return 2 * (self.twins * half + self.members * (half + behind)) + distances

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
