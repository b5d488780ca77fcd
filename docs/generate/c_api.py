"""The reference of the C API, from the headers: their comments, and what they declare."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
_NAME = re.compile(r"(`[^`]+`)|\b((?:twin|TWIN)_\w+)\b(\(\))?")
_SPECIAL = re.compile(r"([\\*_{}\[\]<>|#$~])")
# Lines that are the same in all headers, or say how names are made.
_SKIPPED = re.compile(
    r"""(?mx) ^\#ifdef\ __cplusplus\n(?:extern\ "C"\ \{|\})\n\#endif\n
    | ^\#include .*\n | ^\#(?:ifndef|define)\ TWIN_(?:\w+_)?H\n
    | ^\#define\ (twin_\w+)\ TWIN_CONFIGURED\(\1\)\n | ^/\*\ clang-format\ \w+\ \*/\n"""
)
_GROUP = re.compile(r"(?ms)^(typedef (struct|enum) (\w+) \{.*?\} \w+;)|^(#define (\w+).*?[^\\])$")
_FUNCTION = re.compile(
    r"(?m)^(?:static inline )?((?:const )?[a-z]\w* \*?)((?:twin_|TWIN_CRC)\w*)(\([^{;]*\))(?=;| \{)"
)


class Block(NamedTuple):
    """A comment, and the code that it is about."""

    comment: str
    code: str
    condition: str


def blocks(text: str) -> Iterator[Block]:
    """Divide a header into comments and their code, as blank lines do."""
    text = _SKIPPED.sub("", text)
    conditions: list[str] = []
    for part in _parts(text):
        opened = _before_code(part)
        outer = conditions + opened
        words = " and ".join(f"`{one}`" for one in outer if one.startswith("TWIN_"))
        comment = next(_COMMENT.finditer(part), None)
        leading = comment is not None and not _code_in(part[: comment.start()])
        yield Block(
            _text_of(comment[1]) if comment and leading else "",
            part[comment.end() :] if comment and leading else part,
            words,
        )
        for line in part.splitlines():
            if match := re.match(r"#if(?:n?def)? (.*)", line):
                conditions.append(match[1])
            elif line.startswith("#endif") and conditions:
                conditions.pop()


def _parts(text: str) -> Iterator[str]:
    """Yield what lies between blank lines that are in no comment and no braces."""
    part: list[str] = []
    depth, inside = 0, False
    for line in text.splitlines():
        if not line.strip() and not depth and not inside:
            if part:
                yield "\n".join(part)
            part = []
            continue
        part.append(line)
        inside = line.rfind("/*") > line.rfind("*/") or (inside and "*/" not in line)
        bare = re.sub(r"/\*.*?\*/", "", line)
        depth += 0 if inside else bare.count("{") - bare.count("}")
    if part:
        yield "\n".join(part)


def _before_code(part: str) -> list[str]:
    """Conditions that a part begins with, and that hold for all of it."""
    found = []
    for line in _COMMENT.sub("", part).splitlines():
        if match := re.match(r"#if (TWIN_\w+(?: [<>=]+ \d+)?)$", line):
            found.append(match[1])
        elif line.strip():
            break
    return found if not re.search(r"(?m)^#el", part) else []


def _code_in(text: str) -> str:
    return re.sub(r"(?m)^#if.*$", "", text).strip()


def _text_of(comment: str) -> str:
    return re.sub(r"(?m)^ \* ?|^ \*$", "", comment.strip("* ")).strip()


def markdown(header: Path) -> str:
    """Return a section with all that a header says and declares."""
    text = header.read_text("utf-8")
    found = [f"## {header.name}\n"]
    seen: set[str] = set()
    for block in blocks(text):
        found += _entries(block, seen)
    return "\n".join(found)


def _entries(block: Block, seen: set[str]) -> Iterator[str]:
    """Yield a directive for each name that a block declares; the last one has the text."""
    code = block.code
    entries: list[tuple[str, str, str]] = []  # kind, signature, code to show
    for match in _GROUP.finditer(code):
        whole, kind, name, _, defined = match.groups()
        if whole:
            entries.append((kind, name, whole))
        elif not defined.startswith("TWIN_QUOTED"):
            shown = re.findall(rf"(?m)^#define {defined}\b.*(?:\\\n.*)*", code)
            entries.append(("macro", defined, "\n".join(shown) if len(shown) == 1 else ""))
    rest = _GROUP.sub("", code)
    for returned, name, parameters in _FUNCTION.findall(rest):
        signature = re.sub(r"\s+", " ", f"{returned}{name}{parameters}")
        entries.append(("function", signature, ""))
    for name in re.findall(r"(?m)^typedef [^{;]*?\(?\*?(\w+)\)?(?:\([^;]*\))?;", rest):
        declared = re.search(rf"(?ms)^typedef [^;{{]*\b{name}\b[^;]*;", rest)
        entries.append(("type", name, declared[0] if declared else ""))
    fresh = []
    for entry in entries:
        if entry[1] not in seen:
            seen.add(entry[1])
            fresh.append(entry)
    if not fresh:
        yield f"{_prose(block.comment)}\n"
        return
    alike = {shown for _, _, shown in fresh}
    for number, (kind, signature, shown) in enumerate(fresh, 1):
        yield f"::::{{c:{kind}}} {signature}"
        last = number == len(fresh)
        if last and block.condition:
            yield f"*Only if {block.condition}.*\n"
        if last:
            yield _prose(block.comment)
        if shown and (len(alike) == 1 or kind != "macro" or shown.count("\n") or " " in shown):
            yield f"\n```c\n{shown}\n```"
        yield "::::\n"


def statuses(header: Path) -> str:
    """Return a table of all statuses."""
    body = re.search(r"(?s)typedef enum twin_status \{(.*?)\}", header.read_text("utf-8"))
    assert body
    rows = ["| status | number | meaning |", "|---|---|---|"]
    for name, number, words in re.findall(r"(TWIN_\w+) = (-?\d+),?(?: +/\* (.*?) \*/)?", body[1]):
        meaning = words or {"TWIN_OK": "done", "TWIN_MORE": "well so far, but not done"}[name]
        rows.append(f"| `{name}` | {number} | {_inline(meaning)} |")
    return "\n".join(rows) + "\n"


def _prose(comment: str) -> str:
    """Return a comment as Markdown: paragraphs, lists and indented code."""
    found = []
    for paragraph in re.split(r"\n[ \t]*\n", comment):
        if paragraph.startswith("    "):
            code = "\n".join(line[4:] for line in paragraph.splitlines())
            if found and found[-1].startswith("```"):
                found[-1] = found[-1].removesuffix("```") + f"\n{code}\n```"
            else:
                found.append(f"```c\n{code}\n```")
        else:
            # A later line must not look like a list.
            lines = re.sub(r"\n(?!- )\s*(?=[-+\d])", " ", paragraph)
            found.append(_inline(lines))
    return "\n\n".join(found)


def _inline(text: str) -> str:
    """Return a line of a comment as Markdown, with names as code."""
    parts, at = [], 0
    for match in _NAME.finditer(text):
        parts.append(_SPECIAL.sub(r"\\\1", text[at : match.start()]))
        parts.append(match[0] if match[1] else f"`{match[0]}`")
        at = match.end()
    return "".join([*parts, _SPECIAL.sub(r"\\\1", text[at:])])
