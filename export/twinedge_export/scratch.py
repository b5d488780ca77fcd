"""How much scratch a pack takes, for a C program that has to say so before it is compiled."""

from twinedge.pack import Pack

# What kernels ask for at most (src/twin_kernel.h): the portable one, and what others ask for beyond
# it, which all take more than one anchor side by side.
_UNIT, _ALIGN, _MORE_ALIGN = 4, 8, 24
_MORE_STORED, _MORE_FEATURES = 8, 4  # bytes


def scratch_expression(pack: Pack) -> str:
    """Return a C expression in ``TWIN_BLOCK`` and ``TWIN_PARTIAL``: bytes that are enough.

    It follows ``twin_scratch_size``, with the most that any kernel asks for, and is a multiple of
    4. Without neighbours in the pack it counts on ``TWIN_NEIGHBOURS`` being 0.
    """
    features = _up(pack.features)
    stored = sum(_up(width) for width in pack.hidden[:-1])  # the last layer is folded
    sections = len(pack.hidden) + 3
    nearest = 8 * int(pack.counts.max()) if pack.neighbors else 0
    fixed = nearest + 2 * features + _ALIGN * sections
    anchor = 4 * stored + 2 * features
    partial = 8 * pack.hidden[0]
    more = _MORE_STORED * stored + _MORE_FEATURES * features + _MORE_ALIGN * sections
    return (
        f"({fixed}u + {anchor}u * TWIN_BLOCK + {partial}u * TWIN_PARTIAL + "
        f"{more}u * (TWIN_BLOCK > 1))"
    )


def _up(count: int) -> int:
    return -(-count // _UNIT) * _UNIT
