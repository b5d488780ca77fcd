"""axe-core finds nothing wrong with a page, light and dark, on desktop and phone."""

import os
from pathlib import Path

import pytest

AXE = Path(__file__).parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = [(1280, False), (390, True)]
RUN = """axe.run(document, OPTIONS).then((found) => found.violations.map(
  (one) => [one.id, one.help, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]))"""


@pytest.fixture(scope="module")
def axe():
    if not AXE.is_file() and os.environ.get("CI") != "true":
        pytest.skip(f"axe-core is not installed: make {AXE.relative_to(AXE.parents[4])}")
    return AXE.read_text("utf-8")


@pytest.fixture(scope="module")
def comparison_file(look, run, tmp_path_factory):
    from twinedge_export.report.comparing import comparison
    from twinedge_export.report.making import page

    models = [look(run, anchors=4), look(run)]
    path = tmp_path_factory.mktemp("pages") / "comparison.html"
    path.write_text(page(comparison(models, "twinedge report")), "utf-8")
    return path


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_of_one_model(opened, page_file, axe, width, dark):
    judge(opened(page_file, width=width, dark=dark), axe)


def test_of_several_models(opened, comparison_file, axe):
    judge(opened(comparison_file), axe)


def judge(page, axe):
    page.settle()
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.run(f"(() => {{ {axe} }})()")
    assert page.run(RUN.replace("OPTIONS", '{resultTypes: ["violations"]}')) == []
    assert page.complaints == []


def test_axe_sees_what_is_wrong(opened, page_file, axe):
    """A control: the checker does find violations."""
    page = opened(page_file)
    page.run("document.querySelectorAll('label').forEach((one) => one.remove())")
    page.run(f"(() => {{ {axe} }})()")
    assert [one[0] for one in page.run(RUN.replace("OPTIONS", '{runOnly: ["label"]}'))] == ["label"]
