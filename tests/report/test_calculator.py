"""The calculator of the page computes what ``twinedge budget --json`` prints."""

import json
from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model, summarise
from twinedge.budget.fits import describe_verdict as told
from twinedge.errors import InputError
from twinedge_export.report.document import LIGHTS

TOLD = ("verdict", "why", "anchors", "milliseconds_estimated")
SETTINGS = 50
# Enters a setting like a user: by slider or number, each with its event.
MOVE = """
([setting, sliders]) => {
  const put = (field, value) => {
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const widths = [...setting.hidden, 0, 0];
  const [width1, width2, width3] = widths;
  const numbers = { ...setting, members: setting.anchors, width1, width2, width3 };
  for (const name of ["features", "members", "width1", "width2", "width3", "twins", "neighbors"]) {
    const slider = document.querySelector(`[data-for=${name}]`);
    const reached = numbers[name] <= slider.max;
    put(sliders && reached ? slider : document.getElementById(name), numbers[name]);
  }
  for (const name of ["weights", "activation", "board"])
    if (name in setting) put(document.getElementById(name), setting[name]);
  if ("intervals" in setting)
    put(document.getElementById("with-intervals"), setting.intervals ? "with" : "without");
  const { result } = document.getElementById("panel").dataset;
  return {
    result: result === undefined ? null : JSON.parse(result),
    sentence: document.getElementById("result").textContent,
    sizes: [...document.querySelectorAll("#sizes tbody tr")].map((row) =>
      [...row.querySelectorAll("td")].map((cell) => cell.textContent)),
    verdicts: [...document.querySelectorAll("#all-boards .light")].map((one) => one.textContent),
    board: document.getElementById("board-verdict").textContent,
    lines: [...document.querySelectorAll("#panel path.line")].map((one) => one.getAttribute("d")),
  };
}
"""


def settings(count, seed):
    """Random settings, small and large, including some that no pack can hold."""
    rng = np.random.default_rng(seed)

    def below(most):
        return int(np.exp(rng.uniform(0, np.log(most + 1))))

    for _ in range(count):
        twins = int(rng.choice([1, 1, 1, 2, 4, 7]))
        yield {
            "features": below(1100),
            "hidden": [below(1040) for _ in range(rng.integers(1, 4))],
            "anchors": max(twins, below(4200)),
            "twins": twins,
            "neighbors": int(rng.choice([0, 0, 0, 1, 3, 32])),
            "activation": str(rng.choice(["relu", "silu"])),
            "weights": str(rng.choice(["int8", "int8", "int16", "float16", "float32"])),
            "intervals": bool(rng.integers(2)),
        }


def python(setting, boards, firmware, levels=5):
    """What the command prints, through JSON as it does."""
    model = Model.of(
        setting["features"],
        tuple(setting["hidden"]),
        setting["anchors"],
        twins=setting["twins"],
        neighbors=setting["neighbors"],
        activation=setting["activation"],
        weights=setting["weights"],
        intervals=setting["intervals"],
    )
    return json.loads(json.dumps(summarise(replace(model, levels=levels), boards, firmware)))


@pytest.fixture
def move(opened, page_file):
    page = opened(page_file)

    def call(setting, sliders=False):
        return page.evaluate(MOVE, [setting, sliders])

    return call


def result(page):
    """What the calculator has computed, if anything."""
    text = page.locator("#panel").get_attribute("data-result")
    return None if text is None else json.loads(text)


def on_page(counted):
    """What the page computes of a summary: it shows times, but no instructions."""
    left = {"instructions_estimated", "instructions_worst"}
    boards = [{k: v for k, v in one.items() if k not in left} for one in counted["boards"]]
    return {**counted, "boards": boards}


def test_fifty_settings_count_as_python_does(move, boards, firmware, found):
    levels = found.model.levels  # of the model of the report, fewer than usual
    assert levels == 4
    verdicts = set()
    slow = {"features": 8, "hidden": [128, 128], "anchors": 512, "twins": 1, "neighbors": 0}
    slow |= {"activation": "relu", "weights": "int8", "intervals": True}
    for turn, setting in enumerate([*settings(SETTINGS, seed=0), slow]):
        counted = python(setting, boards, firmware, levels)
        shown = move(setting, sliders=turn % 2 == 0)
        assert shown["result"] == on_page(counted)
        verdicts |= {one["verdict"] for one in counted["boards"]}
        parameters = [row[0] for row in shown["sizes"]]
        assert parameters == [f"{counted[key]:,}" for key in ("ann_params", "twin_params")]
        for row, side in zip(shown["sizes"], ("ann", "twin"), strict=True):
            bytes_ = [one[side] for one in counted["bytes"].values()]
            assert row[1:] == ["-" if size is None else f"{size:,}" for size in bytes_]
        assert [word.replace(",", "") for word in shown["verdicts"]] == [
            told(*(one[key] for key in TOLD)).replace(",", "") for one in counted["boards"]
        ]
    # The comparison was not empty.
    assert verdicts == set(LIGHTS)


def test_the_example_of_the_paper(move):
    paper = {"features": 8, "hidden": [128, 128], "anchors": 32, "twins": 1, "neighbors": 0}
    paper |= {"activation": "relu", "weights": "int8", "board": "uno"}
    shown = move({**paper, "intervals": False})
    assert "19,105 parameters in 21,072 bytes" in shown["sentence"]
    assert "569,376 in 615,072 bytes, 29.2 times as much" in shown["sentence"]
    assert shown["board"].startswith("fits (flash 25,192 of 32,256 bytes, RAM 1,379 of 2,048")
    assert "an estimated 125-250 ms for a query" in shown["board"]
    shown = move({**paper, "intervals": True})
    assert "19,105 parameters in 21,504 bytes" in shown["sentence"]  # with four levels
    assert shown["board"].startswith("fits (flash 26,524 of 32,256 bytes, RAM 1,439 of 2,048")


def test_figures_follow_the_sliders(move):
    few = {"features": 2, "hidden": [16], "anchors": 8, "twins": 1, "neighbors": 0}
    first = move(few)["lines"]
    assert len(first) == 4
    second = move({**few, "hidden": [64, 64]})["lines"]
    assert all(one != other for one, other in zip(first, second, strict=True))


def test_the_page_starts_with_the_model_of_the_report(opened, page_file, found):
    assert result(opened(page_file)) == on_page(json.loads(json.dumps(found.budget)))


def test_what_python_refuses_is_refused_in_the_same_words(move, boards, firmware):
    setting = {"features": 8, "hidden": [16], "anchors": 3, "twins": 4, "neighbors": 0}
    setting |= {"activation": "relu", "weights": "int8", "intervals": True}
    shown = move(setting)
    assert shown["result"] is None
    with pytest.raises(InputError) as refusal:
        python(setting, boards, firmware)
    assert shown["sentence"] == str(refusal.value)
    assert move({**setting, "anchors": 4})["result"] is not None


@pytest.mark.parametrize("value", ["", "0", "-3", "1.5"], ids=["empty", "zero", "negative", "part"])
def test_a_field_that_is_no_number_is_refused(opened, page_file, value):
    page = opened(page_file, unfolded=True)
    said = page.locator("#result")
    page.get_by_label("Features", exact=True).fill(value)
    assert said.get_attribute("class") == "result refused"
    assert result(page) is None
    page.get_by_role("button", name="Back to this model").click()
    assert said.get_attribute("class") == "result"


def test_the_keyboard_moves_a_slider(opened, page_file):
    page = opened(page_file, unfolded=True)
    before = result(page)["features"]
    page.get_by_role("slider", name="Features, slider").press("ArrowRight")
    assert result(page)["features"] == before + 1
