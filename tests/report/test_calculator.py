"""The calculator of the page computes what ``twinedge budget --json`` prints."""

import json
from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model, all_boards, summarise
from twinedge.budget.fits import describe_verdict
from twinedge.errors import InputError
from twinedge_export.report.document import LIGHTS

MODELS = 30
# Counts settings without showing them; a refusal is its message.
COUNT = """
(settings) => {
  const { summarise } = Budget(JSON.parse(document.getElementById("facts").textContent));
  return settings.map((one) => {
    try { return summarise(one); } catch (error) { return error.message; }
  });
}
"""
# Enters a setting like a user, by sliders or numbers, each with its event; returns what is shown.
MOVE = """
([setting, sliders]) => {
  const put = (field, value) => {
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const [width1, width2, width3] = [...setting.hidden, 0, 0];
  const numbers = { ...setting, members: setting.anchors, width1, width2, width3 };
  numbers["map-bins"] = setting.bins || 0;
  numbers["map-extra"] = setting.extra || 0;
  for (const name of ["features", "members", "width1", "width2", "width3", "twins", "neighbors",
                      "map-bins", "map-extra"])
    put(sliders ? document.querySelector(`[data-for=${name}]`) : at(name), numbers[name]);
  for (const name of ["weights", "activation", "board"]) put(at(name), setting[name]);
  put(at("with-intervals"), setting.intervals ? "with" : "without");
  put(at("with-target-curve"), setting.target_bins ? "with" : "without");
  const { result } = at("panel").dataset;
  return {
    result: result === undefined ? null : JSON.parse(result),
    sentence: at("result").textContent,
    sizes: [...document.querySelectorAll("#sizes tbody tr")].map((row) =>
      [...row.querySelectorAll("td")].map((cell) => cell.textContent)),
    verdicts: [...document.querySelectorAll("#all-boards .light")].map((one) => one.textContent),
    board: at("board-verdict").textContent,
    lines: [...document.querySelectorAll("#panel path.line")].map((one) => one.getAttribute("d")),
  };
}
"""
PAPER = {"features": 8, "hidden": [128, 128], "anchors": 32, "twins": 1, "neighbors": 0}
PAPER |= {"activation": "relu", "weights": "int8", "intervals": True, "board": "uno"}
CURVES = ("map_outputs", "map_rows", "map_curves", "target_bins")


def random_curves(rng, features):
    """Curves of half the models, some of them impossible; a map has at least ``features``."""
    chosen = dict.fromkeys(CURVES, 0)
    if rng.integers(2):
        chosen["target_bins"] = int(
            rng.choice([0, 1, 256, 4096, 4097], p=[0.4, 0.2, 0.2, 0.19, 0.01])
        )
    if rng.integers(2):
        chosen["map_outputs"] = features + int(
            rng.choice([-1, 0, 3, 8, 60], p=[0.02, *[0.245] * 4])
        )
        chosen["map_curves"] = curves = int(rng.integers(features + 1))
        chosen["map_rows"] = curves * int(rng.choice([1, 2, 9, 256], p=[0.02, 0.3, 0.48, 0.2]))
    return chosen


def random_settings(count, seed):
    """Random settings, small and large, including some that no pack can hold."""
    rng = np.random.default_rng(seed)

    def below(most):
        return int(np.exp(rng.uniform(0, np.log(most + 1))))

    for _ in range(count):
        twins = int(
            rng.choice([1, 1, 1, 2, 4, 7, 300], p=[0.18, 0.18, 0.18, 0.15, 0.15, 0.15, 0.01])
        )
        features = below(1100)
        yield {
            "features": features,
            "hidden": [below(1040) for _ in range(rng.integers(1, 5))],
            "anchors": max(twins - int(rng.random() < 0.05), below(4200)),
            "twins": twins,
            "neighbors": int(rng.choice([0, 0, 0, 1, 3, 32])),
            "activation": str(rng.choice(["relu", "silu"])),
            "weights": str(rng.choice(["int8", "int8", "int16", "float16", "float32"])),
            "intervals": bool(rng.integers(2)),
            "levels": int(rng.choice([0, 1, 4, 5, 15])),
            **random_curves(rng, features),
        }


def python(setting, firmware):
    """What the command prints, through JSON as it does; the page shows times, no instructions."""
    names = ("twins", "neighbors", "activation", "weights", "intervals", *CURVES)
    shape = setting["features"], tuple(setting["hidden"]), setting["anchors"]
    try:
        model = Model.of(*shape, **{name: setting.get(name, 0) for name in names})
    except InputError as error:
        return str(error)
    model = replace(model, levels=setting["levels"], identified=setting.get("identified", False))
    counted = summarise(model, all_boards().values(), firmware)
    for one in counted["boards"]:
        del one["instructions_estimated"], one["instructions_worst"]
    return json.loads(json.dumps(counted))


def test_random_models_count_as_python_does(opened, page_file, firmware):
    slow = {**PAPER, "anchors": 512, "levels": 5, **dict.fromkeys(CURVES, 0)}
    del slow["board"]
    few = {**slow, "anchors": 3, "twins": 4}
    # With fewer anchors, neighbors need no list: more networks fit a board with the pack in RAM.
    near = {**slow, "features": 130, "hidden": [1, 4], "anchors": 1427, "twins": 7}
    near |= {"neighbors": 32, "activation": "silu"}
    settings = [slow, few, near, *random_settings(MODELS, seed=0)]
    counted = [python(one, firmware) for one in settings]
    found = opened(page_file).evaluate(COUNT, settings)
    for setting, one, other in zip(settings, found, counted, strict=True):
        assert one == other, setting
    # The comparison was not empty.
    assert counted[1] == "3 anchors for 4 twins: each needs at least one"
    boards = [one for found in counted if isinstance(found, dict) for one in found["boards"]]
    assert {one["verdict"] for one in boards} == set(LIGHTS)
    assert sum(one["milliseconds_estimated"] is not None for one in boards) > MODELS


def test_what_is_counted_is_shown(opened, page_file, firmware, found):
    page = opened(page_file)
    levels = found.pack.model.levels  # of the model of the report, fewer than usual
    assert levels == 4
    start = json.loads(page.locator("#panel").get_attribute("data-result"))
    assert start["twin_bytes"] == found.costs.budget["twin_bytes"]
    drawn = []
    for sliders, setting in [
        (True, PAPER | {"features": 3, "hidden": [16], "anchors": 9, "weights": "float16"}),
        (False, PAPER | {"anchors": 512}),
        (True, PAPER | {"hidden": [200, 200, 8], "activation": "silu", "twins": 2}),
        (True, PAPER | {"bins": 8, "extra": 5, "target_bins": 256}),
    ]:
        if "bins" in setting:  # a curve for each feature
            setting |= {"map_outputs": 8 + 5, "map_rows": 8 * 9, "map_curves": 8}
        counted = python({**setting, "levels": levels, "identified": True}, firmware)
        shown = page.evaluate(MOVE, [setting, sliders])
        assert shown["result"] == counted
        for row, side in zip(shown["sizes"], ("ann", "twin"), strict=True):
            sizes = [counted[f"{side}_params"], *(one[side] for one in counted["bytes"].values())]
            assert row == ["-" if size is None else f"{size:,}" for size in sizes]
        keys = ("verdict", "why", "anchors", "milliseconds_estimated")
        described = [describe_verdict(*(one[key] for key in keys)) for one in counted["boards"]]
        without = [word.replace(",", "") for word in described]  # a page groups digits
        assert [word.replace(",", "") for word in shown["verdicts"]] == without
        drawn.append(shown["lines"])
    assert all(len(lines) == len(set(lines)) == 4 for lines in drawn)
    assert not set(drawn[0]) & set(drawn[1])


def test_a_model_with_curves_is_where_the_calculator_starts(opened, bent, write, tmp_path):
    from twinedge_export.report.formats import page as format_page

    text = write(bent)
    kept = [one for one in text.sections if one.panel != "try"]
    bare = [replace(one, figures=()) for one in kept]  # figures take long to draw
    text = replace(text, sections=tuple(bare), predictor={})
    (tmp_path / "bent.html").write_text(format_page(text), "utf-8")
    page = opened(tmp_path / "bent.html", unfolded=True)

    def result():
        return json.loads(page.locator("#panel").get_attribute("data-result"))

    start, counted = result(), bent.costs.budget
    for key in ("twin_bytes", "twin_params", "sections", "multiply_adds", *CURVES):
        assert start[key] == counted[key], key
    assert "map " in page.locator("#parts").text_content()
    page.get_by_label("Pieces of each feature", exact=False).last.fill("0")
    assert result()["map_outputs"] == 0
    page.locator("#with-target-curve").select_option("without")
    assert set(CURVES) & set(result()["sections"]) == set()
    assert "target_curve" not in result()["sections"]
    assert result()["twin_bytes"] < start["twin_bytes"]
    page.get_by_role("button", name="Back to this model").click()
    assert result() == start
    page.get_by_label("Pieces of each feature", exact=False).last.fill("256")
    assert page.locator("#result").get_attribute("class") == "result refused"


def test_fields_buttons_and_keys_and_the_example_of_the_paper(opened, page_file):
    page = opened(page_file, unfolded=True)

    def features():
        text = page.locator("#panel").get_attribute("data-result")
        return None if text is None else json.loads(text)["features"]

    start, result = features(), page.locator("#result")
    for value in ("", "0", "-3", "1.5"):  # no number that a model may have
        page.get_by_label("Features", exact=True).fill(value)
        assert result.get_attribute("class") == "result refused"
        assert features() is None
    page.get_by_role("button", name="Back to this model").click()
    assert result.get_attribute("class") == "result"
    assert features() == start
    page.get_by_role("slider", name="Features, slider").press("ArrowRight")
    assert features() == start + 1
    shown = page.evaluate(MOVE, [PAPER | {"intervals": False}, False])
    assert "19,105 parameters in 21,296 bytes" in shown["sentence"]
    assert "569,376 in 615,072 bytes, 28.9 times as much" in shown["sentence"]
    assert shown["board"].startswith("fits (flash 25,416 of 32,256 bytes, RAM 1,379 of 2,048")
    assert "an estimated 125-250 ms for a query" in shown["board"]
    shown = page.evaluate(MOVE, [PAPER, False])
    assert "19,105 parameters in 21,728 bytes" in shown["sentence"]  # with four levels
    assert shown["board"].startswith("fits (flash 26,748 of 32,256 bytes, RAM 1,439 of 2,048")
    refused = page.evaluate(MOVE, [PAPER | {"anchors": 3, "twins": 4}, False])
    assert refused["result"] is None
    assert refused["sentence"] == "3 anchors for 4 twins: each needs at least one"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_more_random_models(opened, page_file, firmware, seed):
    settings = list(random_settings(400, seed))
    found = opened(page_file).evaluate(COUNT, settings)
    assert found == [python(one, firmware) for one in settings]
