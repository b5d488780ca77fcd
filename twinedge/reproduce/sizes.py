"""Sizes at which the curves of an experiment are read off."""

NEIGHBOURS = (1, 2, 4, 8, 16, 32, 64, 128)
ANCHORS = (1, 2, 4, 8, 16, 32, 64)
MULTIPLIERS = (1, 2, 4, 8, 16, 32)
# The paper's weights of loops. Its code adds loops at a weight of 0, too, as labels that correct
# nothing; a LoopRegressor does not, so a weight that is as good as none stands for it.
LOOP_WEIGHTS = (1e-12, 0.001, 0.01, 0.1, 1 / 3, 1.0, 10 / 3, 10.0, 100 / 3)


def sizes(members: int) -> tuple[int, ...]:
    """Powers of two below the number of members, and that number.

    Examples
    --------
    >>> sizes(6)
    (1, 2, 4, 6)
    """
    return (*(2**k for k in range(members.bit_length()) if 2**k < members), members)
