"""How Sphinx makes the site of these pages: `make site`."""

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent), str(DOCS.parent / "export")]

from pygments.lexer import inherit  # noqa: E402
from pygments.lexers.python import PythonLexer  # noqa: E402
from pygments.token import Text  # noqa: E402

from generate import filled  # noqa: E402
from generate.accessible import accessible  # noqa: E402
from generate.lean import lean_page, lean_picture  # noqa: E402
from twinedge.version import __version__  # noqa: E402

project = "twinedge"
author = "the authors of twinedge"
copyright = author  # noqa: A001 - its name
version = release = __version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["generate", "static"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nitpicky = False

# The estimators inherit from scikit-learn; nothing here trains.
autodoc_mock_imports = ["tensorflow", "keras"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have them
autodoc_inherit_docstrings = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"twinedge {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_copy_source = False
html_domain_indices = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


class _Notebook(PythonLexer):
    """Python, and lines for the shell behind an exclamation mark."""

    tokens = {"root": [(r"^!.*", Text), inherit]}  # noqa: RUF012 - as pygments has it


def _fill(app: Any, name: str, content: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    content[0], used = filled(content[0], page)
    for path in used:
        app.env.note_dependency(str(path))


def _skip(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator."""
    home = getattr(thing, "__module__", None) or ""
    return True if home.startswith("sklearn.") else None


def _finish(app: Any, error: Exception | None) -> None:
    """Complete the pages as they were written, and leave out what no reader needs."""
    for path in Path(app.outdir, "_static").rglob("*.map"):  # for those who change the theme
        path.unlink()
    for path in Path(app.outdir, "_images").glob("*.svg"):
        path.write_text(lean_picture(path.read_text("utf-8")), "utf-8")
    for path in Path(app.outdir).rglob("*.html"):
        path.write_text(accessible(lean_page(path.read_text("utf-8"))), "utf-8")


def setup(app: Any) -> None:
    """Fill in pages as they are read."""
    app.add_lexer("notebook", _Notebook)
    app.connect("source-read", _fill)
    app.connect("autodoc-skip-member", _skip)
    app.connect("build-finished", _finish)
