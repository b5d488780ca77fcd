"""The notebooks run as they are, and show what the site says that they show."""

import json
import shutil
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(DOCS))
    from generate import notebooks

    yield notebooks
    sys.path.remove(str(DOCS))


@pytest.fixture
def copied(tmp_path):
    """A notebook with its outputs, to be changed."""
    for path in (DOCS / "notebooks").glob("stream*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "stream.ipynb"


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_kept_of_it(notebook, tool):
    found = tool.run(notebook)
    assert list(tool.differences(tool.kept_outputs(notebook), found)) == []


def test_every_notebook_has_a_page():
    assert [path.stem for path in NOTEBOOKS] == ["calibration", "product", "stream", "table"]
    listed = (DOCS / "notebooks.md").read_text("utf-8")
    for path in NOTEBOOKS:
        assert f"](notebooks/{path.stem}.md)" in listed
        assert f"](notebooks/{path.name})" in listed
        assert f"]({path.name})" in path.with_suffix(".md").read_text("utf-8")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(notebook):
    content = json.loads(notebook.read_text("utf-8"))
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
        else:
            assert "](" not in "".join(cell["source"])  # a link that a copy would not have


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_page_has_every_cell_and_every_output(notebook, tool):
    page = tool.markdown(notebook)
    cells = tool.cells_of(notebook)
    assert all(cell["source"] in page for cell in cells)
    shown = [one for outputs in tool.kept_outputs(notebook) for one in outputs]
    pictures = {one.content for one in shown if one.kind == "svg"}
    assert pictures == {path.name for path in notebook.parent.glob(f"{notebook.stem}-*.svg")}
    assert len(pictures) == 1
    for name in pictures:
        alt, picture = next(line for line in page.splitlines() if name in line)[2:-1].split("](")
        assert (notebook.parent / picture).is_file()
        assert len(alt) > 30
    for one in shown:
        assert one.kind == "svg" or one.content.strip()
    assert "\n\n\n" not in page.split('<div class="output">', 1)[1].split("</div>", 1)[0]


def test_outputs_of_other_code_are_refused(copied, tool):
    assert tool.markdown(copied)
    copied.write_text(copied.read_text("utf-8").replace('steps\\": 1000', 'steps\\": 900'), "utf-8")
    with pytest.raises(tool.StaleError, match=r"stream\.ipynb was changed .* make notebooks"):
        tool.markdown(copied)


def test_another_machine_may_round_differently_but_not_say_something_else(tool):
    def compare(one, other, kind="text"):
        return list(tool.differences([[tool.Output(kind, one)]], [[tool.Output(kind, other)]]))

    assert compare("RMSE 1.08 of 2,040\n", "  RMSE   1.12 of 2,041") == []
    assert compare("RMSE 1.08", "RMSE 2.08") == ["cell 1 shows 'RMSE 2.08', not 'RMSE 1.08'"]
    assert compare("a 10.0 b", "a 10.0 c") == ["cell 1 shows 'a 10.0 c', not 'a 10.0 b'"]
    assert compare("id 0793ea2b78e719a5 2", "id 14e84e90de35ed74 2") == []
    assert len(compare("one\ntwo", "one")) == 1
    assert len(compare("-0.5", "0.5")) == 1
    assert list(tool.differences([[]], [[tool.Output("text", "x")]])) == ["cell 1 shows ['text']"]
    assert list(tool.differences([[]], [])) == ["1 cells are kept, 0 were run"]


def test_outputs_are_kept_as_they_are_read(copied, tool):
    svg = '<?xml version="1.0"?>\n<svg><path d="M 1.23456 2\n"/></svg>'
    shown = [[tool.Output("text", "0.5\n")], [], [tool.Output("svg", svg)]]
    tool.keep(copied, shown)
    assert [path.name for path in copied.parent.glob("*.svg")] == ["stream-3.svg"]
    assert (copied.parent / "stream-3.svg").read_text() == '<svg><path d="M 1.23 2"/></svg>\n'
    kept = tool.kept_outputs(copied)
    assert kept == [*shown[:2], [tool.Output("svg", "stream-3.svg")]]


def test_streams_are_joined_and_rich_output_is_preferred(tool):
    found = tool._outputs(
        [
            {"output_type": "stream", "text": "a\r\n"},
            {"output_type": "stream", "text": "\x1b[31mb\x1b[0m\n"},
            {"output_type": "display_data", "data": {"text/plain": "x", "text/html": "<b>x</b>"}},
        ]
    )
    assert found == [tool.Output("text", "a\nb\n"), tool.Output("html", "<b>x</b>")]
