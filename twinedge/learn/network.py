"""The network of the paper, and stacks of them held in one array.

A network is a multilayer perceptron with one output. All its kernels and biases lie one behind the
other in a flat vector, and a stack of ``c`` networks is an array of shape ``(c, size)``: one
optimiser step then is a handful of operations however many networks there are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.learn.backend import tf

FloatArray = npt.NDArray[Any]

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": tf.nn.relu, "silu": tf.nn.silu}


@dataclass(frozen=True)
class Architecture:
    """Shape of one network.

    Parameters
    ----------
    inputs : int
        Length of the input: the features of a pair for a twin, of one point for an ordinary
        network.
    hidden : tuple of int
        Width of each hidden layer.
    activation : {"relu", "silu"}
        Activation of the hidden layers; the output is linear.
    """

    inputs: int
    hidden: tuple[int, ...]
    activation: str

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer, first to last."""
        widths = [self.inputs, *self.hidden, 1]
        return list(pairwise(widths))

    @property
    def sizes(self) -> list[int]:
        """Lengths of the parts of the flat vector: kernel, bias, kernel, bias, ..."""
        return [size for rows, columns in self.layers for size in (rows * columns, columns)]

    @property
    def size(self) -> int:
        """Parameters of one network."""
        return sum(self.sizes)

    def initial(self, seeds: list[int]) -> FloatArray:
        """Draw Glorot-uniform kernels and zero biases, one network ``(size,)`` for each seed."""
        stack = np.zeros((len(seeds), self.size), np.float32)
        for network, seed in zip(stack, seeds, strict=True):
            rng = np.random.default_rng(seed)
            for kernel, _ in self.parts(network):
                limit = np.sqrt(6 / sum(kernel.shape))
                kernel[...] = rng.uniform(-limit, limit, kernel.shape)
        return stack

    def parts(self, network: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """View a network as the kernel ``(inputs, outputs)`` and bias of each layer."""
        pieces = np.split(network, np.cumsum(self.sizes)[:-1])
        return [
            (kernel.reshape(shape), bias)
            for shape, kernel, bias in zip(self.layers, pieces[::2], pieces[1::2], strict=True)
        ]

    def kernel_mask(self) -> FloatArray:
        """1 where the flat vector holds a kernel, 0 for a bias: what weight decay acts on."""
        flags = [1.0, 0.0] * len(self.layers)
        return np.repeat(flags, self.sizes).astype(np.float32)

    def tensors(self, stack: Any) -> list[tuple[Any, Any]]:
        """Kernel ``(c, inputs, outputs)`` and bias ``(c, 1, outputs)`` of each layer of a stack."""
        pieces = tf.split(stack, self.sizes, axis=1)
        return [
            (tf.reshape(kernel, (-1, *shape)), tf.expand_dims(bias, 1))
            for shape, kernel, bias in zip(self.layers, pieces[::2], pieces[1::2], strict=True)
        ]

    def forward(self, stack: Any, x: Any) -> Any:
        """Return outputs ``(c, n)`` of a stack for inputs ``(c, n, inputs)``."""
        activate = ACTIVATIONS[self.activation]
        *hidden, (kernel, bias) = self.tensors(stack)
        for hidden_kernel, hidden_bias in hidden:
            x = activate(tf.matmul(x, hidden_kernel) + hidden_bias)
        return tf.squeeze(tf.matmul(x, kernel) + bias, 2)
