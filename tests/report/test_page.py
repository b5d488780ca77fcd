"""The page: self-contained, on any screen, light and dark, with and without script or mouse."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from itertools import combinations, pairwise

import numpy as np
import pytest

SCREENS = [(width, dark) for width in (390, 768, 1280, 1920) for dark in (False, True)]


@pytest.mark.parametrize(
    ("width", "dark"),
    [one if one == (390, True) else pytest.param(*one, marks=pytest.mark.slow) for one in SCREENS],
)
def test_nothing_sticks_out_on_any_screen(opened, page_file, width, dark):
    page = opened(page_file, width=width, dark=dark, unfolded=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("body *").evaluate_all(BEYOND) == []
    # Text in figures stays text, of a legible size.
    assert min(page.locator("figure svg").evaluate_all(WORDS)) > 9
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper))) < 300) == dark


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_finds_nothing_wrong(opened, page_file, violations, width, dark):
    page = opened(page_file, width=width, dark=dark, unfolded=True)
    assert violations(page, resultTypes=["violations"]) == []
    # A control: it does find violations.
    page.locator("label").evaluate_all("(all) => all.forEach((one) => one.remove())")
    assert [one[0] for one in violations(page, runOnly=["label"])] == ["label"]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_page_on_several_targets_is_as_clear(opened, page_of_targets, violations, width, dark):
    page = opened(page_of_targets, width=width, dark=dark, unfolded=True)
    assert violations(page, resultTypes=["violations"]) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for name in ("NOX", "CO, lab"):
        page.get_by_role("link", name=f"{name}: What an interval is worth").click()
        assert page.locator("h2", has_text=f"{name}: What an interval is worth").is_visible()


def test_all_is_there_without_script(opened, page_file, text):
    assert page_file.stat().st_size < 450_000
    page = opened(page_file, script=False, unfolded=True)
    seen = " ".join(page.locator("body").inner_text().split())
    for section in text.sections:
        assert section.title in seen
        for line in (*section.lead, *section.how, *(one.command for one in section.checks)):
            assert " ".join(line.split()) in seen
    for line in (text.verdict.words, *text.lead, *(fact.value for fact in text.facts)):
        assert " ".join(line.split()) in seen
    assert page.locator("main figure svg path").count() > 100
    assert "twinedge budget prints the same numbers" in seen
    assert hidden(page, "#panel", "#try-panel")
    assert "Sliders appear here if scripts are enabled" in seen


def test_it_prints_on_white_without_the_calculator(opened, page_file):
    page = opened(page_file, dark=True)
    page.emulate_media(media="print")
    body = page.locator("body")
    assert body.evaluate("(one) => getComputedStyle(one).backgroundColor") == "rgb(255, 255, 255)"
    assert body.evaluate("(one) => getComputedStyle(one).color") == "rgb(0, 0, 0)"
    assert hidden(page, "#calculator", "#try")
    titles = page.locator("h2")
    assert titles.filter(visible=True).count() == titles.count() - 1
    assert page.locator("#table-boards").is_visible()
    assert page.pdf().startswith(b"%PDF")


def hidden(page, *selectors):
    """Whether all of these exist and none is visible."""
    found = [page.locator(selector) for selector in selectors]
    return all(one.count() == 1 and one.is_hidden() for one in found)


# Whatever overflows the page, unless it is inside something that scrolls.
BEYOND = """(all) => all.filter((one) => {
  const box = one.getBoundingClientRect();
  if (!box.width || one.closest('.skip') || one.closest('svg') !== null && one.tagName !== 'svg')
    return false;
  if (box.right <= innerWidth + 0.5 && box.left >= -0.5) return false;
  for (let up = one.parentElement; up; up = up.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(up).overflowX)) return false;
  return true;
}).map((one) => one.outerHTML.slice(0, 200))"""
# How high ten units of each figure are on the screen.
WORDS = """(all) => all.map(
  (svg) => 10 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
# Names of all controls.
CONTROLS = """(all) => all.filter((one) => one.checkVisibility() && !one.disabled).map(
  (one) => one.id || one.ariaLabel)"""
# What has the focus: its name, whether that shows, whether it is anything.
FOCUS = """() => {
  const one = document.activeElement;
  return [one.id || one.ariaLabel, one.matches(':focus-visible, body'), one !== document.body];
}"""
NAMELESS = """(all) => all.filter(
  (one) => !(one.getAttribute('aria-label') || (one.labels && one.labels.length))).length"""
DEAD = "(all) => all.filter((one) => !document.getElementById(one.hash.slice(1))).length"


def test_those_who_do_not_see_it_or_its_colours_can_read_it(opened, page_file, text, found):
    page = opened(page_file)
    assert page.locator("html").get_attribute("lang") == "en"
    named = page.locator("svg[role=img], input, select, [role=region]")
    assert named.evaluate_all(NAMELESS) == 0
    ids = page.locator("[id]").evaluate_all("(all) => all.map((one) => one.id)")
    assert len(ids) == len(set(ids))
    assert page.locator('a[href^="#"]').evaluate_all(DEAD) == 0
    titles = page.locator("h1, h2, h3, h4")
    levels = titles.evaluate_all("(all) => all.map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(low - high <= 1 for high, low in pairwise(levels))
    alts = page.locator("svg desc").all_text_contents()
    assert alts == [drawing.alt for drawing in text.figures]
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    # Boards have words and marks beside colours.
    lights = page.locator("#table-boards .light")
    words = lights.all_text_contents()
    marks = lights.evaluate_all(
        "(all) => all.map((one) => [one.className, getComputedStyle(one, '::before').content])"
    )
    boards = found.costs.budget["boards"]
    assert len(words) == len(boards)
    for word, one in zip(words, boards, strict=True):
        assert word.startswith(one["verdict"].split(" with ")[0])
    assert len({json.dumps(mark) for mark in marks}) == len({one["verdict"] for one in boards})


def test_the_keyboard_reaches_everything(opened, page_file):
    page = opened(page_file, unfolded=True)
    page.keyboard.press("Tab")
    assert page.locator(":focus").get_attribute("class") == "skip"
    controls = page.locator("input, select, button, a[download]")
    every = set(controls.evaluate_all(CONTROLS))
    assert {"features", "weights", "board", "reset", "try-0", "try-start", "try-random"} <= every
    reached = set()
    for _ in range(300):
        page.keyboard.press("Tab")
        name, visible, on_page = page.evaluate(FOCUS)
        assert visible
        reached.add(name)
        if not on_page:
            break
    assert every <= reached


def test_names_from_a_table_are_only_names(opened, look, run, write, tmp_path):
    from twinedge_export.report.formats import page

    hostile = "</script><img src=x onerror=alert(1)>$\\frac{1}$ &amp; {{ 7 * 7 }}\n\x00"
    names = (hostile, "\N{SNOWMAN}", "x" * 300)
    text = write(look(replace(run, target_name=hostile, feature_names=names)))
    path = tmp_path / "hostile.html"
    path.write_text(page(replace(text, title=hostile)), encoding="utf-8")
    shown = opened(path, width=390)
    assert "{{ 7 * 7 }}" in shown.locator("h1").text_content()
    assert shown.locator("img").count() == 0
    assert shown.evaluate("document.documentElement.scrollWidth") == 390


def test_the_policy_lets_no_other_script_run(opened, complaints, page_file, tmp_path):
    path = tmp_path / "more.html"
    text = page_file.read_text(encoding="utf-8")
    path.write_text(text.replace("</body>", "<script>window.more = 1</script></body>"))
    page = opened(path)
    assert page.evaluate("window.more") is None
    assert any("Content Security Policy" in line for line in complaints)
    complaints.clear()


# Contrast of text and figure marks with their background.
PAIRS = [
    *(("--ink", behind, 7) for behind in ("--paper", "--page")),
    *(("--muted", behind, 4.5) for behind in ("--paper", "--page")),
    *((name, "--paper", 4.5) for name in ("--twin", "--ann", "--other", "--stop")),
    *((name, "--paper", 4.5) for name in ("--go", "--limit", "--unknown")),
]


def themes():
    style = files("twinedge_export.report").joinpath("templates", "style.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    return dict(
        zip(
            ("light", "dark", "print"),
            (dict(re.findall(r"(--\w+): (#\w{6})", block)) for block in blocks),
            strict=True,
        )
    )


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_contrast(theme):
    colours = themes()[theme]
    for one, behind, least in PAIRS:
        bright, dim = sorted((luminance(colours[one]), luminance(colours[behind])), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= least, (one, behind)


def test_colours_of_figures_are_those_of_the_light_page():
    from twinedge_export.report.document import VARIABLES

    light = themes()["light"]
    assert {variable: light[variable] for variable in VARIABLES.values()} == {
        variable: colour for colour, variable in VARIABLES.items()
    }
    assert themes()["dark"].keys() == light.keys() == themes()["print"].keys()


# Machado, Oliveira and Fernandes (2009), dichromacy: transforms of linear RGB, row by row.
DICHROMATS = {
    "protan": """
        0.152286 1.052583 -0.204868  0.114503 0.786281 0.099216  -0.003882 -0.048116 1.051998""",
    "deutan": """
        0.367322 0.860646 -0.227968  0.280085 0.672501 0.047413  -0.011820 0.042940 0.968881""",
    "tritan": """
        1.255528 -0.076749 -0.178779  -0.078411 0.930809 0.147602  0.004733 0.691367 0.303900""",
}


def lab(colour, seen):
    """CIE L*a*b* of a colour as seen with this vision."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(seen.split(), float).reshape(3, 3) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ linear / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", DICHROMATS)
@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_colours_that_the_colour_blind_can_tell_apart(theme, kind):
    colours = themes()[theme]
    seen = [lab(colours[name], DICHROMATS[kind]) for name in ("--twin", "--ann", "--other")]
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(one - other) > 20
