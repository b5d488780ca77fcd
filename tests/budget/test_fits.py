"""Fits, fits with fewer anchors, does not fit and why, or was never measured; and all figures."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from twinedge.budget import Model, all_boards, board_named, board_verdict, summarise, twin_bytes
from twinedge.budget.fits import describe_verdict
from twinedge.budget.measurements import instructions, milliseconds

UNO, PICO = board_named("uno"), board_named("pico")
PAPER = Model.of(8, (128, 128))


def test_a_model_that_fits(firmware):
    model = Model.of(8, (64, 64))
    found = board_verdict(model, UNO, firmware)
    assert (found.verdict, found.words, found.anchors) == ("fits", "fits", 32)
    assert found.flash_bytes == 4120 + twin_bytes(model)
    assert found.ram_bytes == firmware["avr5"].build(model).ram_bytes(model)
    assert found.milliseconds is not None
    # A network takes 5520 bytes, and 32256 - 4120 are left for header, scaling and networks.
    assert found.ann_members == (32256 - 4120 - 160) // 5520 == 5


def test_flash_that_is_full_to_the_last_byte(firmware):
    model = PAPER
    needed = 4120 + twin_bytes(model)
    board = replace(UNO, flash=needed + UNO.reserved_flash)
    assert board_verdict(model, board, firmware).verdict == "fits"
    assert board_verdict(model, replace(board, flash=board.flash - 1), firmware).anchors == 31


def test_fewer_anchors_are_as_many_as_fit(firmware):
    found = board_verdict(Model.of(8, (128, 128), 1000), UNO, firmware)
    assert found.verdict == "fits with fewer anchors"
    assert found.words == f"fits with {found.anchors} anchors, 1.5-3 s a query"
    assert board_verdict(Model.of(8, (128, 128), found.anchors), UNO, firmware).fits
    more = board_verdict(Model.of(8, (128, 128), found.anchors + 1), UNO, firmware)
    assert more.anchors == found.anchors
    assert found.flash_bytes <= UNO.free_flash
    shared = board_verdict(Model.of(8, (64, 64), 1000, twins=4), UNO, firmware)
    assert (shared.verdict, shared.anchors % 4) == ("fits with fewer anchors", 0)


def test_a_query_of_more_than_a_second_is_mentioned(firmware):
    # Two million instructions for 32 anchors, one to two cycles each: a second at 4 MHz.
    model, build = PAPER, firmware["avr5"].build(PAPER)
    for clock, verdict, words in (
        (4_000_000, "fits", "fits"),
        (3_999_000, "fits, slowly", "fits, 0.5-1 s a query"),
        (1_000_000, "fits, slowly", "fits, 2-4 s a query"),
    ):
        board = replace(UNO, clock=clock)
        found = board_verdict(model, board, firmware)
        assert found.milliseconds == milliseconds(model, board, build)
        assert (found.verdict, found.words, found.fits) == (verdict, words, True)
        row = summarise(model, [board], firmware)["boards"][0]
        assert row["verdict"] == verdict
    one = board_verdict(replace(model, counts=(1,)), replace(UNO, flash=100), firmware)
    assert (one.verdict, one.fits) == ("does not fit", False)
    unknown = board_verdict(
        Model.of(8, (128, 128), activation="silu"), replace(UNO, clock=1), firmware
    )
    assert (unknown.words, unknown.milliseconds) == ("fits", None)  # no time is known


def test_one_anchor_is_singular():
    assert describe_verdict("fits with fewer anchors", "", 1, (1.0, 2.0)) == "fits with 1 anchor"
    assert describe_verdict("fits with fewer anchors", "", 2, (900.0, 1800.0)) == (
        "fits with 2 anchors, 0.9-1.8 s a query"
    )


def test_more_anchors_than_a_pack_holds_are_too_many(firmware):
    board = board_named("mega2560")
    found = board_verdict(Model.of(1, (4,), 5000), board, {"avr6": firmware["avr5"]})
    assert found.words == "fits with 4096 anchors"


def test_flash_too_small(firmware):
    found = board_verdict(Model.of(8, (256, 256)), UNO, firmware)
    assert found.verdict == "does not fit"
    assert "of 32256 bytes even with one anchor" in found.why
    assert found.words.startswith("does not fit: flash ")
    assert found.ann_members == 0
    alone = board_verdict(Model.of(8, (256, 256), 1), UNO, firmware)
    assert alone.why.endswith("of 32256 bytes")
    several = board_verdict(Model.of(8, (128, 128), 32, twins=2), UNO, firmware)
    assert several.why.endswith("even with one anchor for each twin")


def test_ram_too_small(core):
    from twinedge.budget.measurements import read_runtime

    core["builds"][0]["stack_bytes"] = 2000
    found = board_verdict(Model.of(8, (64, 64)), UNO, {"avr5": read_runtime(core)})
    assert found.words == "does not fit: RAM 2667 of 2048 bytes even with one anchor"


def test_a_map_that_was_not_measured(core, parts):
    from twinedge.budget.measurements import read_runtime

    mapped = Model.of(8, (64, 64), map_outputs=16, map_rows=72, target_bins=256)
    found = board_verdict(mapped, UNO, {"avr5": read_runtime(core)})
    without = "not measured: the runtime was not run with an input map and a target curve on avr5"
    assert found.words == without
    some = {"avr5": read_runtime({**core, "parts": {"map": parts["map"]}})}
    assert board_verdict(mapped, UNO, some).why == (
        "the runtime was not run with a target curve on avr5"
    )
    assert board_verdict(replace(mapped, target_bins=0), UNO, some).verdict == "fits"
    assert board_verdict(mapped, UNO, {}).why == "the runtime was not run on avr5"
    large = board_verdict(replace(mapped, hidden=(200, 200)), UNO, some)
    assert large.why.startswith("the pack alone takes ")
    runtime = read_runtime({**core, "parts": parts})
    found = board_verdict(mapped, UNO, {"avr5": runtime})
    assert (found.verdict, found.flash_bytes) == ("fits", 4120 + 412 + twin_bytes(mapped))
    fewer = board_verdict(mapped.with_anchors(4000), UNO, {"avr5": runtime})
    assert fewer.verdict == "fits with fewer anchors"
    assert twin_bytes(mapped.with_anchors(fewer.anchors)) + 4532 <= UNO.free_flash


def test_what_no_pack_holds_does_not_fit(firmware):
    found = board_verdict(Model.of(2000, (128, 128)), UNO, firmware)
    assert found.words == "does not fit: 2000 features: a pack of 1 twins has 1 to 1024"
    found = board_verdict(Model.of(8, (128, 128), weights="float32"), UNO, firmware)
    assert found.words == "does not fit: a pack has no float32 weights"


def test_a_core_that_nobody_measured(firmware):
    found = board_verdict(PAPER, UNO, {})
    assert found.words == "not measured: the runtime was not run on avr5"
    assert (found.flash_bytes, found.ram_bytes, found.milliseconds) == (None, None, None)
    assert board_verdict(PAPER, board_named("pi5"), {}).verdict == "not measured"
    near = board_verdict(Model.of(8, (64, 64), neighbors=4), UNO, firmware)
    assert near.verdict == "not measured"  # this build
    # What is certain without a measurement: the pack alone is larger than the flash.
    found = board_verdict(Model.of(8, (256, 256)), UNO, {})
    assert found.verdict == "does not fit"
    assert found.why.startswith("the pack alone takes ")


def test_a_linux_board_holds_everything_in_ram(firmware):
    runtime, board = firmware["avr5"], board_named("pi-zero-2w")
    found = board_verdict(PAPER, board, {"aarch64": runtime})
    assert found.verdict == "fits"
    assert found.ann_members is None
    small = replace(board, ram=found.flash_bytes + found.ram_bytes)
    assert board_verdict(PAPER, small, {"aarch64": runtime}).verdict == "fits"
    small = replace(small, ram=small.ram - 16)
    assert board_verdict(PAPER, small, {"aarch64": runtime}).verdict == "fits with fewer anchors"


def test_a_pack_in_ram_takes_ram_and_flash(firmware):
    model, plain = Model.of(8, (64, 64)), replace(board_named("esp8266"), pack_in_ram=False)
    runtime = {"xtensa-lx106": firmware["avr5"]}
    in_flash, in_ram = (
        board_verdict(model, replace(plain, pack_in_ram=one), runtime) for one in (0, 1)
    )
    assert in_flash.verdict == in_ram.verdict == "fits"
    assert in_ram.ram_bytes == in_flash.ram_bytes + twin_bytes(model)
    assert in_ram.flash_bytes == in_flash.flash_bytes
    assert in_ram.ann_members < in_flash.ann_members
    assert board_named("esp8266").pack_in_ram
    large = board_verdict(Model.of(8, (256, 256)), board_named("esp8266"), runtime)
    assert large.why.startswith("RAM ")


@pytest.fixture
def build(firmware):
    return firmware["avr5"].build(PAPER)


def test_instructions_follow_the_models_next_in_size(build):
    small, large = (one.model for one in build.references[::-1])
    assert instructions(large, build) == (2e6, 2e6)  # as measured
    middle = replace(build.references[0], model=Model.of(4, (32, 32), 8), instructions=50_000)
    between = replace(build, references=(*build.references, middle))
    ratio = {one.model: one.instructions / one.model.multiply_adds for one in between.references}
    for model, near in [
        (Model.of(8, (64, 64)), (large, middle.model)),
        (Model.of(4, (8, 8), 8), (middle.model, small)),
        (Model.of(8, (256, 256)), (large, large)),
        (Model.of(1, (2,), 1), (small, small)),
    ]:
        expected = [ratio[one] * model.multiply_adds for one in near]
        assert instructions(model, between) == pytest.approx(expected)


KEYS = {
    *("features", "hidden", "members", "ann_params", "twin_params"),
    *("ann_bytes", "twin_bytes", "ratio", "boards"),
}


def test_the_example_of_the_paper(firmware):
    found = summarise(PAPER, all_boards().values(), firmware)
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
    boards = [UNO, PICO]
    uno, pico = summarise(PAPER, boards, firmware)["boards"]
    assert uno["verdict"] == "fits"
    assert (uno["core"], uno["measured_on"]) == ("avr5", "avr5")
    assert (pico["core"], pico["measured_on"]) == ("cortex-m0plus", None)
    assert uno["milliseconds_estimated"] == pytest.approx([125, 250])
    assert (uno["free_flash_bytes"], uno["free_ram_bytes"]) == (32_256, 2_048)
    assert pico["verdict"] == "not measured"
    assert pico["flash_bytes"] is None
    assert pico["milliseconds_estimated"] is None


def test_a_core_that_stands_in_is_named(firmware):
    other = board_verdict(PAPER, PICO, {"cortex-m4": firmware["avr5"]})
    assert other.verdict == "not measured"
    (pico,) = summarise(PAPER, [PICO], {"cortex-m0": firmware["avr5"]})["boards"]
    assert (pico["core"], pico["measured_on"]) == ("cortex-m0plus", "cortex-m0")
    assert pico["verdict"] == "fits"


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


def test_every_key_is_documented(firmware):
    page = (Path(__file__).parents[2] / "docs" / "budget.md").read_text()
    found = summarise(PAPER, [], firmware, flash=1000)
    assert [key for key in found if f"`{key}`" not in page] == []
