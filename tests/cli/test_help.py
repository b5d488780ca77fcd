"""Help is readable: examples are on their own lines."""

import pytest

import twinedge

COMMANDS = [
    "train",
    "export",
    "predict",
    "evaluate",
    "calibrate",
    "adapt",
    "store",
    "store show",
    "store export",
    "store forget",
    "store merge",
    "anchors",
    "inspect",
    "budget",
    "budget boards",
    "budget fit",
    "check",
    "reproduce",
    "data",
    "data list",
    "data show",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_are_whole_lines(cli, command):
    answer = cli(*command.split(), "--help")
    assert (answer.code, answer.err) == (0, "")
    _, examples = answer.out.split("  Examples:\n")
    assert all(line.startswith("    twinedge ") for line in examples.splitlines())
    assert f"    twinedge {command}" in examples


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal(cli, command):
    assert max(map(len, cli(*command.split(), "--help").out.splitlines())) <= 80


@pytest.mark.parametrize("group", ["", "data", "budget", "firmware", "store"])
def test_the_commands_are_summed_up_in_a_line_each(cli, group):
    assert "..." not in cli(*group.split(), "--help").out.split("Commands:")[1]


def test_the_help_says_how_to_begin_and_how_it_ends(cli):
    answer = cli("--help")
    assert "Exit codes: 0 done, 1 an image for a board differs, 2 bad input, 130" in answer.out
    assert "  Start with: twinedge train DATA.csv --target COLUMN\n" in answer.out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_h_is_short_for_help(cli, command):
    assert cli(*command.split(), "-h") == cli(*command.split(), "--help")


def test_v_is_short_for_version(cli):
    assert cli("-V") == cli("--version") == (0, f"{twinedge.__version__}\n", "")


@pytest.mark.parametrize("command", ["", "data", "budget", "firmware", "store"])
def test_no_command_shows_the_help(cli, command):
    assert cli(*command.split()) == cli(*command.split(), "--help")
