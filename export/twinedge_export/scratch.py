"""How much scratch a pack takes, for a C program that has to say so before it is compiled."""

from twinedge.pack import Pack

# What kernels ask for at most (src/twin_kernel.h), in bytes: any for each anchor of a block,
# and beyond that those whose blocks are of more than one.
_UNIT, _ALIGN, _STORED, _FEATURES = 4, 8, 4, 4
_MORE_ALIGN, _MORE_STORED = 24, 8


def scratch_expression(pack: Pack) -> str:
    """Return a C expression in macros of ``twin_config.h``: bytes that are enough.

    It follows ``twin_scratch_size``, with the most that any kernel asks for, and is a multiple of
    4. Without neighbours in the pack it counts on ``TWIN_NEIGHBOURS`` being 0.
    """
    features = _up(pack.features)
    stored = sum(_up(width) for width in pack.hidden[:-1])  # the last layer is folded
    sections = len(pack.hidden) + 3
    nearest = 8 * int(pack.counts.max()) if pack.neighbors else 0
    fixed = nearest + 2 * features + _ALIGN * sections
    anchor = _STORED * stored + _FEATURES * features
    partial = 8 * pack.hidden[0]
    more = _MORE_STORED * stored + _MORE_ALIGN * sections
    lines = " + TWIN_SILU_BYTES" if pack.activation == "silu" else ""
    return (
        f"({fixed}u + {anchor}u * TWIN_BLOCK + {partial}u * TWIN_PARTIAL + "
        f"{more}u * (TWIN_BLOCK > 1){lines} + TWIN_WORK_BYTES)"
    )


def _up(count: int) -> int:
    return -(-count // _UNIT) * _UNIT
