"""The report as one HTML file that needs nothing else."""

import base64
import json
from hashlib import sha256
from importlib.resources import files
from typing import Any

from twinedge_export.report.document import Document, Light, shown

_ALWAYS = ("page.js",)
_CALCULATOR = ("budget.js", "chart.js", "calculator.js")
_TRIAL = ("runtime.js", "curves.js", "try.js")
# What sections are called where there is little room.
_LABELS = {
    "accuracy": "Accuracy",
    "intervals": "Intervals",
    "spread": "Spread",
    "drivers": "Drivers",
    "try": "Try it",
    "anchors": "Anchors",
    "memory": "Memory",
    "boards": "Boards",
    "pack": "Bytes",
    "origin": "Origin",
}


def page(document: Document) -> str:
    """Write the page.

    Its policy allows the one script that is inside, WebAssembly where there is something to try,
    and no connection to anywhere.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_template),
    )
    environment.filters["shown"] = shown
    environment.tests["light"] = lambda cell: isinstance(cell, Light)
    names = [*_ALWAYS]
    names += [*_CALCULATOR] if document.calculator else []
    names += [*_TRIAL] if document.trial else []
    script = '"use strict";\n' + "".join(_template(name) for name in names)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" + (" 'wasm-unsafe-eval'" if document.trial else "")
    return environment.get_template("page.html").render(
        document=document,
        labels=_LABELS,
        style=_template("style.css"),
        script=script,
        script_source=allowed,
        facts=_embedded(document.calculator),
        trial=_embedded(document.trial),
    )


def _template(name: str) -> str:
    place = files("twinedge_export.report").joinpath("templates", name)
    return place.read_text(encoding="utf-8")


def _embedded(facts: dict[str, Any]) -> str:
    """JSON that ends no script element and starts no comment, whatever it says."""
    text = json.dumps(facts, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
