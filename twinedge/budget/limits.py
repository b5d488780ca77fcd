"""From how many members on twins are smaller than ordinary networks; what fits into some bytes."""

from dataclasses import replace

from twinedge.budget.model import (
    KERNELS,
    Model,
    ann_bytes,
    largest,
    network_params,
    pack_fault,
    twin_bytes,
)
from twinedge.defaults import ANCHORS, MAP_EXTRA
from twinedge.pack.layout import ALIGNMENT, MAX_ANCHORS, MAX_WIDTH

_NARROWEST, _NARROWER = 16, 4  # least width that makes room for a map, and steps to it


def smaller_in_params(model: Model) -> int | None:
    """Count the members from which on the twins have fewer parameters than ordinary networks.

    None if they never do: with many outputs of a map, an anchor may be as large as a network.
    """
    twins = model.twins * network_params(2 * model.inputs, model.hidden) + model.map_params
    saved = network_params(model.features, model.hidden) - (model.inputs + 1)
    return max(model.twins, twins // saved + 1) if saved > 0 else None


def smaller_in_bytes(model: Model) -> int | None:
    """Count the members from which on the twins take fewer bytes than ordinary networks.

    None if they never do (an anchor may take as much as a network), or only with more anchors than
    a pack holds.
    """

    def saved(members: int) -> int:
        return ann_bytes(model, members) - twin_bytes(model.with_anchors(members))

    # Saved bytes grow by the same amount with every member, except for alignment.
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
    """Most anchors, the same for each twin, whose pack takes at most ``flash`` bytes."""

    def fits(share: int) -> bool:
        return twin_bytes(model.with_anchors(share * model.twins)) <= flash

    return model.twins * largest(fits, min(flash, _most_anchors(model)) // model.twins)


def most_networks(model: Model, flash: int) -> int:
    """Most ordinary networks of this shape that take at most ``flash`` bytes."""
    return largest(lambda members: ann_bytes(model, members) <= flash, flash)


def most_features(model: Model, flash: int) -> int:
    """Most features whose pack takes at most ``flash`` bytes."""
    packed = model.weights in KERNELS

    def fits(features: int) -> bool:
        grown = model.with_features(features)
        return (not packed or pack_fault(grown) is None) and twin_bytes(grown) <= flash

    return largest(fits, MAX_WIDTH if packed else flash)


def with_map(model: Model, bins: int, *, narrow: bool) -> Model:
    """Return a model with the input map that training would put in front of it.

    Parameters
    ----------
    model : Model
        Without a map.
    bins : int
        Straight pieces of the curve of each feature.
    narrow : bool
        Whether layers give way to the map, as they do in training if nobody names their widths.
    """
    features = model.features
    mapped = replace(
        model,
        map_outputs=features + MAP_EXTRA,
        map_rows=features * (bins + 1),
        map_curves=features,
    )
    if not narrow or pack_fault(mapped):
        return mapped
    sizes = model.hidden, mapped.map_outputs, mapped.map_rows
    return replace(mapped, hidden=narrowed(features, model.twins, *sizes))


def narrowed(
    features: int, twins: int, hidden: tuple[int, ...], outputs: int, rows: int
) -> tuple[int, ...]:
    """Return the widest layers with which a pack with an input map is not larger than without.

    Parameters
    ----------
    features, twins : int
    hidden : tuple of int
        Widths without a map.
    outputs, rows : int
        Of the map.

    Examples
    --------
    >>> narrowed(8, 4, (56, 56), outputs=16, rows=72)
    (48, 44)
    """
    plain = Model.of(features, hidden, max(ANCHORS, twins), twins=twins, intervals=True)
    curves = min(features, rows // 2)
    mapped = replace(plain, map_outputs=outputs, map_rows=rows, map_curves=curves)
    widths = list(hidden)
    while max(widths) > _NARROWEST:
        if twin_bytes(replace(mapped, hidden=tuple(widths))) <= twin_bytes(plain):
            break
        last_of_widest = max(range(len(widths)), key=lambda k: (widths[k], k))
        widths[last_of_widest] -= _NARROWER
    return tuple(widths)


def _most_anchors(model: Model) -> int:
    return MAX_ANCHORS if model.weights in KERNELS else 1 << 62
