"""What the theme's pages lack for those who do not see them, or use no mouse."""

import re

# What scrolls can be scrolled with the keyboard; every landmark has a name of its own.
_REPLACED = {
    r"<pre>": '<pre tabindex="0">',
    r'<div class="table-wrapper([^"]*)">': r'<div class="table-wrapper\1" tabindex="0" '
    'role="group" aria-label="Table">',
    r'<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    r'<aside class="toc-drawer([^"]*)">': r'<aside class="toc-drawer\1" aria-label="This page">',
    r'(<div id="search-results">)': r"<h1>Search</h1>\1",
    r'<th class="head[^"]*"><p></p></th>': "<td></td>",
    r'<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
}


def accessible(html: str) -> str:
    """Return a page with what it lacks."""
    for pattern, text in _REPLACED.items():
        html = re.sub(pattern, text, html)
    return html
