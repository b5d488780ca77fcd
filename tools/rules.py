"""Checks the core of the C runtime against MISRA C:2012, as far as cppcheck knows its rules.

    python tools/rules.py           what `make lint` runs
    python tools/rules.py --page    writes the tables of docs/security.md

tools/rules.toml lists the rules that the core does not follow, each with the reason. A rule that is
broken and not listed is a fault, and so is one that is listed and never broken.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FIRMWARE = ROOT / "firmware_ref"
LIST = ROOT / "tools" / "rules.toml"
PAGE = ROOT / "docs" / "security.md"
# All that is compiled for every machine. Headers are checked where they are included.
CORE = [*sorted((FIRMWARE / "src").glob("*.c")), FIRMWARE / "src" / "kernels" / "kernel_portable.c"]
# With everything on that the settings can leave out.
SETTINGS = ("-DTWIN_HOST=1",)
CPPCHECK = ("cppcheck", "--addon=misra", "--std=c99", "--quiet", "-j", "2")
MOST_PLACES = 3
KINDS = {
    "misra": ("rule", "is about", "why the core does not follow it"),
    "unchecked": ("rule", "is about", "why the core does not follow it"),
    "clang": ("warning", "is about", "why it is off"),
}

Rules = Mapping[str, Mapping[str, Mapping[str, str]]]


def read_rules(path: Path = LIST) -> Rules:
    """Read what each kind of rule is about, and why it does not apply."""
    rules: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    return rules


def broken(sources: Iterable[Path], options: Iterable[str] = ()) -> dict[str, list[str]]:
    """Find the MISRA rules that C files break, and all places of each.

    Raises
    ------
    SystemExit
        If cppcheck finds something else, such as a file that it cannot read.
    """
    includes = (f"-I{FIRMWARE / 'include'}", f"-I{FIRMWARE / 'src'}")
    form = "--template={id} {file}:{line}"
    command = [*CPPCHECK, form, *includes, *options, *map(str, sources)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, set[str]] = {}
    for line in (done.stdout + done.stderr).splitlines():
        rule = re.fullmatch(r"misra-c2012-(\d+\.\d+) (.+)", line)
        if rule is None:
            raise SystemExit(f"cppcheck: {line}")
        found.setdefault(rule[1], set()).add(rule[2].removeprefix(f"{ROOT}/"))
    if done.returncode:
        raise SystemExit(f"cppcheck ended with {done.returncode}")
    return {rule: sorted(places) for rule, places in found.items()}


def complaints(found: Mapping[str, list[str]], listed: Iterable[str]) -> list[str]:
    """Say which broken rules are not listed and which listed ones are not broken, in lines."""
    listed = set(listed)
    lines = []
    for rule in sorted(found.keys() - listed, key=_by_number):
        places = found[rule]
        more = f" and {len(places) - MOST_PLACES} more" * (len(places) > MOST_PLACES)
        lines.append(
            f"MISRA {rule} is broken and not listed: {', '.join(places[:MOST_PLACES])}{more}"
        )
    lines += [
        f"MISRA {rule} is listed and not broken"
        for rule in sorted(listed - found.keys(), key=_by_number)
    ]
    return lines


def _by_number(rule: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", rule)]


def with_tables(text: str, rules: Rules) -> str:
    """Put the tables of rules between their marks in a page."""
    for kind, heads in KINDS.items():
        rows = [heads, ("---",) * len(heads)]
        rows += [
            (f"`-W{name}`" if kind == "clang" else name, rule["about"], rule["why"])
            for name, rule in rules[kind].items()
        ]
        table = "\n".join("|" + "|".join(f" {cell} " for cell in row) + "|" for row in rows)
        table = table.replace(" --- ", "---")
        before, mark, rest = text.partition(f"<!-- {kind} -->\n")
        _, end, after = rest.partition(f"<!-- /{kind} -->")
        if not mark or not end:
            raise SystemExit(f"the page lacks the marks of {kind}")
        text = f"{before}{mark}{table}\n{end}{after}"
    return text


def main() -> None:
    """Check the core, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", action="store_true", help="write the tables of docs/security.md")
    rules = read_rules()
    if parser.parse_args().page:
        PAGE.write_text(with_tables(PAGE.read_text("utf-8"), rules), "utf-8")
        return
    lines = complaints(broken(CORE, SETTINGS), rules["misra"])
    if lines:
        raise SystemExit("\n".join(lines))


if __name__ == "__main__":
    main()
