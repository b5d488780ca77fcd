"""Rounding a layer's weights so that their errors cancel on the data.

Rounded each by itself, weights err at random, and the errors of a sum add up as chance has it. But
the inputs of a layer go together, and one can stand in for another. So weights are rounded one
after the other, and each is first moved by what the errors before it cost: the layer answers the
inputs it will see as if it had far finer weights. The method is known as Babai's nearest plane, and
for networks as GPTQ. Before that the weights are fitted anew to the inputs as the layers before
left them, so that it makes good for the rounding there, too.
"""

import numpy as np

from twinedge.pack.contents import Array

# How strongly weights are held where the data say nothing, as a part of the inputs' mean square. A
# tenth of it does as well; ten times as much leaves errors that could have been made good.
_HOLD = 1e-3


class Calibration:
    """Whole numbers that come into a layer, and what it should make of them.

    Parameters
    ----------
    inputs : array of shape (n, i)
        As the layer gets them on a device.
    wanted : array of shape (n, outputs)
        What the float network has there, before the activation.
    bias : bool
        Whether the layer adds a constant; it then is the last of the weights.
    """

    def __init__(self, inputs: Array, wanted: Array, *, bias: bool) -> None:
        self._count = inputs.shape[1]
        self._inputs = np.column_stack([inputs, np.ones(len(inputs))]) if bias else inputs
        self._wanted = wanted
        self._gram = self._inputs.T @ self._inputs / len(inputs)
        weights = np.arange(self._count)
        # Plus the square of one unit, for inputs that are always zero.
        self._gram[weights, weights] += _HOLD * self._gram.diagonal()[weights].mean() + 1

    def fitted(self, rows: Array) -> Array:
        """Move weights ``(outputs, i)``, per unit of their inputs, to where the data want them."""
        off = self._wanted - self._inputs @ rows.T
        move: Array = np.linalg.solve(self._gram, self._inputs.T @ off / len(off))
        return rows + move.T

    def rounded(self, rows: Array, most: int) -> Array:
        """Round weights ``(outputs, i)`` that are given in steps; none but a bias exceeds ``most``.

        With the Gram matrix written as R R', R upper triangular, the error of a row is the length
        of R'(row - whole). Its entries are made small one by one: each weight decides one, given
        those before it.
        """
        strongest_first = np.argsort(-self._gram.diagonal()[: self._count], kind="stable")
        order = np.append(strongest_first, np.arange(self._count, rows.shape[1]))
        gram = self._gram[np.ix_(order, order)]
        root = np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1]
        whole, error = np.empty_like(rows), np.empty_like(rows)
        for place, column in enumerate(order):
            before = error[:, :place] @ root[:place, place] / root[place, place]
            limit = most if column < self._count else np.inf
            whole[:, column] = np.rint(rows[:, column] + before).clip(-limit, limit)
            error[:, place] = rows[:, column] - whole[:, column]
        return whole
