"""The metadata of a TensorFlow Lite file are found, and damage to it is reported."""

import json

import numpy as np
import pytest

from twinedge.runtime.interpreters import metadata_entry


@pytest.fixture
def content(exported):
    return (exported["tiny"] / "tflite-int8" / "model.tflite").read_bytes()


def test_the_entry_is_found_as_the_schema_says(content):
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(bytearray(content), 0)
    (entry,) = [one for one in model.metadata if one.name == b"twinedge"]
    found = metadata_entry(content, b"twinedge")
    assert found == bytes(model.buffers[entry.buffer].data)
    assert json.loads(found)["target"] == "level"


def test_an_entry_that_is_not_there_is_reported(content):
    with pytest.raises(ValueError, match="no metadata"):
        metadata_entry(content, b"somebody")


def test_an_entry_may_be_empty(content):
    import flatbuffers
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(bytearray(content), 0)
    (entry,) = [one for one in model.metadata if one.name == b"twinedge"]
    model.buffers[entry.buffer].data = None
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    assert metadata_entry(bytes(builder.Output()), b"twinedge") == b""


def test_a_file_cut_short_never_does_harm(content):
    for length in range(0, len(content), 7):
        try:
            found = metadata_entry(content[:length], b"twinedge")
        except ValueError:
            continue
        assert found == metadata_entry(content, b"twinedge")


def test_flipped_bytes_never_do_harm(content):
    rng = np.random.default_rng(0)
    for _ in range(500):
        data = bytearray(content)
        for place in rng.integers(len(data), size=rng.integers(1, 20)):
            data[place] = rng.integers(256)
        try:
            found = metadata_entry(bytes(data), b"twinedge")
        except ValueError:
            continue
        assert len(found) < len(content)
