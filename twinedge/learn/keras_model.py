"""The trained twins as one Keras model, in the units of the table, and back.

The model takes two points and gives a difference for each twin. Scaling is part of it, so that it
can be opened and used by anyone who has Keras.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.learn.backend import tf
from twinedge.learn.network import ACTIVATIONS, Architecture, FloatArray
from twinedge.learn.scaling import FARTHEST, Scaling

layers = tf.keras.layers


def to_keras(architecture: Architecture, weights: FloatArray, scaling: Scaling) -> Any:
    """Build the model: inputs ``first`` and ``second`` ``(n, f)``, output ``(n, twins)``."""
    features = architecture.inputs // 2
    inputs = [layers.Input((features,), name=name) for name in ("first", "second")]
    # Not Normalization: it takes a spread below 1e-7, of a capacity in farads say, for zero.
    centre = layers.Rescaling(1.0, offset=-scaling.x_mean, name="centre")
    scale = layers.Rescaling(1 / scaling.x_scale, name="scale")
    scaled = [scale(centre(point)) for point in inputs]
    if scaling.limit < FARTHEST:
        scaled = [tf.keras.ops.clip(point, -scaling.limit, scaling.limit) for point in scaled]
    pair = layers.Concatenate(name="pair")(scaled)
    outputs = []
    for twin, network in enumerate(weights):
        x, dense = pair, []
        for depth, (_, width) in enumerate(architecture.layers):
            last = depth == len(architecture.hidden)
            activation = None if last else architecture.activation
            dense.append(layers.Dense(width, activation, name=f"twin{twin}_layer{depth}"))
            x = dense[-1](x)
        for layer, (kernel, bias) in zip(dense, architecture.parts(network), strict=True):
            layer.set_weights([kernel, bias])
        outputs.append(x)
    stacked = layers.Concatenate(name="twins")(outputs) if len(outputs) > 1 else outputs[0]
    outputs = layers.Rescaling(scaling.y_scale, name="unscale")(stacked)
    return tf.keras.Model(inputs, outputs, name="twin")


def save_keras(model: Any, path: Path) -> None:
    """Save a model so that the same model gives the same bytes.

    A Keras file is a zip archive with the time of saving in several places; all are set back.
    """
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in sorted(archive.namelist())}
    metadata = json.loads(members["metadata.json"])
    members["metadata.json"] = json.dumps({**metadata, "date_saved": ""}).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def from_keras(model: Any) -> tuple[Architecture, FloatArray]:
    """Take the networks out of a model that ``to_keras`` built."""
    dense = {one.name: one for one in model.layers if isinstance(one, layers.Dense)}
    try:
        twins = 1 + max(int(name[4:].partition("_")[0]) for name in dense)
        depth = len(dense) // twins
        stacks = [[dense[f"twin{t}_layer{d}"] for d in range(depth)] for t in range(twins)]
        first = stacks[0]
        activation = first[0].activation.__name__
    except (KeyError, IndexError, ValueError) as error:
        raise InputError("twin.keras holds no twins of twinedge") from error
    if activation not in ACTIVATIONS:
        raise InputError(f"twin.keras has an activation that twinedge does not know: {activation}")
    hidden = tuple(int(layer.units) for layer in first[:-1])
    architecture = Architecture(int(first[0].kernel.shape[0]), hidden, activation)
    weights = np.zeros((twins, architecture.size), np.float32)
    for network, stack in zip(weights, stacks, strict=True):
        for (kernel, bias), layer in zip(architecture.parts(network), stack, strict=True):
            kernel[...], bias[...] = layer.get_weights()
    return architecture, weights
