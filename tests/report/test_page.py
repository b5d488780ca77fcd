"""The page: self-contained, on any screen, light and dark, with and without script or mouse."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from itertools import combinations, pairwise

import numpy as np
import pytest

SCREENS = [(width, dark) for width in (390, 768, 1280, 1920) for dark in (False, True)]


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_nothing_is_fetched_nothing_complains_and_nothing_sticks_out(
    opened, page_file, width, dark
):
    page = opened(page_file, width=width, dark=dark)
    page.settle()
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.requests == [page_file.as_uri()]
    assert page.complaints == []
    assert page.run("document.documentElement.scrollWidth") == width
    assert page.run(BEYOND) == []
    # Text in figures stays text, of a legible size.
    small = "Math.min(...[...document.querySelectorAll('figure svg')].map(svg => "
    assert (
        page.run(small + "10 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))") > 9
    )
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper))) < 300) == dark


def test_the_page_is_small(page_file):
    assert page_file.stat().st_size < 450_000


def test_all_is_there_without_script(opened, page_file, text):
    page = opened(page_file, script=False)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    seen = " ".join(page.run("document.body.innerText").split())
    assert page.complaints == []
    for section in text.sections:
        assert section.title in seen
        for line in (*section.lead, *section.how, *(one.command for one in section.checks)):
            assert " ".join(line.split()) in seen
    for line in (text.verdict.words, *text.lead, *(fact.value for fact in text.facts)):
        assert " ".join(line.split()) in seen
    assert page.run("document.querySelectorAll('main figure svg path').length") > 100
    assert "twinedge budget prints the same numbers" in seen
    for name in ("panel", "try-panel"):
        assert page.run(f"document.getElementById('{name}').checkVisibility()") is False
    assert "Sliders appear here if scripts are enabled" in seen


def test_it_prints_on_white_without_the_calculator(opened, page_file):
    page = opened(page_file, dark=True)
    page.ask("Emulation.setEmulatedMedia", media="print")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    for name in ("calculator", "try"):
        assert page.run(f"document.getElementById('{name}').checkVisibility()") is False
    shown = page.run(
        "[...document.querySelectorAll('h2')].filter((one) => one.checkVisibility()).length"
    )
    assert shown == len(page.run("[...document.querySelectorAll('h2')].map((one) => 1)")) - 1
    assert page.run("document.getElementById('table-boards').checkVisibility()") is True
    assert page.pdf().startswith(b"%PDF")


# Whatever overflows the page, unless it is inside something that scrolls.
BEYOND = """[...document.querySelectorAll('body *')].filter((one) => {
  const box = one.getBoundingClientRect();
  if (!box.width || one.closest('.skip') || one.closest('svg') !== null && one.tagName !== 'svg')
    return false;
  if (box.right <= innerWidth + 0.5 && box.left >= -0.5) return false;
  for (let up = one.parentElement; up; up = up.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(up).overflowX)) return false;
  return true;
}).map((one) => one.outerHTML.slice(0, 200))"""
# Names of all controls.
CONTROLS = """[...document.querySelectorAll('input, select, button, a[download]')].filter(
  (one) => one.checkVisibility() && !one.disabled).map((one) => one.id || one.ariaLabel)"""
NAMELESS = """[...document.querySelectorAll('svg[role=img], input, select, [role=region]')].filter(
  (one) => !(one.getAttribute('aria-label') || (one.labels && one.labels.length))).length"""
TWICE = """(() => { const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at); })()"""
LEVELS = "[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => Number(one.tagName[1]))"
DEAD = """[...document.querySelectorAll('a[href^="#"]')].filter(
  (one) => !document.getElementById(one.hash.slice(1))).length"""


def test_those_who_do_not_see_it_can_read_it(opened, page_file, text):
    page = opened(page_file)
    assert page.run("document.documentElement.lang") == "en"
    assert page.run(NAMELESS) == 0
    assert page.run(TWICE) == []
    assert page.run(DEAD) == 0
    levels = page.run(LEVELS)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(low - high <= 1 for high, low in pairwise(levels))
    alts = page.run("[...document.querySelectorAll('svg desc')].map((one) => one.textContent)")
    assert alts == [drawing.alt for drawing in text.figures]
    assert page.run("document.querySelectorAll('table:not(:has(caption))').length") == 0
    assert page.run("document.querySelectorAll('th:not([scope])').length") == 0


def test_the_keyboard_reaches_everything(opened, page_file):
    page = opened(page_file)
    page.settle()
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.key("Tab", 9)
    assert page.run("document.activeElement.className") == "skip"
    every = set(page.run(CONTROLS))
    assert {"features", "weights", "board", "reset", "try-0", "try-start", "try-random"} <= every
    reached = set()
    for _ in range(300):
        page.key("Tab", 9)
        reached.add(page.run("document.activeElement.id || document.activeElement.ariaLabel"))
        assert page.run("document.activeElement.matches(':focus-visible, body')")
        if page.run("document.activeElement === document.body"):
            break
    assert every <= reached


def test_names_from_a_table_are_only_names(opened, look, run, write, tmp_path):
    from twinedge_export.report.making import page

    hostile = "</script><img src=x onerror=alert(1)>$\\frac{1}$ &amp; {{ 7 * 7 }}\n\x00"
    names = (hostile, "\N{SNOWMAN}", "x" * 300)
    text = write(look(replace(run, target_name=hostile, feature_names=names)))
    path = tmp_path / "hostile.html"
    path.write_text(page(replace(text, title=hostile)), encoding="utf-8")
    shown = opened(path, width=390)
    assert shown.complaints == []
    assert shown.requests == [path.as_uri()]
    assert "{{ 7 * 7 }}" in shown.run("document.querySelector('h1').textContent")
    assert shown.run("document.querySelectorAll('img').length") == 0
    assert shown.run("document.documentElement.scrollWidth") == 390


def test_the_policy_lets_no_other_script_run(opened, page_file, tmp_path):
    path = tmp_path / "more.html"
    text = page_file.read_text(encoding="utf-8")
    path.write_text(text.replace("</body>", "<script>window.more = 1</script></body>"))
    page = opened(path)
    assert page.run("window.more") is None
    assert any("Content Security Policy" in line for line in page.complaints)


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


def test_boards_are_told_by_words_not_by_colour_alone(opened, page_file, found):
    page = opened(page_file)
    words = page.run(
        "[...document.querySelectorAll('#table-boards .light')].map((one) => one.textContent)"
    )
    marks = page.run(
        "[...document.querySelectorAll('#table-boards .light')].map("
        "(one) => [one.className, getComputedStyle(one, '::before').content])"
    )
    boards = found.budget["boards"]
    assert len(words) == len(boards)
    for word, one in zip(words, boards, strict=True):
        assert word.startswith(one["verdict"].split(" with ")[0])
    assert len({json.dumps(mark) for mark in marks}) == len({one["verdict"] for one in boards})


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
