"""Links between pages, which are relative to their files, led to where the site has them."""

import os
import re
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

# Pages outside docs/ that the site shows, and the pages of docs/ that hold them.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "firmware_ref/FORMAT.md": "reference/format.md",
    "firmware_ref": "reference/c.md",
    "firmware_ref/README.md": "reference/c.md",
    "firmware_ref/examples/concrete/README.md": "examples/concrete.md",
    "firmware_ref/proof": "security.md#proof",
}
# Text in square brackets, and the address behind it; code has none.
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_CODE = re.compile(r"(?ms)^(`{3,})[^\n]*\n.*?^\1[ \t]*$|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)")


def _zipped(path: Path) -> Path:
    """Return a zip of a folder, or of a record of measurements, as some are large."""
    packed = ROOT / "build" / "linked" / f"{path.name}.zip"
    packed.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(packed, "w") as archive:
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if one.is_file() and not {"build", "__pycache__"} & set(one.parts[-3:-1]):
                entry = zipfile.ZipInfo(str(one.relative_to(path.parent)))  # of no particular time
                archive.writestr(entry, one.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return packed


def relinked(text: str, source: Path, page: Path) -> str:
    """Return text that was written for ``source``, with links as a page of docs/ needs them."""

    def address(link: re.Match[str]) -> str:
        start, target, end = link.groups()
        path, mark, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return link[0]
        found = Path(os.path.normpath(source.parent / path))
        name = os.path.relpath(found, ROOT)
        if name in PAGES:
            path, own, replaced = PAGES[name].partition("#")
            found, mark, anchor = DOCS / path, mark or own, anchor or replaced
        elif found.is_dir() or (found.suffix == ".json" and found.is_file()):
            found = _zipped(found)
        return f"{start}{os.path.relpath(found, page.parent)}{mark}{anchor}{end}"

    done, at = [], 0
    for code in _CODE.finditer(text):
        done += [_LINK.sub(address, text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*done, _LINK.sub(address, text[at:])])
