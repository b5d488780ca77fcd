"""The runtime as an Arduino library: found, compiled and run as the Arduino tools do."""

import re

import numpy as np
import pytest

from twinedge.pack import read_pack
from twinedge.runtime.reference import evaluate

# What library.properties must say, by Arduino's specification of libraries.
REQUIRED = ("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url")


@pytest.fixture(scope="module")
def properties(library):
    lines = (library / "library.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def library(unpacked):
    """The package of a release, in a folder of libraries."""
    return unpacked("arduino")


def test_the_properties_are_whole(properties, library):
    assert [name for name in REQUIRED if not properties.get(name)] == []
    assert properties["category"] == "Data Processing"  # one of a fixed list
    assert properties["architectures"] == "*"
    assert (library / "src" / properties["includes"]).is_file()


def test_the_example_finds_the_library_and_predicts_on_an_uno(library, uno, first_line):
    sketch = library / "examples" / "Predict" / "Predict.ino"
    sent = [float(word) for word in first_line(uno(sketch, library.parent)).split()]
    query = re.search(r"x\[MODEL_FEATURES\] = \{(.*)\}", sketch.read_text())[1]
    x = np.array([[float(word.rstrip("f")) for word in query.split(", ")]], np.float32)
    text = (sketch.parent / "model.c").read_text()
    pack = read_pack(bytes(map(int, re.findall(r"\d+(?=,)", text[text.index("= {") :]))))
    answer = evaluate(pack, x)
    wanted = [float(answer.mean[0]), float(answer.spread[0])]
    assert sent == pytest.approx(wanted, rel=2e-7, abs=1e-6)  # by Arduino's own float printing


def test_the_example_is_what_an_export_writes(library):
    # Except for the header, which is in an export, while the example finds it in the library.
    from twinedge_export.c_project import scratch_expression

    folder = library / "examples" / "Predict"
    text = (folder / "model.c").read_text()
    pack = read_pack(bytes(map(int, re.findall(r"\d+(?=,)", text[text.index("= {") :]))))
    header = (folder / "model.h").read_text()
    assert "#include <twin.h>" in header
    joined = re.sub(r"\s*\\\n\s*", " ", header)
    assert f"#define MODEL_SCRATCH {scratch_expression(pack)}\n" in joined
