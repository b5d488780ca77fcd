"""Break-evens: where the twin gets smaller, and the largest model that fits."""

from collections.abc import Callable
from dataclasses import replace

from twinedge.budget.counts import network_params
from twinedge.budget.model import Model
from twinedge.budget.storage import KERNELS, ann_bytes, twin_bytes
from twinedge.pack.layout import ALIGNMENT, MAX_ANCHORS, MAX_WIDTH


def smaller_in_params(model: Model) -> int:
    """Count the members from which on the twins have fewer parameters than ordinary networks."""
    twins = model.twins * network_params(2 * model.features, model.hidden)
    saved = network_params(model.features, model.hidden) - (model.features + 1)
    return max(model.twins, twins // saved + 1)


def smaller_in_bytes(model: Model) -> int | None:
    """Count the members from which on the twins take fewer bytes than ordinary networks.

    None where they never do (an anchor may take as much as a network), or not up to the most
    anchors that a pack holds.
    """

    def saved(members: int) -> int:
        return ann_bytes(model, members) - twin_bytes(model.with_anchors(members))

    # Saved bytes grow by the same amount with every member, but for the alignment.
    least, most = model.twins, _most_anchors(model)
    if model.weights not in KERNELS:
        return smaller_in_params(model)
    growth = (saved(most) - saved(least)) / (most - least)
    if growth <= 0 or saved(most) <= 0:
        return None
    members = min(most, max(least, int((2 * ALIGNMENT - saved(least)) / growth) + least + 1))
    while members > least and saved(members - 1) > 0:
        members -= 1
    return members


def most_anchors(model: Model, flash: int) -> int:
    """Most anchors, the same for each twin, with which the pack has at most ``flash`` bytes."""

    def fits(share: int) -> bool:
        return twin_bytes(model.with_anchors(share * model.twins)) <= flash

    return model.twins * largest(fits, min(flash, _most_anchors(model)) // model.twins)


def most_networks(model: Model, flash: int) -> int:
    """Most ordinary networks of this shape that take at most ``flash`` bytes."""
    return largest(lambda members: ann_bytes(model, members) <= flash, flash)


def most_features(model: Model, flash: int) -> int:
    """Most features with which the pack has at most ``flash`` bytes."""

    def fits(features: int) -> bool:
        return twin_bytes(replace(model, features=features)) <= flash

    return largest(fits, MAX_WIDTH if model.weights in KERNELS else flash)


def largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number, 1 to ``most``, that fits, if all below it do; 0 for none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _most_anchors(model: Model) -> int:
    return MAX_ANCHORS if model.weights in KERNELS else 1 << 62
