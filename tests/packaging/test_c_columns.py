"""Tables with text and missing cells in C: an enum for each category, and an encoder."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from twinedge.encoding.categories import Category
from twinedge.encoding.encoder import Encoding
from twinedge.runtime.loading import load
from twinedge_export.c_columns import CColumns

HERE = Path(__file__).parent
WARNINGS = "-Wall -Wextra -Werror -pedantic"
LEVELS_C = (HERE / "levels.c").read_text()


@pytest.fixture(scope="module")
def project(stones_export):
    return stones_export / "c"


@pytest.fixture(scope="module")
def expected(stones_export):
    """Expected output of levels.c, by Python: bits of features, predictions and flags."""
    device = load(stones_export / "model.twin", "native")
    encoding = device.encoding
    cut, grade = (one for one in encoding.categories if one is not None)
    assert (cut.levels, cut.others) == (("Fair", "Good, really", "Idéal"), ("Odd", "Strange"))
    cells = [[*one.levels, *one.others[:1], "Superb", None] for one in (cut, grade)]
    numbers = [0.3, 2.0, 9.0, None], [60.5, None]
    rows = [[c, k, d, g] for k, g, c, d in product(*cells, *numbers)]
    assert len(rows) == 6 * 5 * 8
    x = encoding.encode(rows).astype(np.float32)
    found = device.predict_all(x)
    numbers = np.column_stack([x, found.mean, found.low, found.high]).astype(np.float32)
    unknown = encoding.unknown(x)
    masks = [
        (flags @ (1 << np.arange(x.shape[1])))
        for flags in (found.outside & ~unknown, found.missing)
    ]
    words = np.column_stack(
        [numbers.view(np.uint32), *masks, encoding.by_column(unknown).sum(axis=1)]
    )
    assert {0, 1, 2} == set(words[:, -1])
    return [" ".join(f"{word:08x}" for word in row) for row in words.tolist()]


@pytest.fixture(scope="module")
def built(project, built_beside):
    return built_beside(project, LEVELS_C)


def test_the_example_prints_what_the_readme_says(project, built, run, promised):
    assert run(built / "model").strip() == promised(project)
    for name in ("main.c", "model/model.ino"):
        assert len((project / name).read_text("utf-8").splitlines()) <= 34


def test_all_rows_are_encoded_and_predicted_to_the_bit_on_this_machine(built, run, expected):
    assert [line.strip() for line in run(built / "beside").splitlines()] == expected


def test_all_rows_are_encoded_and_predicted_to_the_bit_on_a_board(
    stones_export, expected, on_a_board
):
    assert on_a_board(stones_export, LEVELS_C) == expected


@pytest.mark.slow
def test_the_sketch_encodes_its_row_on_an_uno(project, uno, first_line, promised):
    sent = first_line(uno(project / "model" / "model.ino")).split()
    *numbers, side = promised(project).split()
    assert list(map(float, sent[:3])) == pytest.approx(
        list(map(float, numbers)), rel=2e-7, abs=1e-6
    )
    assert sent[3:] == [side]


def test_the_readme_tells_levels_and_what_stands_for_a_missing_one(project):
    text = (project / "README.md").read_text("utf-8")
    assert '2. cut: Fair, "Good, really", Idéal, (others); Idéal where it is missing' in text
    assert "A missing number is `NAN`, a missing name `..._MISSING`, and is filled in" in text
    assert re.search(r"1\. carat: 0\.\d+ to 2\.\d+; 1\.\d+ where it is missing", text)
    header = (project / "model" / "model.h").read_text("utf-8")
    assert "MODEL_CUT_OTHERS, /* rare: 'Odd', 'Strange' */" in header


NAMES = [
    *("class", "float", "int", "unix", "linux", "row", "twin", "a*/b", "/*", "//", "", "2nd", "π"),
    *("a b", "a-b", "A_B", "x\\", "what??/", "new\nline", "tab\t", "\u202egnp", "nul\0", '"', "%s"),
    *("x_class", "constexpr", "size", "unknown", "model", "main", "NAN", "INFINITY", "a", "a_b"),
]
LEVELS = [
    *("*/", "x\\", "??/", "", "/* x", "b_c", "c", "unknown", "missing", "%d", "-", "ü", "É", "1"),
    "+1",
]


@pytest.mark.parametrize("may_miss", [True, False])
@pytest.mark.parametrize("compiler", ["cc -std=c99", "cc", "g++ -x c++"])
def test_whatever_columns_and_levels_are_called_the_header_compiles(
    compiler, may_miss, run, tmp_path
):
    category = Category(tuple(LEVELS), ("rare \\", "*/ rare"))
    encoding = Encoding([(name, category if k % 2 else None) for k, name in enumerate(NAMES)])
    source = CColumns(encoding, np.full(len(encoding.inputs), may_miss))
    x = np.zeros(len(encoding.inputs))
    x[[part.start for part in encoding.parts]] = 1
    text = f"""\
#define MODEL_FEATURES {len(x)}
#include <math.h>
{source.declarations}
#ifdef __cplusplus
extern "C" {{
#endif
{source.prototype}
#ifdef __cplusplus
}}
#endif
{source.encoder}
static const struct model_row row = {{{source.row(x)}}};
int main(void) {{
    float x[MODEL_FEATURES];
    int k, unknown = model_encode(&row, x);
    for (k = 0; k < MODEL_FEATURES; k++)
        if (x[k] != 0 && x[k] != 1)
            return 1;
    return unknown;
}}
"""
    (tmp_path / "model.c").write_text(text, "utf-8")
    run(*compiler.split(), *WARNINGS.split(), tmp_path / "model.c", "-o", tmp_path / "model")
    run(tmp_path / "model")


def test_enumerators_of_two_columns_never_meet(run, tmp_path):
    encoding = Encoding([("a", Category(("b_c", "d"))), ("a_b", Category(("c", "d")))])
    text = CColumns(encoding, np.zeros(4, bool)).declarations
    names = re.findall(r"^    (MODEL_\w+),", text, re.M)
    assert len(set(names)) == len(names) == 6
