"""TensorFlow Lite files joined end to end.

The converter rounds all of a graph or nothing, and here only the middle is to be rounded. So each
part is converted by itself, and their operators are put into one file, which gets names, a
signature and metadata.
"""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import flatbuffers
import numpy as np

from twinedge.pack.contents import Array
from twinedge.runtime.sealing import seal

# The metadata's entry with names, ranges and scaling, as JSON.
METADATA = b"twinedge"
_SIGNATURE = b"serving_default"
_ALIGNMENT = 16  # of weights in the file, as the format demands
_RUNTIME = b"min_runtime_version"
_SEAL = b"crc-32: "  # behind it a checksum; runtimes do not read on to here


class Edge(NamedTuple):
    """An integer input or output: it stands for ``offset + unit * value``, in the user's units.

    ``reach`` is the least and largest value of a float output that is to become int8.
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
        Files with one signature each; an output of one is the input of that name of the next.
    order : sequence of str
        Outputs of the last, and maybe others that it has not, as they are to follow each other.
    metadata : dict
        Stored in the file as JSON. For each of ``integers`` it gets what an integer stands for:
        ``offset + step * integer``.
    integers : dict, optional
        Inputs and outputs that are int8, or are to become it; the others stay as they are.
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
    """One that puts weights where every processor can load them."""

    def StartVector(self, elemSize: int, numElems: int, alignment: int) -> Any:  # noqa: N802
        if elemSize == 1 and numElems >= _ALIGNMENT:
            alignment = _ALIGNMENT
        return super().StartVector(elemSize, numElems, alignment)


def _schema() -> Any:
    # Not reachable as an attribute of tensorflow.lite, which is another module.
    return import_module("tensorflow.lite.python.schema_py_generated")


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
            # Buffer 0 is the empty one of everything that is computed.
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
    """Tensor numbers, -1 for one that is left out."""
    return np.array([place[number] if number >= 0 else number for number in numbers], np.int32)


def _quantise(model: Any, number: int, low: float, high: float) -> int:
    """Append an operator that makes an output int8; returns the new tensor."""
    schema, graph = _schema(), model.subgraphs[0]
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255 or 1.0
    source, tensor = graph.tensors[number], schema.TensorT()
    tensor.shape, tensor.shapeSignature = source.shape, source.shapeSignature
    tensor.type = schema.TensorType.INT8
    tensor.name = source.name + b"_int8"
    tensor.quantization = schema.QuantizationParametersT()
    tensor.quantization.scale = np.array([scale], np.float32)
    tensor.quantization.zeroPoint = np.array([round(-128 - low / scale)], np.int64)
    graph.tensors.append(tensor)
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.QUANTIZE
    code.version = 1
    model.operatorCodes.append(code)
    operator = schema.OperatorT()
    operator.opcodeIndex = len(model.operatorCodes) - 1
    operator.inputs = np.array([number], np.int32)
    operator.outputs = np.array([len(graph.tensors) - 1], np.int32)
    graph.operators.append(operator)
    return len(graph.tensors) - 1


def _name(graph: Any, ends: dict[str, int]) -> None:
    """Name inputs and outputs, and no two tensors alike: some runtimes tell them by name alone."""
    for name, number in ends.items():
        graph.tensors[number].name = name.encode()
    seen = {name.encode() for name in ends}
    for number in set(range(len(graph.tensors))) - set(ends.values()):
        tensor = graph.tensors[number]
        if tensor.name in seen:
            tensor.name += b"/%d" % number
        seen.add(tensor.name)


def _sign(model: Any, inputs: dict[str, int], outputs: dict[str, int]) -> None:
    schema = _schema()

    def named(ends: dict[str, int]) -> list[Any]:
        maps = []
        for name, number in ends.items():
            one = schema.TensorMapT()
            one.name, one.tensorIndex = name.encode(), number
            maps.append(one)
        return maps

    signature = schema.SignatureDefT()
    signature.signatureKey = _SIGNATURE
    signature.inputs, signature.outputs = named(inputs), named(outputs)
    model.signatureDefs = [signature]


def _describe(model: Any, metadata: dict[str, Any]) -> None:
    """Put our metadata in, and keep of the converter's only what a runtime looks at."""
    schema = _schema()
    text = json.dumps(metadata, ensure_ascii=False).encode()
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.frombuffer(text, np.uint8)
    entry.name, entry.buffer = METADATA, len(model.buffers)
    model.buffers.append(buffer)
    model.metadata = [*(one for one in model.metadata or [] if one.name == _RUNTIME), entry]
    model.description = b"Made by twinedge"
    model.metadataBuffer = None
