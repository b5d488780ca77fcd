"""What holds for every command: no option is given twice, and advice names options that exist."""

import re

import click
import pytest

from twinedge.cli import app
from twinedge.cli.options import as_option
from twinedge.errors import Parameter


def commands(group=app, path=()):
    """Yield all commands with the words that call them."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def single_valued():
    """Yield the words of a command, and each of its options that takes one value."""
    for path, command in commands():
        for option in command.params:
            if isinstance(option, click.Option) and not (option.is_flag or option.multiple):
                yield path, option


SINGLE = [
    pytest.param(path, option, id=f"{' '.join(path)} {option.opts[0]}")
    for path, option in single_valued()
]


def right_values(option):
    """Return two values that an option takes."""
    if isinstance(option.type, click.Choice):
        return option.type.choices[0], option.type.choices[-1]
    for one, other in (("1", "2"), ("0.5", "0.6"), ("a", "b"), ("twin", "c"), ("xy", "random")):
        try:
            option.type.convert(one, option, None)
        except click.BadParameter:
            continue
        return one, other
    return "gp", "trees"


@pytest.mark.parametrize(("path", "option"), SINGLE)
def test_a_second_value_is_refused(refused, path, option):
    name = max(option.opts, key=len)
    for spelled in option.opts:
        one, other = right_values(option)
        says = [f"{name} takes one value, but was given 2: {one} and {other}"]
        says.append(f"see twinedge {' '.join(path)} --help")
        refused(*path, spelled, one, f"{name}={other}", says=says)


def test_there_are_many():
    assert len(SINGLE) > 80
    assert {path for path, _ in commands()} >= {("train",), ("budget", "show"), ("firmware", "run")}


@pytest.mark.parametrize("command", ["train", "export", "report", "budget show", "budget fit"])
def test_yes_and_no_together_are_refused(refused, command):
    says = ["--intervals or --no-intervals", "once"]
    refused(*command.split(), "--intervals", "--no-intervals", says=says)


def test_boards_have_a_short_name_everywhere():
    boards = [
        one.opts for _, command in commands() for one in command.params if one.name == "board"
    ]
    assert boards == [["--board", "-b"]] * 5


def test_what_may_be_repeated_still_may_be(cli):
    twice = ("--board", "uno", "-b", "pico", "--json", "--json")
    found = cli("budget", "--features", "8", *twice).json
    assert [one["board"] for one in found["boards"]] == ["uno", "pico"]


OPTIONS = {
    " ".join(path): {name for option in command.params for name in option.opts}
    for path, command in commands()
}


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_recommends_only_options_that_it_has(cli, command):
    others = sorted(set().union(*OPTIONS.values()) - OPTIONS[command])
    for wrong in (*[one for one in others if one.startswith("--")][::8], "--colour"):
        answer = cli(*command.split(), wrong)
        assert answer.code == 2
        assert f"No such option '{wrong}'" in answer.err
        for near in re.findall(r"did you mean '(.*?)'", answer.err):
            assert near in OPTIONS[command]
        assert f"see twinedge {command} --help" in answer.err


@pytest.mark.parametrize("command", OPTIONS)
def test_a_slip_is_recognised(cli, command):
    for name in OPTIONS[command]:
        if len(name) > 7:
            slip = name[:-2] + name[-1]
            assert f"did you mean '{name}'?" in cli(*command.split(), slip).err


@pytest.mark.parametrize(
    ("command", "parameter", "words"),
    [
        ("train", Parameter("learning_rate"), "--learning-rate"),
        ("train", Parameter("n_jobs", 2), "--jobs 2"),
        ("train", Parameter("drop", ["a", "b c"]), "--drop a --drop 'b c'"),
        ("budget fit", Parameter("learning_rate"), "learning rate"),
        ("export", Parameter("tolerance", 0.02), "--tolerance 0.02"),
        ("report", Parameter("tolerance", 0.02), "tolerance 0.02"),
        ("export", Parameter("formats", ("twin", "c")), "--formats twin,c"),
    ],
)
def test_advice_is_spelled_by_the_command_that_gives_it(command, parameter, words):
    found = dict(commands())[tuple(command.split())]
    with click.Context(found):
        assert as_option(parameter) == words
