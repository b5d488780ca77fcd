"""C text as tokens, and what it declares: as much of C as joining files needs.

Text is not preprocessed: a directive is one token, and both branches of a conditional are read, so
braces have to balance in each branch.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from twinedge.errors import InputError

_TOKEN = re.compile(
    r"""
    (?P<comment>/\*.*?\*/ | //[^\n]*)
    | (?P<directive>^[ \t]*\#(?:\\\n | /\*.*?\*/ | [^\n])*)
    | (?P<string>"(?:\\. | [^"\\\n])*" | '(?:\\. | [^'\\\n])*')
    | (?P<name>[A-Za-z_]\w*)
    | (?P<number>\.?\d(?:[eEpP][+-] | [\w.])*)
    | (?P<space>\n | \\\n | [^\S\n]+)
    | (?P<other>-> | .)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_SILENT = ("comment", "directive", "space")
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)", re.DOTALL)
_MACRO = re.compile(r"(\w+)(\([^)]*\))?\s*(.*)", re.DOTALL)
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_WITH_WORDS = ("__attribute__", "__asm", "__asm__", "_Pragma")
_AGGREGATES = ("struct", "union", "enum")


class Token(NamedTuple):
    """A piece of text; the pieces joined give the text back."""

    kind: str
    text: str

    @property
    def is_code(self) -> bool:
        """Whether it is none of comment, directive and space."""
        return self.kind not in _SILENT


class Directive(NamedTuple):
    """A line for the preprocessor: ``word`` is "include" or the like, ``rest`` is one line."""

    word: str
    rest: str


class Macro(NamedTuple):
    """What a name stands for, and whether it takes arguments."""

    name: str
    takes: bool
    body: str


class Declaration(NamedTuple):
    """One statement outside of functions.

    Parameters
    ----------
    start, end : int
        Its tokens, ``end`` included.
    names : tuple of str
        All names it declares; that of a function or variable comes last.
    kind : str
        "function", "variable" or "type".
    is_static, is_definition : bool
        Of a function or variable.
    """

    start: int
    end: int
    names: tuple[str, ...]
    kind: str
    is_static: bool = False
    is_definition: bool = False


def tokens_of(text: str) -> list[Token]:
    """Cut text into tokens."""
    return [Token(found.lastgroup or "other", found[0]) for found in _TOKEN.finditer(text)]


def directive_of(token: Token) -> Directive:
    """Read a directive, without its comments; both words are empty for any other token."""
    if token.kind != "directive":
        return Directive("", "")
    bare = re.sub(r"\\\n", " ", token.text)
    bare = re.sub(r"/\*.*?\*/|//.*", " ", bare, flags=re.DOTALL)
    found = _DIRECTIVE.match(bare)
    return Directive(found[1], " ".join(found[2].split())) if found else Directive("", "")


def macro_of(directive: Directive) -> Macro:
    """Read what ``#define`` says."""
    found = _MACRO.match(directive.rest)
    return Macro(found[1], found[2] is not None, found[3]) if found else Macro("", False, "")


def macros_of(tokens: Sequence[Token]) -> list[Macro]:
    """All macros that are defined, under any condition."""
    said = map(directive_of, tokens)
    return [macro_of(one) for one in said if one.word == "define"]


def renamed(tokens: Sequence[Token], names: Mapping[str, str]) -> list[Token]:
    """Rename everything but struct fields, which have a namespace of their own.

    Comments and strings stay as they are; in directives only macro bodies change.
    """
    fields = _fields(_words(tokens))
    out = []
    for i, token in enumerate(tokens):
        text = token.text
        if token.kind == "name" and i not in fields:
            text = names.get(text, text)
        elif directive_of(token).word == "define":
            rest = renamed(tokens_of(text.partition("#")[2]), names)
            text = "#" + "".join(one.text for one in rest)
        out.append(Token(token.kind, text))
    return out


class _Word(NamedTuple):
    """A token of code: its number, and whether it is a name."""

    at: int
    text: str
    is_name: bool


def _words(tokens: Sequence[Token]) -> list[_Word]:
    return [
        _Word(i, token.text, token.kind == "name")
        for i, token in enumerate(tokens)
        if token.is_code
    ]


def _fields(words: list[_Word]) -> set[int]:
    """Find tokens that name a field: where a struct declares it, and after a dot or arrow."""
    found = set()
    is_struct = [False]  # for each brace that is open
    brackets = 0
    before = last = ""
    for word, behind in zip(words, [*words[1:], _Word(-1, "", False)], strict=True):
        if word.text == "{":
            is_struct.append("struct" in (before, last) or "union" in (before, last))
        elif word.text == "}":
            is_struct.pop()
        brackets += (word.text == "[") - (word.text == "]")
        is_declared = is_struct[-1] and not brackets and behind.text in (*";,[:)=",)
        if last in (".", "->") or is_declared:
            found.add(word.at)
        before, last = last, word.text
    return found


def declarations(tokens: Sequence[Token], macros: Mapping[str, Macro]) -> Iterator[Declaration]:
    """Read what the tokens declare outside of functions.

    Parameters
    ----------
    tokens : sequence of Token
    macros : mapping from str to Macro
        Macros that the text may use.
    """
    words = _words(tokens)
    statement: list[_Word] = []
    depth, is_body = 0, False
    for i, word in enumerate(words):
        statement.append(word)
        if word.text in _OPENING:
            if not depth and word.text == "{":
                is_body = words[i - 1].text == ")"
            depth += 1
        elif word.text in _CLOSING:
            depth -= 1
        if depth == 0 and (word.text == ";" or (word.text == "}" and is_body)):
            yield _declaration(_without_calls(statement, macros), macros)
            statement, is_body = [], False
    if depth:
        raise InputError("braces of a C file do not match")


def _without_calls(statement: list[_Word], macros: Mapping[str, Macro]) -> list[_Word]:
    """Drop attributes, assembly and function-like macros, each with its arguments."""
    kept: list[_Word] = []
    depth = 0
    skipping = False
    for i, word in enumerate(statement):
        called = i + 1 < len(statement) and statement[i + 1].text == "("
        macro = macros.get(word.text)
        if not skipping and called and (word.text in _WITH_WORDS or (macro and macro.takes)):
            skipping, depth = True, 0
            continue
        if not skipping:
            kept.append(word)
            continue
        depth += (word.text == "(") - (word.text == ")")
        skipping = depth > 0
    return kept


def _declaration(words: list[_Word], macros: Mapping[str, Macro]) -> Declaration:
    start, end = words[0].at, words[-1].at
    outside = _outside(words)
    texts = [word.text for word in outside]
    if "typedef" in texts:
        return Declaration(start, end, (*_types(words), _typedef(outside)), "type")
    called = _function(outside)
    types = () if called else _types(words)
    name = called or _variable(outside)
    if not name:
        return Declaration(start, end, types, "type")
    is_static = any(
        word == "static" or (word in macros and "static" in macros[word].body.split())
        for word in texts[: texts.index(name)]
    )
    kind = "function" if called else "variable"
    is_definition = texts[-1] == "}" if called else "extern" not in texts
    return Declaration(start, end, (*types, name), kind, is_static, is_definition)


def _outside(words: list[_Word]) -> list[_Word]:
    """Words that are not inside of braces, and the braces."""
    kept: list[_Word] = []
    depth = 0
    for word in words:
        depth -= word.text == "}"
        if not depth:
            kept.append(word)
        depth += word.text == "{"
    return kept


def _types(words: list[_Word]) -> tuple[str, ...]:
    """Names of structs, unions and enums defined here, and of enumerators."""
    names: list[str] = []
    in_enum = False
    for before, kind, word in zip(words, words[1:], words[2:], strict=False):
        if before.text in _AGGREGATES and word.text == "{":
            names.append(kind.text)
        in_enum &= before.text != "}"
        in_enum |= before.text == "enum" and "{" in (kind.text, word.text)
        if in_enum and kind.text in ("{", ",") and word.is_name:
            names.append(word.text)
    return tuple(names)


def _typedef(outside: list[_Word]) -> str:
    """Find the name in ``typedef ... name;``, ``... name[n];`` or ``... (*name)(...);``."""
    for first, second, third in zip(outside, outside[1:], outside[2:], strict=False):
        if first.text == "(" and second.text == "*":
            return third.text
    return _variable(outside)


def _function(outside: list[_Word]) -> str:
    """Find the name before the first parenthesis, unless an initialiser comes first."""
    for word, behind in pairwise(outside):
        if word.text == "=":
            break
        if word.is_name and behind.text == "(":
            return word.text
    return ""


def _variable(outside: list[_Word]) -> str:
    """Find the last name before an array length, initialiser or the end, unless it is a type."""
    name = before = ""
    for word in outside:
        if word.text in ("[", "=", ";"):
            break
        if word.is_name:
            is_type = before in _AGGREGATES or word.text in _AGGREGATES
            name = "" if is_type else word.text
        before = word.text
    return name
