"""Help is readable: examples are on their own lines."""

import click
import pytest

import twinedge
from twinedge.cli import app

GROUPS = ["", "data", "budget", "firmware", "store"]


def commands(group=app, path=""):
    for name, command in group.commands.items():
        yield f"{path}{name}"
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


@pytest.mark.parametrize("command", list(commands()))
def test_examples_are_whole_lines_and_help_fits_a_terminal(cli, command):
    answer = cli(*command.split(), "--help")
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= 80
    _, examples = answer.out.split("  Examples:\n")
    assert all(line.startswith("    twinedge ") for line in examples.splitlines())
    assert f"    twinedge {command.removesuffix(' show')}" in examples
    assert cli(*command.split(), "-h") == answer


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_shows_its_help_with_a_line_for_each_command(cli, group):
    answer = cli(*group.split())
    assert answer == cli(*group.split(), "--help")
    assert "..." not in answer.out.split("Commands:")[1]


def test_the_help_shows_how_to_begin_and_how_it_ends(cli):
    answer = cli("--help")
    assert "Exit codes: 0 done, 1 an image for a board differs, 2 bad input, 130" in answer.out
    assert "  Start with: twinedge train DATA.csv --target COLUMN\n" in answer.out


def test_v_is_short_for_version(cli):
    assert cli("-V") == cli("--version") == (0, f"{twinedge.__version__}\n", "")
