"""What is meant where nothing is said: each default once, for Python and the command line.

Nothing is imported here, so that every part of the package may import this.
"""

ANCHORS = 32  # training points that travel to a device, of all twins together
NEIGHBORS = 32  # partners of each point that is trained with its neighbors
WEIGHTS = "int8"  # kernels of a pack
WITHIN = 0.01  # fraction by which the error with the fewest anchors may exceed that with all
TOLERANCE = 0.02  # fraction by which rounding may raise the validation error
COVERAGE = 0.9  # share of the true values between low and high
ANN_STEPS = 4000  # training steps of the ordinary networks that a report compares with

RUN = "runs/latest"  # folder that train writes
OUTPUT = "out"  # folder that export writes

# Four small twins take the bytes of one large twin.
TWINS = 4
HIDDEN = (56, 56)
HIDDEN_OF_ONE = (128, 128)

# A map in front of the twins: bins of a feature, at most, and numbers that it makes in addition to
# the features.
MAP_BINS, MAP_EXTRA = 16, 8
MANY_ROWS = 3000  # training rows of a long table


def shape(
    twins: int | None = None, hidden: tuple[int, ...] | None = None
) -> tuple[int, tuple[int, ...]]:
    """Return the number of twins and the widths of their hidden layers, as training chooses them.

    A single network needs the width of four, and widths that somebody names are those of one
    network, unless the number of twins is named, too.

    Parameters
    ----------
    twins : int, optional
        Number of networks, if it is given.
    hidden : tuple of int, optional
        Widths of the hidden layers, if they are given.

    Examples
    --------
    >>> shape(), shape(twins=1), shape(hidden=(32,))
    ((4, (56, 56)), (1, (128, 128)), (1, (32,)))
    """
    if hidden is not None:
        return 1 if twins is None else twins, hidden
    twins = TWINS if twins is None else twins
    return twins, HIDDEN_OF_ONE if twins == 1 else HIDDEN
