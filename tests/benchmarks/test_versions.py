"""Pages quote no result without saying which version of the training it is of."""

import json
import re

import pytest

from twinedge.training import VERSION


@pytest.fixture(scope="module")
def pages(benchmark_named):
    return benchmark_named("harness.pages")


@pytest.fixture(scope="module")
def bench(benchmark_named):
    return benchmark_named("__main__")


def stored(pages):
    return {path.stem: json.loads(path.read_text()) for path in pages.RESULTS.glob("*.json")}


def test_a_page_names_the_version_of_each_result_that_it_quotes(pages):
    """After raising the version, `python -m benchmarks --pages` brings all pages up to date."""
    for path in pages.pages():
        text = path.read_text()
        assert pages.with_versions(text) == text, path


def test_a_page_that_names_a_script_quotes_its_results(pages, bench):
    for path in pages.pages():
        text = path.read_text()
        wanted = pages.mentioned(text) & {*bench.TRAINED}
        assert wanted <= pages.quoted(text), path


def test_a_result_has_a_version_if_it_depends_on_the_training(pages, bench):
    for name, record in stored(pages).items():
        if name in bench.TRAINED:
            assert 1 <= record["training"] <= VERSION, name
        else:
            assert name.startswith(bench.OTHERS), name
            assert "training" not in record, name


def test_pages_show_the_tables_of_the_results(pages, bench):
    shown = 0
    for name in bench.TRAINED:
        record = stored(pages).get(name)
        for page, tables in bench.benchmark(name).pages(record).items() if record else ():
            text = (pages.ROOT / page).read_text()
            for mark, table in tables.items():
                assert pages.fill(text, mark, table) == text, (page, mark)
                shown += 1
    assert shown >= 9


def test_newer_cells_are_compared_on_the_same_splits(pages):
    cells = {f"ours/{k}": {"rmse_test": 1.0 + k} for k in range(3)}
    newer = {
        "ours/0": {"rmse_test": 0.5},
        "ours/1": {"rmse_test": 1.0},
        "ours/9": {},
        "other/0": {},
    }
    unfinished = {"training": 8, "cells": newer}
    record = {"training": 7, "cells": cells, "unfinished": unfinished}

    def table_of(key):
        return "yh" if key.startswith("ours") else None

    lines = pages.newer_cells(record, table_of).splitlines()
    assert lines[0] == "| table | splits | version 7 | version 8 | ratio |"
    assert lines[2:] == ["| yh | 2 | 1.5 | 0.75 | 0.500 |"]
    del record["unfinished"]
    assert pages.newer_cells(record, table_of) == pages.NOTHING_NEWER


def test_summaries_follow_from_the_cells(pages, bench):
    """Unless what they are compared with is of another version by now."""
    records = stored(pages)
    for name in bench.TRAINED:
        found = bench.benchmark(name)
        if records.get(name, {}).get("training") == VERSION and all(
            records[one]["training"] == VERSION for one in found.needs
        ):
            again = json.loads(json.dumps(found.summarise(records[name]["cells"])))
            assert again == {key: records[name][key] for key in again}, name


def test_the_list_of_versions_ends_with_that_of_today(pages):
    text = (pages.ROOT / "docs" / "training.md").read_text().partition("## Versions")[2]
    rows = re.findall(r"^\| (\d+) \| \w", text.partition("\n## ")[0], re.M)
    assert rows == [str(one) for one in range(1, VERSION + 1)]


LINK = "[accuracy.json](../benchmarks/results/accuracy.json)"


@pytest.fixture
def accuracy_of(pages, monkeypatch):
    """Make the accuracy be of some version."""

    def of(version):
        monkeypatch.setattr(pages, "version_of", {"accuracy": version}.get)

    return of


@pytest.mark.parametrize(
    "before",
    ["", " of training version 4", f" of training version {VERSION}, not\ntoday's {VERSION + 1}"],
)
def test_versions_are_written_and_corrected(pages, accuracy_of, before):
    accuracy_of(VERSION)
    assert pages.with_versions(f"as in {LINK}{before}; or") == (
        f"as in {LINK} of training version {VERSION}; or"
    )
    accuracy_of(2)
    assert pages.with_versions(f"({LINK}{before})") == (
        f"({LINK} of training version 2, not today's {VERSION})"
    )
    accuracy_of(None)
    assert pages.with_versions(f"{LINK}{before}.") == f"{LINK}."


def test_lines_may_be_broken_anywhere(pages, accuracy_of):
    accuracy_of(2)
    text = f"{LINK} of training\nversion 2, not\ntoday's {VERSION}: read"
    assert pages.with_versions(text) == text
    other = "[device.json](benchmarks/results/device.json) of bytes"
    assert pages.with_versions(other) == other


def test_a_script_in_a_command_is_no_quotation(pages):
    prose = "By `python -m benchmarks.accuracy` and benchmarks/device.py, not benchmarks.nothing"
    assert pages.mentioned(prose) == {"accuracy", "device"}
    assert pages.mentioned("```sh\npython -m benchmarks.accuracy\n```\n") == set()
    assert pages.quoted(f"{LINK}, [x](benchmarks/results/reproduction/cells.json)") == {
        "accuracy",
        "reproduction/cells",
    }


def test_a_page_without_a_place_is_refused(pages):
    marked = "a\n<!-- x: measured -->\nold\n<!-- end -->\nb"
    assert pages.fill(marked, "x", "new\n") == "a\n<!-- x: measured -->\n\nnew\n\n<!-- end -->\nb"
    with pytest.raises(SystemExit, match="no place for y"):
        pages.fill(marked, "y", "new")
