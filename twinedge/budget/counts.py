"""How many numbers a model is (the paper's "Miniaturizing accurate networks")."""

from collections.abc import Iterable
from itertools import pairwise

Hidden = int | Iterable[int]


def layers(hidden: Hidden) -> tuple[int, ...]:
    """Widths of hidden layers, of which a number is one.

    Examples
    --------
    >>> layers(8), layers([64, 32])
    ((8,), (64, 32))
    """
    return tuple(hidden) if isinstance(hidden, Iterable) else (int(hidden),)


def network_params(inputs: int, hidden: Hidden) -> int:
    """Weights and biases of a network with one output."""
    widths = (inputs, *layers(hidden), 1)
    return sum(rows * columns + columns for rows, columns in pairwise(widths))


def ann_params(features: int, hidden: Hidden, members: int) -> int:
    """Parameters of an ensemble of ordinary networks.

    Examples
    --------
    >>> ann_params(8, (128, 128), 32)
    569376
    """
    return members * network_params(features, hidden)


def twin_params(features: int, hidden: Hidden, anchors: int, twins: int = 1) -> int:
    """Parameters of twins and all their anchors; an anchor is its features and its target.

    Examples
    --------
    >>> twin_params(8, (128, 128), 32)
    19105
    """
    return twins * network_params(2 * features, hidden) + anchors * (features + 1)
