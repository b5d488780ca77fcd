"""Print results: a readable table, CSV, or one JSON object and nothing else; or write a file.

Everything is plain text, never cut to the width of the terminal. A reader that closes the pipe
early (``| head``) has seen enough; that is not an error.
"""

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli.options import as_option
from twinedge.errors import Advice, InputError
from twinedge.progress import clear
from twinedge.wording import plural, quoted, shown

if TYPE_CHECKING:
    from twinedge.runtime.journal_file import Journal
    from twinedge.runtime.store_summary import PointErrors, StoreSummary


def print_json(result: dict[str, Any], output: Path | None = None) -> None:
    """Print one JSON object on one line, or write it to a file.

    A number that is not finite becomes null.
    """
    _write(json.dumps(_finite(result), allow_nan=False) + "\n", output)


def print_csv(
    header: Sequence[str], rows: Iterable[Sequence[str]], output: Path | None = None
) -> None:
    """Print comma-separated rows, or write them to a file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    _write(text.getvalue(), output)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns, numbers to the right."""
    columns = [
        _aligned([title, *words], right=all(map(_is_number, words)))
        for title, *words in zip(header, *rows, strict=True)
    ]
    _write("".join("  ".join(line).rstrip() + "\n" for line in zip(*columns, strict=True)))


def print_blocks(blocks: Sequence[dict[str, Any]]) -> None:
    """Print the errors of consecutive blocks of time."""
    print_text("")
    print_table(
        ("from", "until", "rows", "rmse", "rmse naive"),
        _rows(blocks),
    )


_ALL_GROUPS, _WORST = 20, 5  # groups that are all printed, and otherwise how many of the worst


def print_groups(groups: Sequence[dict[str, Any]]) -> None:
    """Print the scores of groups; of many, the worst and the best."""
    best_last = sorted(groups, key=lambda one: -one["rmse"])
    if len(best_last) > _ALL_GROUPS:
        best_last = [*best_last[:_WORST], best_last[-1]]
        print_text("", f"The {_WORST} worst of {len(groups)} groups, and the best:")
    else:
        print_text("")
    heads = ["group", *list(best_last[0])[1:]]
    print_table(
        [head.replace("_", " ") for head in heads],
        _rows(best_last),
    )


def print_folds(folds: Sequence[dict[str, Any]]) -> None:
    """Print the scores of each fold, and that the test scores are of all of them."""
    print_text("", f"Cross-validated: test scores are of all rows, in {len(folds)} folds.")
    print_table(list(folds[0]), _rows(folds))


def print_record(result: dict[str, Any]) -> None:
    """Print the values of a JSON object for a person, one per line."""
    names = _aligned([key.replace("_", " ") for key in result])
    values = map(format_value, result.values())
    _write("".join(f"{name}  {word}\n" for name, word in zip(names, values, strict=True)))


def print_result(result: dict[str, Any], as_json: bool) -> None:
    """Print one JSON object, or its values for a person."""
    if as_json:
        print_json(result)
    else:
        print_record(result)


def print_text(*lines: str) -> None:
    """Print lines as they are."""
    _write("".join(f"{line}\n" for line in lines))


def print_help(context: click.Context) -> None:
    """Show the help of a group that was called without a command."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


def stream_out(text: str) -> None:
    """Print text as it is, at once."""
    _write(text)


def note(message: str, *, quiet: bool = False) -> None:
    """Print a remark on standard error."""
    if not quiet:
        words = message.spelled(as_option) if isinstance(message, Advice) else message
        clear()
        print(words, file=sys.stderr)


def note_filled(table: Path, count: int, *, quiet: bool = False) -> None:
    """Note how many missing values of a table were filled in, if any."""
    if count:
        note(f"{shown(table)}: filled in {plural(count, 'missing value')}", quiet=quiet)


def check_output(output: Path, *inputs: Path) -> None:
    """Refuse a file that cannot be written, or is read."""
    from twinedge.atomic_files import check_file

    check_file(output)
    for one in inputs:
        if output.exists() and one.exists() and output.samefile(one):
            raise InputError(f"--output {output} would replace what is read: name another file")


def note_beyond(errors: "Mapping[str, PointErrors]", *, quiet: bool = False) -> None:
    """Note of which targets most points are farther off than can be learnt."""
    from twinedge.runtime.adaptation import MOST_SCALES

    for name, one in errors.items():
        if one.mostly_beyond:
            note(
                f"{quoted(name)}: most points are off by more than {MOST_SCALES} times what the "
                "pack expects, and no correction goes further: are they in the units that it was "
                "trained on?",
                quiet=quiet,
            )


def print_by_target(targets: Mapping[str, dict[str, Any]]) -> None:
    """Print the same values of each of several targets as a table."""
    first, *_ = targets.values()
    header = ["target", *(key.replace("_", " ") for key in first)]
    print_table(header, [[name, *map(format_value, one.values())] for name, one in targets.items()])


def note_faults(store: "Journal | StoreSummary", *, quiet: bool = False) -> None:
    """Note what of a store cannot be read, if anything."""
    damaged = store.content.damaged
    if damaged:
        entries = "1 entry" if damaged == 1 else f"{damaged} entries"
        note(f"{store.path}: {entries} cannot be read: damaged, or cut short", quiet=quiet)
    if store.content.truncated:
        note(f"{store.path}: the end is missing, and it can only be read", quiet=quiet)


def _write(text: str, output: Path | None = None) -> None:
    if output is not None:
        from twinedge.atomic_files import write_file

        write_file(output, text)
        return
    try:
        print(text, end="", flush=True)
    except OSError as error:
        # The buffer cannot be written, and Python would try again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise click.exceptions.Exit from None
        raise InputError(f"cannot write to standard output: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"standard output in {error.encoding} cannot show {error.object[error.start]!a}: "
            "set PYTHONIOENCODING=utf-8"
        ) from error


def _aligned(words: Sequence[str], *, right: bool = False) -> list[str]:
    width = max(map(len, words))
    return [word.rjust(width) if right else word.ljust(width) for word in words]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _rows(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    return [[format_value(value) for value in one.values()] for one in records]


def format_value(value: Any) -> str:
    """Return a value of a JSON object in words."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {format_value(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(format_value, value))
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
