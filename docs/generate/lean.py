"""Pictures and pages without what no reader sees, so that many fit into the site."""

import re

_DROPPED = re.compile(
    r"""(?sx) <\?xml.*?\?>\s* | <!DOCTYPE.*?>\s* | <!--.*?-->\s* | <metadata>.*?</metadata>\s*
    # The site has a switch for dark pages, and turns its pictures over itself.
    | @media\ \(prefers-color-scheme:\ dark\)\ \{(?:[^{}]*\{[^{}]*\})*\s*\}"""
)
_FONTS = re.compile(r"font-family: 'DejaVu Sans'[^;\"]*sans-serif|font: (.*?) 'DejaVu Sans'[^;\"]*")
_LONG = re.compile(r"(?<![\w#.])(-?\d+\.\d{2})\d+(?![\w.])")
_TAG = re.compile(r"<[^>]+>")
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
    svg = re.sub(r"\s+\"", '"', re.sub(r"[ \t]*\n[ \t]*(?=[A-Za-z0-9\"])", " ", svg))
    return re.sub(r">\s+<", "><", svg).strip() + "\n"


def lean_page(html: str) -> str:
    r"""Return a page without indentation, and without the icons that it does not show.

    Examples
    --------
    >>> lean_page("<p>a\n   b</p>\n\n  <pre>  c</pre>")
    '<p>a\nb</p>\n<pre>  c</pre>'
    """
    html = _SYMBOL.sub(lambda one: one[0] if f'"#{one[1]}"' in html else "", html)
    parts = _VERBATIM.split(html)
    kept = zip(parts[::3], [*parts[1::3], ""], strict=True)
    return "".join(re.sub(r"\n\s*", "\n", text) + verbatim for text, verbatim in kept)
