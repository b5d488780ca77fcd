"""The page says what the stored cells say, and names what does not hold."""

import re

import pytest

from benchmarks.reproduction import page as writer
from benchmarks.reproduction.__main__ import write_page
from benchmarks.reproduction.cells import CellStore
from benchmarks.reproduction.claims import FAILS, HOLDS, PARTLY, UNKNOWN, verdicts
from benchmarks.reproduction.experiments import EXPERIMENTS


@pytest.fixture(scope="module")
def kept():
    return writer.read_results()


@pytest.fixture(scope="module")
def outcomes(kept):
    return writer.outcomes(kept)


@pytest.fixture(scope="module")
def page():
    return writer.PAGE.read_text()


def test_writing_the_page_again_changes_nothing(kept, outcomes, page):
    assert writer.filled(page, kept) == page
    curves = writer.PAGE.with_suffix("") / writer.CURVES
    assert curves.read_text() == writer.curves_page(outcomes)


def test_the_command_merges_cells_and_writes_them(kept, page, tmp_path, monkeypatch, capsys):
    """One cell is only in a folder, as if another machine had computed it."""
    monkeypatch.setattr(writer, "RESULTS", tmp_path)
    monkeypatch.setattr(writer, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(writer, "has_figure", lambda outcome: False)
    cell = next(one for one in writer.cells() if one.method == "nearest")
    fewer = {key: one for key, one in kept.items() if key != writer.identity(cell)}
    monkeypatch.setattr(writer, "read_results", lambda: fewer)
    CellStore(tmp_path).save(cell, kept[writer.identity(cell)])
    (tmp_path / "page").mkdir()
    (tmp_path / "page.md").write_text(page)
    write_page(tmp_path, jobs=1, compute=False, quiet=True)
    monkeypatch.undo()
    assert writer.read_results(tmp_path) == kept
    assert "Figure 7, does not hold: Loops of weight 1" in capsys.readouterr().out


def test_a_cell_that_is_not_there_changes_the_page(kept, page):
    fewer = {
        key: one for key, one in kept.items() if not ('"twinned_forest"' in key and '"tf"' in key)
    }
    changed = writer.filled(page, fewer)
    assert "**Not all of it is measured yet: not computed: tf.**" in changed
    assert "(cells are missing)" in _row(changed, "Table 6")
    assert "Not all of it" not in page


def test_all_experiments_are_on_the_page_with_their_figures(outcomes, page):
    assert set(outcomes) == set(EXPERIMENTS)
    for name, outcome in outcomes.items():
        assert (f"({writer.figure_path(name)})" in page) == writer.has_figure(outcome), name
    for link in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (writer.PAGE.parent / link).exists(), link


def test_the_index_has_every_table_and_figure_of_the_paper(page):
    index = page[: page.index("<!-- end -->")]
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.strip("# ").lower()).replace(" ", "-")
        for line in page.splitlines()
        if line.startswith("#")
    }
    parts = [f"Table {n}" for n in range(1, 7)] + [f"Figure {n}" for n in range(1, 9)]
    for part in parts:
        (row,) = re.findall(rf"\| \[{part}, [^\]]+\]\(#([^)]+)\) \| \**([a-z ]+[a-z])", index)
        assert row[0] in headings, part
        assert row[1] in (HOLDS, PARTLY, FAILS, UNKNOWN), part


def test_what_does_not_hold_is_named_as_such(outcomes, page):
    index = page[: page.index("<!-- end -->")]
    (lost,) = re.findall(r"Findings that do not hold are in (.*)\.", index)
    for outcome in outcomes.values():
        for claim, verdict in verdicts(outcome):
            line = f"{claim.part}, **{verdict.word}**: {claim.sentence} Here: {verdict.observed}."
            assert f"- {line}" in page
            if verdict.word in (PARTLY, FAILS):
                assert f"**{HOLDS}**" not in _row(index, claim.part)
            if verdict.word == FAILS:
                assert claim.part in lost


def _row(index, part):
    (row,) = [line for line in index.splitlines() if line.startswith(f"| [{part},")]
    return row


def test_every_cell_is_of_this_version_and_says_where_it_was_computed(kept, page):
    version = writer.version_of(kept)
    assert set(kept) <= {
        writer.identity(cell, one) for cell in writer.cells() for one in (version, writer.VERSION)
    }
    machines = [result["machine"] for result in kept.values()]
    for name in set(machines):
        assert f"- {machines.count(name)} cells: {name}\n" in page


def test_networks_of_our_trainer_stay_on_the_page_until_all_are_computed_again(
    kept, monkeypatch, tmp_path
):
    version = writer.version_of(kept)
    monkeypatch.setattr(writer, "VERSION", version + 1)
    monkeypatch.setattr("benchmarks.reproduction.cells.VERSION", version + 1)
    ours = [cell for cell in dict.fromkeys(writer.cells()) if cell.is_ours]
    names = {writer.identity(cell, version) for cell in ours}
    store = CellStore(tmp_path)
    for cell in ours[1:]:
        store.save(cell, kept[writer.identity(cell, version)])
    merged = writer.merge(kept, store)
    assert writer.version_of(merged) == version
    assert names <= set(merged)
    assert len(merged) == len(kept) + len(ours) - 1
    store.save(ours[0], kept[writer.identity(ours[0], version)])
    merged = writer.merge(merged, store)
    assert writer.version_of(merged) == version + 1
    assert not names & set(merged)
    assert len(merged) == len(kept)
