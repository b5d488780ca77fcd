"""Join packs for one target each into one for several, with one network for all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Pack, Target


def joined(packs: Sequence[Pack]) -> Pack:
    """Return one pack for the targets of several packs for one.

    These must be alike in all but what belongs to a target: ``single`` gives them back.

    Raises
    ------
    InputError
        If they have other features, hidden layers or anchors.
    """
    first, *rest = packs
    if not rest:
        return first
    for one in rest:
        if _shared(one) != _shared(first):
            raise InputError("packs of other features, hidden layers or anchors cannot be joined")
    outputs = [[twin.outputs[0] for twin in one.twins] for one in packs]
    twins = zip(first.twins, *outputs[1:], strict=True)
    return replace(
        first,
        twins=tuple(replace(twin, others=tuple(others)) for twin, *others in twins),
        others=tuple(one.every_target[0] for one in rest),
        metadata=_joined_metadata([one.metadata for one in packs]),
    )


_OF_A_TARGET = {"twins", "metadata", "others", "release", *Target.__dataclass_fields__}


def _shared(pack: Pack) -> list[Any]:
    """All that targets share, as values that can be compared."""
    fields = [value for name, value in vars(pack).items() if name not in _OF_A_TARGET]
    return [_plain(one) for one in (*fields, *(twin.layers for twin in pack.twins))]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return [_plain(one) for one in vars(value).values()] if hasattr(value, "__dict__") else value


def _joined_metadata(all_metadata: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what all say alike, and below "targets" what each says by itself."""
    first, *rest = all_metadata
    alike = {
        key: value
        for key, value in first.items()
        if all(key in one and one[key] == value for one in rest)
    }
    own = [{key: value for key, value in one.items() if key not in alike} for one in all_metadata]
    return {**alike, "targets": own}
