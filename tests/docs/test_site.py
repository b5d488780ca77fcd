"""The site: made without a warning, all links lead somewhere, readable by everybody everywhere."""

import http.server
import re
import runpy
import threading
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import twinedge
from twinedge.cli import app

ROOT = Path(__file__).parents[2]
FIRMWARE = ROOT / "firmware_ref"
WIDTHS = (390, 768, 1280)
ONE = dict(zip(WIDTHS, ["index.html", "start.html", "evidence.html"], strict=True))


@pytest.fixture(scope="session")
def tool():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "site.py")))


@pytest.fixture(scope="session")
def site(tool, tmp_path_factory):
    """Build it; a warning, a broken link or too many bytes would fail here."""
    target = tmp_path_factory.mktemp("site") / "site"
    tool.build(target)
    return target


@pytest.mark.slow
def test_every_page_of_the_docs_is_a_page_of_the_site(site, tool):
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert len(sources) > 35
    assert {site / path.with_suffix(".html") for path in sources} <= set(site.rglob("*.html"))
    assert list(tool.faults(site)) == []


def test_a_link_that_leads_nowhere_is_found(tool, tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">b</a> <a href="#here">a</a> <a href="c.html">c</a>'
        '<a href="b.html#nowhere">b</a> <a href="https://example.org/x">x</a><img src="../d.svg">'
    )
    (tmp_path / "b.html").write_text('<p id="there">')
    assert list(tool.faults(tmp_path)) == [
        "a.html: c.html does not exist",
        "a.html: b.html#nowhere names no place there",
        "a.html: ../d.svg is not of the site",
    ]
    (tmp_path / "large").write_bytes(bytes(tool.MOST))
    assert "more than 5,000,000" in list(tool.faults(tmp_path))[-1]


def test_links_lead_to_pages_or_to_copies(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from generate.links import relinked

    text = (
        "[a](../FORMAT.md#7) [b](../../README.md) [c](https://x.org/a.md) [d](#here) [e](main.c)"
        " `x[0](../y.md)`\n```c\n[f](../FORMAT.md)\n```\n"
        "[g](../../docs/data.md) [h](../../docs/examples)"
    )
    page = ROOT / "docs" / "project" / "page.md"
    assert relinked(text, FIRMWARE / "examples" / "page.md", page) == (
        "[a](../reference/format.md#7) [b](../index.md) [c](https://x.org/a.md) [d](#here)"
        " [e](../../firmware_ref/examples/main.c)"
        " `x[0](../y.md)`\n```c\n[f](../FORMAT.md)\n```\n"
        "[g](../data.md) [h](../../build/linked/examples.zip)"
    )


def drawn(svg):
    """Return what a picture consists of: all elements but descriptions, and all words."""
    kinds = [(one.tag.rpartition("}")[2], one) for one in ET.fromstring(svg).iter() if one.tag]
    return [
        (kind, " ".join((one.text or "").split()) if kind in ("text", "tspan", "title") else "")
        for kind, one in kinds
        if "w3.org/2000/svg" in one.tag and kind not in ("metadata", "style")
    ]


def test_pictures_of_the_site_lose_only_what_nobody_sees(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from generate.lean import lean_picture

    pictures = sorted((ROOT / "docs").rglob("*.svg"))
    assert len(pictures) > 15
    for path in pictures:
        before = path.read_text("utf-8")
        after = lean_picture(before)
        assert len(after) <= len(before) + 1
        assert "prefers-color-scheme" not in after
        old, new = map(drawn, (before, after))
        assert old == new, path.name
        assert lean_picture(after) == after
    often = '<svg><g id="a" style="fill: red">{}</g><use href="#b" id="c"/><g id="b"/></svg>'
    assert lean_picture(often.format('<g style="fill: red"/>' * 2)) == (
        '<svg><style>.s0{fill: red}</style><g class="s0"><g class="s0"/><g class="s0"/></g>'
        '<use href="#b"/><g id="b"/></svg>\n'
    )
    assert lean_picture('<svg><path d="M 1.236 2.5 \nL -3.999 4 \n"/></svg>') == (
        '<svg><path d="M 1.23 2.5 L -3.99 4"/></svg>\n'
    )


def test_pages_of_the_site_lose_only_indentation_and_unused_icons(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from generate.lean import lean_page

    code = "<pre>\n  <b>x</b>\n\n    y</pre>"
    icons = '<symbol id="a"><path/></symbol>\n  <symbol id="b"><path/></symbol>'
    page = f'{icons}\n  <use href="#b"/>\n  <p>one\n     two</p>\n{code}\n  <p>three</p>'
    plain = '<span class="n"><span class="pre">x</span></span><span class="w"> </span>'
    assert lean_page(f'{plain}<span class="k">if</span>') == 'x <span class="k">if</span>'
    assert lean_page(page) == (
        f'<symbol id="b"><path/></symbol>\n<use href="#b"/>\n<p>one\ntwo</p>\n{code}\n<p>three</p>'
    )


def test_a_folder_of_other_things_is_not_replaced(tool, tmp_path, monkeypatch):
    (tmp_path / "mine.txt").write_text("mine")
    quick = SimpleNamespace(returncode=0, stderr="")
    monkeypatch.setattr(tool.build.__globals__["subprocess"], "run", lambda *_, **__: quick)
    with pytest.raises(tool.SiteError, match="not the site of an earlier build"):
        tool.build(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.slow
def test_the_reference_has_every_command_function_and_status(site):
    page = (site / "reference" / "commands.html").read_text("utf-8")
    for name, command in app.commands.items():
        assert f'id="twinedge-{name}"' in page
        for inner in getattr(command, "commands", ()):
            assert f'id="twinedge-{name}-{inner}"' in page
    page = (site / "reference" / "c.html").read_text("utf-8")
    headers = "".join(path.read_text("utf-8") for path in (FIRMWARE / "include").glob("*.h"))
    names = set(re.findall(r"(?m)^(?!#|static).*?\b(twin_\w+)\(", headers))
    assert len(names) > 60
    assert [name for name in names if f'id="c.{name}"' not in page] == []
    page = (site / "reference" / "statuses.html").read_text("utf-8")
    for name in re.findall(r"\b(TWIN_ERROR_\w+) =", headers):
        assert name in page
    page = (site / "reference" / "python.html").read_text("utf-8")
    for name in set(twinedge.__all__) - {"__version__", "data"}:
        assert f'id="twinedge.{name}"' in page


@pytest.fixture(scope="session")
def address(site):
    """Serve the site on this machine, as any host of files would."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(site))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def visit(blank, address):
    """Open pages of the site; one that complains, or asks another host, fails the test."""
    complaints = []

    def note(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    pages = []

    def call(name, **options):
        page = blank(**options)
        pages.append(page)
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("response", lambda got: got.ok or complaints.append(f"{got.status} {got.url}"))
        page.on("request", lambda one: one.url.startswith(address) or complaints.append(one.url))
        page.goto(f"{address}/{name}")
        return page

    yield call
    for page in pages:
        page.close()
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("every", [False, True])
def test_everybody_can_read_the_pages(site, visit, violations, every, width):
    found = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    dark = width == WIDTHS[0]
    # Colours take most of the time, and do not depend on the width.
    rules = {"color-contrast": {"enabled": width != WIDTHS[1]}}
    for name in found if every else [ONE[width]]:
        page = visit(name, width=width, dark=dark)
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper in ("rgb(19, 20, 22)", "rgb(0, 0, 0)")) == dark, paper
        assert violations(page, resultTypes=["violations"], rules=rules) == [], name
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_pictures_are_turned_over_on_dark_pages(visit, dark):
    page = visit("how-it-works.html", dark=dark)
    style = page.evaluate("getComputedStyle(document.querySelector('article img')).filter")
    assert ("invert" in style) == dark
    page.evaluate(f"document.body.dataset.theme = '{'light' if dark else 'dark'}'")
    style = page.evaluate("getComputedStyle(document.querySelector('article img')).filter")
    assert ("invert" in style) != dark


@pytest.mark.slow
def test_the_search_finds_pages(visit):
    page = visit("search.html?q=anchors")
    page.locator("#search-results li a").nth(5).wait_for()  # they appear one after the other
