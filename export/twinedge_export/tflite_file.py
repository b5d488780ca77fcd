"""TensorFlow Lite files, made in parts by the TensorFlow converter, and joined.

The converter rounds all of a graph or none of it, and here only the middle is to be rounded. So
each part is converted separately, and their operators go into one file, which gets names, a
signature and metadata.

``int8`` uses integers from the input on: inputs and outputs are int8, and so are computations up to
the difference of each pair. Anchor targets, mean and spread follow in floats, a handful of numbers,
and scale and intervals stay floats. A query of 8 bits is too coarse for a smooth target, no matter
what follows: the other levels have float inputs and outputs in the user's units, and round the
layers between the first and the output, where nearly all multiply-adds are.
"""

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import flatbuffers
import numpy as np

from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.file_device import seal
from twinedge.silence import silence
from twinedge.training.network import tf
from twinedge_export.fold_anchors import Inputs, behind_map, fold
from twinedge_export.graph import SHAPES, Graph, Stage, Tensors, check, describe
from twinedge_export.round_weights import with_core_on_grid

# The metadata's entry with names, ranges and scaling, as JSON.
METADATA = b"twinedge"
_SIGNATURE = b"serving_default"
_ALIGNMENT = 16  # of weights in the file, as the format demands
_RUNTIME = b"min_runtime_version"
_SEAL = b"crc-32: "  # followed by a checksum, where no runtime reads


class Edge(NamedTuple):
    """An integer input or output: stands for ``offset + unit * value``, in the user's units.

    Arrays are by feature, or by target.

    ``reach`` is the smallest and largest value of a float output to be turned into int8.
    """

    offset: Array | float
    unit: Array | float
    reach: tuple[float, float] | None = None


def join(
    parts: list[bytes],
    *,
    order: Sequence[str],
    metadata: dict[str, Any],
    integers: dict[str, Edge] | None = None,
) -> bytes:
    """Join converted parts into one file.

    Parameters
    ----------
    parts : list of bytes
        Files with one signature each; outputs feed the inputs of the same name of the next.
    order : sequence of str
        Order of the outputs; names that the last part lacks are ignored.
    metadata : dict
        Stored in the file as JSON, extended for each of ``integers`` by what an integer stands for:
        ``offset + step * integer``.
    integers : dict, optional
        Inputs and outputs that are int8 or become int8; the rest stay as they are.
    """
    schema, integers = _schema(), integers or {}
    model, *others = [schema.ModelT.InitFromPackedBuf(bytearray(part), 0) for part in parts]
    inputs, outputs = _signature(model)
    for other in others:
        outputs = _append(model, other, outputs)
    outputs = {name: outputs[name] for name in order if name in outputs}
    for name, edge in integers.items():
        if edge.reach is not None:
            outputs[name] = _quantise(model, outputs[name], *edge.reach)
    graph = model.subgraphs[0]
    graph.inputs, graph.outputs = (
        np.array([*ends.values()], np.int32) for ends in (inputs, outputs)
    )
    _name(graph, inputs | outputs)
    if integers:
        meaning = {
            name: _meaning(graph.tensors[number], integers[name])
            for name, number in (inputs | outputs).items()
            if name in integers
        }
        metadata = {**metadata, "integers": meaning}
    _sign(model, inputs, outputs)
    _describe(model, metadata)
    builder = _Builder(1 << 16)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return seal(bytes(builder.Output()) + _SEAL)


def _meaning(tensor: Any, edge: Edge) -> dict[str, Any]:
    """Say what an integer of this tensor stands for."""
    scale, zero = float(tensor.quantization.scale[0]), int(tensor.quantization.zeroPoint[0])
    step = scale * np.asarray(edge.unit)
    return {"offset": (edge.offset - zero * step).tolist(), "step": step.tolist()}


class _Builder(flatbuffers.Builder):  # type: ignore[misc]
    """A builder that aligns weights for every processor."""

    def StartVector(self, elemSize: int, numElems: int, alignment: int) -> Any:  # noqa: N802
        if elemSize == 1 and numElems >= _ALIGNMENT:
            alignment = _ALIGNMENT
        return super().StartVector(elemSize, numElems, alignment)


def _schema() -> Any:
    # Not reachable as an attribute of tensorflow.lite, which is another module.
    return import_module("tensorflow.lite.python.schema_py_generated")


def _new(kind: str, **fields: Any) -> Any:
    """Make an object of the format."""
    one = getattr(_schema(), f"{kind}T")()
    vars(one).update(fields)
    return one


def _signature(model: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Tensors that are inputs and outputs, by name, in the order of their names."""
    (signature,) = model.signatureDefs
    inputs, outputs = (
        {one.name.decode(): int(one.tensorIndex) for one in sorted(ends, key=lambda one: one.name)}
        for ends in (signature.inputs, signature.outputs)
    )
    return inputs, outputs


def _append(model: Any, other: Any, outputs: dict[str, int]) -> dict[str, int]:
    """Append the operators of another file; returns the outputs of both together."""
    graph, further = model.subgraphs[0], other.subgraphs[0]
    wanted, given = _signature(other)
    base, buffers, codes = len(graph.tensors), len(model.buffers), len(model.operatorCodes)
    place = {wanted[name]: outputs[name] for name in wanted}
    for number, tensor in enumerate(further.tensors):
        if number not in place:
            place[number] = base
            base += 1
            # Buffer 0 is the empty one, shared by all computed tensors.
            tensor.buffer = tensor.buffer and tensor.buffer + buffers
            graph.tensors.append(tensor)
    for operator in further.operators:
        operator.opcodeIndex += codes
        operator.inputs = _moved(operator.inputs, place)
        operator.outputs = _moved(operator.outputs, place)
        graph.operators.append(operator)
    model.buffers += other.buffers
    model.operatorCodes += other.operatorCodes
    return {name: place[number] for name, number in given.items()}


def _moved(numbers: Array, place: dict[int, int]) -> Array:
    """Tensor numbers after the move; -1, an omitted one, stays."""
    return np.array([place[number] if number >= 0 else number for number in numbers], np.int32)


def _quantise(model: Any, number: int, low: float, high: float) -> int:
    """Append an operator that makes an output int8; returns the new tensor."""
    schema, graph = _schema(), model.subgraphs[0]
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255 or 1.0
    source = graph.tensors[number]
    quantization = _new(
        "QuantizationParameters",
        scale=np.array([scale], np.float32),
        zeroPoint=np.array([round(-128 - low / scale)], np.int64),
    )
    tensor = _new(
        "Tensor",
        shape=source.shape,
        shapeSignature=source.shapeSignature,
        type=schema.TensorType.INT8,
        name=source.name + b"_int8",
        quantization=quantization,
    )
    made, code = len(graph.tensors), schema.BuiltinOperator.QUANTIZE
    ends = {"inputs": np.array([number], np.int32), "outputs": np.array([made], np.int32)}
    graph.operators.append(_new("Operator", opcodeIndex=len(model.operatorCodes), **ends))
    graph.tensors.append(tensor)
    model.operatorCodes.append(
        _new("OperatorCode", builtinCode=code, deprecatedBuiltinCode=code, version=1)
    )
    return made


def _name(graph: Any, ends: dict[str, int]) -> None:
    """Name inputs and outputs, all uniquely: some runtimes identify tensors by name alone."""
    for name, number in ends.items():
        graph.tensors[number].name = name.encode()
    seen = {name.encode() for name in ends}
    for number in set(range(len(graph.tensors))) - set(ends.values()):
        tensor = graph.tensors[number]
        if tensor.name in seen:
            tensor.name += b"/%d" % number
        seen.add(tensor.name)


def _sign(model: Any, inputs: dict[str, int], outputs: dict[str, int]) -> None:
    named = [
        [_new("TensorMap", name=name.encode(), tensorIndex=number) for name, number in ends.items()]
        for ends in (inputs, outputs)
    ]
    signature = _new("SignatureDef", signatureKey=_SIGNATURE, inputs=named[0], outputs=named[1])
    model.signatureDefs = [signature]


def _describe(model: Any, metadata: dict[str, Any]) -> None:
    """Add our metadata, and keep only those of the converter's that a runtime reads."""
    text = json.dumps(metadata, ensure_ascii=False).encode()
    entry = _new("Metadata", name=METADATA, buffer=len(model.buffers))
    model.buffers.append(_new("Buffer", data=np.frombuffer(text, np.uint8)))
    model.metadata = [*(one for one in model.metadata or [] if one.name == _RUNTIME), entry]
    model.description = b"Made by twinedge"
    model.metadataBuffer = None


# From the smallest and fastest file to the most exact.
LEVELS = ("int8", "int8, float edges", "int16, float edges", "float32")
# Those with float inputs and outputs.
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
    """Make a TensorFlow Lite file; any batch size fits.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    rows : one array of int for each twin
        Training rows that are its anchors.
    shape : {"ensemble", "twin"}
        ``ensemble`` maps ``x`` (n, f) to ``mean`` and ``spread`` (n,) over all anchors of all
        twins; ``twin`` maps ``first`` and ``second`` (n, f) to the ``difference`` (n, twins) of
        each twin, in one order of the pair. In units of the target; with a target curve,
        differences are on the curve. With an input map, a twin takes points behind it, ``(n, g)``
        in the units of a pack, as its anchors are. Of several targets, outputs have one more axis
        for them, the second of an ensemble's and the last of a twin's.
    level : str
        One of ``LEVELS``. "int8" has int8 inputs and outputs, except a float scale and intervals;
        the metadata says what an integer stands for. The others have float32 inputs and outputs in
        the user's units. "float32" rounds nothing; the others have int8 weights, with a scale per
        output, and activations as the name says.
    metadata : dict, optional
        Names, units, ranges; stored in the file, with all that is needed to use it.
    pack : Pack, optional
        Pack of the same model. With its intervals, an ensemble also returns the ``scale`` (n,) of
        the expected error, and ``low`` and ``high`` (n, levels), a column for each of the
        metadata's ``coverages``; a twin also returns the ``difficulty`` (n, twins) of the second
        point.
        Means, spreads and differences stay as they are.

    Raises
    ------
    InputError
        If the shape or level is unknown, anchors are not rows of the training points, an ensemble
        is requested of a model trained on neighbors, or the pack belongs to a different model.
    """
    check(model, shape, level, LEVELS)
    if shape == "twin":
        model = behind_map(model)
    integers = level == "int8"
    inputs = Inputs.spanned(model) if integers else Inputs.scaled(model)
    graph = SHAPES[shape](fold(model, rows, inputs, pack), integers=integers)
    about = describe(graph.folding, shape, level, metadata, pack)
    queries = graph.calibration(model)
    if level == "float32":
        parts = _converted([Stage(graph.whole, False)], queries)
        return join(parts, order=graph.outputs, metadata=about)
    graph = with_core_on_grid(graph, queries)
    activations = tf.int16 if level.startswith("int16") else tf.int8
    edges = tf.int8 if integers else tf.float32
    parts = _converted(graph.parts, queries, activations=activations, edges=edges)
    meaning = _edges(graph, queries) if integers else None
    return join(parts, order=graph.outputs, metadata=about, integers=meaning)


def _converted(
    parts: list[Stage],
    data: Tensors,
    *,
    activations: Any = None,
    edges: Any = None,
) -> list[bytes]:
    """Convert consecutive parts.

    ``data`` are inputs of the first part, to observe ranges for those that are rounded; such a part
    gets ``activations``, and ``edges`` if it is the first or the last.
    """
    files = []
    for number, part in enumerate(parts):
        module = _traced(part, data)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call], module)
        if part.rounded:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda seen=data: _widened(seen, activations)
            converter.target_spec.supported_ops = [
                tf.lite.OpsSet.TFLITE_BUILTINS_INT8
                if activations is tf.int8
                else tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
            ]
            if number == 0:
                converter.inference_input_type = edges
            if number == len(parts) - 1:
                converter.inference_output_type = edges
        with silence():
            files.append(converter.convert())
        data = {name: one.numpy() for name, one in part.call(data).items()}
    return files


def _widened(seen: Tensors, activations: Any) -> Iterator[Tensors]:
    """Yield representative data, and some beyond them for queries outside."""
    yield seen
    if activations is tf.int16:
        yield {name: _HEADROOM * x for name, x in seen.items()}


def _traced(part: Stage, data: Tensors) -> Any:
    """Make a module of a part, for any batch size and otherwise the shapes of ``data``."""

    def call(**tensors: Any) -> Tensors:
        return part.call(tensors)

    module = tf.Module()
    module.call = tf.function(call, autograph=False).get_concrete_function(
        **{name: tf.TensorSpec((None, *x.shape[1:]), name=name) for name, x in data.items()}
    )
    return module


def _edges(graph: Graph, queries: Tensors) -> dict[str, Edge]:
    """Find what int8 inputs stand for, and outputs, by their range on training queries."""
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
        offset = graph.folding.centre if name == "mean" else 0.0
        edges[name] = Edge(offset, 1.0 if graph.in_units else graph.folding.y_scale, reach)
    return edges
