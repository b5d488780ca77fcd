"""The table of boards: from the file of measurements, into the docs."""

import json
from pathlib import Path

import pytest

from twinedge.budget import read_firmware
from twinedge.budget.measurements import CALLS, SHIPPED, read_entries, read_runtime
from twinedge.cli import main
from twinedge_export.boards.sizes import as_words, sizes, stack_rows, with_tables
from twinedge_export.boards.stacks import HOSTS, host_stacks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = """# Ports

Text.

<!-- boards -->
old
<!-- /boards -->

<!-- stacks -->
<!-- /stacks -->

<!-- kernels -->
<!-- /kernels -->

More.
"""


def command(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main([*map(str, words)])
    return stop.value.code, *capsys.readouterr()


@pytest.mark.slow  # compiles every kernel of every host
def test_the_docs_hold_the_tables_and_kernels_of_hosts_keep_off_the_stack():
    kernels = host_stacks()
    text = (DOCS / "ports.md").read_text("utf-8")
    assert with_tables(text, read_firmware(), kernels) == text
    assert {one["machine"] for one in kernels} == set(HOSTS)
    assert all(0 < one["stack_bytes"] <= 4096 for one in kernels)


def test_the_docs_hold_what_was_measured_of_boards():
    text = (DOCS / "ports.md").read_text("utf-8")
    firmware = read_firmware()
    for row in (*sizes(firmware), *stack_rows(firmware)):
        assert f"| {' | '.join(as_words(row))} |" in text


def test_every_board_has_the_stack_of_every_call():
    for runtime in read_firmware().values():
        stacks = runtime.stacks
        assert tuple(stacks) == CALLS
        # A prediction is made at once from its steps, and learning and adapting need one.
        assert 0 < stacks["steps"] < stacks["predict"] < stacks["adapted"]
        assert stacks["predict"] < stacks["learn"]
        assert max(stacks["open"], stacks["watch"], stacks["store"]) < stacks["learn"]


def test_tables_go_between_the_marks_and_nowhere_else():
    firmware = read_firmware()
    rows, stacks = sizes(firmware), stack_rows(firmware)
    kernels = [{"kernel": "neon", "machine": "aarch64", "stack_bytes": 512}]
    text = with_tables(PAGE, firmware, kernels)
    assert text.startswith("# Ports\n\nText.\n\n<!-- boards -->\n| board | core |")
    assert text.endswith("|\n<!-- /kernels -->\n\nMore.\n")
    assert "old" not in text
    assert with_tables(text, firmware, kernels) == text
    lines = len(PAGE.splitlines()) - 1 + 2 + len(rows) + 2 + len(stacks) + 2 + len(kernels)
    assert len(text.splitlines()) == lines


@pytest.mark.parametrize("name", ["boards", "stacks", "kernels"])
@pytest.mark.parametrize("mark", ["<!-- {} -->", "<!-- /{} -->"])
def test_a_page_without_marks_is_refused(complaint, name, mark):
    text = PAGE.replace(mark.format(name), "")
    assert f"<!-- {name} -->" in complaint(with_tables, text, {}, [])


def test_what_does_not_fit_is_a_dash():
    assert as_words({"board": "uno", "instructions": None, "ratio": 1.234}) == ["uno", "-", "1.23"]
    assert as_words({"intervals": True}) == ["yes"]
    assert as_words({"intervals": False}) == ["no"]


def test_a_board_has_a_row_with_intervals_and_one_without():
    (core,) = (row for row in read_entries().values() if row["port"] == "mps2-an386")
    (plain,) = (
        {**one, "intervals": False}
        for one in core["builds"]
        if (one["activation"], one["weights"], one["neighbors"]) == ("relu", "int8", False)
        and not one.get("intervals")
    )
    more = {**plain, "intervals": True, "text_bytes": 12345, "references": []}
    both = {"m4": read_runtime({**core, "builds": [plain, more]})}
    first, second = sizes(both)
    assert (first["intervals"], first["text_bytes"], first["instructions"]) == (True, 12345, None)
    assert (second["intervals"], second["text_bytes"]) == (False, plain["text_bytes"])
    assert second["instructions"] == plain["references"][0]["instructions"]
    # What was not measured has no row, though a budget may use the other.
    assert sizes({"m4": read_runtime({**core, "builds": [more]})}) == [first]
    assert sizes({"m4": read_runtime({**core, "builds": [plain]})}) == [second]


def test_sizes_show_every_board(capsys):
    code, out, _ = command(capsys, "firmware", "sizes")
    assert code == 0
    assert "instructions" in out.splitlines()[0]
    code, out, _ = command(capsys, "firmware", "sizes", "--json")
    assert json.loads(out) == {"boards": sizes(read_firmware())}
    assert {one["core"] for one in json.loads(out)["boards"]} == set(read_firmware())


def test_measuring_one_board_keeps_the_others(capsys, tmp_path, monkeypatch):
    from twinedge_export.boards import measure

    seen, shipped = [], read_entries()
    fresh = {**shipped["cortex-m4"], "compiler": "a new one"}

    def measured(board, say):
        say(f"{board.name}, some build")
        seen.append(board.name)
        return fresh

    monkeypatch.setattr(measure, "measure_board", measured)
    file = tmp_path / "sizes.json"
    words = ("firmware", "measure", "--board", "mps2-an386", "-o", file)
    code, out, err = command(capsys, *words, "--json")
    assert code == 0
    assert err == f"1/{measure.STAGES} mps2-an386, some build\n"
    assert json.loads(out)["page"] is None
    assert read_entries(file) == {"cortex-m4": fresh}
    monkeypatch.setattr(measure, "measure_board", lambda board, say: shipped["cortex-m3"])
    assert command(capsys, *words[:3], "mps2-an385", *words[4:])[0] == 0
    assert read_entries(file) == {"cortex-m4": fresh, "cortex-m3": shipped["cortex-m3"]}
    assert seen == ["mps2-an386"]


def test_an_installed_file_is_not_written_unless_named(capsys, tmp_path, monkeypatch):
    from twinedge_export.boards import measure

    shipped = SHIPPED.read_bytes()
    fresh = read_entries()["cortex-m4"]
    monkeypatch.setattr(measure, "measure_board", lambda board, say: fresh)
    monkeypatch.setattr(measure, "firmware_folder", lambda: tmp_path / "firmware_ref")
    words = ("firmware", "measure", "--board", "mps2-an386")
    code, out, err = command(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "part of an installation" in err
    assert "-o" in err
    (tmp_path / "pyproject.toml").touch()  # a checkout, but of something else
    assert command(capsys, *words)[0] == 2
    assert SHIPPED.read_bytes() == shipped
    assert command(capsys, *words, "-o", tmp_path / "sizes.json")[0] == 0
    assert read_entries(tmp_path / "sizes.json") == {"cortex-m4": fresh}
    assert SHIPPED.read_bytes() == shipped


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--board", "unno"], "no board is called 'unno'"),
        (["--board", "uno", "-o", "nowhere/sizes.json"], "cannot write nowhere/sizes.json"),
        (["--board", "uno", "-o", "."], "cannot read"),
    ],
    ids=["board", "folder", "directory"],
)
def test_bad_words_are_refused_before_the_work(capsys, words, says):
    code, out, err = command(capsys, "firmware", "measure", *words)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
