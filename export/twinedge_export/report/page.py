"""The report as one HTML file that needs nothing else."""

import base64
import json
from hashlib import sha256
from importlib.resources import files
from typing import Any

from twinedge_export.report.document import Document, Light, shown

_SCRIPTS = ("budget.js", "chart.js", "calculator.js")


def page(document: Document) -> str:
    """Write the page.

    Its policy allows the one script that is inside, and no connection to anywhere.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["shown"] = shown
    environment.tests["light"] = lambda cell: isinstance(cell, Light)
    script = "".join(_template(name) for name in _SCRIPTS)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    return environment.from_string(_template("page.html")).render(
        document=document,
        style=_template("style.css"),
        script=script,
        script_source=f"'sha256-{digest}'",
        facts=_embedded(document.calculator),
    )


def _template(name: str) -> str:
    place = files("twinedge_export.report").joinpath("templates", name)
    return place.read_text(encoding="utf-8")


def _embedded(facts: dict[str, Any]) -> str:
    """JSON that ends no script element and starts no comment, whatever it says."""
    text = json.dumps(facts, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
