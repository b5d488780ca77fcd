"""Interpreters of converted files: LiteRT and its kin for ``.tflite``, ONNX Runtime for ``.onnx``.

A flatbuffer consists of tables of offsets. A table begins with the distance back to its vtable,
which lists the position of each field in the table, 0 for one that is left out. Strings, vectors
and other tables are given by the distance to them; strings and vectors begin with their length.
"""

import json
import struct
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.errors import InputError, MissingPackageError
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device
from twinedge.runtime.file_device import device_of, read_sealed
from twinedge.silence import silence

_IDENTIFIER = b"TFL3"
# Fields by their number in the schema.
_MODEL_BUFFERS, _MODEL_METADATA = 4, 6
_METADATA_NAME, _METADATA_BUFFER = 0, 1
_BUFFER_DATA = 0


def metadata_entry(data: bytes, name: bytes) -> bytes:
    """Return the content of the metadata entry with that name.

    Raises
    ------
    ValueError
        If the bytes are not a ``.tflite`` file, or have no such entry.
    """
    if data[4:8] != _IDENTIFIER:
        raise ValueError("it does not start like one")
    try:
        model = _follow(data, 0)
        buffers = _tables(data, model, _MODEL_BUFFERS)
        for entry in _tables(data, model, _MODEL_METADATA):
            if _bytes(data, entry, _METADATA_NAME) == name:
                where = _field(data, entry, _METADATA_BUFFER)
                number = _number(data, where) if where else 0
                return _bytes(data, buffers[number], _BUFFER_DATA)
    except (struct.error, IndexError) as error:
        raise ValueError("it is damaged") from error
    raise ValueError("it has no metadata of twinedge")


def _number(data: bytes, offset: int) -> int:
    return int(struct.unpack_from("<I", data, offset)[0])


def _follow(data: bytes, offset: int) -> int:
    return offset + _number(data, offset)


def _field(data: bytes, table: int, number: int) -> int:
    """Position of a field of a table; 0 if it is left out."""
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    if vtable < 0:
        raise IndexError(vtable)
    length = struct.unpack_from("<H", data, vtable)[0]
    offset = 4 + 2 * number
    if offset + 2 > length:
        return 0
    within = int(struct.unpack_from("<H", data, vtable + offset)[0])
    return table + within if within else 0


def _bytes(data: bytes, table: int, number: int) -> bytes:
    """Read a string, or a vector of bytes."""
    field = _field(data, table, number)
    if not field:
        return b""
    start = _follow(data, field)
    end = start + 4 + _number(data, start)
    if end > len(data):
        raise IndexError(end)
    return data[start + 4 : end]


def _tables(data: bytes, table: int, number: int) -> list[int]:
    """Find the tables of a vector."""
    field = _field(data, table, number)
    if not field:
        return []
    start = _follow(data, field)
    count = _number(data, start)
    if start + 4 + 4 * count > len(data):
        raise IndexError(count)
    return [_follow(data, start + 4 + 4 * one) for one in range(count)]


# Packages with an interpreter, the lightest first; by name, so that nothing here imports them.
PACKAGES = {
    "ai_edge_litert": "ai_edge_litert.interpreter",
    "tflite_runtime": "tflite_runtime.interpreter",
    "tensorflow": "tensorflow.lite.python.interpreter",
}


class TfliteFile:
    """An interpreter with one file loaded.

    Parameters
    ----------
    path : path
        The file.
    threads : int
        How many threads may work on a batch.
    """

    def __init__(self, path: Path, threads: int = 1) -> None:
        content = read_sealed(path)
        self.metadata = _metadata(path, content)
        make, self.runtime = _interpreter()
        try:
            with silence():  # it announces what it was built with
                self._interpreter = make(model_content=content, num_threads=threads)
                self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path} is refused by {self.runtime} ({reason})") from error
        self._inputs = {one["name"]: one for one in self._interpreter.get_input_details()}
        self._outputs = {one["name"]: one for one in self._interpreter.get_output_details()}
        self.outputs: Sequence[str] = [*self._outputs]
        # How to convert quantised inputs and outputs: offset + step * integer.
        self._integers = {
            name: (np.array(how["offset"]), np.array(how["step"]))
            for name, how in self.metadata.get("integers", {}).items()
        }
        self._batch = 1

    def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Run on float32 inputs of one batch; quantised inputs and outputs are converted."""
        interpreter = self._interpreter
        batch = len(next(iter(inputs.values())))
        if batch != self._batch:
            for name, x in inputs.items():
                interpreter.resize_tensor_input(self._inputs[name]["index"], x.shape)
            interpreter.allocate_tensors()
            self._batch = batch
        for name, x in inputs.items():
            interpreter.set_tensor(self._inputs[name]["index"], self._quantise(name, x))
        interpreter.invoke()
        return {
            name: self._convert(name, interpreter.get_tensor(one["index"]))
            for name, one in self._outputs.items()
        }

    def _quantise(self, name: str, x: Array) -> Array:
        dtype = self._inputs[name]["dtype"]
        if dtype == np.float32:
            return x
        offset, step = self._integers[name]
        limits = np.iinfo(dtype)
        q: Array = np.rint((x - offset) / step).clip(limits.min, limits.max).astype(dtype)
        return q

    def _convert(self, name: str, value: Array) -> Array:
        if value.dtype == np.float32:
            return value
        offset, step = self._integers[name]
        x: Array = (offset + step * value).astype(np.float32)
        return x


def open_tflite(path: Path, threads: int = 1) -> Device:
    """Open a ``.tflite`` file."""
    return device_of(path, "tflite", TfliteFile(path, threads))


def _interpreter() -> tuple[Any, str]:
    """Class of the interpreter, and the package it comes from."""
    for package, module in PACKAGES.items():
        with suppress(ImportError), silence():
            return import_module(module).Interpreter, package
    raise MissingPackageError(
        "a .tflite file needs an interpreter: pip install 'twinedge[tflite]', or "
        "'twinedge[tflite-runtime]' on a 32-bit Raspberry Pi"
    )


def _metadata(path: Path, content: bytes) -> dict[str, Any]:
    try:
        text = metadata_entry(content, b"twinedge")
        metadata = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not a TensorFlow Lite file of twinedge ({error})") from error
    if not isinstance(metadata, dict):
        raise InputError(f"{path} is not a TensorFlow Lite file of twinedge")
    return metadata


_ERRORS_ONLY = 3


class OnnxFile:
    """A session with one file loaded.

    Parameters
    ----------
    path : path
        The file.
    threads : int
        How many threads may work on a batch.
    """

    runtime = "onnxruntime"

    def __init__(self, path: Path, threads: int = 1) -> None:
        content = read_sealed(path)
        try:
            with silence():  # on some boards it complains about the processor
                runtime = import_module("onnxruntime")
        except ImportError as error:
            raise MissingPackageError(
                "a .onnx file needs ONNX Runtime: pip install 'twinedge[onnx]'"
            ) from error
        options = runtime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        # One query is too small to share; threads waiting for work would cost more than they save.
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        try:
            self._session = runtime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
            metadata = json.loads(
                self._session.get_modelmeta().custom_metadata_map.get("twinedge", "")
            )
        except Exception as error:  # its exceptions have no common base
            reason = " ".join(str(error).split())
            raise InputError(f"{path} is not an ONNX file of twinedge ({reason})") from error
        if not isinstance(metadata, dict):
            raise InputError(f"{path} is not an ONNX file of twinedge")
        self.metadata: dict[str, Any] = metadata
        self.outputs: Sequence[str] = [one.name for one in self._session.get_outputs()]

    def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Run on float32 inputs of one batch."""
        return dict(zip(self.outputs, self._session.run(self.outputs, inputs), strict=True))


def open_onnx(path: Path, threads: int = 1) -> Device:
    """Open a ``.onnx`` file."""
    return device_of(path, "onnx", OnnxFile(path, threads))
