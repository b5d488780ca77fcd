"""``.tflite`` files: through LiteRT, tflite-runtime, or the interpreter in TensorFlow."""

import json
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device, MissingPackageError
from twinedge.runtime.file_device import device_of
from twinedge.runtime.flatbuffer import metadata_entry
from twinedge.runtime.sealing import read_sealed
from twinedge.runtime.silence import silence

# Where an interpreter may come from, the lightest first; named so that nothing here imports them.
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
        How many may work on a batch.
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
        # What integers stand for, where there are any: offset + step * integer.
        self._integers = {
            name: (np.array(how["offset"]), np.array(how["step"]))
            for name, how in self.metadata.get("integers", {}).items()
        }
        self._batch = 1

    def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Run on float32 inputs of one batch; integers at the edges are seen to."""
        interpreter = self._interpreter
        batch = len(next(iter(inputs.values())))
        if batch != self._batch:
            for name, x in inputs.items():
                interpreter.resize_tensor_input(self._inputs[name]["index"], x.shape)
            interpreter.allocate_tensors()
            self._batch = batch
        for name, x in inputs.items():
            interpreter.set_tensor(self._inputs[name]["index"], self._entering(name, x))
        interpreter.invoke()
        return {
            name: self._leaving(name, interpreter.get_tensor(one["index"]))
            for name, one in self._outputs.items()
        }

    def _entering(self, name: str, x: Array) -> Array:
        dtype = self._inputs[name]["dtype"]
        if dtype == np.float32:
            return x
        offset, step = self._integers[name]
        limits = np.iinfo(dtype)
        entering: Array = np.rint((x - offset) / step).clip(limits.min, limits.max).astype(dtype)
        return entering

    def _leaving(self, name: str, value: Array) -> Array:
        if value.dtype == np.float32:
            return value
        offset, step = self._integers[name]
        leaving: Array = (offset + step * value).astype(np.float32)
        return leaving


def open_file(path: Path, threads: int = 1) -> Device:
    """Open a ``.tflite`` file."""
    return device_of(path, "tflite", TfliteFile(path, threads))


def _interpreter() -> tuple[Any, str]:
    """Class of the interpreter, and where it comes from."""
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
