"""What the pages of the site are made of besides docs/: commands, headers, notebooks, other pages.

A page says where: ``<!-- site: commands -->`` stands for all that ``commands`` writes. Hosts of
Markdown pages show nothing there.
"""

import re
from pathlib import Path

from generate import c_api, commands, notebooks
from generate.links import ROOT, relinked

_MARK = re.compile(r"^<!-- site: (\w+) ?(.*?) -->$", re.M)


def filled(text: str, page: Path) -> tuple[str, list[Path]]:
    """Return the text of a page of docs/ for the site, and the files that it depends on.

    The marks are replaced by what they stand for, and links lead to pages of the site, where
    there are such, or to copies of files.
    """
    used: list[Path] = []

    def content(mark: re.Match[str]) -> str:
        kind, name = mark.groups()
        if kind == "commands":
            used.extend((ROOT / "twinedge" / "cli").glob("*.py"))
            return commands.markdown()
        path = ROOT / name
        used.append(path)
        if kind == "page":
            return relinked(path.read_text("utf-8"), path, page)
        if kind == "notebook":
            used.append(path.with_suffix(".json"))
            return notebooks.markdown(path)
        if kind == "header":
            return c_api.markdown(path)
        if kind == "statuses":
            return c_api.statuses(path)
        raise ValueError(f"{page}: the site knows no {kind!r}")

    return _MARK.sub(content, relinked(text, page, page)), used
