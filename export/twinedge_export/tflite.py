"""TensorFlow Lite files, as the TensorFlow converter makes them.

``int8`` is integers from the input on: it takes and gives int8, and computes with int8 to the
difference of each pair. Anchor targets, mean and spread follow in floats, for a handful of
numbers, and scale and intervals stay floats. A query of 8 bits is too coarse for a smooth target,
whatever comes behind: the other levels take and give floats, in the user's units, and round the
layers between the first and the output, where nearly all multiply-adds are.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from twinedge.learn.backend import tf
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.silence import silence
from twinedge_export.describing import check, describe
from twinedge_export.folding import Inputs, fold
from twinedge_export.graph import SHAPES, Graph, Part, Tensors
from twinedge_export.grid import with_core_on_grid
from twinedge_export.joining import Edge, join

# From the smallest and fastest file to the most exact.
LEVELS = ("int8", "int8, float edges", "int16, float edges", "float32")
# Those that take and give floats.
FLOAT_IO = LEVELS[1:]

_HEADROOM = 1.25  # of int16 activations over what they reach on training data
_ROOM = 0.125  # of the range that int8 outputs have on training data, on either side


def tflite_model(
    model: TwinRegressor,
    rows: Sequence[Array],
    *,
    shape: str = "ensemble",
    level: str = "int8",
    metadata: dict[str, Any] | None = None,
    pack: Pack | None = None,
) -> bytes:
    """Make a TensorFlow Lite file; its batch is free.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    rows : one array of int for each twin
        Training rows that are its anchors.
    shape : {"ensemble", "twin"}
        ``ensemble`` takes ``x`` (n, f) and gives ``mean`` and ``spread`` (n,) over all anchors of
        all twins; ``twin`` takes ``first`` and ``second`` (n, f) and gives the ``difference``
        (n, twins), that of each twin in one order of the pair. In units of the target.
    level : str
        One of ``LEVELS``. "int8" takes and gives int8, but for the floats of a scale and intervals;
        what an integer stands for is in the metadata. The others take and give float32 in the
        user's units. "float32" rounds nothing; the others have int8 weights, with a scale for each
        output, and activations as the name says.
    metadata : dict, optional
        Names, units, ranges; stored in the file with what is needed to use it.
    pack : Pack, optional
        Of the same model. With its intervals, an ensemble further gives the ``scale`` (n,) of the
        error that is to be expected, and ``low`` and ``high`` (n, levels), a column for each of the
        metadata's ``coverages``; a twin gives the ``difficulty`` (n, twins) of the second point.
        Means, spreads and differences stay as they are.

    Raises
    ------
    InputError
        Where the shape or level is unknown, anchors are not rows of the training points, an
        ensemble is wanted of a model that was trained on neighbours, or the pack is of another
        model.
    """
    check(model, shape, level, LEVELS)
    integers = level == "int8"
    inputs = Inputs.spanned(model) if integers else Inputs.scaled(model)
    graph = SHAPES[shape](fold(model, rows, inputs, pack), integers=integers)
    about = describe(graph.folding, shape, level, metadata, pack)
    queries = graph.calibration(model)
    if level == "float32":
        parts = _converted([Part(graph.whole, False)], queries)
        return join(parts, order=graph.outputs, metadata=about)
    graph = with_core_on_grid(graph, queries)
    activations = tf.int16 if level.startswith("int16") else tf.int8
    edges = tf.int8 if integers else tf.float32
    parts = _converted(graph.parts, queries, activations=activations, edges=edges)
    meaning = _edges(graph, queries) if integers else None
    return join(parts, order=graph.outputs, metadata=about, integers=meaning)


def _converted(
    parts: list[Part],
    data: Tensors,
    *,
    activations: Any = None,
    edges: Any = tf.float32,
) -> list[bytes]:
    """Convert parts that follow each other.

    ``data`` is what comes into the first, to see the ranges of those that are rounded; such a part
    gets ``activations``, and ``edges`` where it is the first or the last.
    """
    files = []
    for number, part in enumerate(parts):
        module = _traced(part, data)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call], module)
        if part.rounded:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda seen=data: _widened(seen, activations)
            converter.target_spec.supported_ops = [_ops(activations)]
            if number == 0:
                converter.inference_input_type = edges
            if number == len(parts) - 1:
                converter.inference_output_type = edges
        with silence():
            files.append(converter.convert())
        data = {name: one.numpy() for name, one in part.call(data).items()}
    return files


def _widened(seen: Tensors, activations: Any) -> Iterator[Tensors]:
    """Give representative data, and something beyond them for queries that are."""
    yield seen
    if activations is tf.int16:
        yield {name: _HEADROOM * x for name, x in seen.items()}


def _traced(part: Part, data: Tensors) -> Any:
    """Make a module of a part whose batch is free; the rest of its shapes is that of ``data``."""

    def call(**tensors: Any) -> Tensors:
        return part.call(tensors)

    module = tf.Module()
    module.call = tf.function(call, autograph=False).get_concrete_function(
        **{name: tf.TensorSpec((None, *x.shape[1:]), name=name) for name, x in data.items()}
    )
    return module


def _ops(activations: Any) -> Any:
    if activations is tf.int8:
        return tf.lite.OpsSet.TFLITE_BUILTINS_INT8
    return tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8


def _edges(graph: Graph, queries: Tensors) -> dict[str, Edge]:
    """Find what int8 inputs stand for, and outputs from what they are for training queries."""
    inputs = graph.folding.inputs
    edges = {name: Edge(inputs.centre, inputs.unit) for name in graph.queries}
    for name, output in graph.whole(queries).items():
        if name in graph.floats:
            continue
        reach = None
        if not graph.rounded_to_the_end:
            low, high = float(output.numpy().min()), float(output.numpy().max())
            room = _ROOM * (high - low)
            reach = low - room if low < 0 else 0.0, high + room
        offset = graph.folding.y_mean if name == "mean" else 0.0
        edges[name] = Edge(offset, 1.0, reach)
    return edges
