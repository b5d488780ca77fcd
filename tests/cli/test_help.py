"""Help is readable: examples are on their own lines."""

import pytest

COMMANDS = [
    "train",
    "export",
    "predict",
    "evaluate",
    "calibrate",
    "adapt",
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


def test_the_commands_are_summed_up_in_a_line_each(cli):
    answer = cli("--help")
    assert "..." not in answer.out.split("Commands:")[1]
    assert "  Start with: twinedge train DATA.csv --target COLUMN\n" in answer.out


@pytest.mark.parametrize("command", ["", "data"])
def test_no_command_shows_the_help(cli, command):
    assert cli(*command.split()) == cli(*command.split(), "--help")
