"""Damage to a converted file is reported before an interpreter sees it."""

import numpy as np
import pytest

from twinedge.runtime.file_device import read_sealed, seal
from twinedge.runtime.loading import load


@pytest.mark.parametrize("content", [b"", b"x", bytes(1000)], ids=["nothing", "one", "many"])
def test_what_was_sealed_is_read(tmp_path, complaint, content):
    path = tmp_path / "file"
    path.write_bytes(seal(content))
    assert read_sealed(path) == seal(content)
    path.write_bytes(content)
    assert "checksum" in complaint(read_sealed, path)


def test_every_flipped_bit_is_told(tmp_path, complaint):
    path, whole = tmp_path / "file", seal(bytes(range(20)))
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        assert "checksum" in complaint(read_sealed, path)


@pytest.mark.parametrize("name", ["tflite-int8/model.tflite", "onnx-int8/model.onnx"])
def test_a_damaged_file_is_refused_by_name(exported, tmp_path, complaint, name):
    whole = (exported["tiny"] / name).read_bytes()
    path = tmp_path / name.rpartition("/")[2]
    rng = np.random.default_rng(0)
    for _ in range(200):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        assert f"{path} is damaged" in complaint(load, path)
        path.write_bytes(whole[: rng.integers(len(whole))])
        assert f"{path} is damaged" in complaint(load, path)


@pytest.mark.parametrize("suffix", [".tflite", ".onnx"])
def test_a_sealed_file_of_someone_else_is_refused(tmp_path, complaint, suffix):
    path = tmp_path / f"model{suffix}"
    for content in (b"", bytes(100), bytes(4) + b"TFL3" + bytes(90), b"\x08\x08"):
        path.write_bytes(seal(content))
        assert "of twinedge" in complaint(load, path)
