"""``twinedge budget``: plain numbers, runs, packs, boards, and the search for a board."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from twinedge.budget import all_boards, write_firmware
from twinedge.pack import write_pack


def words(line):
    return line.split()


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    """A file of measurements of a made-up core."""
    core = runpy.run_path(str(Path(__file__).parents[1] / "budget" / "conftest.py"))["CORE"]
    path = tmp_path_factory.mktemp("firmware") / "firmware.json"
    write_firmware({"avr5": core}, path)
    return path


@pytest.fixture(scope="module")
def pack_file(tiny_twin, tmp_path_factory):
    """The tiny twin as a pack, with metadata."""
    from twinedge_export.quantise import quantise

    path = tmp_path_factory.mktemp("packs") / "tiny.twin"
    path.write_bytes(write_pack(quantise(tiny_twin, [range(6)], metadata={"target": "level"})))
    return path


def test_the_example_of_the_paper(cli):
    answer = cli(*words("budget --features 8 --hidden 128,128 --members 32 --json"))
    assert (answer.code, answer.err) == (0, "")
    found = answer.json
    assert (found["features"], found["hidden"], found["members"]) == (8, [128, 128], 32)
    assert (found["ann_params"], found["twin_params"]) == (569_376, 19_105)
    # As export writes it; parameters are counted as in the paper.
    assert found["intervals"] is True
    assert (found["ann_bytes"], found["twin_bytes"]) == (615_072, 21_520)
    assert found["ratio"] == pytest.approx(28.58, abs=0.01)
    assert [one["board"] for one in found["boards"]] == list(all_boards())
    found = cli(*words("budget --features 8 --hidden 128,128 --no-intervals --json")).json
    assert (found["intervals"], found["twin_params"], found["twin_bytes"]) == (False, 19105, 21072)


def test_what_is_not_given_is_what_train_would_make(cli):
    from twinedge.training.parameters import shape_of

    for options, given in {
        "": ("auto", "auto"),
        "--twins 1": (1, "auto"),
        "--twins 3": (3, "auto"),
        "--hidden 24,8": ("auto", (24, 8)),
        "--hidden 24 --twins 2": (2, (24,)),
    }.items():
        found = cli(*words(f"budget --features 8 {options} --json")).json
        assert (found["twins"], tuple(found["hidden"])) == shape_of(*given)
        assert found["anchors"] == 32
    assert "4 twins with 32 anchors" in cli(*words("budget --features 8")).out


def test_show_may_be_left_out(cli):
    numbers = words("--features 8 --members 4 --twins 2 --activation silu --weights int16 --json")
    found = cli("budget", *numbers)
    assert found == cli("budget", "show", *numbers)
    assert found.json["twins"] == 2
    assert found.json["weights"] == "int16"
    assert found.json["sections"]["curve"] == 386


@pytest.mark.parametrize(
    ("bits", "weights"),
    [("8", "int8"), ("16", "int16"), ("float16", "float16"), ("32", "float32")],
)
def test_weights_may_be_given_by_their_bits(cli, tiny_run, bits, weights):
    for model in (["--features", "8"], [tiny_run]):
        found = cli("budget", *model, "--bits", bits, "--json")
        assert found.out == cli("budget", *model, "--weights", weights, "--json").out
        assert found.json["weights"] == weights
        assert found.err == (
            f"--bits {bits} is deprecated and goes with 0.3: use --weights {weights}\n"
        )
    assert "--bits" not in cli("budget", "show", "--help").out


def test_the_table_for_a_person(cli, firmware):
    command = words("budget --features 8 --hidden 128,128 --flash 32256 -b uno -b pico --firmware")
    answer = cli(*command, firmware)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert "32 ordinary networks        569376  615072  1172128  1138752  2277504" in lines
    assert "1 twin with 32 anchors       19105   21520    39952    38210    76420" in lines
    parts = "header 128, scaling 72, twins 20512, anchors 644, intervals 72, domain 48, schema 4"
    assert f"The pack: {parts}, padding 40." in lines
    assert any(
        "32256 bytes hold: ordinary networks 1, anchors 569, features 40." in x for x in lines
    )
    uno, pico = lines[-2:]
    assert words(uno) == words("uno avr5 26540 32256 1439 2048 2000000 - 125-250 fits")
    assert pico.endswith("not measured")
    assert "instructions  at most  ms, estimated" in lines[-3]
    assert ", with intervals, " in lines[0]
    plain = cli(*command, firmware, "--no-intervals").out.splitlines()
    assert ", without intervals, " in plain[0]
    assert "1 twin with 32 anchors       19105   21072    39504    38210    76420" in plain
    assert words(plain[-2]) == words("uno avr5 25192 32256 1379 2048 2000000 - 125-250 fits")


def test_a_map_is_described_in_words(cli, firmware):
    command = words("budget --features 8 --input-map 8 --target-curve log -b uno --firmware")
    answer = cli(*command, firmware)
    lines = answer.out.splitlines()
    assert answer.code == 0
    assert lines[1] == (
        "An input map: curves of 8 features with 72 knots in all; twins take 16 numbers of a point"
    )
    assert lines[2] == (
        "A target curve of about 256 straight pieces brings predictions back to the target's units"
    )
    assert "The runtime was not run with an input map and a target curve on avr5." in lines
    assert lines[-1].endswith("not measured")
    # Layers that nobody names give way to the map, as in training.
    mapped = cli(*command, firmware, "--json").json
    plain = cli(*words("budget --features 8 --json")).json
    assert mapped["sections"]["map"] == 4 + (8 + 16) + 2 * 72 + 72 * 16
    assert mapped["sections"]["target_curve"] == 8 + 4 * 257
    assert mapped["twin_bytes"] - 8 - 4 * 257 - 16 <= plain["twin_bytes"]
    assert max(mapped["hidden"]) < max(plain["hidden"])
    named = cli(*words("budget --features 8 --hidden 20,10 --input-map 3 --json")).json
    assert (named["hidden"], named["map_rows"], named["map_curves"]) == ([20, 10], 32, 8)
    assert named["target_bins"] == 0


def test_a_map_that_makes_anchors_as_large_as_networks(cli):
    found = cli(*words("budget --features 1 --hidden 1 --input-map 8 --weights float32 -b uno"))
    never = "Twins are never smaller: an anchor takes as much as an ordinary network."
    assert never in found.out.splitlines()
    found = cli(*words("budget --features 1 --hidden 1 --input-map 8 -b uno"))
    assert "Twins take fewer bytes from 21 members on." in found.out.splitlines()
    found = cli(*words("budget --features 2000 --input-map 8 --board uno --json")).json
    assert found["boards"][0]["why"] == "2008 outputs of a map: a pack has at most 1024"


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--input-map 0", "'--input-map': 0 is not in the range 1<=x<=255"),
        ("--input-map 256", "'--input-map': 256 is not in the range"),
        ("--target-curve ln", "'ln' is not one of 'log', 'log1p', 'sqrt'"),
    ],
)
def test_a_map_that_no_pack_has_is_refused(cli, option, says):
    answer = cli("budget", "--features", "8", *words(option))
    assert answer.code == 2
    assert says in answer.err


def test_target_curves_are_those_of_training():
    from twinedge.cli.budget import show
    from twinedge.scoring.target_curve import CURVES

    (option,) = [one for one in show.params if one.name == "target_curve"]
    assert tuple(option.type.choices) == CURVES


def test_without_measurements_the_table_has_no_verdicts(cli, tmp_path):
    path = tmp_path / "none.json"
    write_firmware({}, path)
    answer = cli("budget", "--features", "8", "--firmware", path)
    assert (
        "The runtime has not been measured on any core: it is not known which boards fit."
        in answer.out
    )
    assert answer.out.count("not measured\n") == len(all_boards())


def test_a_run(cli, tiny_run):
    found = cli("budget", tiny_run, "--json").json
    assert (found["features"], found["hidden"], found["members"]) == (3, [8], 32)
    assert found["activation"] == "silu"
    assert found["intervals"] is True
    assert found["sections"]["intervals"] == 32 + 4 * 8  # 20 rows do not support 99 %
    assert cli("budget", tiny_run, "--no-intervals", "--json").json["intervals"] is False
    found = cli("budget", tiny_run, "--members", "8", "--weights", "int16", "--json").json
    assert (found["members"], found["weights"]) == (8, "int16")


def test_a_pack(cli, pack_file, firmware):
    found = cli("budget", pack_file, "--json", "--firmware", firmware, "--board", "uno").json
    assert found["file_bytes"] == pack_file.stat().st_size
    assert (found["features"], found["hidden"], found["members"]) == (3, [8], 6)
    assert found["twin_bytes"] < found["file_bytes"]
    assert found["boards"][0]["flash_bytes"] == 4420 + found["twin_bytes"]
    more = found["file_bytes"] - found["twin_bytes"]
    assert f"The file has {more} more bytes of ids and metadata" in cli("budget", pack_file).out


def test_boards(cli):
    boards = cli("budget", "boards", "--json").json["boards"]
    assert len(boards) >= 24
    uno = boards[0]
    assert (uno["board"], uno["free_flash_bytes"], uno["ram_bytes"]) == ("uno", 32_256, 2_048)
    table = cli("budget", "boards").out.splitlines()
    assert len(table) == len(boards) + 1
    assert all(one["source"] in line for one, line in zip(boards, table[1:], strict=True))


BAD = [
    ("show", ["nothing to count", "RUN", "FILE.twin", "--features"]),
    ("--json", ["nothing to count", "RUN", "FILE.twin", "--features"]),
    ("none.twin", ["none.twin does not exist", "run folder or a .twin"]),
    ("bords", ["bords does not exist", "did you mean 'boards'?"]),
    ("--features 0", ["'--features'", "0 is not in the range x>=1"]),
    ("--features 8 --bits 4", ["'--bits'", "'8', '16', 'float16', '32'"]),
    ("--features 8 --members 3 --twins 4", ["3 anchors for 4 twins"]),
    ("--features 8 --twins 257 --members 300", ["257 twins", "1 to 256"]),
    ("--features 8 --board unoo", ["'unoo'", "did you mean 'uno'?"]),
    ("--features 8 --firmware none.json", ["none.json", "No such file"]),
    ("fit --dataset tf", ["Missing option '--board'"]),
    ("fit --board moon --dataset tf", ["no board is called 'moon'"]),
    ("fit --board esp32 --dataset tf", ["esp32", "xtensa-lx6", "has not been measured"]),
]


@pytest.mark.parametrize(("line", "says"), BAD, ids=[line for line, _ in BAD])
def test_what_makes_no_sense_is_refused(refused, line, says):
    refused("budget", *words(line), says=says)


def test_what_a_model_holds_cannot_be_changed(refused, tiny_run, pack_file):
    refused("budget", tiny_run, "--hidden", "8", says=["--hidden", "leave the option out"])
    refused("budget", pack_file, "--members", "8", says=["--members", "leave the option out"])
    for weights in (("--bits", "16"), ("--weights", "int16")):
        refused("budget", pack_file, *weights, says=["--weights", "leave the option out"])
    for word in ("--intervals", "--no-intervals"):
        refused("budget", pack_file, word, says=["--intervals", "leave the option out"])


@pytest.fixture
def fit(curve_csv, firmware, monkeypatch):
    """Words of a brief search."""
    from twinedge_export import fit_board

    monkeypatch.setattr(fit_board, "WIDTHS", (8,))
    monkeypatch.setattr(fit_board, "TWINS", (2, 1))
    brief = words("--board uno --steps 100 --anchors 8 --effort quick --json --firmware")
    return ("budget", "fit", curve_csv, "--target", "level", *brief, firmware)


def test_a_place_that_cannot_be_written_is_refused_before_the_search(refused, fit, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("")
    for option in ("-o", "--run"):
        refused(*fit, option, "taken", says=["taken", "name another folder"])


def test_the_search_writes_a_pack_that_fits(cli, fit, curve_csv, firmware):
    answer = cli(*fit, "--quiet")
    assert (answer.code, answer.err) == (0, "")
    found = answer.json
    assert found["verdict"] == "fits"
    (chosen,) = (one for one in found["frontier"] if one.pop("chosen"))
    assert all(found[key] == chosen[key] for key in ("twins", "hidden", "anchors", "weights"))
    assert chosen["rmse_val"] <= 1.01 * min(one["rmse_val"] for one in found["frontier"])
    assert found["within_tolerance"] == (found["tolerance_needed"] <= found["tolerance"] == 0.02)
    assert len(found["frontier"]) <= found["tried"]
    assert found["rmse_val"] > 0
    counted = cli("budget", found["file"], "--board", "uno", "--firmware", firmware, "--json").json
    assert counted["hidden"] == found["hidden"]
    assert (counted["twins"], counted["anchors"]) == (found["twins"], found["anchors"])
    assert counted["weights"] == found["weights"]
    assert counted["intervals"] is found["intervals"] is True
    assert counted["boards"][0]["flash_bytes"] == found["flash_bytes"]
    assert found["run"] == "runs/uno"
    assert cli("evaluate", found["run"], curve_csv).code == 0


@pytest.mark.slow
def test_rounding_that_costs_more_than_allowed_is_reported(cli, fit, firmware, monkeypatch):
    monkeypatch.setattr("twinedge_export.fine_tune._STEPS", 100)
    answer = cli(*fit, *words("--no-intervals -o plain --tolerance 0.000000001"))
    found = answer.json
    assert found["within_tolerance"] is False
    assert found["tolerance_needed"] > found["tolerance"] == 1e-9
    cost = f"{100 * found['tolerance_needed']:.1f} %"
    assert (
        f"Rounding raises the validation error by {cost}, more than --tolerance 1e-09" in answer.err
    )
    counted = cli("budget", found["file"], "--board", "uno", "--firmware", firmware, "--json").json
    assert counted["intervals"] is found["intervals"] is False
    assert counted["boards"][0]["flash_bytes"] == found["flash_bytes"]
    record = json.loads((Path(found["run"]) / "run.json").read_text())
    assert record["calibration"] is None


def test_the_frontier_for_a_person(capsys):
    from twinedge.budget import Model
    from twinedge.cli.budget_fit import _print_frontier
    from twinedge_export.fit_board import Attempt, Search

    small = Attempt(Model.of(3, (8, 8), 8), 5000, 400, 2.0)
    large = Attempt(Model.of(3, (16, 16), 32, twins=4, weights="int16"), 9000, 500, 1.25)
    _print_frontier(Search((large, small)))
    *lead, blank, header, first, last = capsys.readouterr().out.splitlines()
    assert lead[0].startswith("Tried 2 models briefly. No smaller one is as good as any of these;")
    assert [blank, header, first, last] == [
        "",
        "   twins  hidden  anchors  weights  activation  flash  RAM  RMSE",
        "       1  8-8           8  int8     relu         5000  400     2",
        "*      4  16-16        32  int16    relu         9000  500  1.25",
    ]
    mapped = replace(large, bins=8)
    _print_frontier(Search((mapped, small)))
    *_, header, first, last = capsys.readouterr().out.splitlines()
    assert [header, first, last] == [
        "   twins  hidden  anchors  weights  activation  map   flash  RAM  RMSE",
        "       1  8-8           8  int8     relu        none   5000  400     2",
        "*      4  16-16        32  int16    relu        8      9000  500  1.25",
    ]


def test_a_search_with_a_map_writes_a_pack_with_one(cli, fit, firmware, tmp_path):
    made_up = runpy.run_path(str(Path(__file__).parents[1] / "budget" / "conftest.py"))
    measured = tmp_path / "measured.json"
    write_firmware({"avr5": {**made_up["CORE"], "parts": made_up["PARTS"]}}, measured)
    found = cli(*fit[:-1], measured, *words("--quiet --input-map 4")).json
    assert found["input_map"] == 4
    assert found["target_curve"] == "none"
    assert found["verdict"] == "fits"
    counted = cli("budget", found["file"], *words("--board uno --json --firmware"), measured).json
    assert counted["map_outputs"] == counted["features"] + 8
    assert counted["boards"][0]["flash_bytes"] == found["flash_bytes"]


def test_a_search_with_a_map_that_was_not_measured_is_refused(refused, fit):
    for options in ("--input-map 4", "--target-curve log1p"):
        refused(
            *fit, *words(options), says=["uno: the size of the runtime with", "not been measured"]
        )


def test_targets_of_a_model_of_numbers_are_counted(cli, refused):
    shape = ("budget", "--features", 8, "--activation", "silu", "--json")
    one, two = cli(*shape).json, cli(*shape, "--targets", 2).json
    assert "targets" not in one
    assert two["own_pack_bytes"] == one["twin_bytes"]
    assert two["twin_bytes"] <= 1.06 * one["twin_bytes"]  # as promised
    assert two["ann_params"] > one["ann_params"]
    assert {board["verdict"] for board in two["boards"]} <= {"not measured", "does not fit"}
    refused(*shape, "--targets", 9, says="--targets")
