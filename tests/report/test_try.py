"""Try it: what the page computes is what ``twinedge predict`` prints, to the last bit."""

import base64
import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.cli import main
from twinedge.pack import read_pack, write_pack
from twinedge_export.report.findings import ReportSettings
from twinedge_export.report.formats import page as format_page
from twinedge_export.report.write import document, write_report

QUERIES = 100
# Enters texts into the controls like a user, and returns the predictions of the page.
ENTER = """
(rows) => rows.map((cells) => {
  const facts = JSON.parse(document.getElementById("predictor").textContent);
  cells.forEach((cell, k) => {
    const field = document.getElementById(`try-${k}`);
    const { labels, cells: known } = facts.columns[k];
    const level = cell === "" ? "missing" : known?.includes(cell) ? known.indexOf(cell) : "unknown";
    field.value = labels === undefined ? cell : level;
  });
  document.getElementById("try-0").dispatchEvent(new Event("input", { bubbles: true }));
  const { answer } = document.getElementById("predictor").dataset;
  return answer === undefined ? null : JSON.parse(answer);
})
"""


@pytest.fixture(scope="module")
def stones_pack(stones_run, tmp_path_factory):
    """A pack with text columns and missing cells."""
    import twinedge

    folder = tmp_path_factory.mktemp("exports") / "stones"
    twinedge.export(stones_run, folder, anchors=12, formats=("twin",), tolerance=10.0)
    return folder / "model.twin"


@pytest.fixture(scope="module")
def stones_page(stones_pack, stones, tmp_path_factory):
    """Its page, made from the file alone."""
    path = tmp_path_factory.mktemp("pages") / "stones.html"
    write_report([stones_pack], path, ReportSettings(data=stones), command="twinedge report")
    return path


def only_predictor(text):
    """The part of a page that predicts, without figures, which take long to draw."""
    kept = tuple(section for section in text.sections if section.panel == "try")
    return replace(text, sections=kept, calculator={})


def predicted(capsys, pack, columns, rows, *options):
    """What the command prints for rows of texts."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(columns)
    writer.writerows(rows)
    Path("query.csv").write_text(table.getvalue(), "utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["predict", str(pack), "query.csv", "--json", "--quiet", *options])
    assert stop.value.code == 0
    return json.loads(capsys.readouterr().out)


def random_rows(facts, count, seed):
    """Rows of texts: usual values, far ones, missing ones, unseen levels."""
    rng = np.random.default_rng(seed)

    def cell(column):
        if column["fillable"] and rng.random() < 0.1:
            return ""
        if "labels" in column:
            levels = [*column["cells"], "no such level"]
            return levels[rng.integers(len(levels))]
        least, most = column["least"], column["most"]
        reach = (most - least) * rng.choice([1, 1, 1, 2, 1000])
        return repr(float(rng.uniform(least - (reach > most - least) * reach, least + reach)))

    return [[cell(column) for column in facts["columns"]] for _ in range(count)]


def enter(page, rows):
    facts = json.loads(page.locator("#predictor").text_content())
    return facts, page.evaluate(ENTER, rows)


def compare(found, printed):
    """Every number to the last bit, every name of a flag."""
    names = ["prediction", "spread", "scale", "low", "high", "outside", "missing"]
    for name in [name for name in names if name in printed]:
        assert [one[name] for one in found] == printed[name], name


def test_curves_to_the_last_bit(opened, bent, write, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bent.html").write_text(format_page(only_predictor(write(bent))), "utf-8")
    Path("bent.twin").write_bytes(bent.pack.data)
    page = opened(tmp_path / "bent.html")
    facts, _ = enter(page, [])
    rows = random_rows(facts, QUERIES, seed=0)
    _, found = enter(page, rows)
    names = [column["name"] for column in facts["columns"]]
    compare(found, predicted(capsys, "bent.twin", names, rows))
    assert len({one["prediction"] for one in found}) > QUERIES // 2
    assert min(one["prediction"] for one in found) > 0  # of a logarithm
    assert facts["targets"][0] > 0


def test_many_queries_with_names_and_holes_to_the_last_bit(
    opened, stones_page, stones_pack, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = opened(stones_page)
    facts, _ = enter(page, [])
    rows = random_rows(facts, QUERIES, seed=0)
    _, found = enter(page, rows)
    columns = [one["name"] for one in facts["columns"]]
    printed = predicted(capsys, stones_pack, columns, rows)
    compare(found, printed)
    assert len(found) == QUERIES
    # The comparison was not empty.
    assert any(printed["missing"])
    assert {name for names in printed["outside"] for name in names} == set(columns)
    assert sum(not names for names in printed["outside"]) > 20
    assert {row[1] for row in rows} >= {"Good, really", "Idéal", "Odd", "no such level", ""}
    page.get_by_label("Interval", exact=True).select_option("800")
    _, found = enter(page, rows[:5])
    compare(found, predicted(capsys, stones_pack, columns, rows[:5], "--coverage", "0.8"))


@pytest.mark.parametrize(
    "kind", ["no domain", pytest.param("many features", marks=pytest.mark.slow)]
)
def test_flags_of_other_packs(opened, quick, spread, write, tmp_path, capsys, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    report = quick if kind == "many features" else spread
    text, pack = write(report), report.pack.device.pack
    if kind == "many features":  # flagged by integers, as with 33 columns
        integers = {"offset": pack.x_offset, "gain": pack.x_gain}
        integers |= {"least": pack.domain.least, "most": pack.domain.most}
        domain = {name: one.tolist() for name, one in integers.items()}
        text = replace(text, predictor={**text.predictor, "domain": domain})
    Path("page.html").write_text(format_page(only_predictor(text)), "utf-8")
    Path("model.twin").write_bytes(report.pack.data)
    rows = random_rows(text.predictor, 40, seed=2)
    _, found = enter(opened(tmp_path / "page.html"), rows)
    columns = [one["name"] for one in text.predictor["columns"]]
    compare(found, predicted(capsys, "model.twin", columns, rows))


def test_the_command_on_the_page_prints_what_the_page_says(
    opened, complaints, stones_page, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = opened(stones_page, unfolded=True)
    page.get_by_role("button", name="Random values").click()
    found = json.loads(page.locator("#predictor").get_attribute("data-answer"))
    Path("query.csv").write_text(page.get_by_role("region", name="query.csv").text_content())
    link = page.get_by_role("link", name="model.twin")
    with page.expect_download() as saved:
        link.click()
    saved.value.save_as(saved.value.suggested_filename)
    command = page.get_by_role("region", name="The command").text_content().split()
    # The policy lets no script fetch anything, not even that.
    assert not link.evaluate("(one) => fetch(one.href).then(() => true, () => false)")
    assert any("Content Security Policy" in line for line in complaints)
    complaints.clear()
    assert command[:2] == ["twinedge", "predict"]
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*command[1:], "--json", "--quiet"])
    compare([found], json.loads(capsys.readouterr().out))


def test_curves_pass_through_the_prediction_and_follow_the_controls(opened, stones_page):
    page = opened(stones_page)
    curves = page.locator("#try-controls svg")
    before = [one.inner_html() for one in curves.all()]
    assert len(before) == 4
    page.get_by_label("carat", exact=True).fill("2.4")
    page.locator("#predictor[data-drawn]").wait_for(state="attached")
    after = [one.inner_html() for one in curves.all()]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert page.locator("#try-controls .here").count() == 4
    # Measured, far and missing values are remarked on.
    flags = page.locator("#try-flags")
    page.get_by_label("Start from").select_option("2")
    assert "Measured: " in flags.text_content()
    _, (found,) = enter(page, [["99", "no such level", "", "2"]])
    assert (found["outside"], found["missing"]) == (["carat", "cut"], ["depth"])
    assert "Outside the training range: carat and cut." in flags.text_content()
    assert "Filled in: depth." in flags.text_content()
    assert flags.get_attribute("class") == "warned"


def test_a_model_that_fills_nothing_in_needs_a_number(opened, page_file):
    page = opened(page_file)
    _, (found,) = enter(page, [["", "1", "1"]])
    assert found is None
    assert "takes a number" in page.locator("#try-flags").text_content()
    _, (found,) = enter(page, [["0.5", "1", "1"]])
    assert found is not None


@pytest.mark.slow
def test_the_keyboard_moves_every_control(opened, stones_page):
    page = opened(stones_page)
    keys = {"range": "ArrowRight", "number": "ArrowUp", "select-one": "ArrowDown"}
    controls = page.locator("#try-controls").locator("input, select").all()
    assert len(controls) == 6
    query = page.locator("#try-csv")
    for control in controls:
        page.get_by_label("Start from").dispatch_event("input")
        before = query.text_content()
        control.press(keys[control.evaluate("(one) => one.type")])
        if query.text_content() == before:
            control.press("ArrowUp")  # from the last of a list
        assert query.text_content() != before, control


@pytest.fixture(scope="module")
def hours(tmp_path_factory):
    """A pack with a column of times, its table and its page."""
    import twinedge

    home = tmp_path_factory.mktemp("hours")
    rng = np.random.default_rng(0)
    start, load = np.datetime64("2024-01-01T00:00"), rng.uniform(0, 1, 300)
    lines = [
        f"{start + np.timedelta64(5 * k, 'h')},{one:.3f},{np.sin(5 * k * np.pi / 12) + one:.4f}"
        for k, one in enumerate(load.tolist())
    ]
    (home / "hours.csv").write_text("\n".join(["when,load,power", *lines]) + "\n")
    tiny = {"hidden": 8, "steps": 200, "learning_rate": 0.01, "weight_decay": 0.03}
    tiny |= {"activation": "relu", "random_state": 0}
    run = twinedge.fit_csv(home / "hours.csv", target="power", calendar="when", **tiny)
    twinedge.export(run, home / "out", anchors=12, formats=("twin",), tolerance=10.0)
    pack, path = home / "out" / "model.twin", home / "page.html"
    settings = ReportSettings(data=home / "hours.csv")
    write_report([pack], path, settings, command="twinedge report")
    return home


@pytest.mark.slow
def test_times_of_two_centuries_to_the_last_bit(opened, hours, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = opened(hours / "page.html")
    rng = np.random.default_rng(1)
    seconds = rng.integers(-2_000_000_000, 5_000_000_000, QUERIES).astype("datetime64[s]")
    loads = rng.uniform(0, 1, QUERIES)
    rows = [[str(one), f"{load:.3f}"] for one, load in zip(seconds, loads, strict=True)]
    facts, found = enter(page, rows)
    columns = [one["name"] for one in facts["columns"]]
    assert columns == ["when", "load"]
    printed = predicted(capsys, hours / "out" / "model.twin", columns, rows)
    compare(found, printed)
    assert not any("when" in names for names in printed["outside"])
    _, (none,) = enter(page, [["", "0.5"]])
    assert none is None


def test_a_time_is_chosen_and_its_week_is_drawn(opened, hours, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = opened(hours / "page.html", unfolded=True)
    assert page.get_by_label("when", exact=True).input_value().startswith("2024-02-01T")
    drawn = page.locator("#try-controls svg").filter(has_text="Monday")
    assert "Sunday" in drawn.text_content()
    before = drawn.inner_html()
    page.get_by_label("Start from").select_option("3")
    page.locator("#predictor[data-drawn]").wait_for(state="attached")
    assert drawn.inner_html() != before
    found = json.loads(page.locator("#predictor").get_attribute("data-answer"))
    Path("query.csv").write_text(page.get_by_role("region", name="query.csv").text_content())
    when = Path("query.csv").read_text().splitlines()[1].split(",")[0]
    assert when.removesuffix(":00Z") in (hours / "hours.csv").read_text()
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["predict", str(hours / "out" / "model.twin"), "query.csv", "--json", "--quiet"])
    compare([found], json.loads(capsys.readouterr().out))
    page.get_by_role("button", name="Random values").click()
    assert page.get_by_label("when", exact=True).input_value().startswith("2024-")


def test_the_report_draws_a_time_through_the_week(hours):
    text = (hours / "page.html").read_text("utf-8")
    assert "when = 0 hours since Monday, UTC" in text
    assert "when = 168 hours since Monday, UTC" in text


def test_it_can_be_left_out(found, text, opened, tmp_path):
    without = document(found, "x", with_predictor=False)
    assert all(section.name != "try" for section in without.sections)
    assert without.predictor == {}
    path = tmp_path / "without.html"
    path.write_text(format_page(replace(without, sections=(), calculator={})), "utf-8")
    assert opened(path).locator("#predictor").count() == 0
    assert "wasm" not in path.read_text("utf-8")
    data = base64.b64decode(text.predictor["pack"])
    assert data == found.pack.data
    assert write_pack(read_pack(data)) == data
