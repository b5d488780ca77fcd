"""``.onnx`` files: through ONNX Runtime."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device, MissingPackageError
from twinedge.runtime.file_device import device_of
from twinedge.runtime.sealing import read_sealed
from twinedge.runtime.silence import silence

_ERRORS_ONLY = 3


class OnnxFile:
    """A session with one file loaded.

    Parameters
    ----------
    path : path
        The file.
    threads : int
        How many may work on a batch.
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
        # One query is too small to share; threads that wait for work would cost more than they do.
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        try:
            self._session = runtime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
            metadata = json.loads(
                self._session.get_modelmeta().custom_metadata_map.get("twinedge", "")
            )
        except Exception as error:  # its exceptions have no base of their own
            reason = " ".join(str(error).split())
            raise InputError(f"{path} is not an ONNX file of twinedge ({reason})") from error
        if not isinstance(metadata, dict):
            raise InputError(f"{path} is not an ONNX file of twinedge")
        self.metadata: dict[str, Any] = metadata
        self.outputs: Sequence[str] = [one.name for one in self._session.get_outputs()]

    def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Run on float32 inputs of one batch."""
        return dict(zip(self.outputs, self._session.run(self.outputs, inputs), strict=True))


def open_file(path: Path, threads: int = 1) -> Device:
    """Open a ``.onnx`` file."""
    return device_of(path, "onnx", OnnxFile(path, threads))
