"""The site, from docs/ and docstrings: `make site`.

Sphinx builds it without a network, and any warning is an error. Then every link of every page is
followed to a file of the site and to the place there that it names. What fails leaves the folder
as it was.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
MOST = 5_000_000  # bytes of a site


class SiteError(Exception):
    """What is wrong with the site, a line for each fault."""


class _Page(HTMLParser):
    """The addresses that a page refers to, and the places in it that others may name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.places = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src") and value is not None and tag != "base":
                self.addresses.append(value)


def faults(site: Path) -> Iterator[str]:
    """Yield a line for each link of a site that leads nowhere, and one if it is too large."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for address in dict.fromkeys(page.addresses):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if site.resolve() not in [target, *target.parents]:
                yield f"{path.relative_to(site)}: {address} is not of the site"
            elif not target.is_file():
                yield f"{path.relative_to(site)}: {address} does not exist"
            elif target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{path.relative_to(site)}: {address} names no place there"
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if size > MOST:
        yield f"the site has {size:,} bytes, more than {MOST:,}"


def build(target: Path) -> None:
    """Build the site in a folder, which takes the place of the one before."""
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch, "site").resolve()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"),
                *("--builder", "html", "--doctree-dir", Path(scratch, "trees")),
                *(ROOT / "docs", made),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            raise SiteError(done.stderr.strip())
        (made / ".buildinfo").unlink(missing_ok=True)
        found = list(faults(made))
        if found:
            raise SiteError("\n".join(found))
        if target.exists() and not (target / "objects.inv").is_file():
            raise SiteError(f"{target} is not the site of an earlier build")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(description="Make the site of docs/ and docstrings.")
    parser.add_argument("output", type=Path, metavar="FOLDER")
    try:
        build(parser.parse_args().output.resolve())
    except SiteError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
