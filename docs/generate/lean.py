"""Pictures and pages without what no reader sees, so that many fit into the site."""

import re
from collections import Counter

_DROPPED = re.compile(
    r"""(?sx) <\?xml.*?\?>\s* | <!DOCTYPE.*?>\s* | <!--.*?-->\s* | <metadata>.*?</metadata>\s*
    # The site has a switch for dark pages, and turns its pictures over itself.
    | @media\ \(prefers-color-scheme:\ dark\)\ \{(?:[^{}]*\{[^{}]*\})*\s*\}"""
)
_FONTS = re.compile(r"font-family: 'DejaVu Sans'[^;\"]*sans-serif|font: (.*?) 'DejaVu Sans'[^;\"]*")
_LONG = re.compile(r"(?<![\w#.])(-?\d+\.\d{2})\d+(?![\w.])")
_TAG = re.compile(r"<[^>]+>")
_STYLE = re.compile(r' style="([^"]*)"')
_OFTEN = 3  # uses of a style that are shorter as a class
# Names, punctuation and blanks of code have the colour of its text.
_PLAIN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')
_TWICE = re.compile(r'(<span class="[\w ]+">)<span class="pre">([^<]*)</span></span>')
_VERBATIM = re.compile(r"(?s)(<(pre|script|style|textarea)\b.*?</\2>)")
_SYMBOL = re.compile(r'(?s)<symbol id="([\w-]+)".*?</symbol>\s*')


def lean_picture(svg: str) -> str:
    r"""Return a picture with fewer bytes that looks the same.

    Coordinates keep two decimals: hundredths of a pixel.

    Examples
    --------
    >>> lean_picture('<svg><!-- x --><path d="M 1.23456 2.5 \nL 3 4 \n"/></svg>')
    '<svg><path d="M 1.23 2.5 L 3 4"/></svg>\n'
    """
    svg = _DROPPED.sub("", svg)
    svg = _FONTS.sub(
        lambda found: f"font: {found[1]} sans-serif" if found[1] else "font-family: sans-serif", svg
    )
    svg = _TAG.sub(lambda tag: _LONG.sub(r"\1", tag[0]), svg)  # but not the labels
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    named = set(re.findall(r"#([\w.-]+)", svg))
    svg = re.sub(r' id="([^"]*)"', lambda one: one[0] if one[1] in named else "", svg)
    svg = re.sub(r"\s+\"", '"', re.sub(r"[ \t]*\n[ \t]*(?=[A-Za-z0-9\"])", " ", svg))
    return _with_classes(re.sub(r">\s+<", "><", svg).strip()) + "\n"


def _with_classes(svg: str) -> str:
    """Let styles that are used often be classes, where a picture has none of its own."""
    if " class=" in svg:
        return svg
    often = [one for one, count in Counter(_STYLE.findall(svg)).most_common() if count >= _OFTEN]
    if not often:
        return svg
    names = {style: f"s{number}" for number, style in enumerate(often)}
    svg = _STYLE.sub(
        lambda one: f' class="{names[one[1]]}"' if one[1] in names else one[0],
        svg,
    )
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return re.sub(r"(<svg[^>]*>)", rf"\1<style>{rules}</style>", svg, count=1)


def lean_page(html: str) -> str:
    r"""Return a page without indentation, icons that it does not show, and marks of plain code.

    Examples
    --------
    >>> lean_page("<p>a\n   b</p>\n\n  <pre>  c</pre>")
    '<p>a\nb</p>\n<pre>  c</pre>'
    """
    html = _PLAIN.sub(r"\1", _TWICE.sub(r"\1\2</span>", html))
    html = _SYMBOL.sub(lambda one: one[0] if f'"#{one[1]}"' in html else "", html)
    parts = _VERBATIM.split(html)
    kept = zip(parts[::3], [*parts[1::3], ""], strict=True)
    return "".join(re.sub(r"\n\s*", "\n", text) + verbatim for text, verbatim in kept)
