"""Everything at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from twinedge.budget import Model, all_boards, board_named, summarise

KEYS = {
    *("features", "hidden", "members", "ann_params", "twin_params"),
    *("ann_bytes", "twin_bytes", "ratio", "boards"),
}


def test_the_example_of_the_paper(firmware):
    found = summarise(Model.of(8, (128, 128)), all_boards().values(), firmware)
    assert set(found) >= KEYS
    assert (found["ann_params"], found["twin_params"]) == (569_376, 19_105)
    assert found["ratio"] == found["ann_bytes"] / found["twin_bytes"]
    assert found["bytes"]["int8"] == {"twin": found["twin_bytes"], "ann": found["ann_bytes"]}
    assert found["bytes"]["float32"] == {"twin": 4 * 19_105, "ann": 4 * 569_376}
    assert sum(found["sections"].values()) == found["twin_bytes"]
    assert found["smaller_from"] == {"params": 2, "bytes": 2}
    assert found["cores_measured"] == ["avr5"]
    assert [one["board"] for one in found["boards"]] == list(all_boards())
    assert "in_flash" not in found
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_measured_and_unmeasured_boards(firmware):
    boards = [board_named("uno"), board_named("pico")]
    uno, pico = summarise(Model.of(8, (128, 128)), boards, firmware)["boards"]
    assert uno["verdict"] == "fits"
    assert (uno["core"], uno["measured_on"]) == ("avr5", "avr5")
    assert (pico["core"], pico["measured_on"]) == ("cortex-m0plus", None)
    assert uno["milliseconds_estimated"] == pytest.approx([125, 250])
    assert (uno["free_flash_bytes"], uno["free_ram_bytes"]) == (32_256, 2_048)
    assert pico["verdict"] == "not measured"
    assert pico["flash_bytes"] is None
    assert pico["milliseconds_estimated"] is None


def test_a_core_that_stands_in_is_named(firmware):
    (pico,) = summarise(
        Model.of(8, (128, 128)), [board_named("pico")], {"cortex-m0": firmware["avr5"]}
    )["boards"]
    assert (pico["core"], pico["measured_on"]) == ("cortex-m0plus", "cortex-m0")


def test_the_largest_that_fits_a_flash():
    found = summarise(Model.of(8, (128, 128)), [], {}, flash=32_256)["in_flash"]
    assert found == {
        "bytes": 32_256,
        "ann_members": 1,
        "twin_anchors": 591,
        "twin_features": 40,
    }


def test_what_no_pack_holds_is_none_and_the_counts_stay():
    found = summarise(Model.of(2000, (128, 128)), all_boards().values(), {}, flash=1 << 20)
    assert found["ann_params"] == 32 * (2000 * 128 + 128 + 128 * 128 + 128 + 128 + 1)
    assert (found["ann_bytes"], found["twin_bytes"], found["ratio"]) == (None, None, None)
    assert found["bytes"]["float32"]["twin"] == 4 * found["twin_params"]
    assert found["sections"] is None
    assert found["in_flash"]["twin_anchors"] is None
    assert {one["verdict"] for one in found["boards"]} == {"does not fit"}
    found = summarise(Model.of(8, (128, 128), 5000), [], {}, flash=1 << 20)
    assert found["twin_bytes"] is None
    assert found["in_flash"]["twin_anchors"] == 4096
    assert found["in_flash"]["twin_features"] is None


def test_counting_needs_numpy_and_nothing_heavier():
    code = (
        "import json, sys\n"
        "from twinedge.budget import Model, all_boards, read_firmware, summarise\n"
        "summarise(Model.of(8, (128, 128)), all_boards().values(), read_firmware())\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "numpy" in loaded
    assert not loaded & {"tensorflow", "keras", "sklearn", "scipy", "twinedge_export"}


def test_a_file_is_judged_without_what_a_board_can_do_without(firmware):
    found = summarise(Model.of(8, (128, 128)), [board_named("uno")], firmware, file_bytes=21_572)
    assert (found["file_bytes"], found["twin_bytes"]) == (21_572, 21_072)
    assert found["boards"][0]["flash_bytes"] == 4120 + 21_072


def test_intervals_take_their_bytes_on_a_board(firmware):
    model = Model.of(8, (128, 128), intervals=True)
    found = summarise(model, [board_named("uno")], firmware, flash=32_256)
    assert found["intervals"] is True
    assert (found["twin_bytes"], found["bytes"]["int8"]["ann"]) == (21_520, 615_072)
    assert sum(found["sections"].values()) == found["twin_bytes"]
    assert found["in_flash"]["twin_anchors"] < 591
    (uno,) = found["boards"]
    plain = summarise(Model.of(8, (128, 128)), [board_named("uno")], firmware)
    assert plain["intervals"] is False
    assert uno["verdict"] == "fits"
    assert uno["flash_bytes"] == plain["boards"][0]["flash_bytes"] + 900 + 21_520 - 21_072
    assert uno["ram_bytes"] == plain["boards"][0]["ram_bytes"] + 60


def test_every_key_is_documented(firmware):
    page = (Path(__file__).parents[2] / "docs" / "budget.md").read_text()
    found = summarise(Model.of(8, (128, 128)), [], firmware, flash=1000)
    assert [key for key in found if f"`{key}`" not in page] == []
