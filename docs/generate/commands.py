"""The reference of all commands, from what click knows of them."""

import re
from collections.abc import Iterator

import click

from twinedge.cli import app

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#$~])")
_CODE = re.compile(r"(?<![\w`])(--?[a-z][\w-]*(?:/--[a-z-]+)?|\.[a-z]+\b(?![.\w]))")


def markdown() -> str:
    """Return a section for each command, those of groups below their group."""
    with click.Context(app, info_name="twinedge") as context:
        found = [f"{_prose(app.help or '')}\n"]
        for name in app.list_commands(context):
            found += _sections(app.commands[name], context, 2)
    return "\n".join(found)


def _sections(command: click.Command, above: click.Context, depth: int) -> Iterator[str]:
    with click.Context(command, info_name=command.name, parent=above) as context:
        path = context.command_path
        yield f"{'#' * depth} {path}\n"
        yield f"{_prose(command.help or '')}\n"
        yield f"```sh\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n"
        for one in command.get_params(context):
            if one.name == "help":
                continue
            row = getattr(one, "row", None)  # of an argument, which click alone does not explain
            names, words = row() if row else one.get_help_record(context) or ("", "")
            names = re.sub(r"\s+", " ", names)
            yield f"`{names}`\n: {_prose(words)}\n"
        examples = re.findall(r"(?m)^ *(twinedge .*)$", command.epilog or "")
        if examples:
            yield "```sh\n" + "\n".join(examples) + "\n```\n"
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                yield from _sections(command.commands[name], context, depth + 1)


def _prose(words: str) -> str:
    """Return text of a help as Markdown: paragraphs, with options as code."""
    paragraphs = re.split(r"\n\s*\n", words.replace("\b\n", "").strip())
    return "\n\n".join(_escaped(" ".join(one.split())) for one in paragraphs)


def _escaped(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(
        f"`{part}`" if place % 2 else _SPECIAL.sub(r"\\\1", part)
        for place, part in enumerate(parts)
    )
