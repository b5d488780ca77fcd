"""Figures, Markdown and CSV: the same bytes for the same numbers, and names that stay names."""

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

from twinedge.budget import Model, all_boards, summarise
from twinedge_export.report.document import (
    Grid,
    Light,
    Section,
    Share,
    amount,
    number,
    percent,
    plain,
    shown,
)
from twinedge_export.report.formats import HEADER, markdown, sheet

FIGURES = [
    *("predictions", "beside", "coverage", "sizes", "importance", "curves"),
    *("anchors", "accuracy", "memory-bytes", "pack"),
]


def test_every_figure_fits_a_page(text, page_file):
    assert [drawing.name for drawing in text.figures] == FIGURES
    page = page_file.read_text("utf-8")
    drawn = re.findall(r"</figcaption>\s*(<svg viewBox.*?</svg>)\s*</figure>", page, re.DOTALL)
    for drawing, inline in zip(text.figures, drawn, strict=True):
        assert "<style" not in inline
        assert "<metadata" not in inline
        assert "font-family" not in inline
        assert re.findall(r"#[0-9a-f]{6}", inline) == []  # colours are those of the page
        ids = re.findall(r'\bid="([^"]+)"', inline)
        assert all(one.startswith(f"{drawing.name}-") for one in ids)
        assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', inline)) == set(ids)
        assert len(drawing.alt) > 40


def test_a_figure_is_the_same_every_time(text):
    (drawing,) = [one for one in text.figures if one.name == "coverage"]
    first = [drawing.render("svg"), drawing.render("png"), drawing.inline()]
    assert first == [drawing.render("svg"), drawing.render("png"), drawing.inline()]
    words = ElementTree.fromstring(first[0]).iter("{http://www.w3.org/2000/svg}text")
    assert len(list(words)) > 4
    assert first[1].startswith(b"\x89PNG")


def test_markdown_has_every_table_and_figures_where_they_are(text):
    written = markdown(text)
    for section in text.sections:
        assert f"## {section.title}\n" in written
        for table in section.tables:
            assert f"| {' | '.join(table.columns)} |" in written
    assert written.count("<details>") == written.count("</details>") > 3
    assert any("\N{LARGE GREEN CIRCLE} fits" in line for line in written.splitlines())
    assert "![" not in written
    pictures = re.findall(r"\]\(<my figures/([\w-]+)\.svg>\)", markdown(text, Path("my figures")))
    assert pictures == FIGURES


def test_a_board_that_takes_seconds_is_not_green(found, write, firmware):
    model = Model.of(8, (128, 128), 512, intervals=True)
    budget = summarise(model, all_boards().values(), firmware)
    slow = [one for one in budget["boards"] if one["verdict"] == "fits, slowly"]
    assert {one["board"] for one in slow} >= {"microbit-v1"}
    assert all(one["milliseconds_estimated"][1] > 1000 for one in slow)
    text = write(replace(found, costs=found.costs._replace(budget=budget)))
    table, _ = next(one for one in text.sections if one.name == "boards").tables
    lights = {row[0]: row[1] for row in table.rows}
    for one in slow:
        assert lights[one["title"]].state == "limit"
        assert re.fullmatch(r"fits, [\d.-]+ s a query", lights[one["title"]].words)
    fact = next(one for one in text.facts if one.label == "Boards that hold it")
    fast = sum(one["verdict"] == "fits" for one in budget["boards"])
    assert fact.value == f"{fast + len(slow)} of 24"
    assert re.fullmatch(r"a query takes [\d.-]+ ms to [\d.-]+ s, estimated", fact.note)


def test_a_name_means_nothing_in_markdown(text):
    name = "a|b <b>x</b> *y* [z](http://example.org) `c`\n# d"
    table = Grid("t", name, ("one", "two"), ((name, 1),))
    section = Section("s", name, (name,), tables=(table,))
    written = markdown(replace(text, title=name, facts=(), sections=(section,)))
    assert "<b>" not in written.replace(r"\<b\>", "")
    escaped = re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", " ".join(name.split()))
    assert [line for line in written.splitlines() if line.startswith("| a")] == [
        f"| {escaped} | 1 |"
    ]
    assert sum(line.startswith("#") for line in written.splitlines()) == 2


def test_the_sheet_has_every_number_unrounded(text, found):
    header, *rows = csv.reader(io.StringIO(sheet(text)))
    assert tuple(header) == HEADER
    values = {tuple(row[1:4]): row[4] for row in rows}
    assert len(values) == len(rows)  # no two lines have the same subject
    for one in found.costs.memory:
        assert values["memory", str(one.members), "twin, bytes"] == str(one.twin_bytes)
    assert float(values["predictions", "test", "RMSE"]) == found.accuracy.predictions.rmse
    assert float(values["intervals", "0.9", "covered"]) == found.usual.covered
    assert float(values["intervals", "0.9", "interval score"]) == found.usual.interval_score
    assert values["boards", "Arduino Uno R3", "verdict"] == "fits"
    assert sum(row[1] == "boards" and row[3] == "verdict" for row in rows) == 24


def test_a_name_is_no_formula_in_a_sheet(text):
    names = ["=1+1", "+x", "-x", "@x", "\tx"]
    table = Grid("t", "t", ("one", "two"), tuple((name, -1.5) for name in names))
    section = Section("s", "s", (), tables=(table,))
    _, *rows = csv.reader(io.StringIO(sheet(replace(text, sections=(section,)))))
    assert rows == [["s", "t", f"'{name}", "two", "-1.5"] for name in names]


def test_numbers_and_names_for_people():
    assert [shown(one) for one in (None, 12345, 0.123456, Share(0.25), "word")] == [
        *("-", "12,345", "0.1235", "25 %", "word")
    ]
    assert shown(Light("go", "fits")) == "fits"
    assert [amount(x) for x in (12, 1500, 2e6, 3e9)] == ["12", "1.5k", "2M", "3G"]
    assert [percent(x) for x in (0, 0.0001, 0.1234, 1)] == ["0 %", "< 0.1 %", "12.3 %", "100 %"]
    assert [number(n, "anchor") for n in (1, 2000)] == ["1 anchor", "2,000 anchors"]
    table = Grid("t", "t", ("a", "b", "c"), (("x", 1, 2.5), ("y", None, "word")))
    assert table.quantities == (False, True, False)
    assert plain("$x_1$\n\x00") == "\\$x_1\\$\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
    assert len(plain("x" * 300)) == 40
