"""axe-core finds nothing wrong with a page, light and dark, on desktop and phone."""

import os
from pathlib import Path

import pytest

AXE = Path(__file__).parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = [(1280, False), (390, True)]
RUN = """(options) => axe.run(document, options).then((found) => found.violations.map(
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
    page = opened(page_file, width=width, dark=dark, unfolded=True)
    assert violations(page, axe, resultTypes=["violations"]) == []


def test_of_several_models(opened, comparison_file, axe):
    page = opened(comparison_file, unfolded=True)
    assert violations(page, axe, resultTypes=["violations"]) == []


def violations(page, axe, **options):
    """What axe has against a page; its script is not of the page, whose policy would refuse it."""
    page.evaluate(f"() => {{ {axe} }}")
    return page.evaluate(RUN, options)


def test_axe_sees_what_is_wrong(opened, page_file, axe):
    """A control: the checker does find violations."""
    page = opened(page_file)
    page.locator("label").evaluate_all("(all) => all.forEach((one) => one.remove())")
    assert [one[0] for one in violations(page, axe, runOnly=["label"])] == ["label"]
