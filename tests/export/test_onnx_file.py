"""What is inside an ONNX file."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from twinedge_export.graph import SHAPES
from twinedge_export.onnx_file import LEVELS

OPS = {
    *("Add", "Cast", "Clip", "Concat", "DequantizeLinear", "MatMul", "Mul", "QuantizeLinear"),
    *("ReduceMean", "Relu", "Reshape", "Sigmoid", "Sqrt", "Sub"),
}


@pytest.fixture(params=SHAPES)
def files(request, converted):
    """A file of each level."""
    return {
        level: onnx.load_from_string(converted("onnx", level, request.param)) for level in LEVELS
    }


def kernels(file):
    """Constants that are kernels of layers after the first, by type."""
    found = {}
    for one in file.graph.initializer:
        value = numpy_helper.to_array(one)
        if value.shape in ((12, 8), (8, 6)):
            found.setdefault(value.dtype.name, []).append(value)
    return found


def test_a_file_is_valid_and_of_a_fixed_opset(files):
    for level, file in files.items():
        onnx.checker.check_model(file, full_check=True)
        assert [(one.domain, one.version) for one in file.opset_import] == [("", 17)]
        assert file.ir_version == 8
        assert {node.op_type for node in file.graph.node} <= OPS
        assert level in file.doc_string


def test_kernels_behind_the_first_layer_are_int8_with_a_scale_for_each_output(files):
    file = files["int8"]
    assert {kind: len(found) for kind, found in kernels(file).items()} == {"int8": 4}
    constants = {one.name: numpy_helper.to_array(one) for one in file.graph.initializer}
    scales = [
        constants[node.input[1]]
        for node in file.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in constants
    ]
    assert sorted(len(scale) for scale in scales) == [6, 6, 8, 8]
    # The inputs of those layers, and nothing else.
    rounded = [node for node in file.graph.node if node.op_type == "QuantizeLinear"]
    assert len(rounded) == 4


def test_both_int8_levels_have_the_same_kernels(files):
    one, other = (kernels(files[level])["int8"] for level in ("int8", "int8 weights"))
    for kernel in one:
        assert np.abs(kernel).max(axis=0).tolist() == [127] * kernel.shape[1]
        assert any(np.array_equal(kernel, same) for same in other)
    assert "float32" not in kernels(files["int8 weights"])
    assert "int8" not in kernels(files["float32"])
